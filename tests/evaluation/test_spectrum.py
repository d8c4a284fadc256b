import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.evaluation.spectrum import effective_rank, isotropic_rank, spectrum


def cloud(n, dim=4, seed=0, dtype=torch.float64):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@given(n=st.integers(2, 20), dim=st.integers(1, 6), seed=st.integers(0, 99))
def test_it_is_the_spectrum_of_the_covariance(n, dim, seed):
    points = 3 + cloud(n, dim, seed) * torch.arange(1, dim + 1)
    expected = np.linalg.eigvalsh(np.atleast_2d(np.cov(points.numpy().T, bias=True)))[::-1]
    np.testing.assert_allclose(spectrum(points).numpy(), expected, rtol=1e-9, atol=1e-12 * expected[0])


def test_other_normalisations_would_be_noticed():
    points = 3 + cloud(20)
    unbiased, about_zero = points.T.cov(), points.T @ points / 20
    for wrong in (unbiased, about_zero):
        assert not torch.allclose(spectrum(points), torch.linalg.eigvalsh(wrong).flip(0), rtol=0.01)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_it_is_computed_in_double_precision(dtype):
    points = 30 + cloud(300, dtype=dtype)
    assert spectrum(points).dtype == torch.float64
    torch.testing.assert_close(spectrum(points), spectrum(points.double()), rtol=1e-12, atol=0)


def test_directions_without_variance_are_exactly_zero():
    flat = cloud(50, 2) @ cloud(2, 6, seed=1)
    assert (spectrum(flat) > 0).tolist() == [True] * 2 + [False] * 4
    assert not spectrum(cloud(1)).any()
    assert not spectrum(torch.zeros(5, 3)).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_what_is_left_of_a_constant_after_rounding_is_no_variance(dtype):
    point = 1000 * cloud(1, 32)
    last_digits = 1 + torch.finfo(dtype).eps / 4 * cloud(400, 32, seed=1).clamp(-1, 1)
    constant = (point * last_digits).to(dtype)
    assert not spectrum(constant).any()
    assert not spectrum(point.to(dtype).expand(400, 32)).any()
    alive = (point * (1 + 100 * (last_digits - 1) + 0.5 * cloud(400, 1, seed=2))).to(dtype)
    assert spectrum(alive)[0] > 0


def test_the_effective_rank_of_equal_eigenvalues_is_their_number():
    axes = torch.cat((torch.eye(7), -torch.eye(7)))
    assert effective_rank(spectrum(axes)) == pytest.approx(7)
    assert effective_rank(torch.tensor([2.0, 2.0, 2.0, 0.0, 0.0], dtype=torch.float64)) == pytest.approx(3)


def test_a_line_has_rank_one_and_a_point_none():
    assert effective_rank(spectrum(cloud(50, 1) @ cloud(1, 6, seed=1))) == pytest.approx(1)
    assert effective_rank(torch.zeros(4)) == 0


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8), st.floats(1e-3, 1e3))
def test_the_effective_rank_is_the_exponential_of_an_entropy(values, scale):
    eigenvalues = torch.tensor(values, dtype=torch.float64)
    shares = np.array(values) / sum(values)
    expected = np.exp(-(shares * np.log(shares)).sum())
    assert effective_rank(eigenvalues) == pytest.approx(expected)
    assert effective_rank(scale * eigenvalues) == pytest.approx(expected)
    assert 1 - 1e-12 <= effective_rank(eigenvalues) <= len(values) * (1 + 1e-12)


@pytest.mark.parametrize(("samples", "dim"), [(400, 20), (100, 60), (60, 100)])
def test_the_rank_of_isotropic_noise_is_foreseen(samples, dim):
    measured = [effective_rank(spectrum(cloud(samples, dim, seed))) for seed in range(10)]
    assert isotropic_rank(samples, dim) == pytest.approx(sum(measured) / 10, rel=0.01)
    assert min(samples - 1, dim) != pytest.approx(sum(measured) / 10, rel=0.01)  # the rank itself
