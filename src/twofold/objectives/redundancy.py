"""Losses of correlation matrices, and the spread over the sphere: no pair of samples is contrasted with another."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from twofold.covariance import correlation, cross_correlation, distance_from_identity, uniformity
from twofold.covariance.processes import processes, refuse_uneven
from twofold.covariance.sphere import ready, unit
from twofold.errors import BadInput
from twofold.records import STRICT, Loss, Pair

Parts = Mapping[str, tuple[float, Float[Tensor, ""]]]


class OfTheBatch(ABC):
    """A loss of the batch as a whole."""

    @abstractmethod
    def parts(self, first: Float[Tensor, "batch dim"], second: Float[Tensor, "batch dim"]) -> Parts:
        """Name the terms of the loss of two views, each with its weight."""

    def __call__(self, pair: Pair) -> Loss:
        """Measure the online projections of the two views; target and predictor play no part."""
        first, second = ready(pair.online)
        refuse_uneven(first)
        if len(first) * processes() < 2:
            raise BadInput(f"what is measured of a batch as a whole needs samples, at least 2, not {len(first)}")
        with torch.autocast(first.device.type, enabled=False):
            parts = self.parts(first, second)
            value = torch.stack([weight * term for weight, term in parts.values()]).sum()
        return Loss(value, {name: term.detach() for name, (_, term) in parts.items()})


def on_radius(z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
    """Bring every row to the length √d (generalization, Sec. 4.1)."""
    return unit(z) * math.sqrt(z.shape[1])


@dataclass(frozen=True, config=STRICT)
class BarlowTwins(OfTheBatch):
    """Σᵢ (1 − Cᵢᵢ)² + λ Σ_{i≠j} Cᵢⱼ² of the cross-correlation C of the two views (generalization, eq. 2)."""

    lambd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5e-3
    """λ, the weight of what different coordinates have in common; generalization, eq. 13 has 1."""
    features: Literal["standardised", "radius"] = "standardised"
    """standardised: mean 0 and variance 1 over the batch; radius: every row of length √d, as in generalization."""
    kind: Literal["barlow-twins"] = field(default="barlow-twins", kw_only=True)

    def parts(self, first: Float[Tensor, "batch dim"], second: Float[Tensor, "batch dim"]) -> Parts:
        """Compare the cross-correlation with the identity."""
        if self.features == "radius":
            first, second = on_radius(first), on_radius(second)
        c = cross_correlation(first, second, standardised=self.features == "standardised")
        diagonal = c.diagonal()
        rest = (c - diagonal.diag()).square().sum()
        return {"diagonal": (1.0, (1 - diagonal).square().sum()), "rest": (self.lambd, rest)}


@dataclass(frozen=True, config=STRICT)
class CorrelationIdentity(OfTheBatch):
    """L_cor = ‖Λ − I‖² with Λ = E f fᵀ over both views (generalization, eq. 8)."""

    normalised: bool = True
    """Bring every row to the length √d first, as the theory assumes; off: the vectors as they are."""
    kind: Literal["correlation-identity"] = field(default="correlation-identity", kw_only=True)

    def parts(self, first: Float[Tensor, "batch dim"], second: Float[Tensor, "batch dim"]) -> Parts:
        """Compare the correlation with the identity."""
        if self.normalised:
            first, second = on_radius(first), on_radius(second)
        return {"correlation": (1.0, distance_from_identity(correlation(first, second)))}


@dataclass(frozen=True, config=STRICT)
class Uniformity(OfTheBatch):
    """log E exp(−t‖f(x) − f(y)‖²) over pairs of different samples, averaged over both views (raft, eq. 3)."""

    t: Annotated[float, Field(gt=0, le=20)] = 2.0
    """How near two directions must be to matter."""
    kind: Literal["uniformity"] = field(default="uniformity", kw_only=True)

    def parts(self, first: Float[Tensor, "batch dim"], second: Float[Tensor, "batch dim"]) -> Parts:
        """Measure both views."""
        return {"uniformity": (1.0, (uniformity(first, self.t) + uniformity(second, self.t)) / 2)}
