import math
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import BadInput
from twofold.evaluation import (
    LinearProbe,
    accuracy,
    alignment,
    class_mean_accuracy,
    effective_rank,
    geometry,
    knn_accuracy,
    spectrum,
    spread,
    uniformity,
)


def cloud(n, dim=5, seed=0, dtype=torch.float32):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@given(n=st.integers(2, 12), dim=st.integers(1, 5), shift=st.floats(0, 3), seed=st.integers(0, 99))
def test_spread_is_half_the_mean_squared_distance_and_one_less_the_mean_cosine(n, dim, shift, seed):
    points = shift + cloud(n, dim, seed, torch.float64)
    directions = points / points.norm(dim=1, keepdim=True)
    distances = [float((a - b).square().sum()) for a in directions for b in directions]
    cosines = [float(a @ b) for a in directions for b in directions]
    assert spread(points) == pytest.approx(sum(distances) / len(distances) / 2, abs=1e-12)
    assert spread(points) == pytest.approx(1 - sum(cosines) / len(cosines), abs=1e-12)


def test_the_variance_of_the_points_themselves_would_be_noticed():
    points = 1 + cloud(20)
    assert spread(7 * points) == pytest.approx(spread(points))
    assert spread(points) != pytest.approx(float(points.var(dim=0, correction=0).sum()), rel=0.01)


def test_spread_at_its_ends():
    line = cloud(1).repeat(50, 1)
    assert spread(line) == 0
    assert spread(torch.zeros(50, 5)) == 0
    assert spread(torch.cat((line, -2 * line))) == pytest.approx(1)


def test_it_holds_what_each_measure_finds():
    points, first, second = cloud(40), cloud(10, seed=1), cloud(10, seed=2)
    shape = geometry(points, first, second)
    assert (shape.samples, shape.dim) == (40, 5)
    assert shape.spectrum == tuple(spectrum(points).tolist())
    assert shape.effective_rank == effective_rank(spectrum(points))
    assert shape.spread == spread(points)
    assert shape.uniformity == uniformity(points)
    assert shape.alignment == alignment(first, second)


def test_without_views_there_is_no_alignment():
    assert geometry(cloud(40)).alignment is None


def test_uniformity_of_many_points_is_that_of_some_taken_evenly(monkeypatch):
    monkeypatch.setattr(sys.modules["twofold.evaluation.geometry"], "MOST_PAIRED", 4)
    points = cloud(10)
    assert geometry(points).uniformity == uniformity(points[[0, 3, 6, 9]])
    assert geometry(points).samples == 10


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_points_have_no_shape(n):
    with pytest.raises(BadInput, match=f"at least 2 embeddings, not in {n}"):
        geometry(cloud(n))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(bad):
    points = cloud(10)
    points[7, 1] = bad
    with pytest.raises(BadInput, match="1 of 10 rows have NaN or infinite entries, first row 7"):
        geometry(points)


def three_splits(apart):
    known = [torch.arange(n) % 3 for n in (90, 30, 60)]
    points = [cloud(len(of), seed=i) + apart * torch.eye(3, 5)[of] for i, of in enumerate(known)]
    return points, known


def test_accuracy_holds_what_each_classifier_finds():
    points, known = three_splits(apart=2.0)
    found = accuracy(points[0], known[0], points[1], known[1], points[2], known[2])
    assert found.knn == knn_accuracy(points[0], known[0], points[2], known[2])
    assert found.class_mean == class_mean_accuracy(points[0], known[0], points[2], known[2])
    probe = LinearProbe.fit(points[0], known[0], points[1], known[1])
    assert found.probe == probe.accuracy(points[2], known[2])


def test_classes_far_apart_are_told_apart_and_shuffled_ones_are_not():
    points, known = three_splits(apart=30.0)
    found = accuracy(points[0], known[0], points[1], known[1], points[2], known[2])
    assert (found.knn, found.probe, found.class_mean) == (1, 1, 1)
    shuffled = [of[torch.randperm(len(of), generator=torch.Generator().manual_seed(3))] for of in known]
    by_chance = accuracy(points[0], shuffled[0], points[1], shuffled[1], points[2], shuffled[2])
    five_deviations = 1 / 3 + 5 * math.sqrt(2 / 9 / 60)
    assert max(by_chance.knn, by_chance.probe, by_chance.class_mean) < five_deviations


def test_test_samples_that_are_no_numbers_are_refused():
    points, known = three_splits(apart=2.0)
    points[2][0, 0] = math.nan
    with pytest.raises(BadInput, match="1 of 60 rows"):
        accuracy(points[0], known[0], points[1], known[1], points[2], known[2])
