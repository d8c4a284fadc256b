"""Laws of every predictor; a new member adds itself to the roster."""

import copy

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from twofold.errors import BadInput
from twofold.predictors import MLP, AnyPredictor, Linear, NoPredictor

ROSTER = [NoPredictor(), Linear(), Linear(bias=True), MLP(hidden=16)]
DIM = 6


@pytest.fixture(params=ROSTER, ids=repr)
def predictor(request):
    return request.param


def z(n=9, dim=DIM):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(0))


def test_projections_keep_their_dimension(predictor):
    assert predictor.sized(DIM)(z()).shape == z().shape


def test_settings_go_through_plain_values_and_back(predictor):
    adapter = TypeAdapter(AnyPredictor)
    plain = adapter.dump_python(predictor, mode="json")
    assert repr(adapter.validate_python(plain)) == repr(predictor)


def test_an_unknown_setting_is_refused(predictor):
    with pytest.raises(ValidationError):
        type(predictor)(colour="red")


def test_a_sized_predictor_is_fresh_and_leaves_the_settings_alone(predictor):
    first, second = predictor.sized(DIM), predictor.sized(DIM)
    assert predictor.dim is None
    assert not list(predictor.parameters())
    places = [{weight.data_ptr() for weight in made.parameters()} for made in (first, second)]
    assert not places[0] & places[1]


def test_sizing_again_makes_new_weights_of_the_new_size(predictor):
    assert predictor.sized(3).sized(DIM)(z()).shape == z().shape


def test_one_seed_gives_one_predictor(predictor):
    torch.manual_seed(3)
    first = predictor.sized(DIM)
    torch.manual_seed(3)
    second = predictor.sized(DIM)
    assert torch.equal(first(z()), second(z()))


def test_used_at_once_it_takes_the_dimension_it_meets(predictor):
    late = copy.deepcopy(predictor)
    assert late(z(dim=4)).shape == (9, 4)
    assert late.dim == 4


def test_projections_of_another_dimension_are_refused(predictor):
    with pytest.raises(BadInput, match="dimension 6, and got projections of 5"):
        predictor.sized(DIM)(z(dim=5))


def test_its_weights_can_be_saved_and_loaded(predictor):
    first, second = predictor.sized(DIM), predictor.sized(DIM)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(z()), second(z()))


def test_no_predictor_is_the_identity():
    projections = z()
    assert NoPredictor().sized(DIM)(projections) is projections


def test_linear_is_the_matrix():
    predictor = Linear().sized(DIM)
    torch.testing.assert_close(predictor(z()), z() @ predictor.map.weight.T)
