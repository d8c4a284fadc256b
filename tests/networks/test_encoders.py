import sys

import pytest
import torch
from torch import nn

from twofold.errors import BadInput
from twofold.networks import ENCODERS, encoder, feature_dim


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_maps_images_to_features(name):
    built = encoder(name, (3, 16, 16), width=4)
    assert built(torch.randn(2, 3, 16, 16)).shape == (2, feature_dim(built, (3, 16, 16)))


@pytest.mark.parametrize("name", ["mlp", "linear"])
def test_vectors_have_encoders(name):
    assert feature_dim(encoder(name, (7,), width=5), (7,)) == 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "resnet81", "shape": (3, 8, 8)}, "did you mean 'resnet18'"),
        ({"name": "convnet", "shape": (7,)}, "allowed are mlp and linear"),
        ({"name": "convnet", "shape": (3, 8, 8), "width": 0}, "at least 1, not 0"),
        ({"name": "convnet", "shape": (3, 8, 8), "stem": "small"}, "only the residual networks"),
    ],
)
def test_what_cannot_be_built_is_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(BadInput, match=sentence):
        encoder(**arguments)


def test_timm_that_is_absent_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(BadInput, match=r"pip install 'twofold\[timm\]'"):
        encoder("timm:resnet18", (3, 8, 8))


def test_the_stem_follows_the_size_of_the_images():
    assert encoder("resnet18", (3, 32, 32), width=4).conv1.kernel_size == (3, 3)
    assert encoder("resnet18", (3, 96, 96), width=4).conv1.kernel_size == (7, 7)


def test_asking_for_the_dimension_moves_nothing():
    module = encoder("convnet", (3, 8, 8), width=4)
    module[1].eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    generator = torch.get_rng_state()
    feature_dim(module, (3, 8, 8))
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert torch.equal(generator, torch.get_rng_state())
    assert module.training
    assert not module[1].training


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (nn.Identity(), r"not to \(2, 3, 8, 8\)"),
        (nn.Linear(5, 3), "does not take samples of shape"),
        (nn.LSTM(8, 3), "does not take|not to"),
    ],
)
def test_a_module_that_is_no_encoder_is_refused(module, sentence):
    with pytest.raises(BadInput, match=sentence):
        feature_dim(module, (3, 8, 8))
