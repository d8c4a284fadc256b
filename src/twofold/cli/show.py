"""Numbers as tables for people, and as plain values for JSON."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from twofold.records import Accuracy, Evaluation

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_ELSEWHERE = 160
COLOURS = {"alive": "green", "partial": "yellow", "collapsed": "red"}


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table: with lines and colours on a terminal, plain in a pipe."""
    from rich.box import SIMPLE_HEAD  # heavy to import
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in row))
    _console().print(drawn)


def _console() -> "Console":
    """A terminal has a width; a file or a pipe has room."""
    from rich.console import Console  # heavy to import

    return Console(width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE)


def percent(share: float | None) -> str:
    """Write a share for people."""
    return "" if share is None else f"{share:.1%}"


def show_evaluation(name: str, evaluation: Evaluation, others: dict[str, Evaluation] | None = None) -> None:
    """Print what was measured of a run, beside its baselines and other runs, and the verdict."""
    rows: list[tuple[str, ...]] = []
    if evaluation.accuracy is not None:
        rows.append(_row(name, evaluation.accuracy))
    rows += [_row(other, it.accuracy) for other, it in (others or {}).items() if it.accuracy is not None]
    names = {"raw": "raw samples", "untrained": "untrained encoder"}
    rows += [_row(names.get(key, key), found) for key, found in evaluation.baselines.items()]
    if rows:
        rows.append(("chance", percent(evaluation.chance), percent(evaluation.chance), percent(evaluation.chance)))
        title = f"{evaluation.data}: {evaluation.samples} {evaluation.split} samples that no training saw"
        table(title, ("", "kNN", "linear probe", "class means"), rows)
    for which, geometry in (("features", evaluation.features), ("projections", evaluation.projections)):
        parts = [f"effective rank {geometry.effective_rank:.1f} of {geometry.dim}"]
        if geometry.alignment is not None:
            parts.append(f"alignment {geometry.alignment:.3f}")
        if geometry.uniformity is not None:
            parts.append(f"uniformity {geometry.uniformity:.2f}")
        _line(f"{which}: {', '.join(parts)}")
    for label, measured in {name: evaluation, **(others or {})}.items():
        _verdict(label, measured)


def _row(name: str, accuracy: Accuracy) -> tuple[str, ...]:
    return name, percent(accuracy.knn), percent(accuracy.probe), percent(accuracy.class_mean)


def _verdict(name: str, evaluation: Evaluation) -> None:
    from rich.text import Text  # heavy to import

    state = evaluation.verdict.state
    _console().print(Text(f"{name}: "), Text(state, style=f"bold {COLOURS[state]}"), Text(evaluation.verdict.sentence))


def _line(text: str) -> None:
    print(text)  # noqa: T201


def plain(evaluation: Evaluation | None) -> dict[str, Any] | None:
    """Turn what was measured into values for JSON."""
    return None if evaluation is None else asdict(evaluation)
