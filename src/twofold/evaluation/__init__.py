"""What a representation is worth: geometry without labels, simple classifiers with them."""

from twofold.evaluation.alignment import alignment, uniformity
from twofold.evaluation.classmean import class_mean_accuracy, class_means
from twofold.evaluation.geometry import accuracy, geometry, spread
from twofold.evaluation.neighbours import knn_accuracy, knn_predict, nearest
from twofold.evaluation.probe import LinearProbe
from twofold.evaluation.spectrum import effective_rank, isotropic_rank, spectrum

__all__ = [
    "LinearProbe",
    "accuracy",
    "alignment",
    "class_mean_accuracy",
    "class_means",
    "effective_rank",
    "geometry",
    "isotropic_rank",
    "knn_accuracy",
    "knn_predict",
    "nearest",
    "spectrum",
    "spread",
    "uniformity",
]
