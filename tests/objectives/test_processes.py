"""Several processes, each with its share of a batch, find the loss and the gradient of one with all of it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from roster import ROSTER
from several import answer, batch, share

PROGRAM = Path(__file__).parent / "several.py"
WORLDS = (2, 3)


@pytest.fixture(scope="module", params=WORLDS)
def answers(request, tmp_path_factory):
    """Run as many processes on loopback, and collect what each found."""
    world, folder = request.param, tmp_path_factory.mktemp("several")
    words = [str(world), str(folder / "meeting"), str(folder / "answers")]
    running = [
        subprocess.Popen([sys.executable, str(PROGRAM), str(rank), *words], stderr=subprocess.PIPE, text=True)
        for rank in range(world)
    ]
    try:
        for process in running:
            _, said = process.communicate(timeout=240)
            assert process.returncode == 0, said
    finally:
        for process in running:
            process.kill()
    return [torch.load(f"{folder}/answers.{rank}", weights_only=True) for rank in range(world)]


@pytest.mark.parametrize("index", range(len(ROSTER)), ids=[str(member) for member in ROSTER])
def test_shares_of_a_batch_give_the_gradient_of_the_whole(index, answers):
    member = ROSTER[index]
    expected = answer(member, batch())
    for found in answers:
        for mine, whole in zip(found["found"][index], expected, strict=True):
            torch.testing.assert_close(mine, whole, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("member", [m for m in ROSTER if m.reaches == {"online"}], ids=str)
def test_shares_that_never_meet_would_be_noticed(member):
    """The control: the mean over processes that know their own rows alone."""
    alone = [answer(member, share(rank, 2)) for rank in range(2)]
    expected = answer(member, batch())
    mean = (alone[0][1] + alone[1][1]) / 2
    assert not torch.allclose(mean, expected[1], rtol=1e-6, atol=1e-6)


def test_uneven_shares_are_refused_everywhere(answers):
    members = [member for member in ROSTER if member.reaches == {"online"}]
    counts = ", ".join(str(4 + rank) for rank in range(len(answers)))
    for found in answers:
        assert len(found["refused"]) == len(members)
        assert all(f"as many samples as the others, and they hold {counts}" in said for said in found["refused"])
