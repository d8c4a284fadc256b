"""Representations as points of the unit sphere, and how they lie on it (Wang & Isola 2020)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from twofold.covariance.pairwise import Other, Own, Terms, pairwise
from twofold.errors import BadInput


def widen(z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
    """Half precisions become float32, the others stay."""
    return z.to(torch.promote_types(z.dtype, torch.float32))


def ready(views: tuple[Float[Tensor, "..."], Float[Tensor, "..."]]) -> tuple[Tensor, Tensor]:
    """Widen two views of the same samples, and refuse what are none."""
    first, second = views
    if first.shape != second.shape or first.ndim != 2 or len(first) == 0:
        shapes = f"{tuple(first.shape)} and {tuple(second.shape)}"
        raise BadInput(f"two views are matrices with a row for each sample, not of shapes {shapes}")
    return widen(first), widen(second)


def unit(z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
    """Divide every row by its ℓ₂ norm (dual_networks, App. A.2), without overflow.

    A row that is zero (or so small that its square is) has no direction: it stays zero and gets no gradient,
    where z/max(‖z‖, ε) would give it one of size 1/ε.
    """
    scale = z.detach().abs().amax(dim=-1, keepdim=True)
    smallest = torch.finfo(z.dtype).tiny ** 0.5
    return F.normalize(z / scale.where(scale > smallest, torch.inf), dim=-1)


def alignment(first: Float[Tensor, "batch dim"], second: Float[Tensor, "batch dim"]) -> Float[Tensor, ""]:
    """E‖f(x₁) − f(x₂)‖² of two views' directions (raft, eq. 2)."""
    return (unit(widen(first)) - unit(widen(second))).square().sum(dim=1).mean()


def uniformity(points: Float[Tensor, "batch dim"], sharpness: float = 2.0) -> Float[Tensor, ""]:
    """log E exp(−t‖f(x) − f(y)‖²) over the pairs of different samples' directions (raft, eq. 3).

    Memory grows with the batch, not with its square; with several processes it is that of the whole batch.
    """
    if not sharpness > 0:
        raise BadInput(f"the sharpness of uniformity must be greater than 0, not {sharpness}")
    directions = unit(widen(points))

    def potentials(own: Own, other: Other) -> Terms:
        terms = other.mul_(-2 * sharpness).exp_()
        mass = terms.sum(dim=1)
        count = other.shape[1] - 1
        return Terms(mass / count, torch.zeros_like(own), terms.mul_(2 * sharpness / count))

    return pairwise(directions, directions, potentials, "anchors").log()
