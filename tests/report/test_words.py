from dataclasses import replace

import pytest

from twofold.records import Accuracy, RunRecord
from twofold.report.words import ended, label, listed, number, percent, setting, standing, title


@pytest.mark.parametrize(
    ("share", "words"), [(0.881, "88.1 %"), (0.0, "0.0 %"), (1.0, "100.0 %"), (None, "–"), (float("nan"), "–")]
)
def test_shares_have_one_decimal(share: float | None, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.12345, "0.123"), (12345.0, "12,345"), (1e-7, "1e-07"), (None, "–"), (float("inf"), "–"), (-2.5, "-2.5")],
)
def test_numbers_have_three_digits(value: float | None, words: str) -> None:
    assert number(value) == words


def test_lists_read_as_in_a_sentence() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_a_setting_is_a_name_or_the_kind_of_a_choice() -> None:
    settings = {"data": "digits", "objective": {"kind": "byol"}, "projector": {"width": 3}}
    assert [setting(settings, name) for name in ("data", "objective", "projector", "encoder")] == [
        "digits",
        "byol",
        None,
        None,
    ]


def test_a_run_is_named_as_far_as_it_is_known(run: RunRecord) -> None:
    assert title(run) == "simclr on digits"
    assert title(replace(run, settings={"method": "byol"})) == "byol"
    assert title(replace(run, settings={})) == label(replace(run, settings={})) == "first"


def test_standing_tells_above_level_and_below(run: RunRecord) -> None:
    assert run.evaluation is not None
    words = standing(replace(run.evaluation, accuracy=Accuracy(0.2)))
    assert words == (
        "Its kNN accuracy is 20.0 % on 400 test samples: above chance (10.0 %), "
        "at the level of the untrained encoder (18.0 %), below the raw samples (45.0 %)."
    )


def test_what_is_at_one_level_depends_on_the_number_of_samples(run: RunRecord) -> None:
    """0.13 against 0.1 is 1.3 standard errors of the difference with 400 samples, and 4.2 with 4 000."""
    assert run.evaluation is not None
    few = replace(run.evaluation, accuracy=Accuracy(0.13), baselines={}, samples=400)
    few_words, many_words = standing(few), standing(replace(few, samples=4000))
    assert few_words is not None
    assert many_words is not None
    assert "at the level of chance" in few_words
    assert "above chance" in many_words


def test_without_labels_there_is_no_standing(run: RunRecord) -> None:
    assert run.evaluation is not None
    assert standing(replace(run.evaluation, accuracy=None, baselines={}, chance=None)) is None
    assert standing(replace(run.evaluation, accuracy=Accuracy(float("nan")))) is None


def test_a_run_without_references_only_has_its_accuracy(run: RunRecord) -> None:
    assert run.evaluation is not None
    words = standing(replace(run.evaluation, baselines={}, chance=None))
    assert words == "Its kNN accuracy is 88.0 % on 400 test samples."


def test_the_end_of_a_control_is_said_in_words(control: RunRecord) -> None:
    assert ended(control) == "The control, no-predictor, ended collapsed."
    stopped = replace(control, evaluation=None, state="stopped")
    assert ended(stopped) == "The control, no-predictor, has not been evaluated: it stopped before its end."
