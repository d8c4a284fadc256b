import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestCentroid

from twofold.evaluation.classmean import class_mean_accuracy, class_means


def cloud(n, dim=3, seed=0, dtype=torch.float64):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def labels(n, classes=3, seed=0):
    return torch.randint(classes, (n,), generator=torch.Generator().manual_seed(seed))


def unit(row):
    length = math.sqrt(sum(x * x for x in row))
    return [x / length for x in row]


def answers(train, train_labels, test, on_the_sphere=unit):
    """argmin_k ‖f(x) − μ_k‖, number by number, over the classes that there are."""
    means = {}
    for label in sorted(set(train_labels.tolist())):
        members = [
            on_the_sphere(row) for row, of in zip(train.tolist(), train_labels.tolist(), strict=True) if of == label
        ]
        means[label] = [sum(column) / len(members) for column in zip(*members, strict=True)]
    return [min(means, key=lambda k: math.dist(on_the_sphere(row), means[k])) for row in test.tolist()]


@given(n=st.integers(1, 20), classes=st.integers(1, 5), seed=st.integers(0, 99))
def test_each_point_gets_the_class_of_the_nearest_mean(n, classes, seed):
    train, test, known = cloud(n, seed=seed), cloud(8, seed=seed + 100), labels(n, classes, seed)
    expected = answers(train, known, test)
    assert class_mean_accuracy(train, known, test, torch.tensor(expected)) == 1
    truth = labels(8, classes, seed + 1)
    share = sum(a == b for a, b in zip(expected, truth.tolist(), strict=True)) / 8
    assert class_mean_accuracy(train, known, test, truth) == share


def test_the_sphere_comes_first():
    train, test, known = cloud(40).exp(), cloud(200, seed=1).exp(), labels(40)
    found = torch.tensor(answers(train, known, test))
    assert class_mean_accuracy(train, known, test, found) == 1
    assert class_mean_accuracy(5 * train, known, 0.1 * test, found) == 1
    as_they_are = torch.tensor(answers(train, known, test, on_the_sphere=lambda row: row))
    assert class_mean_accuracy(train, known, test, as_they_are) < 1


def test_it_agrees_with_scikit_learn():
    train, test, known = cloud(60), cloud(50, seed=1), labels(60)
    on_the_sphere = [torch.nn.functional.normalize(points).numpy() for points in (train, test)]
    expected = NearestCentroid().fit(on_the_sphere[0], known.numpy()).predict(on_the_sphere[1])
    assert class_mean_accuracy(train, known, test, torch.from_numpy(expected)) == 1


def test_the_mean_of_each_class_is_its_average():
    points, known = cloud(30), labels(30)
    means = class_means(points, known)
    for label in range(3):
        torch.testing.assert_close(means[label], points[known == label].mean(dim=0))


def test_a_class_without_samples_is_never_the_answer():
    train, test, known = cloud(200), cloud(200, seed=1), labels(200)
    known[known == 1] = 2
    assert class_means(train, known).isfinite().all(dim=1).tolist() == [True, False, True]
    expected = torch.tensor(answers(train, known, test))
    assert class_mean_accuracy(train, known, test, expected) == 1
    assert class_mean_accuracy(train, known, test, torch.ones_like(expected)) == 0


def test_a_class_that_was_never_seen_is_never_right():
    train, known = cloud(10), labels(10, classes=2)
    assert class_mean_accuracy(train, known, train, torch.full((10,), 7)) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_collapsed_cloud_is_told_nothing_by_its_rounding(dtype):
    point = cloud(1, 64)
    train = (point * (1 + torch.rand(90, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(2)))).to(dtype)
    known = labels(90)
    assert class_mean_accuracy(train, known, train, known) == (known == 0).double().mean()
