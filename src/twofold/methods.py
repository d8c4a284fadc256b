"""The zoo as one table: a method is a point, objective × predictor × target × views."""

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from twofold.data import Views
from twofold.errors import BadInput, nearest, unknown
from twofold.networks import EMA, Online, Target
from twofold.objectives import (
    BYOL,
    MINE,
    NCE,
    RAFT,
    BarlowTwins,
    BYOLPrime,
    Direct,
    Entropy,
    InfoNCE,
    Inverse,
    LiftedStructured,
    MarginTriplet,
    ModifiedTriplet,
    NPlusOneTuplet,
    Objective,
    PairWeighted,
    Quadratic,
    SimpleContrastive,
    SoftTriplet,
    Square,
    Triplet,
    TripletContrastive,
    Tsallis,
)
from twofold.predictors import MLP, AnyPredictor, Linear, NoPredictor
from twofold.records import Citation

AXES: dict[str, Any] = {"objective": Objective, "predictor": AnyPredictor, "target": Target, "views": Views}


@dataclass(frozen=True)
class Method:
    """A point of the space of methods. ``views`` is None where the data bring their own."""

    name: str
    objective: Objective
    predictor: AnyPredictor
    target: Target
    views: Views | None = None
    citation: Citation = field(default=Citation(""))
    summary: str = ""
    recipe: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Settings of training that are usual for it, where they are not the usual ones; any of them may be given."""

    def replace(self, **axes: Any) -> "Method":
        """Take a step along one axis or several: ``method("byol").replace(predictor=Linear())``."""
        for axis, value in axes.items():
            if axis not in AXES:
                raise BadInput(f"a method has no axis '{axis}', allowed are {', '.join(AXES)}{nearest(axis, AXES)}")
            if axis != "views" or value is not None:
                _check(axis, value)
        return dataclasses.replace(self, **axes)


def _check(axis: str, value: Any) -> None:
    try:
        TypeAdapter(AXES[axis]).validate_python(value, strict=True)
    except ValidationError as invalid:
        raise BadInput(f"{value!r} is no member of the axis {axis}: give one, as in predictor=Linear()") from invalid


_REFERENCE = {"optimizer": "sgd", "schedule": "constant"}
"""What the reference implementation of directpred trains BYOL and its relatives with (docs/log.md, 2026-11-20)."""
_TEACHER = EMA(0.99)
"""The papers have 0.996 for 100 epochs and more; over a few, a target that slow holds BYOL back (docs/log.md)."""


def _contrastive(name: str, objective: Any, citation: Citation, summary: str) -> Method:
    """Make a row of a loss that needs neither predictor nor second network."""
    return Method(name, objective, NoPredictor(), Online(), citation=citation, summary=summary)


TABLE = (
    _contrastive(
        "simclr",
        InfoNCE(temperature=0.2),
        Citation("alpha_cl", "eq. 2"),
        "Views of one sample attract, all others of the batch repel.",
    ),
    _contrastive(
        "simclr-simple",
        SimpleContrastive(),
        Citation("dual_networks", "Sec. 3"),
        "The simple loss: one negative repels as strongly as the positive attracts.",
    ),
    _contrastive(
        "simclr-triplet",
        MarginTriplet(),
        Citation("dual_networks", "Sec. 3"),
        "The soft triplet loss: one negative should be farther than the positive by a margin.",
    ),
    _contrastive(
        "simclr-nce",
        NCE(),
        Citation("dual_networks", "eq. 2"),
        "InfoNCE with one negative a sample.",
    ),
    _contrastive("mine", MINE(), Citation("alpha_cl", "Fig. 1"), "The logarithm of a sum of exponentials."),
    _contrastive(
        "triplet", Triplet(), Citation("alpha_cl", "Fig. 1"), "Negatives within a margin repel, all as strongly."
    ),
    _contrastive(
        "soft-triplet", SoftTriplet(), Citation("alpha_cl", "Fig. 1"), "InfoNCE whose negatives are moved by a margin."
    ),
    _contrastive("nplus1", NPlusOneTuplet(), Citation("alpha_cl", "Fig. 1"), "InfoNCE with a temperature of 1."),
    _contrastive(
        "lifted", LiftedStructured(), Citation("alpha_cl", "Fig. 1"), "The squared logarithm of a sum of exponentials."
    ),
    _contrastive(
        "modified-triplet", ModifiedTriplet(), Citation("alpha_cl", "Fig. 1"), "A smooth step from near to far."
    ),
    _contrastive(
        "triplet-contrastive",
        TripletContrastive(),
        Citation("alpha_cl", "Fig. 1"),
        "Plain differences of squared distances, summed over the negatives.",
    ),
    _contrastive(
        "quadratic",
        Quadratic(),
        Citation("alpha_cl", "Table 1"),
        "Plain differences of squared distances, averaged over the negatives.",
    ),
    _contrastive(
        "alpha-cl-entropy",
        PairWeighted(Entropy()),
        Citation("alpha_cl", "Sec. 6"),
        "α-CL with the entropy as regulariser: the softmax of the distances.",
    ),
    _contrastive(
        "alpha-cl-inverse",
        PairWeighted(Inverse()),
        Citation("alpha_cl", "Sec. 6"),
        "α-CL with an inverse power as regulariser: distant pairs still weigh something.",
    ),
    _contrastive(
        "alpha-cl-square",
        PairWeighted(Square()),
        Citation("alpha_cl", "Sec. 6"),
        "α-CL with the square as regulariser: most pairs weigh nothing.",
    ),
    _contrastive(
        "alpha-cl-tsallis",
        PairWeighted(Tsallis()),
        Citation("alpha_cl", "eq. 8a, our extension"),
        "α-CL between entropy and square.",
    ),
    _contrastive(
        "alpha-cl-direct",
        PairWeighted(Direct()),
        Citation("alpha_cl", "eq. 12"),
        "α-CL with weights set directly from the distances.",
    ),
    _contrastive(
        "alpha-cl-backprop",
        PairWeighted(Entropy(), through_importance=True),
        Citation("alpha_cl", "Table 1"),
        "The ablation whose gradients pass through the weights too.",
    ),
    _contrastive(
        "barlow-twins",
        BarlowTwins(),
        Citation("generalization", "eq. 2"),
        "The cross-correlation of the two views becomes the identity.",
    ),
    Method(
        "byol",
        BYOL(),
        MLP(),
        _TEACHER,
        citation=Citation("directpred", "eq. 1"),
        summary="A predictor meets a slowly moving average of the network itself.",
        recipe=_REFERENCE,
    ),
    Method(
        "simsiam",
        BYOL(),
        MLP(),
        Online(),
        citation=Citation("directpred", "Sec. 2"),
        summary="BYOL whose target is the online network, its gradient stopped.",
        recipe=_REFERENCE,
    ),
    Method(
        "no-predictor",
        BYOL(),
        NoPredictor(),
        _TEACHER,
        citation=Citation("dual_networks", "eq. 11"),
        summary="BYOL without its predictor: the control that collapses.",
        recipe=_REFERENCE,
    ),
    Method(
        "byol-prime",
        BYOLPrime(),
        MLP(),
        _TEACHER,
        citation=Citation("raft", "eq. 7"),
        summary="Align the two predictions, and run towards the teacher.",
        recipe=_REFERENCE,
    ),
    Method(
        "raft",
        RAFT(),
        MLP(),
        _TEACHER,
        citation=Citation("raft", "eq. 9"),
        summary="Align the two predictions, and run away from the teacher.",
        recipe=_REFERENCE,
    ),
    Method(
        "raft-tangential",
        RAFT(tangential=True),
        Linear(),
        _TEACHER,
        citation=Citation("raft", "Table 1"),
        summary="RAFT with a linear predictor, and gradients along the sphere alone.",
        recipe=_REFERENCE,
    ),
)


def methods() -> tuple[Method, ...]:
    """List the zoo."""
    return TABLE


def method(name: str) -> Method:
    """Find a row of the zoo."""
    for row in TABLE:
        if row.name == name:
            return row
    raise unknown("method", name, [row.name for row in TABLE])


class _CallableRoom(ModuleType):
    """``twofold.methods`` is this room, and ``twofold.methods()`` lists what is in it."""

    def __call__(self) -> tuple[Method, ...]:
        return methods()


sys.modules[__name__].__class__ = _CallableRoom
