"""Alignment and uniformity on the sphere (Wang & Isola 2020)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from twofold.evaluation.neighbours import on_sphere

ROWS_AT_ONCE = 1024


def alignment(first: Float[Tensor, "n dim"], second: Float[Tensor, "n dim"]) -> float:
    """Return E‖f(x) − f(x⁺)‖² between two views of the same samples (Wang & Isola 2020, Sec. 4.1.1)."""
    return (on_sphere(first) - on_sphere(second)).square().sum(dim=1).double().mean().item()


def uniformity(points: Float[Tensor, "n dim"], sharpness: float = 2.0) -> float:
    """Return log E exp(−t‖f(x) − f(y)‖²) over all pairs of different samples (Wang & Isola 2020, Sec. 4.1.2).

    A block of rows meets all points at a time, so memory grows with n, not with n². Needs two samples.
    """
    directions = on_sphere(points)
    lengths = directions.square().sum(dim=1)
    total = torch.zeros((), dtype=torch.float64, device=points.device)
    for start in range(0, len(points), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        distances = lengths[rows, None] + lengths - 2 * directions[rows] @ directions.T
        potentials = torch.exp(-sharpness * distances.clamp_(min=0))
        potentials.diagonal(offset=start).zero_()
        total += potentials.sum(dtype=torch.float64)
    return math.log(total.item() / (len(points) * (len(points) - 1)))
