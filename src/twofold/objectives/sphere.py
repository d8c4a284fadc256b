"""Representations as points of the unit sphere, in a precision that a loss can be computed in."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def widen(z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
    """Half precisions become float32, the others stay."""
    return z.to(torch.promote_types(z.dtype, torch.float32))


def unit(z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
    """Divide every row by its ℓ₂ norm (dual_networks, App. A.2), without overflow.

    A row that is zero (or so small that its square is) has no direction: it stays zero and gets no gradient,
    where z/max(‖z‖, ε) would give it one of size 1/ε.
    """
    scale = z.detach().abs().amax(dim=-1, keepdim=True)
    smallest = torch.finfo(z.dtype).tiny ** 0.5
    return F.normalize(z / scale.where(scale > smallest, torch.inf), dim=-1)
