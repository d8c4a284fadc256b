import pytest
import torch
from torch import nn

from twofold.networks import LinearProjector, NoProjector, Projector

ROSTER = [(Projector(hidden=9, dim=4), 4), (LinearProjector(dim=3), 3), (NoProjector(), 7)]


@pytest.mark.parametrize(("settings", "dim"), ROSTER)
def test_projectors_are_as_wide_as_they_say(settings, dim):
    assert settings.width(7) == dim
    assert settings.module(7)(torch.randn(5, 7)).shape == (5, dim)


def test_the_perceptron_is_the_reference_implementations():
    linear, norm, relu, last = Projector().module(512)
    assert (linear.in_features, linear.out_features, last.out_features) == (512, 512, 128)
    assert linear.bias is not None
    assert last.bias is not None
    assert isinstance(norm, nn.BatchNorm1d)
    assert not norm.affine
    assert isinstance(relu, nn.ReLU)
