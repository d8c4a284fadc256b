"""The loop around the steps: the log, the live looks, checkpoints, and every way to stop."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol, runtime_checkable

import torch

from twofold.errors import Diverged, Interrupted
from twofold.records import Row
from twofold.training import checkpoint
from twofold.training.folder import RunFolder
from twofold.training.measure import Watch
from twofold.training.trainer import Taken, Trainer

FLUSH_SECONDS = 0.5
ROWS_AT_ONCE = 256
MOST_LOOKS = 20
FEWEST_STEPS_BETWEEN_LOOKS = 50


@runtime_checkable
class Observer(Protocol):
    """Who is told how a run goes; the command line draws it."""

    def say(self, sentence: str) -> None:
        """Something a person may want to know once."""
        ...

    def advance(self, step: int, steps: int, row: Row) -> None:
        """The run is at this step; the row has the newest numbers."""
        ...

    def progress(self, what: str, done: int, total: int) -> None:
        """Something besides steps is being done."""
        ...

    def close(self) -> None:
        """There is no more to tell."""
        ...


class Quiet:
    """Tells nobody."""

    def say(self, sentence: str) -> None:
        """Be silent."""

    def advance(self, step: int, steps: int, row: Row) -> None:
        """Be silent."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Be silent."""

    def close(self) -> None:
        """Be silent."""


class Loop:
    """Drives a trainer to its last step, and keeps its folder true."""

    def __init__(self, trainer: Trainer, folder: RunFolder, observer: Observer) -> None:
        chosen = trainer.plan.settings
        self._trainer, self._folder, self._observer = trainer, folder, observer
        self._watch = Watch(trainer.source)
        self._watch_every = chosen.watch_every or max(FEWEST_STEPS_BETWEEN_LOOKS, trainer.steps // MOST_LOOKS)
        self._checkpoint_seconds = chosen.checkpoint_seconds
        self._pending: list[Taken] = []
        self._best = max((row["knn"] for row in folder.metrics() if "knn" in row), default=-math.inf)
        self._flushed = self._saved = time.monotonic()

    def run(self) -> None:
        """Train to the end; the last thing on disk is a checkpoint of the last step."""
        trainer = self._trainer
        with _asked_to_stop() as asked:
            while trainer.step < trainer.steps:
                self.once()
                if asked.is_set() and trainer.step < trainer.steps:
                    self._stop()
            if (
                not checkpoint.exists(self._folder.checkpoints)
                or checkpoint.step_of(self._folder.checkpoints) < trainer.step
            ):
                self.save("last")

    def once(self) -> None:
        """Take one step, and do what is due after it."""
        self._pending.append(self._trainer.advance())
        step, now = self._trainer.step, time.monotonic()
        if now - self._flushed >= FLUSH_SECONDS or len(self._pending) >= ROWS_AT_ONCE:
            self._flush()
        if step % self._watch_every == 0 or step == self._trainer.steps:
            self.look()
        if now - self._saved >= self._checkpoint_seconds:
            self.save("last")

    def _flush(self) -> None:
        """Bring the losses from the device, all at once, and stop where one is not a number."""
        rows = _numbers(self._pending)
        self._pending = []
        self._flushed = time.monotonic()
        if not rows:
            return
        self._folder.append_metrics(rows)
        for row in rows:
            if not math.isfinite(row["loss"]):
                self._diverge(f"the loss is {row['loss']} at step {row['step']}")
        self._observer.advance(self._trainer.step, self._trainer.steps, rows[-1])

    def look(self) -> None:
        """Measure kNN and effective rank, and keep the best weights by kNN where there are labels."""
        self._flush()
        self._refuse_broken_weights()
        trainer = self._trainer
        seen = self._watch(trainer.student.dual.online, trainer.arithmetic)
        self._folder.append_metrics([{"step": trainer.step, **seen}])
        self._observer.advance(trainer.step, trainer.steps, seen)
        if seen.get("knn", -math.inf) > self._best:
            self._best = seen["knn"]
            self.save("last", "best")

    def save(self, *names: checkpoint.Which) -> None:
        """Write a checkpoint, but never one of weights that are not numbers."""
        self._flush()
        self._refuse_broken_weights()
        trainer = self._trainer
        checkpoint.save(self._folder.checkpoints, trainer.weights(), trainer.state(), trainer.step, names)
        self._folder.set_status("stopped", trainer.step, trainer.steps)
        self._saved = time.monotonic()

    def _refuse_broken_weights(self) -> None:
        if not self._trainer.finite():
            self._diverge(f"a weight is no longer a number after step {self._trainer.step}")

    def _diverge(self, what: str) -> None:
        trainer, place = self._trainer, self._folder.checkpoints
        kept = checkpoint.step_of(place) if checkpoint.exists(place) else None
        self._folder.set_status("diverged", trainer.step, trainer.steps)
        raise Diverged(
            f"{what} with a learning rate of {trainer.plan.settings.highest_lr:g}; "
            + ("no checkpoint was made before" if kept is None else f"the checkpoint of step {kept} is kept")
            + "; a smaller --lr or --clip 1 may help"
        )

    def _stop(self) -> None:
        self.save("last")
        trainer = self._trainer
        raise Interrupted(f"stopped at step {trainer.step} of {trainer.steps}; {self._folder.how_to_go_on()}")


def _numbers(pending: list[Taken]) -> list[dict[str, float | int]]:
    """Turn what steps returned into rows of the log; one wait for the device for all of them."""
    if not pending:
        return []
    names = list(pending[0].parts)
    table = torch.stack([torch.stack([taken.parts[name] for name in names]) for taken in pending])
    return [
        {"step": taken.step, **dict(zip(names, numbers, strict=True)), "lr": taken.lr}
        for taken, numbers in zip(pending, table.tolist(), strict=True)
    ]


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C or SIGTERM into a wish; a second one interrupts at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before: dict[signal.Signals, Any] = {}

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    for wanted in (signal.SIGINT, signal.SIGTERM):
        before[wanted] = signal.signal(wanted, ask)
    try:
        yield asked
    finally:
        for wanted, handler in before.items():
            signal.signal(wanted, handler)
