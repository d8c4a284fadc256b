"""What an encoder is worth: embeddings of every split, and all that is measured of them."""

import copy
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from twofold.data import Picturing, Source, Split, ViewMaker
from twofold.doctor import verdict
from twofold.evaluation import (
    accuracy,
    class_mean_accuracy,
    effective_rank,
    geometry,
    knn_accuracy,
    nearest,
    spectrum,
)
from twofold.networks import Branch
from twofold.records import Accuracy, Evaluation, Gallery, Progress, silent
from twofold.training.arithmetic import Arithmetic
from twofold.training.randomness import VIEWS, derived

BATCH = 512
WATCHED = 1024
"""Samples a live look is taken at, as many again to compare with."""
RAW_BYTES = 2**31
ALIGNED = 2048
SHOWN, NEIGHBOURS, VIEWS_SHOWN = 8, 8, 8
EXACT = Arithmetic()


class Embeddings(NamedTuple):
    """Features and projections of the same samples."""

    features: Float[Tensor, "n features"]
    projections: Float[Tensor, "n dim"]


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Hold a module in evaluation mode, and give every part its mode back."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


@torch.no_grad()
def project(branch: Branch, batch: Tensor, arithmetic: Arithmetic = EXACT) -> Embeddings:
    """Embed one batch that is ready for the network."""
    device = next((weight.device for weight in branch.parameters()), torch.device("cpu"))
    with evaluating(branch), arithmetic.autocast(device):
        features = branch.encoder(arithmetic.laid_out(batch.to(device)))
        projections = branch.projector(features)
    return Embeddings(features.float().cpu(), projections.float().cpu())


def project_all(branch: Branch, ready: Tensor, arithmetic: Arithmetic = EXACT) -> Embeddings:
    """Embed what is ready for the network, a batch at a time."""
    batches = (ready[start : start + BATCH] for start in range(0, len(ready), BATCH))
    return _joined(project(branch, batch, arithmetic) for batch in batches)


def _joined(batches: Iterable[Embeddings]) -> Embeddings:
    features, projections = zip(*batches, strict=True)
    return Embeddings(torch.cat(features), torch.cat(projections))


def embed(
    branch: Branch,
    split: Split,
    views: ViewMaker,
    arithmetic: Arithmetic = EXACT,
    progress: Progress = silent,
    what: str = "embedding",
) -> Embeddings:
    """Embed a split batch by batch, in its order."""
    found = []
    for start in range(0, len(split), BATCH):
        progress(what, start, len(split))
        found.append(project(branch, views.plain(split.take(slice(start, start + BATCH))), arithmetic))
    progress(what, len(split), len(split))
    return _joined(found)


def labels_of(split: Split) -> Int[Tensor, " n"] | None:
    """Labels as a tensor."""
    return None if split.labels is None else torch.from_numpy(split.labels)


def _some(split: Split, most: int) -> Split:
    """Choose at most this many samples, evenly."""
    if len(split) <= most:
        return split
    return split.subset(np.linspace(0, len(split) - 1, most).astype(np.int64))


class Watch:
    """A quick look while training goes on: kNN from some training samples to some validation samples, and rank."""

    def __init__(self, source: Source) -> None:
        self._views = source.views
        self._bank, self._queries = _some(source.train, WATCHED), _some(source.validation, WATCHED)

    def __call__(self, branch: Branch, arithmetic: Arithmetic) -> dict[str, float | int]:
        """Look at the online network as it is now."""
        queries = embed(branch, self._queries, self._views, arithmetic)
        seen: dict[str, float | int] = {"effective_rank": effective_rank(spectrum(queries.projections))}
        labels, bank_labels = labels_of(self._queries), labels_of(self._bank)
        if labels is not None and bank_labels is not None:
            bank = embed(branch, self._bank, self._views, arithmetic)
            seen["knn"] = knn_accuracy(bank.features, bank_labels, queries.features, labels)
        return seen


def evaluate(
    branch: Branch,
    untrained: nn.Module,
    source: Source,
    step: int,
    arithmetic: Arithmetic = EXACT,
    progress: Progress = silent,
) -> tuple[Evaluation, Gallery | None]:
    """Measure an encoder on held-out data, beside raw samples and the encoder as it was before training.

    The regularisation of the linear probe is chosen on the validation split; the test split is used here alone.
    Data without a test split are measured on the validation split.
    """
    held_out = source.test or source.validation
    branch = copy.deepcopy(branch)
    parts = {"train": source.train, "validation": source.validation, "test": held_out}
    embedded = {
        name: embed(branch, split, source.views, arithmetic, progress, f"embedding the {name} split")
        for name, split in parts.items()
    }
    first, second = _aligned(branch, source, arithmetic)
    features = geometry(embedded["test"].features, first.features, second.features)
    projections = geometry(embedded["test"].projections, first.projections, second.projections)
    labels = labels_of(held_out)
    counts = None if labels is None else torch.bincount(labels)
    evaluation = Evaluation(
        data=source.name,
        split="test" if source.test is not None else "validation",
        step=step,
        samples=len(held_out),
        features=features,
        projections=projections,
        verdict=verdict(features, projections),
        accuracy=_accuracy(parts, {name: found.features for name, found in embedded.items()}, progress),
        baselines=_baselines(untrained, source, parts, progress),
        chance=None if counts is None else (counts.max() / counts.sum()).item(),
        classes=None if counts is None else int((counts > 0).sum()),
    )
    return evaluation, _gallery(source, held_out, embedded["train"].features, embedded["test"].features)


def _aligned(branch: Branch, source: Source, arithmetic: Arithmetic) -> tuple[Embeddings, Embeddings]:
    """Embed two views of some held-out samples."""
    samples = _some(source.unseen or source.test or source.validation, ALIGNED).take(slice(None))
    first, second = source.views.pair(samples, Generator().manual_seed(derived(0, VIEWS)))
    return project_all(branch, first, arithmetic), project_all(branch, second, arithmetic)


def _accuracy(parts: dict[str, Split], points: dict[str, Tensor], progress: Progress) -> Accuracy | None:
    labels = {name: labels_of(split) for name, split in parts.items()}
    train, validation, test = labels["train"], labels["validation"], labels["test"]
    if train is None or validation is None or test is None:
        return None
    return accuracy(points["train"], train, points["validation"], validation, points["test"], test, progress)


def _baselines(
    untrained: nn.Module, source: Source, parts: dict[str, Split], progress: Progress
) -> dict[str, Accuracy]:
    """Measure what needs no training: raw samples, and the encoder before it learned anything."""
    if any(split.labels is None for split in parts.values()):
        return {}
    some = _affordable(parts, source.shape)
    blank = Branch(untrained, nn.Identity())
    raw = Branch(nn.Flatten(), nn.Identity())
    found = {}
    for name, branch in (("raw", raw), ("untrained", blank)):
        bank, queries = (
            embed(branch, some[part], source.views, EXACT, progress, f"{name} {part} split").features
            for part in ("train", "test")
        )
        found[name] = _plain_accuracy(bank, labels_of(some["train"]), queries, labels_of(some["test"]))
    return found


def _affordable(parts: dict[str, Split], shape: tuple[int, ...]) -> dict[str, Split]:
    """Thin out a training split whose raw samples would fill the memory."""
    most = max(1000, RAW_BYTES // (4 * math.prod(shape)))
    return {**parts, "train": _some(parts["train"], most)}


def _plain_accuracy(bank: Tensor, bank_labels: Tensor | None, queries: Tensor, labels: Tensor | None) -> Accuracy:
    assert bank_labels is not None
    assert labels is not None
    return Accuracy(
        knn=knn_accuracy(bank, bank_labels, queries, labels),
        class_mean=class_mean_accuracy(bank, bank_labels, queries, labels),
    )


def _gallery(source: Source, held_out: Split, bank: Tensor, queries: Tensor) -> Gallery | None:
    """Draw some views, and some held-out samples with the training samples nearest to them."""
    views = maker = source.views
    if not isinstance(maker, Picturing):
        return None
    rows = torch.linspace(0, len(held_out) - 1, min(SHOWN, len(held_out))).long()
    similarities, neighbours = nearest(bank, queries[rows], NEIGHBOURS)
    some = _some(source.pool, VIEWS_SHOWN).take(slice(None))
    pair = views.pair(some, Generator().manual_seed(derived(1, VIEWS)))

    def pictures(split: Split, wanted: Tensor) -> NDArray[np.uint8]:
        drawn: NDArray[np.uint8] = maker.picture(views.plain(split.take(wanted))).numpy()
        return drawn

    def names(split: Split, wanted: Tensor) -> tuple[str, ...]:
        if split.labels is None:
            return ()
        found = split.labels[wanted.numpy()]
        return tuple(source.classes[label] if source.classes else str(label) for label in found)

    shown = pictures(source.train, neighbours.flatten())
    return Gallery(
        views=torch.stack([maker.picture(view) for view in pair], dim=1).numpy(),
        queries=pictures(held_out, rows),
        neighbours=shown.reshape(len(rows), -1, *shown.shape[1:]),
        similarities=similarities.numpy(),
        query_labels=names(held_out, rows),
        neighbour_labels=tuple(names(source.train, row) for row in neighbours)
        if source.train.labels is not None
        else (),
    )
