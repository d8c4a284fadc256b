"""Vectors are standardised by the training samples, and their views have the correlations that are stated."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy import stats
from torch import Generator, Tensor

from twofold.data.source import Split, ViewMaker
from twofold.data.vectors import (
    AdditiveViews,
    ScramblingViews,
    VectorViews,
    feature_statistics,
    vector_split,
    vectors,
)
from twofold.errors import BadInput

RANDOM = np.random.default_rng(0)
DRAWS = 400_000
BOUND = 5.5
"""Standard errors: all entries of a 4 × 4 matrix stay within it but for one run in a million."""


def correlated(n: int, dim: int = 4) -> NDArray[np.float32]:
    mixing = RANDOM.normal(size=(dim, dim))
    return (RANDOM.normal(size=(n, dim)) @ mixing + RANDOM.normal(size=dim)).astype(np.float32)


def neutral(views: VectorViews, dim: int) -> ViewMaker:
    """Build a maker for features that are standardised already."""
    return views.maker(torch.zeros(dim), torch.ones(dim))


class Sampled:
    """Correlations of views, estimated from many draws for the samples of a small cloud with known Σ^x."""

    def __init__(self, views: VectorViews, seed: int = 0) -> None:
        cloud = correlated(50)
        samples = torch.from_numpy(np.tile(cloud, (DRAWS // len(cloud), 1)))
        first, second = neutral(views, 4).pair(samples, Generator().manual_seed(seed))
        self.data = cloud.astype(float).T @ cloud.astype(float) / len(cloud)
        self._views = first.double(), second.double()

    def deviation(self, one: int, other: int, expected: NDArray[np.float64]) -> float:
        """Return by how many standard errors E[x_one x_otherᵀ] differs from what is expected, at worst."""
        products = self._views[one][:, :, None] * self._views[other][:, None, :]
        error = products.std(dim=0) / DRAWS**0.5
        return float(((products.mean(dim=0) - torch.from_numpy(expected)) / error).abs().max())


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_scrambling_has_the_stated_correlations(dims: int) -> None:
    sampled = Sampled(ScramblingViews(dims=dims))
    U = np.eye(4)[:, 4 - dims :]
    conserved = np.eye(4) - U @ U.T
    between = conserved @ sampled.data @ conserved
    within = between + np.trace(U.T @ sampled.data @ U) * U @ U.T
    assert sampled.deviation(0, 0, within) < BOUND
    assert sampled.deviation(1, 1, within) < BOUND
    assert sampled.deviation(0, 1, between) < BOUND
    # The controls: the papers' Σ^s = Σ^x, and views that share their matrix.
    assert sampled.deviation(0, 0, sampled.data) > 2 * BOUND
    assert sampled.deviation(0, 1, within) > 2 * BOUND
    # The corrected consequence: Σ^d (Σ^s)⁻¹ = P^c, whether or not P^c and Σ^x commute.
    np.testing.assert_allclose(between @ np.linalg.inv(within), conserved, atol=1e-12)


def test_additive_noise_has_the_stated_correlations() -> None:
    sampled = Sampled(AdditiveViews(noise=0.7))
    within = sampled.data + 0.49 * np.eye(4)
    assert sampled.deviation(0, 0, within) < BOUND
    assert sampled.deviation(1, 1, within) < BOUND
    assert sampled.deviation(0, 1, sampled.data) < BOUND
    assert sampled.deviation(0, 0, sampled.data) > 2 * BOUND
    assert sampled.deviation(0, 1, within) > 2 * BOUND


def naively_scrambled(sample: Tensor, dims: int, draws: int) -> Tensor:
    """Draw (P^c + U B Uᵀ) x as it is written, in double precision."""
    dim = len(sample)
    U = torch.eye(dim, dtype=torch.float64)[:, dim - dims :]
    B = torch.randn(draws, dims, dims, dtype=torch.float64, generator=Generator().manual_seed(1))
    A = torch.eye(dim, dtype=torch.float64) - U @ U.T + U @ B @ U.T
    return A @ sample.double()


def test_scrambling_without_the_matrix_is_scrambling_with_it() -> None:
    """One sample, many draws: every feature is distributed as in the equation written naively, and so is a mixture."""
    sample = torch.tensor([1.0, -2.0, 2.5, 3.0, -1.5])
    mixture = torch.tensor([0.0, 0.0, 1.0, -2.0, 0.5])
    views, _ = neutral(ScramblingViews(dims=3), 5).pair(sample.repeat(20_000, 1), Generator().manual_seed(0))
    naive = naively_scrambled(sample, 3, 20_000)
    assert (views[:, :2] == sample[:2]).all()
    assert (naive[:, :2] == sample[:2]).all()
    for ours, theirs in [*zip(views.T[2:], naive.T[2:], strict=True), (views @ mixture, naive @ mixture.double())]:
        assert stats.ks_2samp(ours.numpy(), theirs.numpy()).pvalue > 1e-4
    one_fewer = naively_scrambled(sample, 2, 20_000)[:, 4].numpy()  # the control: another subspace
    assert stats.ks_2samp(views[:, 4].numpy(), one_fewer).pvalue < 1e-8


@pytest.mark.parametrize("views", [AdditiveViews(), ScramblingViews(dims=2)])
def test_views_belong_to_their_seed(views: VectorViews) -> None:
    maker = neutral(views, 4)
    samples = torch.from_numpy(correlated(30))
    before = samples.clone()
    pairs = [maker.pair(samples, Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert samples.equal(before)
    assert all(one.equal(other) for one, other in zip(pairs[0], pairs[1], strict=True))
    assert not pairs[0][0].equal(pairs[2][0])
    assert not pairs[0][0].equal(pairs[0][1])


def test_settings_are_checked() -> None:
    for noise in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            AdditiveViews(noise=noise)
    with pytest.raises(ValidationError):
        ScramblingViews(dims=0)
    for dims in (4, 9):
        with pytest.raises(BadInput, match=f"^{dims} of 4 features cannot be scrambled"):
            neutral(ScramblingViews(dims=dims), 4)


def test_statistics_of_features() -> None:
    samples = correlated(1000) * np.array([1, 100, 1e-3, 1], np.float32) + np.array([0, 1e4, 5, -3], np.float32)
    mean, std = feature_statistics(Split(samples))
    np.testing.assert_allclose(mean, samples.mean(axis=0, dtype=float), rtol=1e-12)
    np.testing.assert_allclose(std, samples.std(axis=0, dtype=float), rtol=1e-9)


@given(st.floats(-(2.0**99), 2.0**99, width=32), st.integers(10, 3000))
def test_constant_features_are_only_centred(value: float, n: int) -> None:
    samples = np.stack([np.full(n, value), np.arange(n)], axis=1).astype(np.float32)
    mean, std = feature_statistics(Split(samples))
    assert std[0] == 1
    plain = AdditiveViews().maker(mean, std).plain(torch.from_numpy(samples))
    assert plain[:, 0].abs().max() == 0
    assert abs(plain[:, 1].double().std(correction=0) - 1) < 1e-5


def test_the_training_samples_are_standardised() -> None:
    source = vectors(correlated(500) * 50 + 7)
    assert (source.name, source.shape, source.classes) == ("vectors", (4,), ())
    assert [len(part) for part in (source.train, source.validation, source.test) if part] == [400, 50, 50]
    plain = source.views.plain(source.train.take(slice(None))).double()
    assert plain.mean(dim=0).abs().max() < 1e-5
    assert (plain.std(dim=0, correction=0) - 1).abs().max() < 1e-5
    first, _ = source.views.pair(source.pool.take(slice(None)), Generator().manual_seed(0))
    noise = (first.double() - plain).std(correction=0)
    assert abs(noise - 0.5) < BOUND * 0.5 / (2 * plain.numel()) ** 0.5


def test_statistics_come_from_the_training_samples_alone() -> None:
    array = correlated(100)
    before = vectors(array)
    rows = {tuple(row) for row in before.train.take(slice(None)).tolist()}
    outside = [tuple(row) not in rows for row in array.tolist()]
    assert sum(outside) == 20
    array[outside] += 1000
    after = vectors(array)
    sample = torch.from_numpy(correlated(3))
    assert after.views.plain(sample).equal(before.views.plain(sample))
    array[~np.array(outside)] += 1
    assert not vectors(array).views.plain(sample).equal(before.views.plain(sample))


def test_labels_are_stratified_and_named(tmp_path: Path) -> None:
    array = correlated(200)
    names = ["dog"] * 150 + ["ant"] * 50
    source = vectors(array, labels=names, views=ScramblingViews(dims=2), name="animals")
    assert (source.name, source.classes) == ("animals", ("ant", "dog"))
    for part, counts in ((source.train, [40, 120]), (source.validation, [5, 15]), (source.test, [5, 15])):
        assert part is not None
        assert part.labels is not None
        assert np.bincount(part.labels).tolist() == counts
    np.savez(tmp_path / "a.npz", x=array, y=np.arange(200) % 5)
    assert vectors(tmp_path / "a.npz").classes == ("0", "1", "2", "3", "4")
    assert vectors(tmp_path / "a.npz", labels=names).classes == ("ant", "dog")
    with pytest.raises(BadInput, match=r"200 samples, and labels of shape \(3,\)"):
        vectors(array, labels=["a", "b", "c"])


def test_a_file_is_opened_in_its_order_where_it_lies(tmp_path: Path) -> None:
    array = correlated(40)
    np.save(tmp_path / "cloud.npy", array)
    whole = vector_split(str(tmp_path / "cloud.npy"))
    assert isinstance(whole.samples, np.memmap)
    np.testing.assert_array_equal(whole.take(slice(None)), array)
    source = vectors(tmp_path / "cloud.npy")
    assert source.name == "cloud"
    parts = [part.take(slice(None)) for part in (source.train, source.validation, source.test) if part]
    assert sorted(torch.cat(parts).tolist()) == sorted(array.tolist())


def test_too_few_samples(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^the array has 9 samples: at least 10"):
        vectors(correlated(9))
    np.save(tmp_path / "one.npy", correlated(1))
    with pytest.raises(BadInput, match=r"one.npy' has 1 sample: "):
        vectors(tmp_path / "one.npy")
    assert len(vectors(correlated(10)).train) == 6


def test_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "cloud.npy").touch()
    with pytest.raises(BadInput, match=r"there is no '.*clodu.npy'; did you mean 'cloud.npy'"):
        vectors(tmp_path / "clodu.npy")
