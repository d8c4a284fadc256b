import math
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.evaluation.alignment import alignment, uniformity


def cloud(n, dim=4, seed=0, dtype=torch.float64):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def unit(row):
    length = math.sqrt(sum(x * x for x in row))
    return [x / length for x in row]


def looped_alignment(first, second, on_the_sphere=unit):
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    distances = [math.dist(on_the_sphere(a), on_the_sphere(b)) ** 2 for a, b in pairs]
    return sum(distances) / len(distances)


def looped_uniformity(points, sharpness=2.0, with_itself=False):
    rows = [unit(row) for row in points.tolist()]
    potentials = [
        math.exp(-sharpness * math.dist(a, b) ** 2)
        for i, a in enumerate(rows)
        for j, b in enumerate(rows)
        if with_itself or i != j
    ]
    return math.log(sum(potentials) / len(potentials))


@given(n=st.integers(1, 9), dim=st.integers(1, 5), seed=st.integers(0, 99))
def test_alignment_is_the_mean_squared_distance_of_directions(n, dim, seed):
    first, second = cloud(n, dim, seed), cloud(n, dim, seed + 100)
    assert alignment(first, second) == pytest.approx(looped_alignment(first, second), abs=1e-13)


def test_alignment_of_plain_vectors_would_be_noticed():
    first, second = cloud(9), cloud(9, seed=1)
    assert alignment(first, second) != pytest.approx(looped_alignment(first, second, on_the_sphere=list), rel=0.01)
    assert alignment(3 * first, second / 7) == pytest.approx(alignment(first, second))


def test_equal_views_are_aligned_and_opposite_ones_are_not():
    points = cloud(20, dtype=torch.float32)
    assert alignment(points, points) == 0
    assert alignment(points, -points) == pytest.approx(4, rel=1e-6)


@given(n=st.integers(2, 9), dim=st.integers(1, 5), sharpness=st.floats(0.001, 5), seed=st.integers(0, 99))
def test_uniformity_is_the_log_mean_potential_of_different_samples(n, dim, sharpness, seed):
    points = cloud(n, dim, seed)
    assert uniformity(points, sharpness) == pytest.approx(looped_uniformity(points, sharpness), abs=1e-12)


def test_samples_do_not_repel_themselves():
    points = cloud(9)
    assert uniformity(points) != pytest.approx(looped_uniformity(points, with_itself=True), rel=0.01)


@pytest.mark.parametrize("rows_at_once", [1, 4, 10])
def test_blocks_find_what_the_whole_finds(rows_at_once, monkeypatch):
    monkeypatch.setattr(sys.modules["twofold.covariance.pairwise"], "_BLOCK", 10 * rows_at_once)
    points = cloud(10)
    assert uniformity(points) == pytest.approx(looped_uniformity(points), abs=1e-13)


def test_uniformity_at_its_ends():
    collapsed = cloud(1, dtype=torch.float32).repeat(30, 1)
    assert uniformity(collapsed) == pytest.approx(0, abs=1e-5)
    opposite = torch.tensor([[1.0, 0.0], [-3.0, 0.0]])
    assert uniformity(opposite) == pytest.approx(-8, rel=1e-6)
    assert uniformity(opposite, sharpness=1.0) == pytest.approx(-4, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_lower_precisions_are_summed_without_loss(dtype):
    first, second = cloud(50, dtype=dtype), cloud(50, seed=1, dtype=dtype)
    assert uniformity(first) == pytest.approx(uniformity(first.double()), rel=1e-5)
    assert alignment(first, second) == pytest.approx(alignment(first.double(), second.double()), rel=1e-5)
