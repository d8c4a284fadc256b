"""The claims of alpha_cl.

One side of each is written here as the paper prints it, sum by sum; the other is what the library trains with.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import functional as F

from twofold.covariance.sphere import unit
from twofold.objectives import (
    MINE,
    Entropy,
    InfoNCE,
    Inverse,
    LiftedStructured,
    ModifiedTriplet,
    NPlusOneTuplet,
    Pairing,
    Regularised,
    SoftTriplet,
    Square,
    Triplet,
    TripletContrastive,
    Tsallis,
)
from twofold.papers.claim import Claim, Draw
from twofold.records import Pair

Views = tuple[Float64[Tensor, "n dim"], Float64[Tensor, "n dim"]]
Weights = list[Float64[Tensor, "_ _"]]
Matrix = Float64[Tensor, "n n"]
Vector = NDArray[np.float64]
Measure = Callable[[Draw, bool], float]
Scalar = Callable[[Tensor], Tensor]
ROUNDING = 1e-10
"""Of a gradient of a few layers, or some dozen steps of it, in float64."""
OPTIMUM = 1e-10
"""Of the least value of a convex function, which is flat there: the error of its place, squared."""
SMALLEST = 1e-12
"""What a solver may take for a weight of zero, whose logarithm it needs."""
WEIGHS = 1e-9
"""A weight above this is one, and not what rounding left of zero."""
STEPS = 20


class Row(NamedTuple):
    """A row of Fig. 1: the library's loss, and ψ, φ′ and ψ′ as one finds them on paper."""

    loss: Pairing
    psi: Scalar
    phi_slope: Scalar
    psi_slope: Scalar


def figure_1(draw: Draw, normalised: bool) -> tuple[Row, ...]:
    """Write down the eight rows of Fig. 1, with settings drawn anew."""
    tau, epsilon = draw.between(0.2, 2.0), draw.between(0.0, 2.0)
    margin, c = draw.between(0.1, 1.0), draw.between(0.5, 3.0)

    def over_tau(u: Tensor) -> Tensor:
        return torch.exp(u / tau)

    def shifted(u: Tensor) -> Tensor:
        return torch.exp(u + margin)

    def step(u: Tensor) -> Tensor:
        return torch.sigmoid(c * u)

    rows = (
        Row(InfoNCE(tau, epsilon), over_tau, lambda x: tau / (epsilon + x), lambda u: over_tau(u) / tau),
        Row(MINE(), torch.exp, lambda x: 1 / x, torch.exp),
        Row(Triplet(margin), lambda u: F.relu(u + margin), torch.ones_like, lambda u: (u + margin > 0).double()),
        Row(
            SoftTriplet(tau, margin),
            lambda u: torch.exp(u / tau + margin),
            lambda x: tau / (1 + x),
            lambda u: torch.exp(u / tau + margin) / tau,
        ),
        Row(NPlusOneTuplet(), torch.exp, lambda x: 1 / (1 + x), torch.exp),
        Row(LiftedStructured(margin), shifted, lambda x: 2 * F.relu(x.log()) / x, shifted),
        Row(ModifiedTriplet(c), step, torch.ones_like, lambda u: c * step(u) * (1 - step(u))),
        Row(TripletContrastive(), lambda u: u, torch.ones_like, torch.ones_like),
    )
    return tuple(row._replace(loss=replace(row.loss, normalised=normalised, negatives="anchors")) for row in rows)


def network(draw: Draw, inputs: int, outputs: int) -> Weights:
    """Draw the weights of a perceptron of any depth."""
    sizes = [inputs, *(draw.integer(2, 7) for _ in range(draw.integer(0, 3))), outputs]
    return [(draw.normal(high, low) / math.sqrt(low)).requires_grad_() for low, high in pairwise(sizes)]


def outputs_of(weights: Weights, x: Float64[Tensor, "n inputs"], slope: float) -> Float64[Tensor, "n outputs"]:
    """Apply it, with LeakyReLU between its layers."""
    for weight in weights[:-1]:
        x = F.leaky_relu(x @ weight.T, slope)
    return x @ weights[-1].T


def distances(z: Views) -> tuple[Float64[Tensor, " n"], Matrix]:
    """Write dᵢ² and dᵢⱼ² (Sec. 3, Notation) from their definitions."""
    own = (z[0] - z[1]).square().sum(dim=1) / 2
    between = (z[0][:, None] - z[0][None]).square().sum(dim=2) / 2
    return own, between


def energy(alpha: Matrix, z: Views) -> Float64[Tensor, ""]:
    """Write tr C_α[z, z] as eq. 5 prints it, pair by pair."""
    n = len(z[0])
    total = z[0].new_zeros(())
    for i in range(n):
        for j in range(n):
            if i != j:
                total = total + alpha[i, j] * ((z[0][i] - z[0][j]) @ (z[0][i] - z[0][j]))
                total = total - alpha[i, j] * ((z[0][i] - z[1][i]) @ (z[0][i] - z[1][i]))
    return total


def difference(found: list[Tensor], expected: list[Tensor]) -> float:
    """Compare two lists of tensors, relative to the greatest entry."""
    greatest = max(float(b.detach().abs().max()) for b in expected)
    apart = max(float((a - b).detach().abs().max()) for a, b in zip(found, expected, strict=True))
    return apart / greatest if greatest > 0 else apart


def theorem_1(draw: Draw, wrong: bool) -> float:
    """∂L/∂θ = −½ ∂E_α/∂θ at α = sg(α(θ)) (eq. 3), for every row of Fig. 1; the control differentiates α too.

    The control must fail for every row whose α is not constant, in one of the instances at least: an α that is all
    zeros and ones hardly has a derivative.
    """
    residuals: dict[str, list[float]] = {}
    for normalised in (False, True, False, True):
        n, inputs, outputs = draw.integer(3, 7), draw.integer(2, 6), draw.integer(2, 5)
        weights, slope = network(draw, inputs, outputs), draw.between(0.0, 0.5)
        x = draw.normal(n, inputs), draw.normal(n, inputs)
        for row in figure_1(draw, normalised):
            z = outputs_of(weights, x[0], slope), outputs_of(weights, x[1], slope)
            loss = torch.autograd.grad(row.loss(Pair(z, z, z)).value, weights, retain_graph=True)
            if normalised:
                z = unit(z[0]), unit(z[1])
            alpha = printed_importance(row, z)
            if wrong and not alpha.requires_grad:
                continue
            by_energy = torch.autograd.grad(energy(alpha if wrong else alpha.detach(), z), weights)
            if any(gradient.any() for gradient in by_energy):
                found = difference([g * n for g in loss], [-g / 2 for g in by_energy])
                residuals.setdefault(type(row.loss).__name__, []).append(found)
    if not wrong and len(residuals) < len(figure_1(draw, True)):
        return math.inf  # a row had nothing to compare in any instance
    worst = [max(found) for found in residuals.values()]
    return min(worst) if wrong else max(worst)


def printed_importance(row: Row, z: Views) -> Matrix:
    """Write αᵢⱼ = φ′(ξᵢ) ψ′(dᵢ² − dᵢⱼ²) (eq. 4), where ξᵢ sums over j ≠ i."""
    own, between = distances(z)
    u = own[:, None] - between
    others = ~torch.eye(len(u), dtype=torch.bool)
    xi = torch.stack([row.psi(u[i][others[i]]).sum() for i in range(len(u))])
    return row.phi_slope(xi)[:, None] * row.psi_slope(u)


class Regulariser(NamedTuple):
    """A concave r of one weight and its derivative, in numpy."""

    value: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]


def entropic(tau: float) -> Regulariser:
    """r_H(α) = −2τ α log α (Sec. 6)."""
    return Regulariser(lambda a: -2 * tau * a * np.log(a), lambda a: -2 * tau * (np.log(a) + 1))


def inverse(tau: float, gamma: float) -> Regulariser:
    """r_γ(α) = 2τ α^{1−γ}/(1 − γ) (Sec. 6)."""
    return Regulariser(lambda a: 2 * tau * a ** (1 - gamma) / (1 - gamma), lambda a: 2 * tau * a**-gamma)


def square(tau: float) -> Regulariser:
    """r_s(α) = −τ α²/2 (Sec. 6)."""
    return Regulariser(lambda a: -tau * a**2 / 2, lambda a: -tau * a)


def tsallis(tau: float, q: float) -> Regulariser:
    """r(α) = 2τ (α − α^q)/(q − 1), between the two (not in the paper)."""
    return Regulariser(lambda a: 2 * tau * (a - a**q) / (q - 1), lambda a: 2 * tau * (1 - q * a ** (q - 1)) / (q - 1))


def shortfall(alpha: Vector, costs: Vector, regulariser: Regulariser, mass: float) -> float:
    """Say how far α is from the optimum of min Σ c α − Σ r(α), Σ α = ``mass``, α ≥ 0 (eq. 7).

    Three ways: the sum; the least value, against a general convex solver that knows none of our formulas; and the
    condition for an optimum, that r′(α) − c is the same wherever α weighs something (Lemma 5, eq. 63).
    """

    def value(a: Vector) -> float:
        return float(costs @ a - regulariser.value(a).sum())

    found = np.full(len(costs), mass / len(costs))
    for _ in range(2):  # the solver's model of the curvature is fresh when it starts again
        found = minimize(
            value,
            found,
            jac=lambda a: costs - regulariser.slope(a),
            bounds=[(SMALLEST, None)] * len(costs),
            constraints={"type": "eq", "fun": lambda a: a.sum() - mass, "jac": lambda a: np.ones(len(a))},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        ).x
    least = value(found)
    dearer = abs(value(np.maximum(alpha, SMALLEST)) - least) / max(1.0, abs(least))
    weighs = alpha > WEIGHS
    prices = regulariser.slope(alpha[weighs]) - costs[weighs]
    uneven = float(np.ptp(prices)) / max(1.0, float(np.abs(regulariser.slope(alpha[weighs])).max()))
    return max(dearer, uneven, abs(float(alpha.sum()) - mass))


def row_of_distances(draw: Draw) -> tuple[Tensor, Tensor, Vector]:
    """Draw dᵢ² and dᵢⱼ² of one anchor, and the costs cⱼ = 2 (dᵢⱼ² − dᵢ²) that they mean (eq. 20)."""
    own, other = draw.normal(1).square(), draw.normal(1, draw.integer(2, 12)).square()
    return own, other, (2 * (other - own[:, None]))[0].numpy()


def theorem_2(draw: Draw, wrong: bool) -> float:
    """The α of InfoNCE solves eq. 7 with Σ α = ξ/(ξ + ε), for ε = 0 and ε > 0; the control counts R_H twice."""
    residuals = []
    for epsilon in (0.0, *(draw.between(0.2, 3.0) for _ in range(4))):
        tau = draw.between(0.2, 2.0)
        own, other, costs = row_of_distances(draw)
        alpha = InfoNCE(tau, epsilon).importance(own[:, None] - other)[0].numpy()
        xi = math.fsum(math.exp(-c / (2 * tau)) for c in costs)
        residuals.append(shortfall(alpha, costs, entropic(2 * tau if wrong else tau), xi / (xi + epsilon)))
    return max(residuals)


def regularizers(draw: Draw, wrong: bool) -> float:
    """Each importance of Sec. 6 solves its problem (eq. 8a); the control forgets that the costs are 2 (d² − dⱼ²).

    The control must fail for every importance, in one of the instances at least: where one negative has all the
    weight, half the costs may still give it all.
    """
    residuals: dict[str, float] = {}
    for _ in range(5):
        tau, gamma, q = draw.between(0.2, 2.0), draw.between(1.2, 4.0), draw.between(1.1, 1.9)
        own, other, costs = row_of_distances(draw)
        for importance, regulariser in (
            (Entropy(tau), entropic(tau)),
            (Inverse(tau, gamma), inverse(tau, gamma)),
            (Square(4 * tau), square(4 * tau)),
            (Tsallis(tau, q), tsallis(tau, q)),
            (Regularised(lambda a, t=tau: -2 * t * a * a.log()), entropic(tau)),  # type: ignore[misc]
        ):
            alpha = importance(own / 2, other / 2) if wrong else importance(own, other)
            found = shortfall(alpha[0].numpy(), costs, regulariser, 1.0)
            residuals[importance.kind] = max(found, residuals.get(importance.kind, 0.0))
    return min(residuals.values()) if wrong else max(residuals.values())


def corollary_1(draw: Draw, wrong: bool) -> float:
    """Alternating players (eq. 8) walk the path of gradient descent, step by step; the control keeps the first α.

    It must lead elsewhere for one loss at least: where α hardly moves, keeping it changes nothing.
    """
    return max(apart(draw, keep_first=wrong))


def corollary_1_step(draw: Draw, wrong: bool) -> float:
    """A step along ∂E_α is half as long as one against ∂L (Thm 1); the control takes it whole, as eq. 8b prints."""
    found = apart(draw, share=1.0 if wrong else 0.5)
    return min(found) if wrong else max(found)


def apart(draw: Draw, share: float = 0.5, keep_first: bool = False) -> list[float]:
    """Compare gradient descent with the two players, for rows of Fig. 1 with ψ(u) = exp(u/τ)."""
    tau, epsilon = draw.between(0.3, 2.0), draw.between(0.2, 2.0)
    rows: list[tuple[Pairing, float, Scalar]] = [
        (InfoNCE(tau, 0.0), tau, lambda xi: tau / xi),
        (InfoNCE(tau, epsilon), tau, lambda xi: tau / (epsilon + xi)),
        (MINE(), 1.0, lambda xi: 1 / xi),
        (NPlusOneTuplet(), 1.0, lambda xi: 1 / (1 + xi)),
    ]
    return [paths_apart(draw, *row, share, keep_first) for row in rows]


def paths_apart(draw: Draw, loss: Pairing, tau: float, phi_slope: Scalar, share: float, keep_first: bool) -> float:
    """Compare the weights of gradient descent with those of the two players, after every step.

    The min player solves eq. 8a numerically over the weights that sum to ξ φ′(ξ)/τ (eq. 7), which are as many times
    those that sum to one; the max player takes a ``share`` of descent's step along ∂E_α.
    """
    loss = replace(loss, normalised=False, negatives="anchors")
    n, inputs, outputs = draw.integer(4, 7), draw.integer(2, 5), draw.integer(2, 4)
    weights, slope, rate = network(draw, inputs, outputs), draw.between(0.0, 0.5), 0.01
    x = draw.normal(n, inputs), draw.normal(n, inputs)
    min_player = Regularised(lambda a: -2 * tau * a * a.log())
    descending, playing = ([w.detach().clone().requires_grad_() for w in weights] for _ in range(2))
    alpha, farthest = None, 0.0
    for _ in range(STEPS):
        z = outputs_of(descending, x[0], slope), outputs_of(descending, x[1], slope)
        move(descending, torch.autograd.grad(n * loss(Pair(z, z, z)).value, descending), -rate)
        z = outputs_of(playing, x[0], slope), outputs_of(playing, x[1], slope)
        if alpha is None or not keep_first:
            own, between = (d.detach() for d in distances(z))
            between = between + torch.diag(own.new_full((n,), torch.inf))
            xi = torch.exp((own[:, None] - between) / tau).sum(dim=1)
            with torch.no_grad():
                alpha = (xi * phi_slope(xi) / tau)[:, None] * min_player(own, between)
        move(playing, torch.autograd.grad(energy(alpha, z), playing), share * rate)
        farthest = max(farthest, difference(playing, descending))
    return farthest


@torch.no_grad()
def move(weights: Weights, gradients: tuple[Tensor, ...], rate: float) -> None:
    """Take a step in place."""
    for weight, gradient in zip(weights, gradients, strict=True):
        weight += rate * gradient


def _claim(name: str, place: str, statement: str, tolerance: float, control: str, measure: Measure) -> Claim:
    return Claim(name, "alpha_cl", place, statement, "exact", tolerance, control, measure)


CLAIMS = (
    _claim(
        "thm1",
        "Thm 1, Lemma 4",
        "The gradient of every loss of Fig. 1 is −½ that of the energy E_α with α held fixed.",
        ROUNDING,
        "α is differentiated too",
        theorem_1,
    ),
    _claim(
        "thm2",
        "Thm 2, Lemma 5",
        "The α of InfoNCE minimises E_α − R_H(α) over weights that sum to ξ/(ξ + ε).",
        OPTIMUM,
        "R_H counts twice",
        theorem_2,
    ),
    _claim(
        "regularizers",
        "Sec. 6",
        "Softmax, inverse power and projection on the simplex minimise E_α − R(α) for r_H, r_γ and r_s.",
        OPTIMUM,
        "the costs are not doubled",
        regularizers,
    ),
    _claim(
        "cor1",
        "Cor. 1, eq. 8",
        "For ψ(u) = exp(u/τ), alternating min and max players take the steps of gradient descent.",
        ROUNDING,
        "α stays what it was at the first step",
        corollary_1,
    ),
    _claim(
        "erratum-cor1",
        "Cor. 1, eq. 8b",
        "The max player's step along ∂E_α is half of gradient descent's.",
        ROUNDING,
        "the step is taken whole, as printed",
        corollary_1_step,
    ),
)
