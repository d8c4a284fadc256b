"""The frozen records that travel between rooms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float32, UInt8
from pydantic import ConfigDict
from torch import Tensor

STRICT = ConfigDict(extra="forbid")
"""Settings are pydantic dataclasses beside what they configure; an unknown field is an error in all of them."""

TwoViews = tuple[Float[Tensor, "batch dim"], Float[Tensor, "batch dim"]]

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done and how much there is; the command line draws it."""


Row = Mapping[str, float | int]
"""Numbers of one step, by name; ``step`` is among them in a log."""


def silent(what: str, done: int, total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True)
class Pair:
    """What an objective sees of one batch: every entry holds the two views, row i of both the same sample.

    ``online`` are the projections z, ``predicted`` the predictor's outputs q(z), and ``target`` the other
    network's projections, already detached unless the target says otherwise.
    """

    online: TwoViews
    predicted: TwoViews
    target: TwoViews


@dataclass(frozen=True)
class Loss:
    """The scalar to minimise, and named parts of it for the log (detached)."""

    value: Float[Tensor, ""]
    parts: Mapping[str, Float[Tensor, ""]] = field(default_factory=dict)


@dataclass(frozen=True)
class Citation:
    """Where a statement stands: the paper's key (``directpred``) and the place in it (``eq. 18``)."""

    paper: str
    place: str = ""


@dataclass(frozen=True)
class Verdict:
    """A straight answer in words, and the measured reasons for it.

    ``collapsed``: nothing of the data is left; ``partial``: only a few directions are; ``alive``: neither.
    """

    state: Literal["alive", "partial", "collapsed"]
    sentence: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Geometry:
    """The shape of a cloud of embeddings, measured without labels.

    ``spread`` is the variance of the directions, 1 − ‖E f/‖f‖‖²: 1 when they cancel out, 0 when all are one.
    """

    samples: int
    dim: int
    effective_rank: float
    spread: float
    spectrum: tuple[float, ...]
    alignment: float | None = None
    uniformity: float | None = None


@dataclass(frozen=True)
class Accuracy:
    """What a simple classifier finds in an embedding, on the samples that it was tested on."""

    knn: float
    probe: float | None = None
    class_mean: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """All that was measured of one encoder on held-out data; what needs labels is None without them.

    ``baselines`` has the accuracy of the raw samples (``raw``) and of the untrained encoder (``untrained``).
    ``chance`` is the share of the largest class.
    """

    data: str
    split: Literal["validation", "test"]
    step: int
    samples: int
    features: Geometry
    projections: Geometry
    verdict: Verdict
    accuracy: Accuracy | None = None
    baselines: Mapping[str, Accuracy] = field(default_factory=dict)
    chance: float | None = None
    classes: int | None = None


@dataclass(frozen=True, eq=False)
class Gallery:
    """Pictures of a run, as bytes: how its views look, and what its encoder takes to be alike.

    ``views`` has both views of some samples; row i of ``neighbours`` has the training samples nearest to query
    i, nearest first, with their cosines. Labels are names of classes, empty where there are none.
    """

    views: UInt8[np.ndarray, "samples 2 height width channels"]
    queries: UInt8[np.ndarray, "queries height width channels"]
    neighbours: UInt8[np.ndarray, "queries k height width channels"]
    similarities: Float32[np.ndarray, "queries k"]
    query_labels: tuple[str, ...] = ()
    neighbour_labels: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A run as its folder tells it: enough to list it, and to draw its report without any network or data.

    ``metrics`` has rows of numbers, each with its ``step``: the loss and its parts at every step, ``knn`` and
    ``effective_rank`` at some.
    """

    name: str
    state: Literal["running", "stopped", "diverged", "done"]
    step: int
    steps: int
    settings: Mapping[str, Any]
    environment: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[Row, ...] = ()
    evaluation: Evaluation | None = None
    gallery: Gallery | None = None
