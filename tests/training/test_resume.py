"""A run that is killed and goes on ends with the very weights of one that was not."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

STEPS = 40

# Dropout draws from torch's global generator, so the test sees whether that is given back too.
PROGRAM = """
import sys
import numpy as np
import torch
import twofold
torch.set_num_threads(1)
images = np.random.default_rng(0).integers(0, 256, (120, 1, 8, 8), dtype=np.uint8)
encoder = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Flatten()
)
torch.nn.init.constant_(encoder[0].weight, 0.1)
torch.nn.init.constant_(encoder[0].bias, 0.0)
twofold.train(
    images, method="byol", encoder=encoder, steps=%d, batch_size=16, checkpoint_seconds=0, watch_every=7,
    projector={"kind": "mlp", "hidden": 16, "dim": 8}, predictor={"kind": "mlp", "hidden": 16}, precision="float32",
    optimizer=sys.argv[2], lr=0.01, out=sys.argv[1], resume="resume" in sys.argv, views={"kind": "cifar"},
)
"""


def start(folder: Path, optimizer: str, *words: str) -> subprocess.Popen:
    program = [sys.executable, "-c", PROGRAM % STEPS, str(folder), optimizer, *words]
    return subprocess.Popen(program, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> None:
    _, complaint = process.communicate()
    assert process.returncode == 0, complaint


def kill_after(process: subprocess.Popen, folder: Path, step: int) -> None:
    """Wait until a checkpoint of the step is there, and a moment more, then kill without warning."""
    while process.poll() is None and _saved(folder) < step:
        time.sleep(0.001)
    time.sleep(random.random() * 0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()


def _saved(folder: Path) -> int:
    try:
        return int((folder / "checkpoint" / "last").read_text().removeprefix("step-") or 0)
    except FileNotFoundError:
        return 0


def final(folder: Path) -> dict[str, torch.Tensor]:
    assert _saved(folder) == STEPS
    return load_file(folder / "checkpoint" / f"step-{STEPS}" / "weights.safetensors")


def logged(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "moments"), [("adamw", (1, 13, 27)), ("lars", (20,))])
def test_killed_and_resumed_is_bit_for_bit_the_same(tmp_path, optimizer, moments):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    finish(start(whole, optimizer))
    kill_after(start(broken, optimizer), broken, moments[0])
    for moment in moments[1:]:
        kill_after(start(broken, optimizer, "resume"), broken, moment)
    finish(start(broken, optimizer, "resume"))
    expected, found = final(whole), final(broken)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert logged(whole) == logged(broken)
    assert not list(broken.glob("checkpoint/.*"))
    assert [path.name for path in broken.glob(".*")] == [".lock"]


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path):
    words = [sys.executable, "-m", "twofold", "train", "--steps", "100000", "--width", "4", "--batch-size", "32"]
    words += ["--precision", "float32", "--checkpoint-seconds", "1000", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    log = tmp_path / "run" / "metrics.jsonl"
    while process.poll() is None and not (log.exists() and log.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert f"twofold train --resume --out {tmp_path / 'run'}" in said
    assert _saved(tmp_path / "run") > 0
    assert max(row["step"] for row in logged(tmp_path / "run")) == _saved(tmp_path / "run")
