"""The numbers of a run as tables: how good, what shape, which settings, where it ran."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from twofold.records import Accuracy, Geometry, RunRecord
from twofold.report.markup import Content, Markup, table, tag, together
from twofold.report.words import BASELINES, label, number, percent

SCORES = {"knn": "kNN", "probe": "linear probe", "class_mean": "class mean"}


def accuracy_table(run: RunRecord, control: RunRecord | None = None) -> Markup | None:
    """Put the accuracies of the run beside what they have to be compared with; None without labels."""
    if run.evaluation is None or run.evaluation.accuracy is None:
        return None
    rows: list[tuple[str, Accuracy]] = [(f"this run ({label(run)})", run.evaluation.accuracy)]
    if control is not None and control.evaluation is not None and control.evaluation.accuracy is not None:
        rows.append((f"the control ({label(control)})", control.evaluation.accuracy))
    rows += [(BASELINES.get(name, name), found) for name, found in run.evaluation.baselines.items()]
    if run.evaluation.chance is not None:
        guess = run.evaluation.chance
        rows.append(("chance (always the largest class)", Accuracy(guess, guess, guess)))
    body: list[list[Content]] = [[name, *(_bar(getattr(found, score)) for score in SCORES)] for name, found in rows]
    return table(["accuracy of", *SCORES.values()], body, "Accuracy on held-out samples")


def _bar(share: float | None) -> Markup:
    """Write a share over a bar of its length."""
    if share is None or not math.isfinite(share):
        return tag("span", percent(share))
    return tag("span", percent(share), class_="bar", style=f"--share:{100 * share:.1f}%")


def geometry_table(run: RunRecord, control: RunRecord | None = None) -> Markup | None:
    """Compare the shapes of the embeddings, which need no labels."""
    rows = [
        [f"{who}, {what}", *_shape(cloud)]
        for who, other in (("this run", run), ("the control", control))
        if other is not None and other.evaluation is not None
        for what, cloud in (("features", other.evaluation.features), ("projections", other.evaluation.projections))
    ]
    head = ["embeddings of", "effective rank", "of dimensions", "alignment", "uniformity", "largest eigenvalue"]
    return table(head, rows, "Shape of the embeddings, measured without labels") if rows else None


def _shape(cloud: Geometry) -> list[Content]:
    largest = max(cloud.spectrum, default=None)
    return [
        f"{cloud.effective_rank:.1f}",
        f"{cloud.dim:,}",
        number(cloud.alignment),
        number(cloud.uniformity),
        number(largest),
    ]


def settings_table(run: RunRecord, control: RunRecord | None = None) -> Markup:
    """List every setting under its flag, and what the control has instead where it differs."""
    own = dict(flat(run.settings))
    if control is None:
        return table(["setting", "value"], own.items(), "Everything that was chosen")
    other = dict(flat(control.settings))
    rows = [[name, own.get(name, "–"), _difference(name, own, other)] for name in dict.fromkeys([*own, *other])]
    return table(["setting", "this run", "the control, where it differs"], rows, "Everything that was chosen")


def _difference(name: str, own: Mapping[str, str], other: Mapping[str, str]) -> Content:
    value = other.get(name, "–")
    return "" if value == own.get(name, "–") else together("≠ ", tag("strong", value))


def environment_table(run: RunRecord) -> Markup:
    """List where the run was made."""
    return table(["what", "value"], flat(run.environment), "Where the run was made")


def flat(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Name nested values as the command line does: ``predictor.rho``."""
    for name, value in nested.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, default=str)
