"""Optimisers, the two groups of parameters that they see, and their schedule."""

import math
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from twofold.records import STRICT

Share = Annotated[float, Field(ge=0, lt=1)]
Decay = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Group = dict[str, Any]


@dataclass(frozen=True, config=STRICT)
class SGD:
    """Stochastic gradient descent with momentum."""

    momentum: Share = 0.9
    """Share of the last step that is repeated."""
    weight_decay: Decay = 4e-4
    """η, the pull of weights towards zero (biases and norms are left alone)."""
    kind: Literal["sgd"] = field(default="sgd", kw_only=True)
    usual_lr = 0.06

    def over(self, groups: list[Group], lr: float) -> torch.optim.Optimizer:
        """Build the optimiser over these groups of parameters."""
        return torch.optim.SGD(groups, lr=lr, momentum=self.momentum, fused=True)


@dataclass(frozen=True, config=STRICT)
class Adam:
    """Adam; its weight decay is part of the gradient."""

    beta1: Share = 0.9
    """Memory of the mean gradient."""
    beta2: Share = 0.999
    """Memory of the squared gradient."""
    weight_decay: Decay = 0.0
    """Pull of weights towards zero (biases and norms are left alone)."""
    kind: Literal["adam"] = field(default="adam", kw_only=True)
    usual_lr = 1e-3

    def over(self, groups: list[Group], lr: float) -> torch.optim.Optimizer:
        """Build the optimiser over these groups of parameters."""
        return torch.optim.Adam(groups, lr=lr, betas=(self.beta1, self.beta2), fused=True)


@dataclass(frozen=True, config=STRICT)
class AdamW:
    """Adam whose weight decay stands beside the gradient."""

    beta1: Share = 0.9
    """Memory of the mean gradient."""
    beta2: Share = 0.999
    """Memory of the squared gradient."""
    weight_decay: Decay = 5e-2
    """Pull of weights towards zero (biases and norms are left alone)."""
    kind: Literal["adamw"] = field(default="adamw", kw_only=True)
    usual_lr = 3e-3

    def over(self, groups: list[Group], lr: float) -> torch.optim.Optimizer:
        """Build the optimiser over these groups of parameters."""
        return torch.optim.AdamW(groups, lr=lr, betas=(self.beta1, self.beta2), fused=True)


@dataclass(frozen=True, config=STRICT)
class LARS:
    """SGD whose rate is scaled layer by layer (You et al. 2017), for large batches."""

    momentum: Share = 0.9
    """Share of the last step that is repeated."""
    weight_decay: Decay = 1e-6
    """Pull of weights towards zero (biases and norms are left alone)."""
    trust: Annotated[float, Field(gt=0)] = 1e-3
    """Length of a layer's step as a share of the layer's length, before the rate."""
    kind: Literal["lars"] = field(default="lars", kw_only=True)
    usual_lr = 0.2

    def over(self, groups: list[Group], lr: float) -> torch.optim.Optimizer:
        """Build the optimiser over these groups of parameters."""
        return LayerwiseSGD(groups, lr=lr, momentum=self.momentum, trust=self.trust)


Optimizer = Annotated[SGD | Adam | AdamW | LARS, Field(discriminator="kind")]
"""Any optimiser, told apart by its ``kind``."""


class LayerwiseSGD(torch.optim.Optimizer):
    """v ← μ v + λ·(g + η w), w ← w − lr·v, with λ = trust·‖w‖ / (‖g‖ + η‖w‖) a layer (You et al. 2017, Alg. 1).

    λ is 1 in groups marked ``adapted=False`` (biases and norms), and where weight or gradient are zero.
    """

    def __init__(self, groups: Iterable[Group], lr: float, momentum: float, trust: float) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "trust": trust, "weight_decay": 0.0, "adapted": True})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move all weights once, in a few multi-tensor operations, without waiting for the device."""
        for group in self.param_groups:
            weights = [w for w in group["params"] if w.grad is not None]
            if not weights:
                continue
            gradients = [w.grad for w in weights]
            moves = torch._foreach_add(gradients, weights, alpha=group["weight_decay"])
            if group["adapted"]:
                torch._foreach_mul_(moves, _trust(weights, gradients, group))
            velocities = [self._velocity(w) for w in weights]
            torch._foreach_mul_(velocities, group["momentum"])
            torch._foreach_add_(velocities, moves)
            torch._foreach_add_(weights, velocities, alpha=-group["lr"])

    def _velocity(self, weight: torch.Tensor) -> torch.Tensor:
        state = self.state[weight]
        if "velocity" not in state:
            state["velocity"] = torch.zeros_like(weight)
        velocity: torch.Tensor = state["velocity"]
        return velocity


def _trust(weights: list[torch.Tensor], gradients: list[torch.Tensor], group: Group) -> list[torch.Tensor]:
    lengths = torch.stack(torch._foreach_norm(weights))
    slopes = torch.stack(torch._foreach_norm(gradients))
    ratio = group["trust"] * lengths / (slopes + group["weight_decay"] * lengths)
    return list(torch.where((lengths > 0) & (slopes > 0), ratio, 1.0).unbind())


def groups(learners: Iterable[tuple[str, nn.Parameter]], weight_decay: float) -> list[Group]:
    """Separate the weights, which decay and which LARS adapts, from biases and norms, which are left alone."""
    weights: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for _, parameter in learners:
        (weights if parameter.ndim > 1 else rest).append(parameter)
    found = [
        {"params": weights, "weight_decay": weight_decay, "adapted": True},
        {"params": rest, "weight_decay": 0.0, "adapted": False},
    ]
    return [group for group in found if group["params"]]


def rate(step: int, steps: int, warmup: int, schedule: Literal["constant", "cosine"]) -> float:
    """Give the factor of the learning rate at a step: a line up to 1, then constant or half a cosine."""
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant":
        return 1.0
    return (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) / 2
