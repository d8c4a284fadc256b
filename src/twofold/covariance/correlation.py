"""Estimates of the correlation matrix of a network's outputs, from one batch and from many."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from twofold.covariance.processes import averaged
from twofold.errors import BadInput


def correlation(*views: Float[Tensor, "batch dim"], centred: bool = False) -> Float[Tensor, "dim dim"]:
    """Average f fᵀ over all rows of all views, those of all processes: the E_B[f fᵀ] of directpred, eq. 19.

    It is a plain average, divided by the number of rows, centred or not; ``centred`` subtracts the common
    mean of all views first (and leaves the plain covariance, which is biased by 1 − 1/rows). The result is
    exactly symmetric, and computed in at least float32 whatever the outputs' precision, also under autocast.
    """
    if not views:
        raise BadInput("a correlation needs the outputs of at least one view, got none")
    with torch.autocast(views[0].device.type, enabled=False):
        outputs = torch.cat(views)
        outputs = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
        if centred:
            outputs = outputs - averaged(outputs.mean(dim=0))
        moment = averaged(outputs.T @ outputs / len(outputs))
        return (moment + moment.T) / 2


def cross_correlation(
    first: Float[Tensor, "batch dim"], second: Float[Tensor, "batch dim"], standardised: bool = False
) -> Float[Tensor, "dim dim"]:
    """Average f₁ f₂ᵀ over the rows of two views (generalization, eq. 2), those of all processes.

    ``standardised``: each coordinate of each view has mean 0 and variance 1 over the batch first (Zbontar et al. 2021,
    Alg. 1); one that is constant there is 0.
    """
    with torch.autocast(first.device.type, enabled=False):
        wide = torch.promote_types(first.dtype, torch.float32)
        views = torch.stack((first.to(wide), second.to(wide)))
        if standardised:
            views = _standardised(views)
        return averaged(views[0].T @ views[1] / views.shape[1])


def _standardised(views: Float[Tensor, "views batch dim"]) -> Float[Tensor, "views batch dim"]:
    """Give each coordinate of each view mean 0 and variance 1 over the batch of all processes, without overflow."""
    size = averaged(views.detach().abs().mean(dim=1, keepdim=True))
    views = views / size.where(size > 0, 1.0)
    views = views - averaged(views.mean(dim=1, keepdim=True))
    variance = averaged(views.square().mean(dim=1, keepdim=True))
    varies = variance.detach() > (4 * torch.finfo(views.dtype).eps) ** 2  # less is the rounding of a constant
    return views * variance.where(varies, 1.0).rsqrt().where(varies, 0.0)


def distance_from_identity(matrix: Float[Tensor, "dim dim"]) -> Float[Tensor, ""]:
    """‖M − I‖² in the Frobenius norm: L_cor where M is Λ = E f fᵀ (generalization, eq. 8)."""
    identity = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return (matrix - identity).square().sum()


def generalisation_bound(correlation_distance: Float[Tensor, ""], dim: int, classes: int) -> Float[Tensor, ""]:
    """L_bound = 2 L_cor/d² + (K − d)/d², the part of the error bound that training changes (generalization, eq. 11)."""
    return 2 * correlation_distance / dim**2 + (classes - dim) / dim**2


class MovingCorrelation(nn.Module):
    """F̂ ← μ F̂ + (1 − μ) E_B[f fᵀ] (directpred, eq. 19), seeded with the first batch instead of with zero.

    The estimate and the number of batches seen are buffers, so a checkpoint holds both, and an update never
    waits for the device.
    """

    estimate: Float[Tensor, "dim dim"]
    batches: Tensor

    def __init__(self, dim: int, momentum: float = 0.3, centred: bool = False) -> None:
        super().__init__()
        if not 0 <= momentum < 1:
            raise BadInput(f"the momentum of a moving correlation must be in [0, 1), not {momentum}")
        self.momentum = momentum
        self.centred = centred
        self.register_buffer("estimate", torch.zeros(dim, dim))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def update(self, *views: Float[Tensor, "batch dim"]) -> Float[Tensor, "dim dim"]:
        """Take in one batch (all its views together) and return the new estimate."""
        batch = correlation(*views, centred=self.centred).to(self.estimate.dtype)
        share_of_past = (self.batches > 0).to(batch.dtype) * self.momentum
        self.estimate.lerp_(batch, 1 - share_of_past)
        self.batches.add_(1)
        return self.estimate
