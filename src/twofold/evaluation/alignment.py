"""Alignment and uniformity on the sphere (Wang & Isola 2020), as numbers to report."""

import torch
from jaxtyping import Float
from torch import Tensor

from twofold import covariance
from twofold.covariance.processes import alone


@torch.no_grad()
def alignment(first: Float[Tensor, "n dim"], second: Float[Tensor, "n dim"]) -> float:
    """Return E‖f(x) − f(x⁺)‖² between two views of the same samples (Wang & Isola 2020, Sec. 4.1.1)."""
    return covariance.alignment(first.double(), second.double()).item()


@torch.no_grad()
def uniformity(points: Float[Tensor, "n dim"], sharpness: float = 2.0) -> float:
    """Return log E exp(−t‖f(x) − f(y)‖²) over all pairs of different samples (Wang & Isola 2020, Sec. 4.1.2)."""
    with alone():  # whoever measures has all the points
        return covariance.uniformity(points.double(), sharpness).item()
