"""Every objective, with its formula as printed and what is true of it; a new one is one line of the roster.

The formulas are written naively: sample by sample, pair by pair, term by term.
"""

import importlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from twofold.objectives import (
    BYOL,
    MINE,
    NCE,
    RAFT,
    Align,
    BarlowTwins,
    BYOLPrime,
    Contrastive,
    CorrelationIdentity,
    CrossModel,
    Custom,
    Direct,
    Entropy,
    Implied,
    InfoNCE,
    Inverse,
    LiftedStructured,
    MarginTriplet,
    ModifiedTriplet,
    NPlusOneTuplet,
    Objective,
    PairWeighted,
    Quadratic,
    Regularised,
    SimpleContrastive,
    SoftTriplet,
    Square,
    Triplet,
    TripletContrastive,
    Tsallis,
    Uniformity,
)
from twofold.records import Pair

Formula = Callable[[Pair], Tensor]
Weights = Callable[[list[Tensor], Tensor], list[Tensor]]
PAIRS = importlib.import_module("twofold.covariance.pairwise")


@dataclass(frozen=True)
class Member:
    """One objective. ``formula`` is written naively; ``wrong`` is a plausible misreading that must be told apart.

    ``reaches`` are the parts of a pair that get a gradient when nothing is detached. ``blocks`` is where the number
    of pairwise terms held at once is written, for a member that works block by block. ``frozen`` makes a formula
    that is differentiated in place of the member's own, for one whose gradient is not that of its value.
    ``differentiable``: the formula has the right gradient, not the right value alone. ``plain``: its settings can be
    written to a file. ``slow``: it is solved in hundreds of passes.
    """

    objective: Objective
    formula: Formula
    wrong: Formula
    reaches: frozenset[str] = frozenset({"online"})
    order_free: bool = True
    scale_free: bool = True
    rotation_free: bool = True
    swappable: bool = True
    fewest: int = 1
    blocks: tuple[ModuleType, str] | None = None
    frozen: Callable[[Pair], Formula] | None = None
    differentiable: bool = True
    plain: bool = True
    slow: bool = False

    def __str__(self) -> str:
        named = re.sub(r"<(?:built-in method|function) (\w+)[^>]*>", r"\1", str(self.objective))
        return re.sub(r", kind='[a-z0-9-]+'|kind='[a-z0-9-]+', |normalised=True, |negatives='views', ", "", named)


def direction(v: Tensor) -> Tensor:
    return v / v.square().sum().sqrt()


# Pairs.

HALF = 0.5


def arranged(pair: Pair, normalised: bool, negatives: str | int) -> tuple[list[Tensor], list[Tensor], list[list[int]]]:
    """List anchors, their positives, and the indices of the anchors that are each one's negatives."""
    first, second = ([direction(z) if normalised else z for z in view] for view in pair.online)
    n = len(first)
    if negatives == "views":
        rest = [[j for j in range(2 * n) if j % n != i % n] for i in range(2 * n)]
        return first + second, second + first, rest
    if negatives == "anchors":
        return first, second, [[j for j in range(n) if j != i] for i in range(n)]
    return first, second, [[(i + 1 + k) % n for k in range(negatives)] for i in range(n)]


def half_squared(a: Tensor, b: Tensor, half: float = HALF) -> Tensor:
    return half * (a - b).square().sum()


def family(
    phi: Callable[[Tensor], Tensor],
    psi: Callable[[Tensor], Tensor],
    negatives: str | int = "views",
    normalised: bool = True,
    half: float = HALF,
    averaged: bool = False,
) -> Formula:
    """Write alpha_cl, eq. 1, over the number of anchors."""

    def formula(pair: Pair) -> Tensor:
        anchors, positives, rest = arranged(pair, normalised, negatives)
        terms = []
        for i, z in enumerate(anchors):
            own = half_squared(z, positives[i], half)
            xi = torch.stack([psi(own - half_squared(z, anchors[j], half)) for j in rest[i]]).sum()
            terms.append(phi(xi / len(rest[i]) if averaged else xi))
        return torch.stack(terms).mean()

    return formula


def weighted(
    weights: Weights, frozen: bool = True, negatives: str | int = "views", normalised: bool = True, factor: float = 1.0
) -> Formula:
    """Write −E_α/2 by alpha_cl, eq. 20, over the number of anchors; ``frozen``: α is a constant."""

    def formula(pair: Pair, alphas: list[list[Tensor]] | None = None) -> Tensor:
        anchors, positives, rest = arranged(pair, normalised, negatives)
        terms = []
        for i, z in enumerate(anchors):
            own = half_squared(z, positives[i])
            others = [half_squared(z, anchors[j]) for j in rest[i]]
            alpha = weights(others, own) if alphas is None else alphas[i]
            alpha = [a.detach() for a in alpha] if frozen else alpha
            terms.append(torch.stack([a * (own - factor * d) for a, d in zip(alpha, others, strict=True)]).sum())
        return torch.stack(terms).mean()

    return formula


def held(weights: Weights, negatives: str | int, normalised: bool) -> Callable[[Pair], Formula]:
    """Make −E_α/2 with the α of one pair held fixed, whatever pair it is asked of."""

    def at(pair: Pair) -> Formula:
        anchors, positives, rest = arranged(pair, normalised, negatives)
        alphas = [
            weights([half_squared(z, anchors[j]).detach() for j in rest[i]], half_squared(z, positives[i]).detach())
            for i, z in enumerate(anchors)
        ]
        energy = weighted(weights, True, negatives, normalised)
        return lambda other: energy(other, alphas)

    return at


def softmax(energies: list[Tensor]) -> list[Tensor]:
    parts = [torch.exp(e) for e in energies]
    return [part / torch.stack(parts).sum() for part in parts]


def entropy(temperature: float) -> Weights:
    return lambda others, own: softmax([-d / temperature for d in others])


def direct(p: float, temperature: float, normalised: bool) -> Weights:
    def weights(others: list[Tensor], own: Tensor) -> list[Tensor]:
        energies = [-(d ** (p / 2)) / temperature for d in others]
        return softmax(energies) if normalised else [torch.exp(e) for e in energies]

    return weights


def summing_to_one(of: Callable[[float, float], float], low: float, high: float) -> Weights:
    """Bisect for the multiplier μ at which the weights of(cost, μ), decreasing in μ, sum to one."""

    def weights(others: list[Tensor], own: Tensor) -> list[Tensor]:
        costs = [2 * (d.item() - own.item()) for d in others]
        least, most = low - max(costs), high - min(costs)
        for _ in range(200):
            middle = (least + most) / 2
            if math.fsum(of(c, middle) for c in costs) > 1:
                least = middle
            else:
                most = middle
        return [torch.tensor(of(c, most), dtype=torch.float64) for c in costs]

    return weights


def inverse(temperature: float, gamma: float) -> Weights:
    """α = (2τ/(c + ν))^{1/γ}."""
    return summing_to_one(
        lambda c, nu: (2 * temperature / (c + nu)) ** (1 / gamma) if c + nu > 0 else math.inf, 0.0, 1e6
    )


def square(temperature: float) -> Weights:
    """α = max(−(c + ν)/τ, 0)."""
    return summing_to_one(lambda c, nu: max(-(c + nu) / temperature, 0.0), -10 * temperature, 10 * temperature)


def tsallis(temperature: float, q: float) -> Weights:
    """r′(α) = 2τ (1 − q α^{q−1})/(q − 1) = c + ν, solved for α."""

    def of(c: float, nu: float) -> float:
        return max((1 - (c + nu) * (q - 1) / (2 * temperature)) / q, 0.0) ** (1 / (q - 1))

    return summing_to_one(of, -50 * temperature, 50 * temperature)


def implied(phi_slope: Callable[[Tensor], Tensor], temperature: float) -> Weights:
    """Write alpha_cl, eq. 4 for ψ(u) = exp(u/τ)."""

    def weights(others: list[Tensor], own: Tensor) -> list[Tensor]:
        psi = [torch.exp((own - d) / temperature) for d in others]
        return [phi_slope(torch.stack(psi).sum()) * p / temperature for p in psi]

    return weights


# Rows of a pair, and matrices.


def rowwise(distance: Callable[[Tensor, Tensor], Tensor], terms: list[tuple[float, str, int, str, int]]) -> Formula:
    """Add up weight × mean distance(row of one entry's view, row of another's)."""

    def formula(pair: Pair) -> Tensor:
        total = []
        for weight, part, view, other_part, other_view in terms:
            rows, others = getattr(pair, part)[view], getattr(pair, other_part)[other_view]
            distances = [distance(a, b) for a, b in zip(rows, others, strict=True)]
            total.append(weight * torch.stack(distances).mean())
        return torch.stack(total).sum()

    return formula


def squared(a: Tensor, b: Tensor) -> Tensor:
    return (b - a).square().sum()


def on_sphere(a: Tensor, b: Tensor) -> Tensor:
    return squared(direction(a), direction(b))


def tangential(a: Tensor, b: Tensor) -> Tensor:
    """Write raft, remark to Thm 5.1: ‖z̄ − λz‖²/λ with λ = sg⟨z, z̄⟩."""
    z, teacher = direction(a), direction(b)
    share = (z @ teacher).detach()
    return (teacher - share * z).square().sum() / share


FORTH, BACK = (1.0, "predicted", 0, "target", 1), (1.0, "predicted", 1, "target", 0)
BOTH = (1.0, "predicted", 0, "predicted", 1)


def cross(weight: float) -> list[tuple[float, str, int, str, int]]:
    return [(weight / 2, "predicted", 0, "target", 0), (weight / 2, "predicted", 1, "target", 1)]


def length_root_d(view: Tensor) -> list[Tensor]:
    return [direction(z) * math.sqrt(len(z)) for z in view]


def standardised(view: Tensor) -> list[Tensor]:
    mean = torch.stack(list(view)).mean(dim=0)
    deviation = torch.stack([(z - mean).square() for z in view]).mean(dim=0).sqrt()
    return [(z - mean) / deviation for z in view]


def barlow(lambd: float, prepared: Callable[[Tensor], list[Tensor]]) -> Formula:
    """Write generalization, eq. 2."""

    def formula(pair: Pair) -> Tensor:
        first, second = (prepared(view) for view in pair.online)
        dim = len(first[0])
        c = [
            [torch.stack([a[i] * b[j] for a, b in zip(first, second, strict=True)]).mean() for j in range(dim)]
            for i in range(dim)
        ]
        diagonal = [(1 - c[i][i]) ** 2 for i in range(dim)]
        rest = [lambd * c[i][j] ** 2 for i in range(dim) for j in range(dim) if i != j]
        return torch.stack(diagonal + rest).sum()

    return formula


def correlation_identity(prepared: Callable[[Tensor], list[Tensor]], target: float = 1.0) -> Formula:
    """Write generalization, eq. 8."""

    def formula(pair: Pair) -> Tensor:
        rows = [z for view in pair.online for z in prepared(view)]
        moment = torch.stack([torch.outer(z, z) for z in rows]).mean(dim=0)
        return (moment - target * torch.eye(len(moment), dtype=moment.dtype)).square().sum()

    return formula


def uniformity(t: float, with_itself: bool = False) -> Formula:
    """Write raft, eq. 3."""

    def formula(pair: Pair) -> Tensor:
        found = []
        for view in pair.online:
            rows = [direction(z) for z in view]
            terms = [
                torch.exp(-t * squared(a, b))
                for i, a in enumerate(rows)
                for j, b in enumerate(rows)
                if with_itself or i != j
            ]
            found.append(torch.stack(terms).mean().log())
        return (found[0] + found[1]) / 2

    return formula


# Members.


def _family(objective: Objective, phi: Callable, psi: Callable, averaged: bool = False, plain: bool = True) -> Member:
    """Half the distance is misread as the distance."""
    negatives, normalised = objective.negatives, objective.normalised
    return Member(
        objective,
        family(phi, psi, negatives, normalised, averaged=averaged),
        family(phi, psi, negatives, normalised, half=1.0, averaged=averaged),
        order_free=isinstance(negatives, str),
        scale_free=normalised,
        swappable=negatives == "views",
        fewest=2 if isinstance(negatives, str) else negatives + 1,
        blocks=(PAIRS, "_BLOCK"),
        plain=plain,
    )


def _infonce(temperature: float, epsilon: float = 1.0, **settings) -> Member:
    return _family(
        InfoNCE(temperature, epsilon, **settings),
        lambda x: temperature * torch.log(epsilon + x),
        lambda u: torch.exp(u / temperature),
    )


def _weighted(
    importance, weights: Weights, through: bool = False, solved: bool = False, plain=True, **settings
) -> Member:
    """The whole distance of negatives is misread as half of it. ``solved``: α is known as a number alone."""
    objective = PairWeighted(importance, through, **settings)
    negatives, normalised = objective.negatives, objective.normalised
    return Member(
        objective,
        weighted(weights, not through, negatives, normalised),
        weighted(weights, not through, negatives, normalised, factor=0.5),
        scale_free=normalised,
        swappable=negatives == "views",
        fewest=2,
        blocks=(PAIRS, "_BLOCK"),
        frozen=None if through else held(weights, negatives, normalised),
        differentiable=not (through and solved),
        plain=plain,
        slow=isinstance(importance, Regularised),
    )


def _aligned(objective: Objective, terms: list, crossed: list, reaches: set[str]) -> Member:
    distance = tangential if objective.tangential else on_sphere if objective.normalised else squared
    return Member(
        objective,
        rowwise(distance, terms),
        rowwise(distance, crossed),
        frozenset(reaches),
        scale_free=objective.normalised,
        frozen=None if not objective.tangential else lambda pair: rowwise(on_sphere, terms),
    )


TEACHER = {"predicted", "target"}


def _raft(beta: float, alpha: float) -> list:
    return [(alpha, *BOTH[1:]), *cross(-beta)]


def _user(own: Tensor, other: Tensor) -> Tensor:
    return 1 / (1 + other)


def _user_naive(others: list[Tensor], own: Tensor) -> list[Tensor]:
    return [1 / (1 + d) for d in others]


ROSTER = [
    _infonce(0.01),
    _infonce(0.1),
    _infonce(1.0),
    _infonce(10.0, epsilon=0.0),
    _infonce(0.5, epsilon=0.3, negatives="anchors", normalised=False),
    _infonce(0.5, negatives=1),
    _family(MINE(), torch.log, torch.exp),
    _family(MINE(negatives="anchors"), torch.log, torch.exp),
    _family(Triplet(0.2), lambda x: x, lambda u: torch.clamp(u + 0.2, min=0)),
    _family(SoftTriplet(0.3, 0.7), lambda x: 0.3 * torch.log(1 + x), lambda u: torch.exp(u / 0.3 + 0.7)),
    _family(NPlusOneTuplet(), lambda x: torch.log(1 + x), torch.exp),
    _family(LiftedStructured(1.0), lambda x: torch.clamp(torch.log(x), min=0) ** 2, lambda u: torch.exp(u + 1.0)),
    _family(ModifiedTriplet(10.0), lambda x: x, lambda u: 1 / (1 + torch.exp(-10.0 * u))),
    _family(TripletContrastive(), lambda x: x, lambda u: u),
    _family(Quadratic(), lambda x: x, lambda u: u, averaged=True),
    _family(Quadratic(negatives="anchors", normalised=False), lambda x: x, lambda u: u, averaged=True),
    _family(SimpleContrastive(), lambda x: x, lambda u: u, averaged=True),
    _family(SimpleContrastive(negatives=1, normalised=False), lambda x: x, lambda u: u, averaged=True),
    _family(
        MarginTriplet(0.2, 0.5, negatives=3, normalised=False),
        lambda x: x,
        lambda u: 0.2 * torch.log(1 + torch.exp((u + 0.5) / 0.2)),
        averaged=True,
    ),
    _family(NCE(0.5), lambda x: torch.log(1 + x), lambda u: torch.exp(u / 0.5)),
    _family(NCE(0.5, negatives=2, normalised=False), lambda x: torch.log(1 + x), lambda u: torch.exp(u / 0.5)),
    _family(Contrastive(torch.sqrt, torch.exp), torch.sqrt, torch.exp, plain=False),
    _weighted(Entropy(0.5), entropy(0.5)),
    _weighted(Entropy(0.5), entropy(0.5), through=True),
    _weighted(Inverse(0.5, 2.0), inverse(0.5, 2.0)),
    _weighted(Inverse(0.1, 3.0), inverse(0.1, 3.0), through=True, solved=True),
    _weighted(Square(5.0), square(5.0)),
    _weighted(Square(1.0), square(1.0), through=True, solved=True),
    _weighted(Tsallis(0.5, 1.5), tsallis(0.5, 1.5)),
    _weighted(Tsallis(0.2, 1.3), tsallis(0.2, 1.3), through=True, solved=True),
    _weighted(Direct(), direct(4.0, 0.5, True)),
    _weighted(Direct(3.0, normalised=False), direct(3.0, 0.5, False), negatives="anchors", normalised=False),
    _weighted(Direct(), direct(4.0, 0.5, True), through=True),
    _weighted(Implied(InfoNCE(0.5, 0.3)), implied(lambda x: 0.5 / (0.3 + x), 0.5)),
    _weighted(Implied(NPlusOneTuplet()), implied(lambda x: 1 / (1 + x), 1.0), through=True),
    _weighted(Regularised(torch.sqrt), inverse(0.25, 0.5), plain=False),
    _weighted(Regularised(torch.sqrt), inverse(0.25, 0.5), through=True, solved=True, plain=False),
    _weighted(Custom(_user), _user_naive, plain=False),
    _aligned(BYOL(), [FORTH, BACK], cross(2.0), TEACHER),
    _aligned(BYOL(normalised=False), [FORTH, BACK], cross(2.0), TEACHER),
    _aligned(BYOL(tangential=True), [FORTH, BACK], cross(2.0), TEACHER),
    _aligned(Align(), [BOTH], [FORTH], {"predicted"}),
    _aligned(Align(tangential=True), [BOTH], [FORTH], {"predicted"}),
    _aligned(CrossModel(), cross(1.0), [FORTH], TEACHER),
    _aligned(CrossModel(normalised=False), cross(1.0), [FORTH], TEACHER),
    _aligned(BYOLPrime(0.7, 1.3), _raft(-1.3, 0.7), _raft(1.3, 0.7), TEACHER),
    _aligned(BYOLPrime(0.7, 1.3, tangential=True), _raft(-1.3, 0.7), _raft(1.3, 0.7), TEACHER),
    _aligned(RAFT(0.7, 1.3), _raft(1.3, 0.7), _raft(-1.3, 0.7), TEACHER),
    _aligned(RAFT(tangential=True), _raft(1.0, 1.0), _raft(-1.0, 1.0), TEACHER),
    _aligned(RAFT(normalised=False), _raft(1.0, 1.0), _raft(-1.0, 1.0), TEACHER),
    Member(BarlowTwins(), barlow(5e-3, standardised), barlow(5e-3, length_root_d), rotation_free=False, fewest=2),
    Member(BarlowTwins(1.0, "radius"), barlow(1.0, length_root_d), barlow(1.0, standardised), fewest=2),
    Member(
        CorrelationIdentity(), correlation_identity(length_root_d), correlation_identity(length_root_d, 2.0), fewest=2
    ),
    Member(
        CorrelationIdentity(False),
        correlation_identity(list),
        correlation_identity(list, 2.0),
        scale_free=False,
        fewest=2,
    ),
    Member(Uniformity(), uniformity(2.0), uniformity(2.0, with_itself=True), fewest=2, blocks=(PAIRS, "_BLOCK")),
]
