"""The classifier of the generalization theorems: the nearest class mean."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from twofold.evaluation.neighbours import on_sphere


def class_means(points: Float[Tensor, "n dim"], labels: Int[Tensor, " n"]) -> Float[Tensor, "classes dim"]:
    """Average each class (generalization, eq. 4); the mean of a class without samples is infinitely far."""
    counts = torch.bincount(labels)
    sums = points.new_zeros(len(counts), points.shape[1]).index_add_(0, labels, points)
    return torch.where(counts[:, None] > 0, sums / counts[:, None].clamp(min=1), torch.inf)


def class_mean_accuracy(
    train: Float[Tensor, "n dim"],
    train_labels: Int[Tensor, " n"],
    test: Float[Tensor, "q dim"],
    test_labels: Int[Tensor, " q"],
) -> float:
    """Return one minus the error rate Er(f) of G(x; f) = argmin_k ‖f(x) − μ_k‖ (generalization, eqs. 4–5).

    Embeddings are put on a sphere first, as Sec. 4.1 assumes of them; its radius changes no answer.
    """
    means = class_means(on_sphere(train), train_labels)
    nearest_mean = torch.cdist(on_sphere(test), means).argmin(dim=1)
    return (nearest_mean == test_labels).double().mean().item()
