import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import BadInput, Diverged, Failed, Interrupted, TwofoldError, nearest, unknown

NAMES = ["simclr", "byol", "simsiam", "no-predictor"]


@pytest.mark.parametrize(
    ("error", "status"), [(TwofoldError, 1), (BadInput, 2), (Failed, 1), (Diverged, 1), (Interrupted, 130)]
)
def test_every_error_has_its_exit_status(error, status):
    assert issubclass(error, TwofoldError)
    assert error("a sentence").exit_status == status


def test_bad_input_is_a_value_error_and_a_failure_is_not():
    assert issubclass(BadInput, ValueError)
    assert issubclass(Diverged, Failed)
    assert issubclass(Interrupted, Failed)
    assert not issubclass(Failed, ValueError)


@pytest.mark.parametrize(("typed", "meant"), [("simclt", "simclr"), ("boyl", "byol"), ("no_predictor", "no-predictor")])
def test_a_slip_of_the_hand_is_corrected(typed, meant):
    assert nearest(typed, iter(NAMES)) == f"; did you mean '{meant}'?"


def test_nothing_is_suggested_for_what_is_like_nothing():
    assert nearest("zzzz", NAMES) == ""
    assert nearest("byol", []) == ""


def test_an_unknown_name_is_answered_in_one_sentence():
    error = unknown("method", "simclt", iter(NAMES))
    assert isinstance(error, BadInput)
    assert str(error) == (
        "unknown method 'simclt', allowed are simclr, byol, simsiam, no-predictor; did you mean 'simclr'?"
    )
    assert str(unknown("method", 7, NAMES)) == "unknown method '7', allowed are simclr, byol, simsiam, no-predictor"


@given(st.text(max_size=9), st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=5))
def test_any_name_and_table_give_a_sentence_with_all_of_them(name, allowed):
    sentence = str(unknown("thing", name, allowed))
    assert f"'{name}'" in sentence
    assert all(word in sentence for word in allowed)
