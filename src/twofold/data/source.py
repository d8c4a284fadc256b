"""What every data set looks like to the rest: splits of raw samples, and how views are drawn from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from torch import Generator, Tensor


@dataclass(frozen=True, eq=False)
class Split:
    """Raw samples in a fixed order: uint8 images (n, channels, height, width) or float32 vectors (n, dim).

    ``samples`` may be a memory-mapped array: rows are copied into memory only when they are taken.
    """

    samples: NDArray[np.uint8] | NDArray[np.float32]
    labels: NDArray[np.int64] | None = None
    names: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, rows: Int[Tensor, " batch"] | slice) -> Tensor:
        """Copy these rows into a tensor."""
        index = rows if isinstance(rows, slice) else rows.numpy()
        return torch.from_numpy(np.array(self.samples[index]))

    def subset(self, rows: NDArray[np.int64]) -> "Split":
        """Select these rows, labels and names with them."""
        return Split(
            self.samples[rows],
            None if self.labels is None else self.labels[rows],
            None if self.names is None else [self.names[i] for i in rows],
        )


@runtime_checkable
class ViewMaker(Protocol):
    """Draws views: the augmentation distribution p_aug(. | x) of the papers."""

    def pair(self, samples: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Draw two independent views of every raw sample, ready for a network (float, normalised)."""
        ...

    def plain(self, samples: Tensor) -> Tensor:
        """Prepare raw samples for evaluation: the same range and size as a view, nothing random."""
        ...


@runtime_checkable
class Picturing(Protocol):
    """Shows what a network sees: the makers of views that are images."""

    def picture(self, batch: Float[Tensor, "n channels h w"]) -> UInt8[Tensor, "n h w channels"]:
        """Turn prepared samples back into bytes for the eye."""
        ...


@dataclass(frozen=True, eq=False)
class Source:
    """A data set: what training draws from, and what evaluation embeds.

    ``pool`` has the raw samples that ``views.pair`` takes; it is visited ``visits`` times an epoch.
    ``train``, ``validation`` and ``test`` hold what ``views.plain`` takes; ``validation`` is disjoint from
    ``train``, and ``test`` is looked at once, at the end. ``unseen`` has raw samples of the last, for drawing
    views of them. For most data sets ``pool`` is ``train``'s samples, and ``unseen`` (None) those of ``test``.
    """

    name: str
    pool: Split
    train: Split
    validation: Split
    test: Split | None
    views: ViewMaker
    classes: tuple[str, ...] = ()
    visits: int = 1
    unseen: Split | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample as a network sees it."""
        return tuple(self.views.plain(self.train.take(slice(0, 1))).shape[1:])


def stratified(labels: NDArray[np.int64] | int, shares: Sequence[float], seed: int) -> tuple[NDArray[np.int64], ...]:
    """Split rows at random into parts of these shares, each class alike; ``labels`` may be a bare count."""
    classes = np.zeros(labels, np.int64) if isinstance(labels, int) else labels
    generator = np.random.default_rng(seed)
    bounds = np.cumsum(shares)[:-1]
    parts: list[list[NDArray[np.int64]]] = [[] for _ in shares]
    for label in np.unique(classes):
        rows = generator.permutation(np.flatnonzero(classes == label))
        for part, piece in zip(parts, np.split(rows, np.round(bounds * len(rows)).astype(int)), strict=True):
            part.append(piece)
    return tuple(np.sort(np.concatenate(part)) for part in parts)
