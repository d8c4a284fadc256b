import pytest
import torch

from twofold.errors import BadInput
from twofold.methods import method
from twofold.networks import EMA, Online
from twofold.objectives import BYOL, MINE, Contrastive, Direct, Implied, InfoNCE, PairWeighted, Square
from twofold.predictors import MLP, Linear
from twofold.training import as_mapping, members, overlay, settings
from twofold.training.optimizers import SGD, AdamW


def test_a_method_fills_the_axes():
    chosen = settings({"method": "byol"})
    assert isinstance(chosen.objective, BYOL)
    assert isinstance(chosen.predictor, MLP)
    assert chosen.target == EMA(0.99)


def test_an_axis_can_be_given_by_name_in_part_or_whole():
    chosen = settings(
        {"method": "byol", "predictor": "linear", "target": {"decay": 0.5}, "optimizer": SGD(momentum=0.1)}
    )
    assert isinstance(chosen.predictor, Linear)
    assert chosen.target == EMA(0.5)
    assert chosen.optimizer == SGD(momentum=0.1)


def test_another_kind_starts_from_its_own_defaults():
    assert settings({"method": "byol", "target": {"kind": "online"}}).target == Online()
    assert settings({"objective": {"kind": "infonce", "temperature": 0.5}}).objective == InfoNCE(0.5)


def test_a_point_of_the_zoo_can_be_given_itself():
    chosen = settings({"method": method("byol").replace(predictor=Linear(bias=True))})
    assert chosen.method == "byol"
    assert chosen.predictor.bias


def test_views_go_by_the_names_of_presets_and_parts_lie_over_them():
    chosen = settings({"views": {"kind": "cifar", "first": {"hue": 0.02}}})
    preset = settings({"views": "cifar"})
    assert chosen.views.first.hue == 0.02
    assert chosen.views.first.crop == preset.views.first.crop
    assert chosen.views.second == preset.views.second


@pytest.mark.parametrize("given", [{}, {"method": "byol", "views": "byol", "lr": 0.1, "optimizer": "lars"}])
def test_settings_go_through_plain_values_and_back(given):
    chosen = settings(given)
    assert as_mapping(settings(as_mapping(chosen))) == as_mapping(chosen)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"method": "simclear"}, "unknown method 'simclear', allowed are .*; did you mean 'simclr'\\?"),
        ({"predictor": "lineer"}, "unknown predictor 'lineer', allowed are none, linear, mlp; did you mean 'linear'"),
        ({"views": "cifer"}, "unknown views 'cifer', .*did you mean 'cifar'"),
        ({"target": {"kind": "ema", "dekay": 0.9}}, "unknown setting of target ema 'dekay', .*did you mean 'decay'"),
        ({"target": {"kind": "ema", "decay": 1.5}}, "target.decay must be less than or equal to 1, not 1.5"),
        ({"lr": -1}, "lr must be greater than 0, not -1"),
        ({"lr": "fast"}, "lr must be a valid number, .*not 'fast'"),
        ({"batch_size": 1}, "batch_size must be greater than or equal to 2, not 1"),
        ({"epochs": 0}, "epochs must be greater than or equal to 1, not 0"),
        ({"epochs": 2, "steps": 3}, "^give either epochs \\(2\\) or steps \\(3\\), not both$"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin', allowed are constant, cosine; did you mean 'cosine'"),
        ({"epoch": 3}, "unknown setting 'epoch', .*did you mean 'epochs'"),
        ({"views": {"noise": 1.0}}, "say which views"),
    ],
)
def test_mistakes_are_one_sentence(given, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        settings(given)
    assert "\n" not in str(caught.value)


def test_the_kinds_of_an_axis():
    assert list(members("predictor")) == ["none", "linear", "mlp"]
    assert set(members("views")) == {"scenes", "image", "additive", "scrambling"}


def test_overlay_keeps_parts_of_one_kind_and_drops_those_of_another():
    below = {"target": {"kind": "ema", "decay": 0.5}, "lr": 1}
    assert overlay(below, {"target": {"decay": 0.9}}) == {"target": {"kind": "ema", "decay": 0.9}, "lr": 1}
    assert overlay(below, {"target": "online"}) == {"target": {"kind": "online"}, "lr": 1}


def test_a_row_brings_its_recipe_and_any_of_it_may_be_given():
    chosen = settings({"method": "byol"})
    assert (chosen.optimizer, chosen.schedule) == (SGD(), "constant")
    assert settings({"method": "byol", "optimizer": {"momentum": 0.5}}).optimizer == SGD(momentum=0.5)
    chosen = settings({"method": "byol", "optimizer": "adamw", "schedule": "cosine"})
    assert (chosen.optimizer, chosen.schedule) == (AdamW(), "cosine")
    assert settings({}).optimizer == AdamW()


def test_a_member_that_holds_others_takes_their_kinds_and_their_parts():
    chosen = settings({"method": "alpha-cl-direct", "objective": {"importance": {"p": 6}}})
    assert chosen.objective == PairWeighted(Direct(6.0))
    chosen = settings({"objective": {"kind": "pair-weighted", "importance": "square"}})
    assert chosen.objective == PairWeighted(Square())
    nested = {"kind": "pair-weighted", "importance": {"kind": "implied", "loss": {"kind": "mine"}}}
    assert settings({"objective": nested}).objective == PairWeighted(Implied(MINE()))


@pytest.mark.parametrize(
    ("objective", "sentence"),
    [
        (
            {"kind": "pair-weighted", "importance": "sqare"},
            "unknown objective.importance 'sqare'.*did you mean 'square'",
        ),
        (
            {"kind": "pair-weighted", "importance": {"q": 2}},
            "unknown setting of objective.importance direct 'q', allowed are p, temperature, normalised, kind",
        ),
        (
            {"kind": "pair-weighted", "importance": {"p": 0.5}},
            "^objective.importance.p must be greater than 1, not 0.5$",
        ),
        (
            {"kind": "infonce", "negatives": "vews"},
            "allowed are views, anchors or a number.*mean 'views'",
        ),
        (
            {"kind": "infonce", "negatives": 0},
            "unknown negatives '0', allowed are views, anchors or a number",
        ),
        ({"kind": "infonce", "negatives": 128}, "negatives 128 needs a batch of at least 129, not 128"),
        ({"kind": "contrastive"}, "^objective.phi must be given$"),
        ({"kind": "raft", "tangential": True, "normalised": False}, "they need normalised, which is off"),
        (Contrastive(torch.log1p, torch.exp), "no file can hold a function of your own"),
    ],
)
def test_an_objective_that_cannot_be_is_refused_in_one_sentence(objective, sentence):
    with pytest.raises(BadInput, match=sentence):
        settings({"objective": objective})
