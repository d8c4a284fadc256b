import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.covariance import (
    MovingCorrelation,
    correlation,
    cross_correlation,
    distance_from_identity,
    generalisation_bound,
)
from twofold.errors import BadInput


def outputs(rows=7, dim=4, seed=0, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    return 1 + torch.randn(rows, dim, generator=draw, dtype=torch.float64).to(dtype)


def looped(*views, centred=False):
    """E f fᵀ, number by number in double precision."""
    rows = [row for view in views for row in view.double().tolist()]
    dim = len(rows[0])
    mean = [sum(row[i] for row in rows) / len(rows) if centred else 0.0 for i in range(dim)]
    moment = [
        [sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in rows) / len(rows) for j in range(dim)]
        for i in range(dim)
    ]
    return torch.tensor(moment, dtype=torch.float64)


@given(
    count=st.integers(1, 3),
    rows=st.integers(1, 5),
    dim=st.integers(1, 5),
    centred=st.booleans(),
    seed=st.integers(0, 99),
)
def test_it_is_the_average_outer_product(count, rows, dim, centred, seed):
    views = [outputs(rows, dim, seed + i) for i in range(count)]
    torch.testing.assert_close(
        correlation(*views, centred=centred), looped(*views, centred=centred), rtol=1e-13, atol=1e-13
    )


def test_other_averages_would_be_noticed():
    first, second = outputs(), outputs(seed=1) + 3
    unbiased = looped(first, second, centred=True) * 14 / 13
    each_about_its_own_mean = (looped(first, centred=True) + looped(second, centred=True)) / 2
    for wrong in (looped(first, second), unbiased, each_about_its_own_mean):
        assert not torch.allclose(correlation(first, second, centred=True), wrong, rtol=1e-3)


def test_half_precision_is_summed_in_single_precision():
    view = outputs(rows=500, dtype=torch.bfloat16)
    worst_of_the_sums = len(view) * torch.finfo(torch.float32).eps
    found = correlation(view)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), looped(view), rtol=worst_of_the_sums, atol=worst_of_the_sums)
    in_half_precision = (view.T @ view / len(view)).double()
    assert not torch.allclose(in_half_precision, looped(view), rtol=worst_of_the_sums, atol=worst_of_the_sums)


def test_autocast_does_not_lower_its_precision():
    view = outputs(rows=400, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert (view.T @ view).dtype == torch.bfloat16  # what it would have been
        found = correlation(view)
    assert torch.equal(found, correlation(view))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_it_is_exactly_symmetric(dtype):
    found = correlation(outputs(301, 67, dtype=dtype), centred=True)
    assert torch.equal(found, found.T)


def test_no_views_are_refused():
    with pytest.raises(BadInput, match="at least one view, got none"):
        correlation()


@given(momentum=st.floats(0, 1, exclude_max=True), centred=st.booleans())
def test_the_moving_average_follows_its_recursion(momentum, centred):
    moving = MovingCorrelation(4, momentum, centred).double()
    expected = None
    for step in range(4):
        views = outputs(seed=step), outputs(seed=step + 10)
        batch = looped(*views, centred=centred)
        expected = batch if expected is None else momentum * expected + (1 - momentum) * batch
        torch.testing.assert_close(moving.update(*views), expected, rtol=1e-12, atol=1e-12)


def test_it_starts_at_the_first_batch_and_not_at_zero():
    first = outputs()
    moving = MovingCorrelation(4, momentum=0.9).double()
    torch.testing.assert_close(moving.update(first), looped(first), rtol=1e-12, atol=0)
    seeded_with_zero = 0.1 * looped(first)
    assert not torch.allclose(moving.estimate, seeded_with_zero)


def test_an_update_asks_for_no_gradient():
    moving = MovingCorrelation(4)
    assert not moving.update(outputs(dtype=torch.float32).requires_grad_()).requires_grad


def test_a_checkpoint_continues_it():
    moving, restored = MovingCorrelation(4), MovingCorrelation(4)
    moving.update(outputs(dtype=torch.float32))
    assert set(moving.state_dict()) == {"estimate", "batches"}
    restored.load_state_dict(moving.state_dict())
    second = outputs(seed=1, dtype=torch.float32)
    assert torch.equal(moving.update(second), restored.update(second))
    assert not torch.equal(MovingCorrelation(4).update(second), moving.estimate)  # had the state been lost


def test_half_precision_outputs_go_into_the_estimate():
    moving = MovingCorrelation(4)
    assert moving.update(outputs(dtype=torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize("momentum", [-0.1, 1.0, 1.5, float("nan")])
def test_a_momentum_outside_its_range_is_refused(momentum):
    with pytest.raises(BadInput, match=rf"must be in \[0, 1\), not {momentum}"):
        MovingCorrelation(4, momentum)


def naive_cross(first, second, standardised):
    n, dim = first.shape
    rows = []
    for view in (first, second):
        mean = [sum(view[i, j] for i in range(n)) / n for j in range(dim)]
        deviation = [(sum((view[i, j] - mean[j]) ** 2 for i in range(n)) / n) ** 0.5 for j in range(dim)]
        rows.append([(row - torch.stack(mean)) / torch.stack(deviation) if standardised else row for row in view])
    products = [torch.outer(a, b) for a, b in zip(*rows, strict=True)]
    return torch.stack(products).mean(dim=0)


@pytest.mark.parametrize("standardised", [False, True])
def test_cross_correlation_is_the_mean_of_products(standardised):
    draw = torch.Generator().manual_seed(0)
    first, second = (torch.randn(7, 3, generator=draw, dtype=torch.float64) + 5 for _ in range(2))
    found = cross_correlation(first, second, standardised)
    torch.testing.assert_close(found, naive_cross(first, second, standardised))
    assert not torch.allclose(found, naive_cross(first, second, not standardised))
    assert not torch.allclose(found, cross_correlation(second, first, standardised))


def test_a_constant_coordinate_has_no_standardised_correlation():
    first = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    first[:, 1] = 1e6
    found = cross_correlation(first, first, standardised=True)
    torch.testing.assert_close(found.diagonal(), torch.tensor([1.0, 0.0, 1.0]))


def test_the_distance_from_the_identity_and_the_bound_made_of_it():
    matrix = torch.tensor([[1.5, 0.2], [-0.1, 0.0]])
    distance = distance_from_identity(matrix)
    torch.testing.assert_close(distance, torch.tensor(0.25 + 0.04 + 0.01 + 1.0))
    assert distance_from_identity(torch.eye(4)) == 0
    # generalization, eq. 11: 2/d² L_cor + (K − d)/d²
    torch.testing.assert_close(generalisation_bound(distance, 2, 10), 2 / 4 * distance + (10 - 2) / 4)
