"""The dual network: an online network that learns, and a target that it is compared with."""

import copy
from collections.abc import Iterator
from dataclasses import field
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from twofold.networks.projector import AnyProjector, Projector
from twofold.records import STRICT, Pair

Views = Float[Tensor, "batch ..."]


@dataclass(frozen=True, config=STRICT)
class EMA:
    """A second network whose weights follow the online ones: W_a ← γ W_a + (1 − γ) W (directpred, Sec. 2).

    It starts as a copy, runs in training mode (its BatchNorm sees the batch) and never gets a gradient.
    """

    decay: Annotated[float, Field(ge=0, le=1)] = 0.996
    """γ, the share of itself that the target keeps at each step."""
    buffers: Literal["own", "copy", "average"] = "own"
    """Running statistics of the target: gathered by itself, copied from the online network, or averaged too."""
    kind: Literal["ema"] = field(default="ema", kw_only=True)


@dataclass(frozen=True, config=STRICT)
class Online:
    """The online network is its own target (SimSiam)."""

    stop_gradient: bool = True
    """Whether the target's outputs are constants for the gradient."""
    kind: Literal["online"] = field(default="online", kw_only=True)


Target = Annotated[EMA | Online, Field(discriminator="kind")]
"""Any target, told apart by its ``kind``."""


class Branch(nn.Module):
    """Encoder and projector: f = projector(encoder(x))."""

    def __init__(self, encoder: nn.Module, projector: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projector

    def forward(self, x: Views) -> Float[Tensor, "batch dim"]:
        """Map views to projections."""
        projections: Tensor = self.projector(self.encoder(x))
        return projections


class Dual(nn.Module):
    """Two views in, a ``Pair`` out.

    Each view goes through each network on its own, so BatchNorm sees one view at a time, as in the papers.
    """

    online: Branch
    target: Branch | None

    def __init__(
        self,
        encoder: nn.Module,
        features: int,
        predictor: nn.Module,
        target: EMA | Online,
        projector: AnyProjector | None = None,
    ) -> None:
        super().__init__()
        projector = projector or Projector()
        self.online = Branch(encoder, projector.module(features))
        self.predictor = predictor
        self.settings = target
        self.target = _follower(self.online) if isinstance(target, EMA) else None

    def forward(self, first: Views, second: Views) -> Pair:
        """Project both views with both networks, and predict."""
        online = self.online(first), self.online(second)
        predicted = self.predictor(online[0]), self.predictor(online[1])
        return Pair(online=online, predicted=predicted, target=self._targets(first, second, online))

    def _targets(self, first: Views, second: Views, online: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        if self.target is not None:
            with torch.no_grad():
                return self.target(first), self.target(second)
        if isinstance(self.settings, Online) and not self.settings.stop_gradient:
            return online
        return online[0].detach(), online[1].detach()

    @torch.no_grad()
    def follow(self) -> None:
        """Move the target towards the online network, after the optimiser's step: one multi-tensor operation."""
        if self.target is None or not isinstance(self.settings, EMA):
            return
        step = 1 - self.settings.decay
        followers: list[Tensor] = list(self.target.parameters())
        if followers:
            torch._foreach_lerp_(followers, list(self.online.parameters()), step)
        if self.settings.buffers == "own":
            return
        for own, theirs in zip(self.target.buffers(), self.online.buffers(), strict=True):
            if self.settings.buffers == "average" and own.is_floating_point():
                own.lerp_(theirs, step)
            else:
                own.copy_(theirs)

    def learners(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Name every parameter that a gradient may move: all but the target's."""
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                yield name, parameter


def _follower(branch: Branch) -> Branch:
    """Copy a network that will never get a gradient."""
    follower = copy.deepcopy(branch)
    return follower.requires_grad_(False)
