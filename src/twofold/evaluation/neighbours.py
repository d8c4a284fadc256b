"""Cosine nearest neighbours, and the weighted vote among them."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

SIMILARITIES_AT_ONCE = 2**24


def on_sphere(points: Float[Tensor, "n dim"]) -> Float[Tensor, "n dim"]:
    """Divide every row by its length, in single precision or better; a zero row stays zero."""
    wide = points.to(torch.promote_types(points.dtype, torch.float32))
    largest = wide.abs().amax(dim=1, keepdim=True)
    return F.normalize(wide / largest.where(largest > 0, 1), dim=1)  # no square can over- or underflow


def resolution(stored: torch.dtype, working: torch.dtype, dim: int) -> float:
    """Say how much two cosines must differ to be told apart, given how points are stored and computed with.

    Vectors whose coordinates are all off by one rounding ε of the stored numbers have 1 − cos = ε²/2. A computed
    cosine is off by the roundings of two normalisations and by the random walk of ``dim`` more in the sum.
    """
    return max(torch.finfo(stored).eps ** 2, (4 + math.sqrt(dim)) * torch.finfo(working).eps)


def nearest(
    bank: Float[Tensor, "n dim"], queries: Float[Tensor, "q dim"], k: int
) -> tuple[Float[Tensor, "q k"], Int[Tensor, "q k"]]:
    """Find the ``k`` rows of the bank with the largest cosine to each query, nearest first.

    Cosines that rounding cannot tell apart are equal, so that in a collapsed cloud all rows are equally near,
    and not those that happen to be rounded alike. Only a block of the n × q similarities exists at a time. A bank
    smaller than ``k`` is returned whole.
    """
    directions = on_sphere(bank).T
    step = resolution(bank.dtype, directions.dtype, bank.shape[1])
    block = max(1, SIMILARITIES_AT_ONCE // len(bank))
    values, indices = [], []
    for start in range(0, len(queries), block):
        similarities = on_sphere(queries[start : start + block]) @ directions
        similarities.sub_(1).div_(step).round_().mul_(step).add_(1)
        found = torch.topk(similarities, min(k, len(bank)), dim=1)
        values.append(found.values)
        indices.append(found.indices)
    return torch.cat(values), torch.cat(indices)


def knn_predict(
    bank: Float[Tensor, "n dim"],
    bank_labels: Int[Tensor, " n"],
    queries: Float[Tensor, "q dim"],
    k: int = 20,
    temperature: float = 0.07,
) -> Int[Tensor, " q"]:
    """Let the ``k`` nearest neighbours vote with weights exp(cosine / temperature) (Wu et al. 2018, eq. 13)."""
    similarities, indices = nearest(bank, queries, k)
    votes = similarities.new_zeros(len(queries), int(bank_labels.max()) + 1)
    # The largest weight is made 1: the vote is the same, and no temperature can overflow it.
    weights = ((similarities - similarities[:, :1]) / temperature).exp()
    return votes.scatter_add_(1, bank_labels[indices], weights).argmax(dim=1)


def knn_accuracy(
    bank: Float[Tensor, "n dim"],
    bank_labels: Int[Tensor, " n"],
    queries: Float[Tensor, "q dim"],
    labels: Int[Tensor, " q"],
    k: int = 20,
    temperature: float = 0.07,
) -> float:
    """Return the share of queries whose neighbours vote for their label."""
    return float((knn_predict(bank, bank_labels, queries, k, temperature) == labels).double().mean())
