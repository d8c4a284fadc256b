"""How many directions a cloud of embeddings fills."""

import torch
from jaxtyping import Float
from torch import Tensor


def spectrum(points: Float[Tensor, "n dim"]) -> Float[Tensor, " dim"]:
    """Return the eigenvalues of the centred covariance (1/n), largest first, in double precision.

    What lies below the rounding of the points' own precision is zero, not variance.
    """
    exact = points.double()
    centred = exact - exact.mean(dim=0)
    eigenvalues = torch.linalg.eigvalsh(centred.T @ centred / len(points)).flip(0)
    rounding = torch.finfo(points.dtype).eps ** 2 * exact.square().sum(dim=1).mean()
    return torch.where(eigenvalues > rounding, eigenvalues, 0.0)


def effective_rank(eigenvalues: Float[Tensor, " dim"]) -> float:
    """Return exp of the entropy of the normalised eigenvalues (Roy & Vetterli 2007); 0 where all are zero."""
    total = eigenvalues.sum()
    if not total > 0:
        return 0.0
    return torch.special.entr(eigenvalues / total).sum().exp().item()
