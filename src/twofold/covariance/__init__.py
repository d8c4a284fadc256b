"""Correlation estimators and the eigenspaces of symmetric matrices."""

from twofold.covariance.correlation import MovingCorrelation, correlation
from twofold.covariance.eigen import Eigen, eigen, eigen_alignment

__all__ = ["Eigen", "MovingCorrelation", "correlation", "eigen", "eigen_alignment"]
