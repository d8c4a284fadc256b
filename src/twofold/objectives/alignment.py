"""Alignment losses: predictions meet the target of the other view, each other, or their own view's target."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from twofold.covariance.sphere import ready, unit
from twofold.errors import BadInput
from twofold.records import STRICT, Loss, Pair

Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_SMALLEST_COSINE = 1e-6
"""Where λ is smaller, the printed tangential loss divides by (nearly) zero; its gradient needs no λ there."""


@dataclass(frozen=True, config=STRICT)
class Distances(ABC):
    """What these losses are made of: mean squared distances between rows of a pair's entries."""

    normalised: bool = field(default=True, kw_only=True)
    """Compare directions only; off: the plain squared distance of the linear theory."""
    tangential: bool = field(default=False, kw_only=True)
    """Rewrite ‖t − p‖² so that it has no gradient along p (raft, remark to Thm 5.1); for directions only."""

    def __post_init__(self) -> None:
        """Refuse a tangent where there is no sphere."""
        if self.tangential and not self.normalised:
            raise BadInput("tangential gradients are those of the sphere: they need normalised, which is off")

    @abstractmethod
    def parts(self, pair: Pair) -> Mapping[str, tuple[float, Float[Tensor, ""]]]:
        """Name the terms of the loss, each with its weight."""

    def __call__(self, pair: Pair) -> Loss:
        """Add up the terms; the target says by itself whether it passes gradients."""
        with torch.autocast(pair.online[0].device.type, enabled=False):
            parts = self.parts(pair)
            value = torch.stack([weight * term for weight, term in parts.values()]).sum()
        return Loss(value, {name: term.detach() for name, (_, term) in parts.items()})

    def _distance(self, moving: Float[Tensor, "batch dim"], other: Float[Tensor, "batch dim"]) -> Float[Tensor, ""]:
        """E‖other − moving‖², or its tangential form E‖other − λ moving‖²/λ with λ = sg⟨moving, other⟩."""
        moving, other = ready((moving, other))
        if self.normalised:
            moving, other = unit(moving), unit(other)
        if not self.tangential:
            return (other - moving).square().sum(dim=1).mean()
        cosine = (moving * other).sum(dim=1)
        share = cosine.detach()
        divisor = share.where(share.abs() > _SMALLEST_COSINE, _SMALLEST_COSINE)
        constant = other.detach().square().sum(dim=1) / divisor  # of length one: no gradient along the sphere
        squared = constant - 2 * cosine + share * moving.square().sum(dim=1)
        return squared.mean()

    def _alignment(self, pair: Pair) -> Float[Tensor, ""]:
        return self._distance(*pair.predicted)

    def _cross_model(self, pair: Pair) -> Float[Tensor, ""]:
        """Average the distance of predictions to the targets of their own view over both views."""
        own = [self._distance(p, t) for p, t in zip(pair.predicted, pair.target, strict=True)]
        return (own[0] + own[1]) / 2


@dataclass(frozen=True, config=STRICT)
class BYOL(Distances):
    """Both directions of BYOL's squared distance (directpred, eq. 1; dual_networks, Sec. 5; raft, eq. 4 has one):

        L = E ‖q(z₁) − t₂‖² + E ‖q(z₂) − t₁‖²,

    with all vectors divided by their norm unless ``normalised`` is off. Normalised, it is 4 − 2 cos − 2 cos: the
    reference implementation's −2 cos − 2 cos up to the constant. The linear theory halves the plain distance.
    """

    kind: Literal["byol"] = field(default="byol", kw_only=True)

    def parts(self, pair: Pair) -> Mapping[str, tuple[float, Float[Tensor, ""]]]:
        """Compare predictions with the targets of the other view."""
        (predicted_1, predicted_2), (target_1, target_2) = pair.predicted, pair.target
        forth, back = self._distance(predicted_1, target_2), self._distance(predicted_2, target_1)
        return {"forth": (1.0, forth), "back": (1.0, back)}


@dataclass(frozen=True, config=STRICT)
class Align(Distances):
    """The alignment of predictions, E ‖q(z₁) − q(z₂)‖² (raft, eq. 2)."""

    kind: Literal["align"] = field(default="align", kw_only=True)

    def parts(self, pair: Pair) -> Mapping[str, tuple[float, Float[Tensor, ""]]]:
        """Compare the predictions of the two views."""
        return {"align": (1.0, self._alignment(pair))}


@dataclass(frozen=True, config=STRICT)
class CrossModel(Distances):
    """The distance to the mean teacher, E ‖q(zᵢ) − tᵢ‖², averaged over both views (raft, eq. 6 and Def. 4.2)."""

    kind: Literal["cross-model"] = field(default="cross-model", kw_only=True)

    def parts(self, pair: Pair) -> Mapping[str, tuple[float, Float[Tensor, ""]]]:
        """Compare predictions with the targets of their own view."""
        return {"cross_model": (1.0, self._cross_model(pair))}


@dataclass(frozen=True, config=STRICT)
class BYOLPrime(Distances):
    """BYOL′ = α L_align + β L_cross-model, a bound of BYOL's one direction up to a factor (raft, eq. 7 and Thm 4.1)."""

    alpha: Weight = 1.0
    """α, the weight of the alignment of the two views."""
    beta: Weight = 1.0
    """β, the weight of running towards the teacher."""
    kind: Literal["byol-prime"] = field(default="byol-prime", kw_only=True)

    def parts(self, pair: Pair) -> Mapping[str, tuple[float, Float[Tensor, ""]]]:
        """Align, and run towards the teacher."""
        return {"align": (self.alpha, self._alignment(pair)), "cross_model": (self.beta, self._cross_model(pair))}


@dataclass(frozen=True, config=STRICT)
class RAFT(Distances):
    """Run away from your teacher: α L_align − β L_cross-model (raft, eq. 9)."""

    alpha: Weight = 1.0
    """α, the weight of the alignment of the two views."""
    beta: Weight = 1.0
    """β, the weight of running away from the teacher."""
    kind: Literal["raft"] = field(default="raft", kw_only=True)

    def parts(self, pair: Pair) -> Mapping[str, tuple[float, Float[Tensor, ""]]]:
        """Align, and run away from the teacher."""
        return {"align": (self.alpha, self._alignment(pair)), "cross_model": (-self.beta, self._cross_model(pair))}
