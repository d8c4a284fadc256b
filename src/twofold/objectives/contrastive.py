"""Contrastive losses: positives attract, all others repel."""

from dataclasses import field
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor
from torch.autograd.function import once_differentiable

from twofold.errors import BadInput
from twofold.objectives.sphere import unit, widen
from twofold.records import STRICT, Loss, Pair

_BLOCK = 2**20
"""Similarities held at once: 4 MiB of float32, which stays in a core's cache."""


@dataclass(frozen=True, config=STRICT)
class InfoNCE:
    """The two-sided InfoNCE of SimCLR (dual_networks, eq. 2, with all other views of the batch as negatives).

    The 2N normalised projections are contrasted with each other. For the view i, whose other view is i⁺,

        L = mean over i of −log exp(zᵢ·z_{i⁺}/τ) / Σ_{j≠i} exp(zᵢ·zⱼ/τ),

    where the sum has the positive and 2N − 2 negatives. Memory grows linearly with the batch.
    """

    temperature: Annotated[float, Field(ge=1e-4, allow_inf_nan=False)] = 0.1
    """τ: the smaller, the more the nearest negatives weigh."""
    kind: Literal["infonce"] = field(default="infonce", kw_only=True)

    def __call__(self, pair: Pair) -> Loss:
        """Contrast the projections of the two views; target and predictor play no part."""
        first, second = (unit(widen(view)) for view in pair.online)
        if len(first) < 2:
            raise BadInput(f"infonce contrasts samples with each other: it needs at least 2, not {len(first)}")
        with torch.autocast(first.device.type, enabled=False):
            cosine = (first * second).sum(dim=-1).mean()
            repulsion = mean_log_sum_exp(torch.cat((first, second)), self.temperature)
        value = repulsion - cosine / self.temperature
        return Loss(value, {"cosine": cosine.detach(), "repulsion": repulsion.detach()})


def mean_log_sum_exp(z: Float[Tensor, "views dim"], temperature: float) -> Float[Tensor, ""]:
    """Mean over i of log Σ_{j≠i} exp(zᵢ·zⱼ/τ), block by block of rows: memory linear in the number of rows.

    Differentiable once.
    """
    value: Tensor = _MeanLogSumExp.apply(z, temperature)  # type: ignore[no-untyped-call]
    return value


class _MeanLogSumExp(torch.autograd.Function):
    """The gradient is made in the forward pass, while the block's softmax is at hand: nothing is redone."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, temperature: float) -> Tensor:
        gradient = torch.zeros_like(z) if ctx.needs_input_grad[0] else None
        total = z.new_zeros(())
        rows = max(1, _BLOCK // len(z))
        for start in range(0, len(z), rows):
            total += _add_block(z, start, min(start + rows, len(z)), temperature, gradient)
        if gradient is not None:
            ctx.save_for_backward(gradient.div_(len(z) * temperature))
        return total.div_(len(z))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None


def _add_block(z: Tensor, start: int, stop: int, temperature: float, gradient: Tensor | None) -> Tensor:
    """Sum the log-sum-exps of these rows, and add their gradient (times τ) to all rows."""
    block = z[start:stop]
    softmax = (block @ z.T).div_(temperature)
    softmax.diagonal(start).fill_(-torch.inf)
    largest = softmax.amax(dim=1, keepdim=True)
    softmax.sub_(largest).exp_()
    mass = softmax.sum(dim=1, keepdim=True)
    if gradient is not None:
        softmax.div_(mass)
        gradient[start:stop].addmm_(softmax, z)
        gradient.addmm_(softmax.T, block)
    return (largest + mass.log()).sum()
