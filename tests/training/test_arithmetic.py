import itertools
import json
import os

import pytest
import torch

from twofold.training import arithmetic, settings
from twofold.training.arithmetic import Arithmetic, choose
from twofold.training.student import plan

SLOW, FAST = Arithmetic("float32", False), Arithmetic("bf16", True)
CPU = torch.device("cpu")


@pytest.fixture
def student():
    return plan(settings({"width": 2}), (1, 8, 8)).student()


@pytest.fixture(autouse=True)
def empty_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path))
    return tmp_path


def times(monkeypatch, seconds):
    asked = []

    def measured(student, option, shape, device):
        asked.append(option)
        return lambda: seconds[option.precision, option.channels_last]

    monkeypatch.setattr(arithmetic, "_attempt", measured)
    return asked


FOUR = {("float32", False): 4.0, ("bf16", False): 3.0, ("float32", True): 2.0, ("bf16", True): 1.0}


def test_the_fastest_of_four_is_chosen(student, monkeypatch):
    times(monkeypatch, FOUR)
    assert choose("auto", student, (1, 8, 8), CPU) == FAST


def test_the_same_speed_is_no_reason_to_leave_the_simplest(student, monkeypatch):
    times(monkeypatch, dict.fromkeys(FOUR, 0.99) | {("float32", False): 1.0})
    assert choose("auto", student, (1, 8, 8), CPU) == SLOW


def test_a_disturbance_of_one_moment_decides_nothing(student, monkeypatch):
    turns = {("bf16", True): iter([9.0, 1.0, 1.0, 1.0, 1.0])}

    def disturbed(student, option, shape, device):
        speed = turns.get((option.precision, option.channels_last), itertools.repeat(8.0))
        return lambda: next(speed)

    monkeypatch.setattr(arithmetic, "_attempt", disturbed)
    assert choose("auto", student, (1, 8, 8), CPU) == FAST


def test_a_wish_is_kept(student, monkeypatch):
    asked = times(monkeypatch, FOUR)
    assert choose("float32", student, (1, 8, 8), CPU) == Arithmetic("float32", True)
    assert {option.precision for option in asked} == {"float32"}


def test_the_answer_is_remembered_for_this_network(student, monkeypatch):
    asked = times(monkeypatch, FOUR)
    choose("auto", student, (1, 8, 8), CPU)
    assert len(asked) == 4
    assert choose("auto", student, (1, 8, 8), CPU) == FAST
    assert len(asked) == 4
    choose("auto", student, (1, 16, 16), CPU)
    assert len(asked) == 8


@pytest.mark.parametrize("content", ["{", "[]", '{"x": 1}'])
def test_a_broken_memory_is_forgotten(student, monkeypatch, empty_memory, content):
    (empty_memory / "arithmetic.json").write_text(content)
    times(monkeypatch, FOUR)
    assert choose("auto", student, (1, 8, 8), CPU) == FAST
    assert isinstance(json.loads((empty_memory / "arithmetic.json").read_text()), dict)


def test_a_memory_that_cannot_be_written_is_no_error(student, monkeypatch):
    monkeypatch.setenv("TWOFOLD_CACHE", os.devnull)
    times(monkeypatch, FOUR)
    assert choose("auto", student, (1, 8, 8), CPU) == FAST


def test_the_probe_really_computes_and_moves_nothing(student):
    before = {name: weight.clone() for name, weight in student.state_dict().items()}
    generator = torch.get_rng_state()
    assert choose("auto", student, (1, 8, 8), CPU).precision in ("float32", "bf16")
    assert all(torch.equal(before[name], weight) for name, weight in student.state_dict().items())
    assert torch.equal(generator, torch.get_rng_state())


def test_the_layout_is_applied():
    batch = torch.zeros(2, 3, 4, 4)
    assert FAST.laid_out(batch).is_contiguous(memory_format=torch.channels_last)
    assert SLOW.laid_out(batch).is_contiguous()
    assert FAST.laid_out(torch.zeros(2, 3)).shape == (2, 3)
    assert FAST.module(torch.nn.Conv2d(3, 4, 3)).weight.is_contiguous(memory_format=torch.channels_last)
    with FAST.autocast(CPU):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
