"""Cosine nearest neighbours, and the weighted vote among them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

SIMILARITIES_AT_ONCE = 2**24


def on_sphere(points: Float[Tensor, "n dim"]) -> Float[Tensor, "n dim"]:
    """Divide every row by its length, in single precision or better; a zero row stays zero."""
    return F.normalize(points.to(torch.promote_types(points.dtype, torch.float32)), dim=1)


def nearest(
    bank: Float[Tensor, "n dim"], queries: Float[Tensor, "q dim"], k: int
) -> tuple[Float[Tensor, "q k"], Int[Tensor, "q k"]]:
    """Find the ``k`` rows of the bank with the largest cosine to each query, nearest first.

    Only a block of the n × q similarities exists at a time. A bank smaller than ``k`` is returned whole.
    """
    directions = on_sphere(bank).T
    block = max(1, SIMILARITIES_AT_ONCE // len(bank))
    found = [
        torch.topk(on_sphere(some) @ directions, min(k, len(bank)), dim=1) for some in queries.split(block)
    ]
    return torch.cat([values for values, _ in found]), torch.cat([indices for _, indices in found])


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
    return (knn_predict(bank, bank_labels, queries, k, temperature) == labels).double().mean().item()
