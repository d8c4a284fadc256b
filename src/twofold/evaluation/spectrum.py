"""How many directions a cloud of embeddings fills."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def spectrum(points: Float[Tensor, "n dim"]) -> Float[Tensor, " dim"]:
    """Return the eigenvalues of the centred covariance (1/n), largest first, in double precision.

    What lies below the rounding of the points' own precision, or of the eigenvalues', is zero, not variance.
    """
    exact = points.double()
    shifted = exact - exact[0]  # what all points have in common goes without any rounding
    centred = shifted - shifted.mean(dim=0)
    eigenvalues = torch.linalg.eigvalsh(centred.T @ centred / len(points)).flip(0)
    of_points = torch.finfo(points.dtype).eps ** 2 * exact.square().sum(dim=1).mean()
    of_eigenvalues = points.shape[1] * torch.finfo(exact.dtype).eps * eigenvalues[0]
    return torch.where(eigenvalues > torch.maximum(of_points, of_eigenvalues), eigenvalues, 0.0)


def effective_rank(eigenvalues: Float[Tensor, " dim"]) -> float:
    """Return exp of the entropy of the normalised eigenvalues (Roy & Vetterli 2007); 0 where all are zero."""
    total = eigenvalues.sum()
    if not total > 0:
        return 0.0
    return float(torch.special.entr(eigenvalues / total).sum().exp())


def isotropic_rank(samples: int, dim: int) -> float:
    """Return the effective rank that isotropic Gaussian noise has in so many samples and dimensions.

    The eigenvalues of its covariance follow the law of Marchenko and Pastur, whose mean entropy is
    log m − m/2M, with m the lesser and M the greater of ``dim`` and the ``samples`` − 1 left by centring (Page 1993).
    """
    least, most = sorted((samples - 1, dim))
    return least * math.exp(-least / (2 * most))
