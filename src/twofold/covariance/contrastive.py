"""The contrastive covariance of alpha_cl."""

from jaxtyping import Float
from torch import Tensor


def contrastive_covariance(
    alpha: Float[Tensor, "n n"],
    a: tuple[Float[Tensor, "n p"], Float[Tensor, "n p"]],
    b: tuple[Float[Tensor, "n q"], Float[Tensor, "n q"]] | None = None,
) -> Float[Tensor, "p q"]:
    """C_α[a, b] = Σᵢ Σ_{j≠i} αᵢⱼ (a[i] − a[j])(b[i] − b[j])ᵀ − Σᵢ βᵢ (a[i] − a[i′])(b[i] − b[i′])ᵀ (alpha_cl, eq. 5).

    βᵢ = Σ_{j≠i} αᵢⱼ. ``a`` and ``b`` hold both views, x[i] and x[i′]; without ``b`` it is C_α[a, a]. The sum over
    pairs is Aᵀ L B with L = diag(α 1 + αᵀ 1) − α − αᵀ, so no difference of a pair is ever formed.
    """
    b = a if b is None else b
    weights = alpha - alpha.diag().diag()
    outgoing, incoming = weights.sum(dim=1), weights.sum(dim=0)
    spread = a[0].T @ ((outgoing + incoming)[:, None] * b[0] - (weights + weights.T) @ b[0])
    return spread - (a[0] - a[1]).T @ (outgoing[:, None] * (b[0] - b[1]))
