import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from twofold.networks import EMA, Dual, NoProjector, Online, Projector, convnet
from twofold.predictors import MLP, NoPredictor


def dual(target, predictor=None):
    torch.manual_seed(0)
    sized = (predictor or NoPredictor()).sized(6)
    return Dual(convnet(3, 4), 32, sized, target, Projector(hidden=8, dim=6)).double()


def views(n=8):
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(n, 3, 8, 8, generator=generator, dtype=torch.float64) for _ in range(2))


def disturb(network):
    with torch.no_grad():
        for weight in network.online.parameters():
            weight.add_(torch.randn_like(weight))


@given(decay=st.floats(0, 1))
def test_the_target_follows_as_printed(decay):
    network = dual(EMA(decay))
    disturb(network)
    before = [weight.clone() for weight in network.target.parameters()]
    network.follow()
    for old, online, new in zip(before, network.online.parameters(), network.target.parameters(), strict=True):
        torch.testing.assert_close(new, decay * old + (1 - decay) * online, rtol=1e-12, atol=1e-12)


def test_a_target_that_moves_the_wrong_way_would_be_noticed():
    network = dual(EMA(0.9))
    disturb(network)
    before = [weight.clone() for weight in network.target.parameters()]
    network.follow()
    wrong = [0.1 * old + 0.9 * new for old, new in zip(before, network.online.parameters(), strict=True)]
    assert not all(torch.allclose(a, b) for a, b in zip(wrong, network.target.parameters(), strict=True))


@pytest.mark.parametrize("buffers", ["own", "copy", "average"])
def test_running_statistics_are_handled_as_said(buffers):
    network = dual(EMA(0.75, buffers=buffers))
    with torch.no_grad():
        for statistic in network.online.buffers():
            statistic.add_(4)
    before = [statistic.clone() for statistic in network.target.buffers()]
    network.follow()
    for old, online, new in zip(before, network.online.buffers(), network.target.buffers(), strict=True):
        mixed = 0.75 * old + 0.25 * online if old.is_floating_point() else online
        expected = {"own": old, "copy": online, "average": mixed}[buffers]
        torch.testing.assert_close(new, expected)


def test_an_ema_target_starts_as_a_copy_and_never_gets_a_gradient():
    network = dual(EMA(), MLP(hidden=4))
    pair = network(*views())
    torch.testing.assert_close(pair.target[0], pair.online[0])
    sum(part.sum() for part in (*pair.online, *pair.predicted, *pair.target)).backward()
    assert all(weight.grad is None for weight in network.target.parameters())
    assert all(weight.grad is not None for weight in network.online.parameters())
    assert not any(name.startswith("target") for name, _ in network.learners())


@pytest.mark.parametrize("stop", [True, False])
def test_the_online_target_passes_gradients_only_if_told(stop):
    pair = dual(Online(stop_gradient=stop))(*views())
    assert [side.requires_grad for side in pair.target] == [not stop] * 2
    assert torch.equal(pair.target[1], pair.online[1])


def test_batchnorm_sees_one_view_at_a_time():
    network = dual(Online())
    first, second = views()
    alone = copy.deepcopy(network).online(second)
    together = copy.deepcopy(network).online(torch.cat([first, second]))[8:]
    torch.testing.assert_close(network(first, second).online[1], alone)
    assert not torch.allclose(alone, together)


def test_any_module_is_an_encoder():
    network = Dual(nn.Flatten(), 192, NoPredictor().sized(192), EMA(), NoProjector()).double()
    first, second = views()
    assert torch.equal(network(first, second).online[0], first.flatten(1))
    network.follow()
