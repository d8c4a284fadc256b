"""Second moments of a network's outputs: correlations, eigenspaces, and all that is summed over pairs."""

from twofold.covariance.contrastive import contrastive_covariance
from twofold.covariance.correlation import (
    MovingCorrelation,
    correlation,
    cross_correlation,
    distance_from_identity,
    generalisation_bound,
)
from twofold.covariance.eigen import Eigen, eigen, eigen_alignment
from twofold.covariance.sphere import alignment, uniformity

__all__ = [
    "Eigen",
    "MovingCorrelation",
    "alignment",
    "contrastive_covariance",
    "correlation",
    "cross_correlation",
    "distance_from_identity",
    "eigen",
    "eigen_alignment",
    "generalisation_bound",
    "uniformity",
]
