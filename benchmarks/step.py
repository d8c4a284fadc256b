"""What a training step costs, as a share of its limit: the bare backbone (performance.md).

The limit is forward and backward of the online encoder on both views, and for BYOL two forward passes of a second
encoder, in the same precision and memory layout, on synthetic input, and nothing else. Ours is the loop of
``twofold train``: data, views, projector, predictor, loss, optimiser, target and log. Both are timed in turn,
in one process; the ratio is the median over the turns. Live looks and checkpoints come at intervals of many steps;
the time of one look is printed beside.
"""

import copy
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from twofold.data import SceneViews, Source, open_data
from twofold.data.digits import digits
from twofold.training import Quiet, settings
from twofold.training.folder import RunFolder
from twofold.training.loop import Loop
from twofold.training.student import plan
from twofold.training.trainer import Trainer

SAMPLES, SIDE, BATCH = 4096, 32, 128
CASES = (("byol", 64, 0.95, 1), ("simclr", 64, 0.95, 1), ("byol", 16, 0.90, 6), ("simclr", 16, 0.90, 6))
"""Method, width, the share of the limit to reach, and steps a turn."""
TURNS = 7


def source() -> Source:
    """Make images of noise, with the views of CIFAR."""
    images = np.random.default_rng(0).integers(0, 256, (SAMPLES, 3, SIDE, SIDE), dtype=np.uint8)
    return open_data(images, views=settings({"views": "cifar"}).views)


def bare(trainer: Trainer, second_network: bool) -> Callable[[], None]:
    """Build a step of the limit, beside the trainer's own network."""
    online = copy.deepcopy(trainer.student.dual.online.encoder)
    target = copy.deepcopy(online).requires_grad_(False)
    arithmetic, device = trainer.arithmetic, trainer.fabric.device
    views = [arithmetic.laid_out(torch.randn(BATCH, 3, SIDE, SIDE, device=device)) for _ in range(2)]

    def step() -> None:
        online.zero_grad(set_to_none=True)
        with arithmetic.autocast(device):
            features = [online(view) for view in views]
            if second_network:
                with torch.no_grad():
                    features += [target(view) for view in views]
        torch.autograd.backward([feature.float().sum() for feature in features[:2]])

    return step


def seconds(action: Callable[[], object], times: int) -> float:
    """Time an action, a few times over."""
    start = time.perf_counter()
    for _ in range(times):
        action()
    return (time.perf_counter() - start) / times


def case(method: str, width: int, reach: float, steps: int, data: Source, folder: Path) -> list[dict[str, Any]]:
    """Measure one method at one width, ours and the limit in turn."""
    chosen = settings({
        "method": method, "encoder": "resnet18", "width": width, "batch_size": BATCH, "steps": 10**6,
        "optimizer": "sgd", "checkpoint_seconds": 1e9, "watch_every": 10**6,
    })  # fmt: skip
    trainer = Trainer(plan(chosen, data.shape), data)
    loop = Loop(trainer, RunFolder(folder), Quiet())
    limit = bare(trainer, second_network=method == "byol")
    seconds(loop.once, 1), seconds(limit, 1)
    turns = [(seconds(loop.once, steps), seconds(limit, steps)) for _ in range(TURNS)]
    ratio = statistics.median(least / ours for ours, least in turns)
    ours = statistics.median(ours for ours, _ in turns)
    look = seconds(loop.look, 1)
    name = f"{method}, ResNet-18 of width {width}, batch {BATCH}, {trainer.arithmetic}"
    return [
        {"what": f"{name}: share of the limit", "value": ratio, "unit": "", "reach": reach, "met": ratio >= reach},
        {"what": f"{name}: a step", "value": ours * 1e3, "unit": "ms", "reach": None, "met": None},
        {
            "what": f"{name}: a live look",
            "value": look / ours,
            "unit": "steps",
            "reach": None,
            "met": None,
        },
    ]


def scenes() -> list[dict[str, Any]]:
    """Measure how much of a default step drawing the digits' scenes takes."""
    data = digits(SceneViews())
    trainer = Trainer(plan(settings({"steps": 10**6}), data.shape), data)
    seconds(trainer.advance, 3)
    turns = [(seconds(trainer.pair, 5), seconds(trainer.advance, 5)) for _ in range(TURNS)]
    share = statistics.median(drawing / step for drawing, step in turns)
    return [
        {"what": "digits: scenes, of a default step", "value": share, "unit": "", "reach": 0.25, "met": share < 0.25}
    ]


def measure() -> dict[str, Any]:
    """Measure all cases."""
    data, rows = source(), scenes()
    with tempfile.TemporaryDirectory() as folder:
        for number, (method, width, reach, steps) in enumerate(CASES):
            place = Path(folder) / str(number)
            place.mkdir()
            rows += case(method, width, reach, steps, data, place)
            print(*(f"{row['what']}: {row['value']:.4g} {row['unit']}" for row in rows[-3:]), sep="\n", file=sys.stderr)
    return {"name": "step", "rows": rows}


if __name__ == "__main__":
    print(json.dumps(measure()))
