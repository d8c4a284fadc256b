"""The contrastive covariance of alpha_cl."""

import torch
from jaxtyping import Float
from torch import Tensor

from twofold.covariance.sphere import ready


def contrastive_covariance(
    alpha: Float[Tensor, "n n"],
    a: tuple[Float[Tensor, "n p"], Float[Tensor, "n p"]],
    b: tuple[Float[Tensor, "n q"], Float[Tensor, "n q"]] | None = None,
) -> Float[Tensor, "p q"]:
    """C_α[a, b] = Σᵢ Σ_{j≠i} αᵢⱼ (a[i] − a[j])(b[i] − b[j])ᵀ − Σᵢ βᵢ (a[i] − a[i′])(b[i] − b[i′])ᵀ (alpha_cl, eq. 5).

    βᵢ = Σ_{j≠i} αᵢⱼ. ``a`` and ``b`` hold both views, x[i] and x[i′]; without ``b`` it is C_α[a, a]. The sum over
    pairs is Aᵀ L B with L = diag(α 1 + αᵀ 1) − α − αᵀ, so no difference of a pair is ever formed.
    """
    (a, b) = (_centred(a), _centred(a if b is None else b))
    itself = torch.eye(len(alpha), dtype=torch.bool, device=alpha.device)
    weights = alpha.to(a[0].dtype).masked_fill(itself, 0.0)
    outgoing, incoming = weights.sum(dim=1), weights.sum(dim=0)
    spread = a[0].T @ ((outgoing + incoming)[:, None] * b[0] - (weights + weights.T) @ b[0])
    return spread - (a[0] - a[1]).T @ (outgoing[:, None] * (b[0] - b[1]))


def _centred(views: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Differences know no origin; near it they lose least to rounding."""
    first, second = ready(views)
    middle = (first.mean(dim=0) + second.mean(dim=0)) / 2
    return first - middle, second - middle
