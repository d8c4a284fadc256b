"""The zoo as one table: a method is a point, objective × predictor × target × views."""

import dataclasses
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from twofold.data import Views
from twofold.errors import BadInput, nearest, unknown
from twofold.networks import EMA, Online, Target
from twofold.objectives import BYOL, InfoNCE, Objective
from twofold.predictors import MLP, AnyPredictor, NoPredictor
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


TABLE = (
    Method(
        "simclr",
        InfoNCE(temperature=0.2),
        NoPredictor(),
        Online(),
        citation=Citation("dual_networks", "eq. 2"),
        summary="Views of one sample attract, all others of the batch repel.",
    ),
    Method(
        "byol",
        BYOL(),
        MLP(),
        EMA(0.996),
        citation=Citation("directpred", "eq. 1"),
        summary="A predictor meets a slowly moving average of the network itself.",
    ),
    Method(
        "simsiam",
        BYOL(),
        MLP(),
        Online(),
        citation=Citation("directpred", "Sec. 2"),
        summary="BYOL whose target is the online network, its gradient stopped.",
    ),
    Method(
        "no-predictor",
        BYOL(),
        NoPredictor(),
        EMA(0.996),
        citation=Citation("dual_networks", "eq. 11"),
        summary="BYOL without its predictor: the control that collapses.",
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
