"""The claims hold for any seed, and the frame believes nothing whose control survives."""

import json
import re

import pytest

from twofold.cli import main
from twofold.papers import Claim, claims, verify

SEEDS = (0, 1, 2)


def claim(residual, control=1.0):
    def measure(draw, wrong):
        return control if wrong else residual

    return Claim("made-up", "nowhere", "p. 1", "Two is two.", "exact", 1e-10, "Two is three.", measure)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stated", claims(), ids=lambda stated: stated.id)
def test_the_claim_holds_and_its_control_is_refuted(stated, seed):
    outcome = verify(stated, seed)
    assert outcome.holds, outcome
    assert outcome.control_refuted, outcome


def test_the_claims_of_issue_have_names_of_their_own():
    ids = [stated.id for stated in claims()]
    assert len(set(ids)) == len(ids)
    assert {"alpha_cl/thm1", "alpha_cl/thm2", "alpha_cl/regularizers", "alpha_cl/cor1"} <= set(ids)


@pytest.mark.parametrize(
    ("residual", "control", "passes"),
    [
        (0.0, 1.0, True),
        (1e-10, 2e-10, True),
        (2e-10, 1.0, False),
        (0.0, 0.0, False),
        (float("nan"), 1.0, False),
        (0.0, float("nan"), False),
        (float("inf"), 1.0, False),
        (0.0, float("inf"), True),
    ],
)
def test_a_claim_passes_only_with_a_refuted_control(residual, control, passes):
    assert verify(claim(residual, control)).passes == passes


def test_instances_are_the_same_for_a_seed_and_fresh_for_another():
    seen = []

    def measure(draw, wrong):
        seen.append((draw.integer(0, 10**6), draw.between(0.0, 1.0), float(draw.normal(2)[1])))
        return 0.0

    stated = Claim("made-up", "nowhere", "p. 1", "Two is two.", "exact", 1e-10, "Two is three.", measure)
    verify(stated, 5), verify(stated, 5), verify(stated, 6)
    assert seen[0] == seen[1] == seen[2] == seen[3]  # the control sees what the claim saw
    assert seen[4] != seen[0]
    assert 0 <= seen[0][1] < 1


def test_the_command_prints_one_record_a_claim(capsys):
    assert main(["verify", "--json", "alpha_cl/thm2"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert {
        *("id", "paper", "place", "statement", "kind", "residual", "tolerance"),
        *("holds", "control", "control_refuted", "seconds"),
    } <= set(record)
    assert record["id"] == "alpha_cl/thm2"


def test_patterns_name_papers_and_claims(capsys):
    for pattern, count in (("alpha_cl", 4), ("thm1", 1), ("*/thm*", 2), ("alpha_cl/cor1", 1)):
        assert main(["verify", "--list", "--json", pattern]) == 0
        assert len(json.loads(capsys.readouterr().out)) >= count


@pytest.mark.parametrize("outcome", [claim(1.0), claim(0.0, control=0.0)])
def test_a_claim_that_fails_or_whose_control_survives_ends_with_status_1(outcome, monkeypatch, capsys):
    monkeypatch.setattr("twofold.papers.claims", lambda: (outcome,))
    assert main(["verify"]) == 1
    said = capsys.readouterr().out
    assert "0 of 1 hold" in said
    assert "FAILS" in said or "SURVIVES" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["alpha_kl"], "no claim matches 'alpha_kl'.*did you mean 'alpha_cl'"),
        (["thm1", "--seed", "-3"], "--seed must be from 0 to 4294967295, not -3"),
        (["--sed", "1"], "--seed"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, capsys):
    assert main(["verify", *words]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert len(said.err.splitlines()) == 1
    assert re.search(sentence, said.err)
