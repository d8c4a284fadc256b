"""What a run is called, how it went and where it stands, in words."""

import math
from collections.abc import Mapping
from typing import Any

from twofold.records import Evaluation, RunRecord

BASELINES = {"raw": "the raw samples", "untrained": "the untrained encoder"}
STATES = {
    "running": "is still running",
    "stopped": "stopped before its end",
    "diverged": "diverged",
    "done": "is done",
}
VERDICTS = {"alive": "alive", "partial": "partly collapsed", "collapsed": "collapsed"}


def setting(settings: Mapping[str, Any], name: str) -> str | None:
    """Read what was chosen along one axis: its name, or the kind of a choice with settings of its own."""
    value = settings.get(name)
    if isinstance(value, Mapping):
        value = value.get("name", value.get("kind"))
    return None if value is None else str(value)


def title(run: RunRecord) -> str:
    """Name a run by its method and data, as far as they are known."""
    method, data = setting(run.settings, "method"), setting(run.settings, "data")
    if method is None:
        return run.name
    return f"{method} on {data}" if data else method


def label(run: RunRecord) -> str:
    """Name a run beside another one."""
    return setting(run.settings, "method") or run.name


def percent(share: float | None) -> str:
    """Write a share with one decimal, and a dash where there is none."""
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def number(value: float | None) -> str:
    """Write a number with three significant digits, and a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def references(evaluation: Evaluation) -> dict[str, float]:
    """Collect the kNN accuracies that cost nothing: chance, and the baselines."""
    chance = {} if evaluation.chance is None else {"chance": evaluation.chance}
    found = chance | {BASELINES.get(name, name): accuracy.knn for name, accuracy in evaluation.baselines.items()}
    return {name: share for name, share in found.items() if math.isfinite(share)}


def standing(evaluation: Evaluation) -> str | None:
    """Say where the kNN accuracy stands among the references; None without one.

    Accuracies are at one level when they differ by at most two standard errors of their difference.
    """
    if evaluation.accuracy is None or not math.isfinite(evaluation.accuracy.knn):
        return None
    found = evaluation.accuracy.knn
    groups: dict[str, list[str]] = {"above": [], "at the level of": [], "below": []}
    for name, reference in references(evaluation).items():
        groups[_compare(found, reference, evaluation.samples)].append(f"{name} ({percent(reference)})")
    places = ", ".join(f"{place} {listed(names)}" for place, names in groups.items() if names)
    start = f"Its kNN accuracy is {percent(found)} on {evaluation.samples:,} {evaluation.split} samples"
    return f"{start}: {places}." if places else f"{start}."


def _compare(found: float, reference: float, samples: int) -> str:
    error = math.sqrt((found * (1 - found) + reference * (1 - reference)) / samples)
    if abs(found - reference) <= 2 * error:
        return "at the level of"
    return "above" if found > reference else "below"


def listed(names: list[str]) -> str:
    """Write a list as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def ended(control: RunRecord) -> str:
    """Say in one clause how the control ended."""
    if control.evaluation is None:
        return f"The control, {label(control)}, has not been evaluated: it {STATES[control.state]}."
    return f"The control, {label(control)}, ended {VERDICTS[control.evaluation.verdict.state]}."
