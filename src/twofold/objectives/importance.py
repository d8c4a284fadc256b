"""The importance αᵢⱼ of pairs: how much each negative of an anchor weighs (alpha_cl, Secs. 3 and 6).

An importance maps the distances of a row, dᵢ² and dᵢⱼ², to weights. Most of them minimise Σⱼ cⱼ αⱼ − Σⱼ r(αⱼ) over
the simplex, with the costs cⱼ = 2 (dᵢⱼ² − dᵢ²) of the energy (alpha_cl, eqs. 8a and 20) and a concave r. What is no
pair is infinitely far and weighs nothing. All can be differentiated; whether a loss does so is its own choice.
"""

import math
from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from twofold.covariance.pairwise import Other, Own
from twofold.errors import BadInput
from twofold.objectives.contrastive import AnyContrastive, InfoNCE, Temperature
from twofold.records import STRICT

_STEPS = 100
"""Newton steps at most; a dozen are the rule."""
_ENTROPIC = 1e-7
"""Tsallis's entropy of an order this near to 1 is the entropy, to as many digits as its roots have."""
_LOG_SMALLEST = -80.0
"""A weight whose logarithm is not above this is nothing."""
_LOG_LARGEST = -1e-12
"""One whose logarithm is not below this is all; at 1 itself r may have no slope."""


@dataclass(frozen=True, config=STRICT)
class Entropy:
    """α-CL-r_H: r(α) = −2τ α log α, so that α is the softmax of −d²/τ (alpha_cl, eq. 6 and Sec. 6)."""

    temperature: Temperature = 0.5
    """τ: the smaller, the more the nearest negatives weigh."""
    kind: Literal["entropy"] = field(default="entropy", kw_only=True)

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        return torch.softmax(-other / self.temperature, dim=1)


@dataclass(frozen=True, config=STRICT)
class Inverse:
    """α-CL-r_γ: r(α) = 2τ α^{1−γ}/(1 − γ), so that αⱼ = (2τ/(cⱼ − μ))^{1/γ} (alpha_cl, Sec. 6).

    With yⱼ = (cⱼ − μ)/2τ the weights sum to one where the power mean (Σ yⱼ^{−1/γ})^{−γ} is one. It is concave in μ, so
    Newton's steps from where the nearest negative has all the weight never pass the root and always reach it.
    """

    temperature: Temperature = 0.5
    """τ: the smaller, the more the nearest negatives weigh."""
    gamma: Annotated[float, Field(gt=1, le=20)] = 2.0
    """γ: how slowly the weights of distant negatives fall."""
    kind: Literal["inverse"] = field(default="inverse", kw_only=True)

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        costs = ((other - other.detach().amin(dim=1, keepdim=True)) / self.temperature).double()
        with torch.no_grad():
            start = torch.ones_like(costs[:, :1])
            for _ in range(_STEPS):
                step = self._newton(start, costs)
                start += step
                if not (step > 4e-16 * start).any():
                    break
        lift = start + self._newton(start, costs)
        return (costs + lift).pow(-1 / self.gamma).to(other.dtype)

    def _newton(self, lift: Tensor, costs: Tensor) -> Tensor:
        """Take a step towards the power mean of one; its slope is a constant for the gradient."""
        heights = costs + lift
        weights = heights.pow(-1 / self.gamma)
        mass = weights.sum(dim=1, keepdim=True)
        slope = (weights / heights).detach().sum(dim=1, keepdim=True)
        return (mass.pow(self.gamma) - 1) * (mass / slope).detach()


@dataclass(frozen=True, config=STRICT)
class Square:
    """α-CL-r_s: r(α) = −τ α²/2, so that α is the point of the simplex nearest to −c/τ (alpha_cl, Sec. 6); exact."""

    temperature: Temperature = 5.0
    """τ: the smaller, the fewer negatives weigh at all."""
    kind: Literal["square"] = field(default="square", kw_only=True)

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        nearest = other.detach().amin(dim=1, keepdim=True)
        return projection_on_simplex((-2 / self.temperature) * (other - nearest))


def projection_on_simplex(points: Tensor) -> Tensor:
    """Find the point of the simplex nearest to each row: max(v − θ, 0), by sorting, exactly."""
    ordered = points.sort(dim=1, descending=True).values
    counts = torch.arange(1, points.shape[1] + 1, device=points.device)
    levels = (ordered.cumsum(dim=1) - 1) / counts
    support = (ordered > levels).sum(dim=1, keepdim=True).clamp(min=1)  # none only where numbers are none
    return torch.relu(points - levels.gather(1, support - 1))


@dataclass(frozen=True, config=STRICT)
class Tsallis:
    """From entropy to square: r(α) = 2τ (α − α^q)/(q − 1), Tsallis's entropy; an extension of our own.

    q = 1 is ``Entropy(τ)``, q = 2 is ``Square(4τ)``, between them distant negatives weigh exactly nothing. The
    weights are max(s + t, 0)^m with sⱼ = −(q − 1) cⱼ/(2τq) and m = 1/(q − 1), and t makes the norm of order m of
    max(s + t, 0) one. It is convex in t, so Newton's steps from where the nearest negative has all the weight never
    pass the root.
    """

    temperature: Temperature = 0.5
    """τ: the smaller, the more the nearest negatives weigh."""
    q: Annotated[float, Field(ge=1, le=2)] = 1.5
    """Order of the entropy: 1 the softmax, 2 the projection on the simplex."""
    kind: Literal["tsallis"] = field(default="tsallis", kw_only=True)

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        if self.q - 1 < _ENTROPIC:
            return Entropy(self.temperature)(own, other)
        nearest = other.detach().amin(dim=1, keepdim=True)
        scores = ((other - nearest) * (-(self.q - 1) / (self.temperature * self.q))).double()
        with torch.no_grad():
            lift = torch.ones_like(scores[:, :1])
            for _ in range(_STEPS):
                step = self._newton(lift, scores)
                lift += step
                if not (step < -4e-16).any():
                    break
        lift = lift + self._newton(lift, scores)
        return torch.relu(scores + lift).pow(1 / (self.q - 1)).to(other.dtype)

    def _newton(self, lift: Tensor, scores: Tensor) -> Tensor:
        """Take a step towards the norm of one; its slope is a constant for the gradient."""
        order = 1 / (self.q - 1)
        heights = torch.relu(scores + lift)
        norm = heights.pow(order).sum(dim=1, keepdim=True).pow(1 / order)
        slope = heights.detach().pow(order - 1).where(heights > 0, 0.0).sum(dim=1, keepdim=True)
        return (1 - norm) / (slope / norm.detach().pow(order - 1))


@dataclass(frozen=True, config=STRICT)
class Direct:
    """α-CL-direct: α = exp(−d^p/τ), divided by its sum unless ``normalised`` is off (alpha_cl, eqs. 12 and 44)."""

    p: Annotated[float, Field(gt=1, le=100)] = 4.0
    """Exponent of the distance."""
    temperature: Temperature = 0.5
    """τ: the smaller, the more the nearest negatives weigh."""
    normalised: bool = True
    """Whether the weights of an anchor's negatives sum to one."""
    kind: Literal["direct"] = field(default="direct", kw_only=True)

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        smallest = torch.finfo(other.dtype).tiny ** 0.5  # where d^p has a slope even for p < 2
        energies = other.clamp(min=smallest).pow(self.p / 2) / -self.temperature
        return torch.softmax(energies, dim=1) if self.normalised else energies.exp()


@dataclass(frozen=True, config=STRICT)
class Implied:
    """The α = φ′(ξ) ψ′(d² − dⱼ²) of a contrastive loss (alpha_cl, eq. 4)."""

    loss: AnyContrastive = InfoNCE()
    """Whose; its own choice of negatives and normalisation plays no part."""
    kind: Literal["implied"] = field(default="implied", kw_only=True)

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        return self.loss.importance(own[:, None] - other)


@dataclass(frozen=True, config=STRICT)
class Regularised:
    """The α that minimises Σ c α − Σ r(α) over the simplex for any concave r, solved numerically (alpha_cl, eq. 8a).

    Its optimum has r′(αⱼ) = cⱼ + ν wherever αⱼ > 0. Both this α and the ν for which they sum to one are found by
    Newton's steps inside shrinking brackets. For one's own loop: no settings file holds r.
    """

    r: Callable[[Tensor], Tensor]
    """r, a torch function of each entry, strictly concave, with two derivatives between 0 and 1."""
    kind: Literal["regularised"] = field(default="regularised", kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what has no single optimum."""
        at = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
        try:
            curvature = self._derivatives(at)[1]
        except RuntimeError as underived:
            raise BadInput("r must be made of torch functions of its argument, to have derivatives") from underived
        if not (curvature < 0).all():
            worst = int((~(curvature < 0)).nonzero()[0, 0])
            raise BadInput(
                f"r must be strictly concave between 0 and 1, and its second derivative at {float(at[worst]):.2f} "
                f"is {float(curvature[worst]):g}"
            )

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        costs = 2 * (other - own[:, None]).double()
        with torch.no_grad():
            price, weights = self._solve(costs)
            slope, curvature = self._derivatives(weights)
            softness = (-1 / curvature).where((weights > 0) & (weights < math.exp(_LOG_LARGEST)), 0.0)
        if not torch.is_grad_enabled():
            return (weights / weights.sum(dim=1, keepdim=True)).to(other.dtype)
        # A Newton step from the solution, which hardly moves it, has its derivative (implicit function theorem).
        moved = weights + softness * (slope - costs.where(softness > 0, 0.0) - price).where(softness > 0, 0.0)
        excess = moved.sum(dim=1, keepdim=True) - 1
        total = softness.sum(dim=1, keepdim=True)
        return (moved - softness * excess / total.where(total > 0, 1.0)).to(other.dtype)

    def _derivatives(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            at = weights.clamp(min=math.exp(_LOG_SMALLEST)).requires_grad_()
            (slope,) = torch.autograd.grad(self.r(at).sum(), at, create_graph=True)
            curvature = torch.autograd.grad(slope.sum(), at)[0] if slope.requires_grad else torch.zeros_like(slope)
        return slope.detach(), curvature

    def _solve(self, costs: Tensor) -> tuple[Tensor, Tensor]:
        """Find ν and α: at the bracket's ends the nearest negative weighs all, and none more than its equal share."""
        pairs = costs < torch.inf
        nearly_all = torch.full_like(costs[:, 0], math.exp(_LOG_LARGEST))
        ends = torch.stack((nearly_all, 1 / pairs.sum(dim=1)), dim=1)
        low, high = torch.split(self._derivatives(ends)[0] - costs.amin(dim=1, keepdim=True), 1, dim=1)
        price, logs = low.clone(), ends[:, 1:].log().expand_as(costs)
        for _ in range(_STEPS):
            logs = self._log_weights(costs + price, logs)
            weights = logs.exp().where(logs > _LOG_SMALLEST, 0.0)
            excess = weights.sum(dim=1, keepdim=True) - 1
            low, high = low.where(excess < 0, price), high.where(excess > 0, price)
            if not (excess.abs() > 1e-13).any():
                break
            curvature = self._derivatives(weights)[1]
            inside = (logs > _LOG_SMALLEST) & (logs < _LOG_LARGEST)
            newton = price + excess / (-1 / curvature).where(inside, 0.0).sum(dim=1, keepdim=True)
            price = newton.where((newton > low) & (newton < high), (low + high) / 2)
        return price, weights

    def _log_weights(self, prices: Tensor, logs: Tensor) -> Tensor:
        """Solve r′(α) = price for log α between the smallest weight and 0, from where it was before."""
        low, high = torch.full_like(logs, _LOG_SMALLEST), torch.full_like(logs, _LOG_LARGEST)
        nothing = self._derivatives(low.exp())[0] <= prices
        everything = self._derivatives(high.exp())[0] >= prices
        for _ in range(_STEPS):
            weights = logs.exp()
            slope, curvature = self._derivatives(weights)
            excess = slope - prices
            low, high = low.where(excess < 0, logs), high.where(excess > 0, logs)
            newton = logs - excess / (curvature * weights)
            moved = newton.where((newton >= low) & (newton <= high), (low + high) / 2)
            moved = moved.masked_fill(nothing, _LOG_SMALLEST).masked_fill(everything, _LOG_LARGEST)
            still = not ((moved - logs).abs() > 1e-13 * (1 + logs.abs())).any()
            logs = moved
            if still:
                break
        return logs


@dataclass(frozen=True, config=STRICT)
class Custom:
    """Weights by a function of one's own, of dᵢ² (a row each) and dᵢⱼ² (infinite where there is no pair)."""

    function: Callable[[Tensor, Tensor], Tensor]
    """For one's own loop: no settings file holds it."""
    kind: Literal["custom"] = field(default="custom", kw_only=True)

    def __call__(self, own: Own, other: Other) -> Other:
        """Weigh the negatives."""
        return self.function(own, other)


Importance = Annotated[
    Entropy | Inverse | Square | Tsallis | Direct | Implied | Regularised | Custom, Field(discriminator="kind")
]
"""Any importance, told apart by its ``kind``."""
