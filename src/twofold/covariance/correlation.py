"""Estimates of the correlation matrix of a network's outputs, from one batch and from many."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from twofold.errors import BadInput


def correlation(*views: Float[Tensor, "batch dim"], centred: bool = False) -> Float[Tensor, "dim dim"]:
    """Average f fᵀ over all rows of all views: the E_B[f fᵀ] of directpred, eq. 19.

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
            outputs = outputs - outputs.mean(dim=0)
        moment = outputs.T @ outputs / len(outputs)
        return (moment + moment.T) / 2


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
