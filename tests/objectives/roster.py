"""Every objective, with its formula as printed and what is true of it; a new one is one line of the roster."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from twofold.objectives import BYOL, InfoNCE, Objective, contrastive
from twofold.records import Pair

Formula = Callable[[Pair], Tensor]


@dataclass(frozen=True)
class Member:
    """One objective. ``formula`` is written naively; ``wrong`` is a plausible misreading that must be told apart.

    ``reaches`` are the parts of a pair that get a gradient when nothing is detached. ``blocks`` is where the number
    of pairwise terms held at once is written, for a member that works block by block.
    """

    objective: Objective
    formula: Formula
    wrong: Formula
    reaches: frozenset[str]
    scale_free: bool = True
    rotation_free: bool = True
    swappable: bool = True
    fewest: int = 1
    blocks: tuple[ModuleType, str] | None = None

    def __str__(self) -> str:
        return str(self.objective)


def direction(v: Tensor) -> Tensor:
    return v / v.square().sum().sqrt()


def infonce(temperature: float, with_itself: bool = False) -> Formula:
    """Write dual_networks, eq. 2 with the cosine as similarity, term by term."""

    def formula(pair: Pair) -> Tensor:
        views = [direction(z) for view in pair.online for z in view]
        n = len(views) // 2
        terms = []
        for i, z in enumerate(views):
            weights = [torch.exp(z @ other / temperature) for other in views]
            others = [weights[j] for j in range(2 * n) if with_itself or j != i]
            terms.append(-torch.log(weights[(i + n) % (2 * n)] / torch.stack(others).sum()))
        return torch.stack(terms).mean()

    return formula


def byol(normalised: bool, crossed: bool = True) -> Formula:
    """Write directpred, eq. 1 for both directions, twice as large, row by row."""

    def formula(pair: Pair) -> Tensor:
        targets = tuple(reversed(pair.target)) if crossed else pair.target
        terms = []
        for predicted, target in zip(pair.predicted, targets, strict=True):
            for p, t in zip(predicted, target, strict=True):
                p, t = (direction(p), direction(t)) if normalised else (p, t)
                terms.append((p - t).square().sum())
        return torch.stack(terms).sum() / len(pair.online[0])

    return formula


def _infonce(temperature: float) -> Member:
    formula, wrong = infonce(temperature), infonce(temperature, with_itself=True)
    blocks = (contrastive, "_BLOCK")
    return Member(InfoNCE(temperature), formula, wrong, frozenset({"online"}), fewest=2, blocks=blocks)


def _byol(normalised: bool) -> Member:
    formula, wrong = byol(normalised), byol(normalised, crossed=False)
    reaches = frozenset({"predicted", "target"})
    return Member(BYOL(normalised), formula, wrong, reaches, scale_free=normalised)


ROSTER = [_infonce(0.01), _infonce(0.1), _infonce(1.0), _infonce(10.0), _byol(True), _byol(False)]
