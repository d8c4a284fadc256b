"""Contrastive losses of two scalar functions: L = Σᵢ φ(Σ_{j≠i} ψ(dᵢ² − dᵢⱼ²)) (alpha_cl, eq. 1).

dᵢ² is half the squared distance of an anchor to its other view, dᵢⱼ² that to a negative. All losses here are
divided by the number of anchors, are computed block by block in memory linear in the batch, and see the batch of
all processes. The rows of alpha_cl, Fig. 1 differ in φ and ψ alone, the losses of dual_networks, Sec. 3 in the
number of negatives as well.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor
from torch.nn import functional as F

from twofold.covariance.pairwise import Negatives, Other, Own, Rule, Terms, fewest, pairwise
from twofold.covariance.sphere import ready, unit
from twofold.records import STRICT, Loss, Pair

Temperature = Annotated[float, Field(ge=1e-4, allow_inf_nan=False)]
Margin = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Scalar = Callable[[Tensor], Tensor]


@dataclass(frozen=True, config=STRICT)
class Pairing(ABC):
    """What every loss of pairs has: who is contrasted, where, and by which rule."""

    normalised: bool = field(default=True, kw_only=True)
    """Contrast directions only (ℓ₂ normalisation of the output); off: the vectors as they are."""
    negatives: Negatives = field(default="views", kw_only=True)
    """views: all other samples in both views (SimCLR); anchors: other anchors; H: the next H, in random order."""

    @abstractmethod
    def rule(self) -> Rule:
        """Say what a row of distances costs."""

    @property
    def fewest(self) -> int:
        """Samples that a batch needs."""
        return fewest(self.negatives)

    def __call__(self, pair: Pair) -> Loss:
        """Contrast the online projections of the two views; target and predictor play no part."""
        first, second = ready(pair.online)
        if self.normalised:
            first, second = unit(first), unit(second)
        value = pairwise(first, second, self.rule(), self.negatives)
        with torch.no_grad():
            positive = (first - second).square().sum(dim=1).mean() / 2
        return Loss(value, {"positive": positive})


class TwoFunctions(Pairing):
    """A member of the family: a row costs φ(Σ ψ(u)) with uⱼ = d² − dⱼ² (alpha_cl, eq. 1)."""

    @abstractmethod
    def losses(self, differences: Other) -> Own:
        """Compute φ(Σ ψ(u)) of every row; what is no pair has u = −∞."""

    def of_distances(self, own: Own, other: Other) -> Own:
        """Compute the loss of each row from its distances r₊ = d² and r₋ = dⱼ² themselves."""
        return self.losses(own[:, None] - other)

    def importance(self, differences: Other) -> Other:
        """Compute α = φ′(ξ) ψ′(u) (alpha_cl, eq. 4), which can be differentiated again."""
        again = torch.is_grad_enabled() and differences.requires_grad
        with torch.enable_grad():
            u = differences if again else differences.detach().requires_grad_()
            (alpha,) = torch.autograd.grad(self.losses(u).sum(), u, create_graph=again)
        return alpha

    def rule(self) -> Rule:
        """Differentiate the rows."""

        def terms(own: Own, other: Other) -> Terms:
            with torch.enable_grad():
                u = torch.sub(own[:, None], other).requires_grad_()
                loss = self.losses(u)
                (alpha,) = torch.autograd.grad(loss.sum(), u)
            return Terms(loss.detach(), alpha.sum(dim=1), alpha)

        return terms


class Exponential(TwoFunctions):
    """A member with ψ(u) = exp(u/τ + shift), which is summed in logarithms: no temperature overflows it."""

    @property
    @abstractmethod
    def exponent(self) -> tuple[float, float]:
        """Give τ and the shift of ψ."""

    @abstractmethod
    def phi_of_log(self, log_xi: Own) -> Own:
        """Compute φ(ξ) from log ξ."""

    @abstractmethod
    def slope_of_log(self, log_xi: Own) -> Own:
        """Compute ξ φ′(ξ), the derivative by log ξ."""

    def losses(self, differences: Other) -> Own:
        """Compute φ(Σ ψ(u)) of every row."""
        return self.phi_of_log(self._log_xi(differences))

    def importance(self, differences: Other) -> Other:
        """Compute α = φ′(ξ) ψ′(u) (alpha_cl, eq. 4): the softmax of u/τ, times ξ φ′(ξ)/τ."""
        scale, _ = self.exponent
        slope = self.slope_of_log(self._log_xi(differences)) / scale
        return slope[:, None] * torch.softmax(differences / scale, dim=1)

    def _log_xi(self, differences: Other) -> Own:
        scale, shift = self.exponent
        return torch.logsumexp(differences / scale, dim=1) + shift

    def rule(self) -> Rule:
        """Overwrite the block with its own derivative: the weights are the softmax that the sum needs anyway."""
        scale, shift = self.exponent

        def terms(own: Own, other: Other) -> Terms:
            weights = other.mul_(-1 / scale)
            largest = weights.amax(dim=1)
            weights.sub_(largest[:, None]).exp_()
            mass = weights.sum(dim=1)
            log_xi = own / scale + largest + mass.log() + shift
            pull = self.slope_of_log(log_xi) / scale
            return Terms(self.phi_of_log(log_xi), pull, weights.mul_((pull / mass)[:, None]))

        return terms


class Plain(TwoFunctions):
    """A member that is summed as it is written."""

    averaged: ClassVar[bool] = False
    """Whether ξ is divided by the number of negatives."""

    @abstractmethod
    def inner(self, differences: Other) -> Other:
        """Compute ψ(u)."""

    def outer(self, xi: Own) -> Own:
        """Compute φ(ξ): the identity."""
        return xi

    def losses(self, differences: Other) -> Own:
        """Compute φ(Σ ψ(u)) of every row."""
        pairs = differences != -torch.inf
        xi = self.inner(differences.where(pairs, 0.0)).where(pairs, 0.0).sum(dim=1)
        return self.outer(xi / pairs.sum(dim=1) if self.averaged else xi)


class Linear(Plain):
    """A member whose φ and ψ are linear: all α are equal, and what is minimised are plain differences."""

    def inner(self, differences: Other) -> Other:
        """Compute u."""
        return differences


def log_of_one_plus_exp(x: Tensor) -> Tensor:
    """log(1 + exp x) to the last digit; torch's softplus is x above 20 unless told, which is off by 2e-9."""
    return F.softplus(x, threshold=36.0)


@dataclass(frozen=True, config=STRICT)
class InfoNCE(Exponential):
    """InfoNCE: φ(x) = τ log(ε + x), ψ(u) = exp(u/τ) (alpha_cl, eq. 2).

    With ε = 1 and all other views as negatives it is τ times the loss of SimCLR, −log softmax of the positive
    among all others; with ε = 0 the positive is not in the denominator (docs/errata.md).
    """

    temperature: Temperature = 0.1
    """τ: the smaller, the more the nearest negatives weigh."""
    epsilon: NotNegative = 1.0
    """ε: how much of the positive stands in the denominator."""
    kind: Literal["infonce"] = field(default="infonce", kw_only=True)

    @property
    def exponent(self) -> tuple[float, float]:
        """Give τ and the shift of ψ."""
        return self.temperature, 0.0

    def phi_of_log(self, log_xi: Own) -> Own:
        """Compute τ log(ε + ξ)."""
        if self.epsilon == 0:
            return self.temperature * log_xi
        log_epsilon = math.log(self.epsilon)
        return self.temperature * (log_of_one_plus_exp(log_xi - log_epsilon) + log_epsilon)

    def slope_of_log(self, log_xi: Own) -> Own:
        """Compute τ ξ/(ε + ξ)."""
        if self.epsilon == 0:
            return torch.full_like(log_xi, self.temperature)
        return self.temperature * torch.sigmoid(log_xi - math.log(self.epsilon))


@dataclass(frozen=True, config=STRICT)
class MINE(Exponential):
    """MINE: φ(x) = log x, ψ(u) = exp u (alpha_cl, Fig. 1)."""

    kind: Literal["mine"] = field(default="mine", kw_only=True)
    exponent = (1.0, 0.0)

    def phi_of_log(self, log_xi: Own) -> Own:
        """Compute log ξ."""
        return log_xi

    def slope_of_log(self, log_xi: Own) -> Own:
        """Compute 1."""
        return torch.ones_like(log_xi)


@dataclass(frozen=True, config=STRICT)
class Triplet(Plain):
    """Triplet: φ(x) = x, ψ(u) = max(u + ε, 0) (alpha_cl, Fig. 1)."""

    margin: Margin = 0.2
    """ε: how much farther than the positive a negative should be, in halves of squared distances."""
    kind: Literal["triplet"] = field(default="triplet", kw_only=True)

    def inner(self, differences: Other) -> Other:
        """Compute max(u + ε, 0)."""
        return F.relu(differences + self.margin)


@dataclass(frozen=True, config=STRICT)
class SoftTriplet(Exponential):
    """Soft triplet: φ(x) = τ log(1 + x), ψ(u) = exp(u/τ + ε) (alpha_cl, Fig. 1)."""

    temperature: Temperature = 0.1
    """τ: the smaller, the harder the margin."""
    margin: Margin = 1.0
    """ε: the margin in units of τ."""
    kind: Literal["soft-triplet"] = field(default="soft-triplet", kw_only=True)

    @property
    def exponent(self) -> tuple[float, float]:
        """Give τ and the shift of ψ."""
        return self.temperature, self.margin

    def phi_of_log(self, log_xi: Own) -> Own:
        """Compute τ log(1 + ξ)."""
        return self.temperature * log_of_one_plus_exp(log_xi)

    def slope_of_log(self, log_xi: Own) -> Own:
        """Compute τ ξ/(1 + ξ)."""
        return self.temperature * torch.sigmoid(log_xi)


class LogOfOnePlus(Exponential):
    """A member with φ(x) = log(1 + x)."""

    def phi_of_log(self, log_xi: Own) -> Own:
        """Compute log(1 + ξ)."""
        return log_of_one_plus_exp(log_xi)

    def slope_of_log(self, log_xi: Own) -> Own:
        """Compute ξ/(1 + ξ)."""
        return torch.sigmoid(log_xi)


@dataclass(frozen=True, config=STRICT)
class NPlusOneTuplet(LogOfOnePlus):
    """N + 1 tuplet: φ(x) = log(1 + x), ψ(u) = exp u (alpha_cl, Fig. 1)."""

    kind: Literal["nplus1"] = field(default="nplus1", kw_only=True)
    exponent = (1.0, 0.0)


@dataclass(frozen=True, config=STRICT)
class LiftedStructured(Exponential):
    """Lifted structured: φ(x) = max(log x, 0)², ψ(u) = exp(u + ε) (alpha_cl, Fig. 1)."""

    margin: Margin = 1.0
    """ε: the margin."""
    kind: Literal["lifted"] = field(default="lifted", kw_only=True)

    @property
    def exponent(self) -> tuple[float, float]:
        """Give the scale and the shift of ψ."""
        return 1.0, self.margin

    def phi_of_log(self, log_xi: Own) -> Own:
        """Compute max(log ξ, 0)²."""
        return F.relu(log_xi).square()

    def slope_of_log(self, log_xi: Own) -> Own:
        """Compute 2 max(log ξ, 0)."""
        return 2 * F.relu(log_xi)


@dataclass(frozen=True, config=STRICT)
class ModifiedTriplet(Plain):
    """Modified triplet: φ(x) = x, ψ(u) = sigmoid(c u) (alpha_cl, Fig. 1)."""

    c: Positive = 10.0
    """How steep the step from a good negative to a bad one is."""
    kind: Literal["modified-triplet"] = field(default="modified-triplet", kw_only=True)

    def inner(self, differences: Other) -> Other:
        """Compute sigmoid(c u)."""
        return torch.sigmoid(self.c * differences)


@dataclass(frozen=True, config=STRICT)
class TripletContrastive(Linear):
    """Triplet contrastive: φ and ψ are the identity, so all α are 1 (alpha_cl, Fig. 1)."""

    kind: Literal["triplet-contrastive"] = field(default="triplet-contrastive", kw_only=True)


@dataclass(frozen=True, config=STRICT)
class Quadratic(Linear):
    """The quadratic loss: the mean of d² − dⱼ² over the negatives (alpha_cl, Sec. 6, as in its public code)."""

    kind: Literal["quadratic"] = field(default="quadratic", kw_only=True)
    averaged = True


@dataclass(frozen=True, config=STRICT)
class SimpleContrastive(Linear):
    """The simple loss L_simp = r₊ − r₋ (dual_networks, Sec. 3), r₋ the mean over H negatives."""

    negatives: Negatives = field(default=1, kw_only=True)
    """views: all other samples in both views (SimCLR); anchors: other anchors; H: the next H, in random order."""
    kind: Literal["simple"] = field(default="simple", kw_only=True)
    averaged = True


@dataclass(frozen=True, config=STRICT)
class MarginTriplet(Plain):
    """The soft triplet L_tri^τ = τ log(1 + exp((r₊ − r₋ + r₀)/τ)) (dual_networks, Sec. 3), the mean of H negatives."""

    temperature: Temperature = 0.1
    """τ: in the limit of 0 it is max(r₊ − r₋ + r₀, 0)."""
    margin: NotNegative = 1.0
    """r₀: how much farther than the positive a negative should be, in halves of squared distances."""
    negatives: Negatives = field(default=1, kw_only=True)
    """views: all other samples in both views (SimCLR); anchors: other anchors; H: the next H, in random order."""
    kind: Literal["margin-triplet"] = field(default="margin-triplet", kw_only=True)
    averaged = True

    def inner(self, differences: Other) -> Other:
        """Compute τ log(1 + exp((u + r₀)/τ))."""
        return self.temperature * log_of_one_plus_exp((differences + self.margin) / self.temperature)


@dataclass(frozen=True, config=STRICT)
class NCE(LogOfOnePlus):
    """InfoNCE with H negatives, L_nce^τ (dual_networks, eq. 2): φ(x) = log(1 + x), ψ(u) = exp(u/τ)."""

    temperature: Temperature = 0.1
    """τ: the smaller, the more the nearest negatives weigh."""
    negatives: Negatives = field(default=1, kw_only=True)
    """views: all other samples in both views (SimCLR); anchors: other anchors; H: the next H, in random order."""
    kind: Literal["nce"] = field(default="nce", kw_only=True)

    @property
    def exponent(self) -> tuple[float, float]:
        """Give τ and the shift of ψ."""
        return self.temperature, 0.0


@dataclass(frozen=True, config=STRICT)
class Contrastive(Plain):
    """Any φ and ψ of one's own, as torch functions of each entry: for one's own loop, no settings file holds them."""

    phi: Scalar
    """φ, increasing."""
    psi: Scalar
    """ψ, increasing."""
    kind: Literal["contrastive"] = field(default="contrastive", kw_only=True)

    def inner(self, differences: Other) -> Other:
        """Compute ψ(u)."""
        return self.psi(differences)

    def outer(self, xi: Own) -> Own:
        """Compute φ(ξ)."""
        return self.phi(xi)


Family = (
    InfoNCE
    | MINE
    | Triplet
    | SoftTriplet
    | NPlusOneTuplet
    | LiftedStructured
    | ModifiedTriplet
    | TripletContrastive
    | Quadratic
    | SimpleContrastive
    | MarginTriplet
    | NCE
    | Contrastive
)
AnyContrastive = Annotated[Family, Field(discriminator="kind")]
"""Any member of the family, told apart by its ``kind``."""
