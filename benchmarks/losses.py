"""Losses of all pairs: their time against the matrix of all pairs, and their memory on a batch of 65 536.

The dense form of each is the same formula on the whole matrix by autograd. Both are timed in turn, forward and
backward, in one process; the ratio is the median over the turns. Memory is what the process held at most above what
it held with the inputs alone, in a process of its own for each loss; N is the number of samples, each in two views.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twofold.objectives import Direct, Entropy, InfoNCE, Inverse, Objective, PairWeighted, Square
from twofold.records import Pair

DIM, SAMPLES, MANY, TURNS = 128, 4096, 65_536, 3
SLOWER, GIBIBYTES = 1.5, 2.0
OBJECTIVES: dict[str, Any] = {
    "InfoNCE, other views": InfoNCE(0.1),
    "InfoNCE, other anchors": InfoNCE(0.1, negatives="anchors"),
    "alpha-CL, entropy": PairWeighted(Entropy(), negatives="anchors"),
    "alpha-CL, inverse": PairWeighted(Inverse(), negatives="anchors"),
    "alpha-CL, square": PairWeighted(Square(), negatives="anchors"),
    "alpha-CL, direct": PairWeighted(Direct(), negatives="anchors"),
}
LARGE = ("InfoNCE, other views", "alpha-CL, direct")
"""The most pairs, and the paper's best; those solved row by row take many minutes at this size."""


def views(samples: int) -> tuple[Tensor, Tensor]:
    """Draw two views of unit vectors."""
    draw = torch.Generator().manual_seed(0)
    first, noise = (torch.randn(samples, DIM, generator=draw) for _ in range(2))
    return tuple(torch.nn.functional.normalize(z, dim=1).requires_grad_() for z in (first, first + noise))  # type: ignore[return-value]


def dense(objective: Any, first: Tensor, second: Tensor) -> Tensor:
    """Compute the loss from the whole matrix, as one writes it first."""
    anchors, positives = (
        (torch.cat((first, second)), torch.cat((second, first))) if objective.negatives == "views" else (first, second)
    )
    own = (anchors - positives).square().sum(dim=1) / 2
    struck = torch.eye(len(anchors), dtype=torch.bool)
    if objective.negatives == "views":
        struck = struck | struck.roll(len(first), 0)
    half = anchors.square().sum(dim=1) / 2
    other = (half[:, None] + half - anchors @ anchors.T).clamp(min=0).masked_fill(struck, torch.inf)
    if isinstance(objective, PairWeighted):
        alpha = objective.importance(own.detach(), other.detach())
        return (alpha * (own[:, None] - other.masked_fill(struck, 0.0))).sum(dim=1).mean()
    return objective.losses(own[:, None] - other).mean()  # type: ignore[no-any-return]


def seconds(work: Callable[[], Tensor]) -> float:
    """Time one forward and backward pass."""
    start = time.perf_counter()
    work().backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - start


def speed(name: str, objective: Any) -> dict[str, Any]:
    """Compare with the dense form."""
    first, second = views(SAMPLES)
    pair = Pair((first, second), (first, second), (first, second))

    def ours() -> Tensor:
        return objective(pair).value  # type: ignore[no-any-return]

    def theirs() -> Tensor:
        return dense(objective, first, second)

    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-5)
    seconds(ours), seconds(theirs)
    ratio = statistics.median(seconds(ours) / seconds(theirs) for _ in range(TURNS))
    what = f"{name}, N = {SAMPLES}, d = {DIM}: time of the dense form"
    return {"what": what, "value": ratio, "unit": "x", "reach": SLOWER, "met": ratio <= SLOWER}


def mebibytes(what: str) -> float:
    """Read a number about this process's memory: VmHWM, the most it ever held, or VmRSS, what it holds now.

    ``getrusage`` would tell of the process that started this one as well.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith(f"{what}:"))


def one(name: str) -> None:
    """Measure memory and time of one loss on the large batch, in this process."""
    objective: Objective = OBJECTIVES[name]
    small, (first, second) = views(64), views(MANY)
    for z in (first, second):
        z.grad = torch.zeros_like(z)
    objective(Pair(small, small, small)).value.backward()  # type: ignore[no-untyped-call]
    before = mebibytes("VmRSS")
    taken = seconds(lambda: objective(Pair((first, second), (first, second), (first, second))).value)
    print(json.dumps({"memory": (mebibytes("VmHWM") - before) / 2**10, "seconds": taken}))


def memory(name: str) -> list[dict[str, Any]]:
    """Measure in a process of its own."""
    told = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE, check=True).stdout
    found = json.loads(told)
    what = f"{name}, N = {MANY}, d = {DIM}"
    met = found["memory"] < GIBIBYTES
    return [
        {"what": f"{what}: memory", "value": found["memory"], "unit": "GiB", "reach": GIBIBYTES, "met": met},
        {"what": f"{what}: time", "value": found["seconds"], "unit": "s", "reach": None, "met": None},
    ]


def measure() -> dict[str, Any]:
    """Measure all."""
    rows = []
    for name, objective in OBJECTIVES.items():
        rows.append(told(speed(name, objective)))
    for name in LARGE:
        rows += map(told, memory(name))
    return {"name": "losses", "rows": rows}


def told(row: dict[str, Any]) -> dict[str, Any]:
    """Say what was measured while more is."""
    print(f"{row['what']}: {row['value']:.4g} {row['unit']}", file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    one(sys.argv[1]) if len(sys.argv) > 1 else print(json.dumps(measure()))
