import pytest
from pydantic import ValidationError

import twofold
from twofold.errors import BadInput
from twofold.networks import EMA, Online
from twofold.predictors import MLP, Linear, NoPredictor


def test_the_table_holds_the_points_it_names():
    rows = {row.name: row for row in twofold.methods()}
    assert set(rows) >= {
        *("simclr", "simclr-simple", "simclr-triplet", "nplus1", "lifted", "mine", "quadratic"),
        *("alpha-cl-entropy", "alpha-cl-inverse", "alpha-cl-square", "alpha-cl-direct", "barlow-twins"),
        *("byol", "byol-prime", "raft", "raft-tangential", "simsiam", "no-predictor"),
    }
    assert len(rows) == len(twofold.methods())
    assert isinstance(rows["byol"].predictor, MLP)
    assert isinstance(rows["byol"].target, EMA)
    assert isinstance(rows["simsiam"].target, Online)
    assert isinstance(rows["no-predictor"].predictor, NoPredictor)
    assert rows["no-predictor"].objective == rows["byol"].objective
    assert rows["simclr"].objective.kind == "infonce"


def test_every_row_cites_its_place_and_says_what_it_is():
    for row in twofold.methods():
        assert row.citation.paper
        assert row.citation.place
        assert row.summary


def test_a_step_along_one_axis_leaves_the_others():
    point = twofold.method("byol").replace(predictor=Linear())
    assert isinstance(point.predictor, Linear)
    assert point.target == twofold.method("byol").target
    assert isinstance(twofold.method("byol").predictor, MLP)


def test_an_unknown_method_has_a_nearest_spelling():
    with pytest.raises(BadInput, match="did you mean 'byol'"):
        twofold.method("boyl")


def test_an_unknown_axis_has_a_nearest_spelling():
    with pytest.raises(BadInput, match="did you mean 'predictor'"):
        twofold.method("byol").replace(predicter=Linear())


def test_what_is_no_member_of_an_axis_is_refused():
    with pytest.raises((BadInput, ValidationError)):
        twofold.method("byol").replace(predictor=EMA())
