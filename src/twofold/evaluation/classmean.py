"""The classifier of the generalization theorems: the nearest class mean."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from twofold.evaluation.neighbours import on_sphere, resolution


def class_means(points: Float[Tensor, "n dim"], labels: Int[Tensor, " n"]) -> Float[Tensor, "classes dim"]:
    """Average each class (generalization, eq. 4); the mean of a class without samples is NaN."""
    counts = torch.bincount(labels)
    sums = points.new_zeros(len(counts), points.shape[1]).index_add_(0, labels, points)
    return sums / counts[:, None]


def class_mean_accuracy(
    train: Float[Tensor, "n dim"],
    train_labels: Int[Tensor, " n"],
    test: Float[Tensor, "q dim"],
    test_labels: Int[Tensor, " q"],
) -> float:
    """Return one minus the error rate Er(f) of G(x; f) = argmin_k ‖f(x) − μ_k‖ (generalization, eqs. 4–5).

    Embeddings are put on a sphere first, as Sec. 4.1 assumes of them; its radius changes no answer. Distances
    that rounding cannot tell apart are equal, and the first class wins.
    """
    classes, rows = torch.unique(train_labels, return_inverse=True)
    means = class_means(on_sphere(train.double()), rows)
    points = on_sphere(test.double())
    squares = points.square().sum(dim=1, keepdim=True) + means.square().sum(dim=1) - 2 * points @ means.T
    step = resolution(train.dtype, points.dtype, points.shape[1])
    found = classes[(squares / 2 / step).round().argmin(dim=1)]
    return float((found == test_labels).double().mean())
