"""All that is measured of a cloud of embeddings without labels, and all that is measured with them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from twofold.errors import BadInput
from twofold.evaluation.alignment import alignment, uniformity
from twofold.evaluation.classmean import class_mean_accuracy
from twofold.evaluation.finite import finite
from twofold.evaluation.neighbours import knn_accuracy, on_sphere
from twofold.evaluation.probe import LinearProbe
from twofold.evaluation.spectrum import effective_rank, spectrum
from twofold.records import Accuracy, Geometry, Progress, silent

MOST_PAIRED = 10_000
"""Uniformity compares every sample with every other: of more than so many, so many are taken, evenly."""


def spread(points: Float[Tensor, "n dim"]) -> float:
    """Return the variance of the directions, 1 − ‖E f/‖f‖‖² (0 where all are zero and have none).

    It is half the mean of ‖f(x) − f(y)‖² on the sphere, and 1 less the mean cosine, over all pairs of samples.
    """
    return float(on_sphere(points).double().var(dim=0, correction=0).sum())


def geometry(
    points: Float[Tensor, "n dim"],
    first: Float[Tensor, "pairs dim"] | None = None,
    second: Float[Tensor, "pairs dim"] | None = None,
) -> Geometry:
    """Measure a cloud, and the alignment of two views where embeddings of them are given."""
    if len(points) < 2:
        raise BadInput(f"the shape of a cloud shows in at least 2 embeddings, not in {len(points)}")
    eigenvalues = spectrum(finite(points))
    some = points[torch.linspace(0, len(points) - 1, min(len(points), MOST_PAIRED)).long()]
    return Geometry(
        samples=len(points),
        dim=points.shape[1],
        effective_rank=effective_rank(eigenvalues),
        spread=spread(points),
        spectrum=tuple(eigenvalues.tolist()),
        alignment=None if first is None or second is None else alignment(first, second),
        uniformity=uniformity(some),
    )


def accuracy(
    train: Float[Tensor, "n dim"],
    train_labels: Int[Tensor, " n"],
    validation: Float[Tensor, "m dim"],
    validation_labels: Int[Tensor, " m"],
    test: Float[Tensor, "q dim"],
    test_labels: Int[Tensor, " q"],
    progress: Progress = silent,
) -> Accuracy:
    """Measure what simple classifiers find; nothing is chosen by looking at the test samples."""
    probe = LinearProbe.fit(train, train_labels, validation, validation_labels, progress)
    return Accuracy(
        knn=knn_accuracy(train, train_labels, finite(test), test_labels),
        probe=probe.accuracy(test, test_labels),
        class_mean=class_mean_accuracy(train, train_labels, test, test_labels),
    )
