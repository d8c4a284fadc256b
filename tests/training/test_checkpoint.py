import errno
import os
import subprocess
import sys

import pytest
import torch

from twofold.errors import Failed
from twofold.training import checkpoint

WEIGHTS = {"w": torch.arange(6.0).reshape(2, 3), "last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)}


def states(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved_is_loaded(tmp_path):
    checkpoint.save(tmp_path, WEIGHTS, {"step": 3, "nested": {"x": [1, 2.5, None]}}, 3, ("last",))
    weights, state = checkpoint.load(tmp_path)
    assert all(torch.equal(weights[name], WEIGHTS[name]) for name in WEIGHTS)
    assert state == {"step": 3, "nested": {"x": [1, 2.5, None]}}
    assert checkpoint.step_of(tmp_path) == 3
    assert not checkpoint.exists(tmp_path, "best")


def test_only_what_is_named_is_kept(tmp_path):
    checkpoint.save(tmp_path, WEIGHTS, {}, 1, ("last", "best"))
    checkpoint.save(tmp_path, WEIGHTS, {}, 2, ("last",))
    checkpoint.save(tmp_path, WEIGHTS, {}, 3, ("last",))
    assert states(tmp_path) == ["best", "last", "step-1", "step-3"]
    assert checkpoint.step_of(tmp_path, "best") == 1


@pytest.mark.parametrize("breaking", ["save_file", "write_atomically"])
def test_a_write_that_fails_leaves_the_last_good_one_and_nothing_else(tmp_path, monkeypatch, breaking):
    checkpoint.save(tmp_path, WEIGHTS, {"step": 1}, 1, ("last",))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, breaking, full)
    with pytest.raises(Failed, match=r"step 2 cannot be written.*No space left.*the last good one is of step 1"):
        checkpoint.save(tmp_path, WEIGHTS, {"step": 2}, 2, ("last",))
    monkeypatch.undo()
    assert checkpoint.load(tmp_path)[1] == {"step": 1}
    assert not [name for name in states(tmp_path) if name.startswith(".")]


def test_a_disk_that_fills_while_writing_is_one_sentence(tmp_path):
    """The limit on the size of files stands for the full disk: the writers below fail in the middle."""
    program = """
import resource, signal, sys, torch
from pathlib import Path
from twofold.errors import Failed
from twofold.training import checkpoint
folder = Path(sys.argv[1])
checkpoint.save(folder, {"w": torch.zeros(8)}, {"step": 1}, 1, ("last",))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for weights, state in (({"w": torch.zeros(100_000)}, {}), ({"w": torch.zeros(8)}, {"m": torch.zeros(100_000)})):
    try:
        checkpoint.save(folder, weights, state, 2, ("last",))
    except Failed as failure:
        print(failure)
    else:
        raise AssertionError("it should have failed")
assert checkpoint.load(folder)[1] == {"step": 1}
assert sorted(path.name for path in folder.iterdir()) == ["last", "step-1"]
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the last good one is of step 1") == 2


def test_leftovers_of_a_killed_writer_go_with_the_next_write(tmp_path):
    (tmp_path / ".step-5.123").mkdir()
    (tmp_path / ".last.abc").write_text("step-")
    checkpoint.save(tmp_path, WEIGHTS, {}, 6, ("last",))
    assert states(tmp_path) == ["last", "step-6"]


def test_a_state_that_would_run_code_is_refused(tmp_path):
    checkpoint.save(tmp_path, WEIGHTS, {"step": 1}, 1, ("last",))

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "owned"),)

    torch.save({"step": Evil()}, tmp_path / "step-1" / "state.pt")
    with pytest.raises(Failed, match="cannot be read"):
        checkpoint.load(tmp_path)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", ["../elsewhere", "step-", "", "step-1/../.."])
def test_a_name_that_is_no_state_is_refused(tmp_path, name):
    (tmp_path / "last").write_text(name)
    with pytest.raises(Failed, match="should name a state"):
        checkpoint.load(tmp_path)
