"""Importances row by row: what they solve, their ends, and inputs that are hard on a solver."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.objectives import Direct, Entropy, Implied, InfoNCE, Inverse, Regularised, Square, Tsallis
from twofold.objectives.importance import projection_on_simplex

rows = st.lists(st.floats(0, 50), min_size=1, max_size=40)
temperatures = st.floats(0.01, 10)


def given_row(distances, dtype=torch.float64):
    return torch.zeros(1, dtype=dtype), torch.tensor([distances], dtype=dtype)


def price(importance, r_slope, distances, temperature):
    """r′(α) − c, which is the same for all negatives that weigh something, and not greater for the others."""
    own, other = given_row(distances)
    alpha = importance(own, other)
    assert alpha.sum() == pytest.approx(1, abs=1e-9)
    assert (alpha >= 0).all()
    return alpha[0], r_slope(alpha[0]) - 2 * other[0]


def all_equal(prices, scale):
    return float(prices.max() - prices.min()) <= 1e-8 * scale


@given(rows, temperatures, st.floats(1.05, 8))
def test_inverse_has_one_price_for_all(distances, temperature, gamma):
    alpha, prices = price(Inverse(temperature, gamma), lambda a: 2 * temperature * a**-gamma, distances, temperature)
    scale = 1 + float((2 * temperature * alpha**-gamma).max())
    assert all_equal(prices, scale)


@given(rows, temperatures)
def test_square_has_one_price_for_what_weighs_and_no_better_one_elsewhere(distances, temperature):
    alpha, prices = price(Square(temperature), lambda a: -temperature * a, distances, temperature)
    scale = 1 + 2 * max(distances)
    best = prices[alpha > 0].min()
    assert all_equal(prices[alpha > 0], scale)
    assert (prices[alpha == 0] <= best + 1e-9 * scale).all()


@given(rows, temperatures, st.floats(1.02, 2))
def test_tsallis_has_one_price_for_what_weighs_and_no_better_one_elsewhere(distances, temperature, q):
    def slope(a):
        return 2 * temperature * (1 - q * a ** (q - 1)) / (q - 1)

    alpha, prices = price(Tsallis(temperature, q), slope, distances, temperature)
    scale = 1 + 2 * max(distances) + 2 * temperature / (q - 1)
    weighs = alpha > 1e-12
    assert all_equal(prices[weighs], scale)
    assert (prices[~weighs] <= prices[weighs].min() + 1e-8 * scale).all()


@given(rows, temperatures)
def test_tsallis_has_entropy_and_square_at_its_ends(distances, temperature):
    own, other = given_row(distances)
    torch.testing.assert_close(Tsallis(temperature, 1.0)(own, other), Entropy(temperature)(own, other))
    torch.testing.assert_close(Tsallis(temperature, 2.0)(own, other), Square(4 * temperature)(own, other))
    near = Tsallis(temperature, 1 + 1e-5)(own, other)
    torch.testing.assert_close(near, Entropy(temperature)(own, other), rtol=0.2, atol=2e-3)


@pytest.mark.parametrize(
    ("r", "known"),
    [
        (lambda a: -a * a.log(), Entropy(0.5)),
        (lambda a: -1 / a, Inverse(0.5, 2.0)),
        (lambda a: -2.5 * a**2, Square(5.0)),
        (lambda a: (a - a**1.5) / 0.5, Tsallis(0.5, 1.5)),
    ],
)
def test_the_solver_for_any_regulariser_finds_the_known_ones(r, known):
    draw = torch.Generator().manual_seed(0)
    for width in (1, 2, 30):
        own, other = (torch.rand(4, *shape, generator=draw, dtype=torch.float64) * 4 for shape in ((), (width,)))
        torch.testing.assert_close(Regularised(r)(own, other), known(own, other), rtol=1e-9, atol=1e-11)
        with torch.no_grad():
            torch.testing.assert_close(Regularised(r)(own, other), known(own, other), rtol=1e-9, atol=1e-11)
    wrong = Regularised(lambda a: 1.01 * r(a))(own, other)
    assert not torch.allclose(wrong, known(own, other), rtol=1e-9, atol=1e-11)


EVERY = [
    Entropy(),
    Inverse(),
    Square(),
    Tsallis(),
    Direct(),
    Implied(),
    Implied(InfoNCE(0.5, 0.0)),
    Regularised(lambda a: -a * a.log()),
]


@pytest.mark.parametrize("importance", EVERY, ids=lambda importance: importance.kind)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_no_pair_weighs_nothing_and_changes_nothing(importance, dtype):
    own, other = given_row([0.3, 1.2, 0.7], dtype)
    wider = torch.cat((other[:, :2], torch.full((1, 1), torch.inf, dtype=dtype), other[:, 2:]), dim=1)
    found = importance(own, wider)
    assert found[0, 2] == 0
    torch.testing.assert_close(found[:, [0, 1, 3]], importance(own, other))


@pytest.mark.parametrize("importance", EVERY, ids=lambda importance: importance.kind)
def test_equal_distances_weigh_equally(importance):
    own, other = given_row([0.4] * 8)
    found = importance(own, other)
    torch.testing.assert_close(found, found.mean().expand(1, 8), rtol=1e-9, atol=0)


@pytest.mark.parametrize("importance", EVERY, ids=lambda importance: importance.kind)
def test_numbers_that_are_none_stay_none(importance):
    """So that a diverged run is seen in its loss."""
    own, other = given_row([0.4, float("nan"), 1.0])
    assert importance(own, other).isnan().any()


def test_projection_on_the_simplex_is_the_nearest_of_many_points():
    draw = torch.Generator().manual_seed(0)
    points = torch.randn(20, 4, generator=draw, dtype=torch.float64)
    found = projection_on_simplex(points)
    others = torch.distributions.Dirichlet(torch.ones(4, dtype=torch.float64)).sample((5000,))
    nearest = torch.cdist(points, others).amin(dim=1)
    assert ((points - found).norm(dim=1) <= nearest).all()
    torch.testing.assert_close(projection_on_simplex(found), found)
