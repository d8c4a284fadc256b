import itertools
import math

import pytest
import torch
from torch import nn

from twofold.training.optimizers import LARS, SGD, Adam, AdamW, groups, rate


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)).double()


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.arange(24.0, dtype=torch.float64).reshape(6, 4).sin()).square().mean().backward()
    optimizer.step()


def test_weights_decay_and_biases_and_norms_do_not():
    decaying, rest = groups(network().named_parameters(), weight_decay=0.1)
    assert [weight.ndim for weight in decaying["params"]] == [2, 2]
    assert [weight.ndim for weight in rest["params"]] == [1, 1, 1, 1]
    assert (decaying["weight_decay"], rest["weight_decay"]) == (0.1, 0.0)


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        (SGD(0.9, 0.1), lambda g: torch.optim.SGD(g, lr=0.1, momentum=0.9)),
        (Adam(0.8, 0.9, 0.1), lambda g: torch.optim.Adam(g, lr=0.1, betas=(0.8, 0.9))),
        (AdamW(0.8, 0.9, 0.1), lambda g: torch.optim.AdamW(g, lr=0.1, betas=(0.8, 0.9))),
    ],
)
def test_known_optimisers_are_themselves(settings, plain):
    ours, theirs = network(), network()
    optimizers = [
        (ours, settings.over(groups(ours.named_parameters(), 0.1), 0.1)),
        (theirs, plain(groups(theirs.named_parameters(), 0.1))),
    ]
    for _ in range(4):
        for model, optimizer in optimizers:
            step(model, optimizer)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def naive_lars(model, velocities, lr, momentum, decay, trust):
    """You et al. 2017, Algorithm 1, a layer at a time."""
    for i, weight in enumerate(model.parameters()):
        eta = decay if weight.ndim > 1 else 0.0
        slope = weight.grad.norm()
        local = 1.0
        if weight.ndim > 1 and weight.norm() > 0 and slope > 0:
            local = trust * weight.norm() / (slope + eta * weight.norm())
        velocities[i] = momentum * velocities[i] + local * (weight.grad + eta * weight)
        weight.data -= lr * velocities[i]


@pytest.mark.parametrize(("trust", "equal"), [(0.01, True), (0.02, False)])
def test_lars_is_the_printed_algorithm(trust, equal):
    ours, naive = network(), network()
    optimizer = LARS(momentum=0.7, weight_decay=0.3, trust=0.01).over(groups(ours.named_parameters(), 0.3), 0.5)
    velocities = [0.0] * len(list(naive.parameters()))
    for _ in range(4):
        step(ours, optimizer)
        naive.zero_grad()
        naive(torch.arange(24.0, dtype=torch.float64).reshape(6, 4).sin()).square().mean().backward()
        naive_lars(naive, velocities, 0.5, 0.7, 0.3, trust)
    same = [torch.allclose(a, b, rtol=1e-10) for a, b in zip(ours.parameters(), naive.parameters(), strict=True)]
    assert all(same) == equal


def test_lars_moves_a_weight_of_zero():
    model = nn.Linear(3, 2)
    nn.init.zeros_(model.weight)
    optimizer = LARS().over(groups(model.named_parameters(), 0.0), 1.0)
    (model(torch.ones(1, 3)) - 1).square().sum().backward()
    optimizer.step()
    assert model.weight.isfinite().all()
    assert model.weight.norm() > 0


def test_lars_goes_on_from_its_state():
    torch.manual_seed(1)
    straight, broken = network(), network()
    first = LARS().over(groups(straight.named_parameters(), 0.1), 0.5)
    second = LARS().over(groups(broken.named_parameters(), 0.1), 0.5)
    for _ in range(2):
        step(straight, first)
        step(broken, second)
    resumed = LARS().over(groups(broken.named_parameters(), 0.1), 0.5)
    resumed.load_state_dict(second.state_dict())
    step(straight, first)
    step(broken, resumed)
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), broken.parameters(), strict=True))


def test_the_rate_rises_on_a_line_and_falls_on_half_a_cosine():
    rates = [rate(i, 100, 10, "cosine") for i in range(101)]
    assert rates[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert rates[10] == 1
    assert rates[55] == pytest.approx((1 + math.cos(math.pi / 2)) / 2)
    assert rates[100] == pytest.approx(0)
    assert all(a >= b for a, b in itertools.pairwise(rates[10:]))


def test_a_constant_rate_is_constant():
    assert {rate(i, 100, 0, "constant") for i in range(100)} == {1.0}
