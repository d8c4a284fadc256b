"""Charts as plain plotly figures: the page draws them, and gives the colours (``var(--run)``) their values.

Every chart reads without colour: the run is solid with dots, the control dashed with diamonds.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from twofold.records import Geometry, RunRecord
from twofold.report.curves import (
    Curve,
    breakdown,
    curve,
    envelope,
    quantities,
    smoothed,
    smoothing,
    sparse,
    usual_range,
)
from twofold.report.markup import visible
from twofold.report.words import label, percent, references

Figure = dict[str, Any]

FEW = 25
"""So many points or fewer are marked one by one."""
LONGEST_NAME = 40
FLOOR = 1e-10
"""Eigenvalues below this share of the largest are not drawn: they would squeeze the others."""


@dataclass(frozen=True)
class Pen:
    """How one run is drawn in all charts, and what the notes call it."""

    who: str
    color: str
    dash: str
    symbol: str


RUN = Pen("this run", "var(--run)", "solid", "circle")
CONTROL = Pen("the control", "var(--control)", "dash", "diamond-open")


@dataclass(frozen=True)
class Chart:
    """A figure, and the words around it."""

    title: str
    note: str
    figure: Figure


@dataclass(frozen=True)
class Quantity:
    """How something that a run logs is presented."""

    title: str
    note: str
    format: str = ".4~g"
    axis: Mapping[str, Any] = field(default_factory=dict)
    noisy: bool = True


KNOWN = {
    "loss": Quantity("Loss", "What training minimises."),
    "knn": Quantity(
        "kNN accuracy",
        "On held-out samples, from the features; labels play no part in training.",
        ".1%",
        {"range": [0, 1], "tickformat": ".0%"},
    ),
    "effective_rank": Quantity(
        "Effective rank", "How many directions the embeddings fill.", ".1f", {"rangemode": "tozero"}
    ),
    "lr": Quantity("Learning rate", "As the schedule set it.", ".3~g", {"rangemode": "tozero"}, noisy=False),
}
FIRST, LAST = ("loss", "knn", "effective_rank"), ("lr",)


def _drawn(run: RunRecord, control: RunRecord | None) -> list[tuple[RunRecord, str, Pen]]:
    """Give every run its name and its pen."""
    pens = [(run, label(run), RUN)]
    return pens if control is None else [*pens, (control, f"{label(control)} (control)", CONTROL)]


def curve_charts(run: RunRecord, control: RunRecord | None = None) -> list[Chart]:
    """Draw all that was logged, one chart a quantity: what matters most first, the learning rate last."""
    drawn = _drawn(run, control)
    logged = quantities(run)
    parts = [name for name in logged if name not in KNOWN]
    return [_curve_chart(name, drawn) for name in (*FIRST, *parts, *LAST) if name in logged]


def _curve_chart(name: str, drawn: list[tuple[RunRecord, str, Pen]]) -> Chart:
    quantity = KNOWN.get(name, Quantity(name, "Logged beside the loss."))
    curves = [curve(record, name) for record, _, _ in drawn]
    widths = [smoothing(len(points)) if quantity.noisy else 1 for points in curves]
    traces = [
        trace | {"hovertemplate": f"%{{y:{quantity.format}}}"}
        for points, width, (_, who, pen) in zip(curves, widths, drawn, strict=True)
        for trace in _traces(points, width, who, pen)
    ]
    shown = None if "range" in quantity.axis else usual_range(*curves)
    axis = quantity.axis if shown is None else {"range": list(shown)}
    notes = [quantity.note]
    notes += [f"Means of {max(widths)} values; faint: every value."] if max(widths) > 1 else []
    notes += ["Bursts are left out."] if shown is not None else []
    lines = _reference_lines(drawn[0][0]) if name == "knn" else []
    broken = breakdown(drawn[0][0]) if name == "loss" else None
    if broken is not None:
        lines.append(_dotted("x", float(broken)))
        notes.append(f"Dotted: step {broken:,}, where it was not a number.")
    last = float(max(points.steps.max(initial=1.0) for points in curves))
    layout = _layout("step", last, axis) | {"shapes": lines}
    return Chart(quantity.title, " ".join(notes), {"data": traces, "layout": layout})


def _traces(points: Curve, width: int, who: str, pen: Pen) -> list[Figure]:
    """Draw a curve, over its unsmoothed self where the two differ."""
    if not len(points):
        return []
    line = _trace(sparse(smoothed(points, width)), who, pen)
    if width == 1:
        return [line]
    thin = {"color": pen.color, "width": 1}
    return [_trace(envelope(points), who, pen) | {"opacity": 0.3, "hoverinfo": "skip", "line": thin}, line]


def _trace(points: Curve, who: str, pen: Pen) -> Figure:
    few = np.isfinite(points.values).sum() <= FEW
    return {
        "type": "scatter",
        "mode": "lines+markers" if few else "lines",
        "cliponaxis": not few,
        "x": [int(step) for step in points.steps],
        "y": _json(points.values),
        "name": plain_text(who),
        "line": {"color": pen.color, "width": 2, "dash": pen.dash},
        "marker": {"color": pen.color, "size": 7, "symbol": pen.symbol},
    }


def _reference_lines(run: RunRecord) -> list[Figure]:
    """Mark what the accuracy has to be compared with; the lowest is named under its line, where is room."""
    found = {} if run.evaluation is None else references(run.evaluation)
    lowest = min(found.values(), default=0.0)
    return [
        _dotted("y", value)
        | {
            "label": {
                "text": plain_text(f"{name}, {percent(value)}"),
                "textposition": "end",
                "yanchor": "bottom" if value > lowest else "top",
                "font": {"color": "var(--quiet)", "size": 11},
            }
        }
        for name, value in found.items()
    ]


def _dotted(axis: Literal["x", "y"], value: float) -> Figure:
    """Draw a line across the chart where this axis has this value."""
    other = "x" if axis == "y" else "y"
    place = {f"{axis}0": value, f"{axis}1": value, f"{other}ref": "paper", f"{other}0": 0, f"{other}1": 1}
    return {"type": "line", "line": {"color": "var(--quiet)", "width": 1, "dash": "dot"}} | place


def spectrum_charts(run: RunRecord, control: RunRecord | None = None) -> list[Chart]:
    """Draw the eigenvalues of features and projections, each run's divided by its largest."""
    found = [(record.evaluation, who, pen) for record, who, pen in _drawn(run, control) if record.evaluation]
    if run.evaluation is None:
        return []
    return [
        _spectrum_chart("Features", [(measured.features, who, pen) for measured, who, pen in found]),
        _spectrum_chart("Projections", [(measured.projections, who, pen) for measured, who, pen in found]),
    ]


def _spectrum_chart(what: str, clouds: list[tuple[Geometry, str, Pen]]) -> Chart:
    traces = [_spectrum(*cloud) for cloud in clouds]
    notes = [_alive(cloud, pen.who) for cloud, _, pen in clouds]
    axis = {"type": "log", "exponentformat": "power", "tickfont": {"size": 11}}
    longest = max(len(cloud.spectrum) for cloud, _, _ in clouds)
    layout = _layout("eigenvalue, largest first", longest + 1.0, axis)
    return Chart(what, " ".join(notes), {"data": traces, "layout": layout})


def _spectrum(cloud: Geometry, who: str, pen: Pen) -> Figure:
    values = np.array(cloud.spectrum, dtype=np.float64)
    largest = values.max(initial=0.0)
    shares = values / largest if largest > 0 else np.full_like(values, np.nan)
    shares = np.where(shares >= FLOOR, shares, np.nan)
    ranks = np.arange(1.0, len(values) + 1)
    return _trace(Curve(ranks, shares), who, pen) | {
        "customdata": _json(values),
        "hovertemplate": "%{y:.2~e} of the largest (%{customdata:.3~g})",
    }


def _alive(cloud: Geometry, who: str) -> str:
    values = np.array(cloud.spectrum)
    largest = values.max(initial=0.0)
    if np.isnan(largest):
        return f"The eigenvalues of {who} are not numbers."
    if not largest > 0:
        return f"All eigenvalues of {who} are zero: every sample has the same embedding."
    rank = f"effective rank {cloud.effective_rank:.1f} of {cloud.dim}"
    hidden = int((values < FLOOR * largest).sum())
    return f"Of {who}: {rank}" + (f", {hidden} eigenvalues below {FLOOR:g} not drawn." if hidden else ".")


def _layout(x_title: str, x_end: float, y_axis: Mapping[str, Any]) -> Figure:
    axis = {
        "gridcolor": "var(--rule)",
        "linecolor": "var(--rule)",
        "zeroline": False,
        "automargin": True,
        "exponentformat": "e",
    }
    return {
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "var(--quiet)"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 48, "r": 12, "t": 12, "b": 44},
        "showlegend": False,
        "hovermode": "x unified",
        "hoverlabel": {
            "bgcolor": "var(--paper)",
            "bordercolor": "var(--rule)",
            "font": {"color": "var(--ink)"},
        },
        "xaxis": axis
        | {
            "title": {"text": x_title, "standoff": 6},
            "range": [0, x_end],
            "hoverformat": ",",
            "showgrid": False,
        },
        "yaxis": axis | dict(y_axis),
    }


def plain_text(words: str) -> str:
    """Write words so that plotly, which obeys some HTML, shows them as they are; long ones are cut."""
    short = words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1]}…"
    return html.escape(visible(short), quote=False)


def _json(values: np.ndarray) -> list[float | None]:
    """Six digits are more than a screen shows; JSON has no word for what is not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]
