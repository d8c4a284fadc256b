"""What a run logged, as curves that are short enough to draw."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from twofold.records import RunRecord

STRETCHES = 400
"""A panel is about that many pixels wide."""
SMOOTHING = 1 / 25
"""Width of the moving mean, as a share of the logged steps."""
BURST = 10.0
"""Values that lie this many times the usual spread outside of it would flatten all others."""
LARGEST = 1e300
"""Beyond it there is no room for arithmetic."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One quantity at the steps at which it was logged; what is not finite is a gap."""

    steps: Float[np.ndarray, " points"]
    values: Float[np.ndarray, " points"]

    def __len__(self) -> int:
        return len(self.steps)

    def take(self, rows: list[int]) -> "Curve":
        """Select these points."""
        return Curve(self.steps[rows], self.values[rows])


def quantities(run: RunRecord) -> list[str]:
    """Name all that a run logged, in the order of its first appearance."""
    return list(dict.fromkeys(name for row in run.metrics for name in row if name not in ("step", "epoch")))


def curve(run: RunRecord, quantity: str) -> Curve:
    """Collect one quantity; without points where the run never logged it."""
    rows = [(row["step"], row[quantity]) for row in run.metrics if quantity in row]
    points = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return Curve(points[:, 0], np.where(np.isfinite(points[:, 1]), points[:, 1], np.nan))


def breakdown(run: RunRecord) -> int | None:
    """Find the first step whose loss was infinite or not a number."""
    losses = curve(run, "loss")
    broken = losses.steps[np.isnan(losses.values)]
    return int(broken[0]) if len(broken) else None


def smoothing(points: int) -> int:
    """Give the width of the moving mean for so many points: odd, and 1 where smoothing would hide them."""
    width = int(points * SMOOTHING)
    return width + 1 - width % 2 if width >= 3 else 1


def smoothed(raw: Curve, width: int) -> Curve:
    """Average over a window of this width around every point, over what is finite and inside the curve."""
    window = np.ones(width)
    finite = np.isfinite(raw.values)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.convolve(np.where(finite, raw.values, 0.0), window, "same")
        means = sums / np.maximum(np.convolve(finite, window, "same"), 1)
    return Curve(raw.steps, np.where(finite & np.isfinite(means), means, np.nan))


def sparse(whole: Curve) -> Curve:
    """Keep one point of every stretch, and the last."""
    stretch = -(-len(whole) // STRETCHES)
    return whole if stretch <= 1 else whole.take(sorted({*range(0, len(whole), stretch), len(whole) - 1}))


def envelope(whole: Curve) -> Curve:
    """Keep the least and the greatest value of every stretch, so that no spike is lost."""
    if len(whole) <= 2 * STRETCHES:
        return whole
    low, high = (np.where(np.isnan(whole.values), bound, whole.values) for bound in (np.inf, -np.inf))
    stretches = np.array_split(np.arange(len(whole)), STRETCHES)
    kept = {int(rows[ends]) for rows in stretches for ends in (low[rows].argmin(), high[rows].argmax())}
    return whole.take(sorted(kept))


def usual_range(*curves: Curve) -> tuple[float, float] | None:
    """Give an axis that leaves out bursts, as before a divergence; None where there are none."""
    values = np.concatenate([drawn.values[np.isfinite(drawn.values)] for drawn in curves])
    if not len(values):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.quantile(values, (0.05, 0.95))
        spread = high - low
        inside = values[(values >= low - BURST * spread) & (values <= high + BURST * spread)]
    if not 0 < spread < LARGEST or len(inside) == len(values):
        return None
    return float(inside.min() - spread / 4), float(inside.max() + spread / 4)
