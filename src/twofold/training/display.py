"""A run as a person sees it: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import TYPE_CHECKING, Any

from twofold.records import Row
from twofold.training.loop import Observer

if TYPE_CHECKING:
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 10.0


def usual_observer() -> Observer:
    """Draw bars where standard error is a terminal, write lines where it is not."""
    return Bars() if sys.stderr.isatty() else Lines()


def live_words(row: Row) -> str:
    """Say the live numbers of a row."""
    parts = []
    if "knn" in row:
        parts.append(f"kNN {row['knn']:.1%}")
    if "effective_rank" in row:
        parts.append(f"effective rank {row['effective_rank']:.1f}")
    return ", ".join(parts)


class Lines:
    """Plain lines on standard error."""

    def __init__(self) -> None:
        self._spoke = time.monotonic()

    def say(self, sentence: str) -> None:
        """Write the sentence."""
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201

    def advance(self, step: int, steps: int, row: Row) -> None:
        """Write every live look, and the loss now and then."""
        words = live_words(row)
        if words or self._due():
            self.say(f"step {step}/{steps}: " + (words or f"loss {row['loss']:.4f}"))

    def progress(self, what: str, done: int, total: int) -> None:
        """Write what takes long."""
        if self._due():
            self.say(f"{what}: {done}/{total}")

    def close(self) -> None:
        """Nothing was opened."""

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self._spoke < SECONDS_BETWEEN_LINES:
            return False
        self._spoke = now
        return True


class Bars:
    """One bar for the steps with speed, loss, time left and the live numbers; others for what else takes time."""

    def __init__(self) -> None:
        from rich.console import Console  # heavy to import
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[words]}"),
            console=Console(stderr=True),
        )
        self._bars.start()
        self._tasks: dict[str, TaskID] = {}
        self._started: tuple[float, int] | None = None
        self._live = ""

    def say(self, sentence: str) -> None:
        """Write the sentence above the bars."""
        self._bars.console.print(sentence, highlight=False, markup=False)

    def advance(self, step: int, steps: int, row: Row) -> None:
        """Move the bar of the steps."""
        self._live = live_words(row) or self._live
        if self._started is None:
            self._started = (time.monotonic(), step)
        words = self._live
        if "loss" in row:
            words = f"loss {row['loss']:.3f}  {self._speed(step):.1f} steps/s  {self._live}"
        self._move("training", step, steps, words)

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar of something else, and take it away when it is full."""
        self._move(what, done, total, "")
        if done >= total:
            self._bars.remove_task(self._tasks.pop(what))

    def close(self) -> None:
        """Give the terminal back."""
        self._bars.stop()

    def _speed(self, step: int) -> float:
        assert self._started is not None
        since, first = self._started
        return (step - first) / max(time.monotonic() - since, 1e-9)

    def _move(self, what: str, done: int, total: int, words: str) -> None:
        fields: dict[str, Any] = {"completed": done, "total": total, "words": words}
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, **fields)
        self._bars.update(self._tasks[what], **fields)
