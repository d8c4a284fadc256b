"""Data without official splits: divided into train, validation and test, where they lie."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from twofold.data.source import Split, stratified
from twofold.errors import BadInput, nearest

HELD_OUT = 0.1
"""The share of validation, and that of test."""

SPLIT_SEED = 0
LEAST_SAMPLES = 10
LEAST_PART = 2
"""Samples of validation and of test, at least: what is measured of pairs needs two."""


class Selected(Split):
    """Some rows of a split, copied into memory only when they are taken."""

    whole: Split
    rows: NDArray[np.int64]

    def __init__(self, whole: Split, rows: NDArray[np.int64]) -> None:
        labels = None if whole.labels is None else whole.labels[rows]
        names = None if whole.names is None else [whole.names[i] for i in rows]
        vars(self).update(whole=whole, rows=rows, labels=labels, names=names)

    @property
    def samples(self) -> NDArray[np.uint8] | NDArray[np.float32]:
        """Copy all of the rows."""
        return self.whole.samples[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Int[Tensor, " batch"] | slice) -> Tensor:
        """Copy these of the rows into a tensor."""
        index = rows if isinstance(rows, slice) else rows.numpy()
        return self.whole.take(torch.from_numpy(self.rows[index]))

    def subset(self, rows: NDArray[np.int64]) -> Split:
        """Select among the rows."""
        return Selected(self.whole, self.rows[rows])


def three_parts(whole: Split) -> tuple[Split, Split, Split]:
    """Divide at random, always alike, into train (80 %), validation and test (10 % each, at least two samples).

    Each class is divided alike, unless classes are so small that nothing would be held out.
    """
    share = max(HELD_OUT, LEAST_PART / len(whole))
    shares = (1 - 2 * share, share, share)
    parts = stratified(len(whole) if whole.labels is None else whole.labels, shares, SPLIT_SEED)
    if min(map(len, parts)) < LEAST_PART:
        parts = stratified(len(whole), shares, SPLIT_SEED)
    train, validation, test = (Selected(whole, rows) for rows in parts)
    return train, validation, test


def enough(count: int, what: str, where: str) -> None:
    """Refuse what cannot be divided into three parts."""
    if count < LEAST_SAMPLES:
        found = f"{count} {what}" if count == 1 else f"{count} {what}s"
        raise BadInput(f"{where} has {found}: at least {LEAST_SAMPLES} are needed to train and to test")


def numbered(
    names: Sequence[str] | NDArray[np.generic],
) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Number classes in the order of their names; a single class is none, as it tells nothing."""
    classes, labels = np.unique(np.asarray(names), return_inverse=True)
    if len(classes) < 2:
        return None, ()
    return labels.astype(np.int64), tuple(str(name) for name in classes.tolist())


def existing(path: str | Path) -> Path:
    """Return a path that leads somewhere; one that does not is an error that names what is spelt alike."""
    path = Path(path).expanduser()
    try:
        path.stat()
    except FileNotFoundError as error:
        siblings = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        raise BadInput(f"there is no '{path}'{nearest(path.name, siblings)}") from error
    except OSError as error:
        raise BadInput(f"'{path}' cannot be read ({error.strerror})") from error
    return path
