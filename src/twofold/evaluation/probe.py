"""The linear probe: multinomial logistic regression on standardised features."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64, Int
from numpy.typing import NDArray
from torch import Tensor

from twofold.evaluation.finite import finite
from twofold.records import Progress, silent

STRENGTHS = tuple(10.0**power for power in range(1, -7, -1))
"""Every λ that is tried, from strong to weak."""
CHOOSING, FINISHED = 1e-5, 1e-7
"""The largest entry of the gradient while strengths are compared, and in the probe that is returned.

Probabilities are off by about a hundred times as much at the weakest strength, and by less at all others.
"""
STEPS, MEMORY = 1000, 40


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """A classifier argmax_k w_k·(x − mean)/scale + b_k that minimises E[−log softmax] + λ/2 Σ w².

    A feature that varied by less than the rounding of its own numbers has no information: its scale is infinite,
    so that it stays zero. ``classes`` has the label of each row of weights.
    """

    weight: Float64[Tensor, "classes dim"]
    bias: Float64[Tensor, " classes"]
    mean: Float64[Tensor, " dim"]
    scale: Float64[Tensor, " dim"]
    classes: Int[Tensor, " classes"]
    strength: float

    @classmethod
    def fit(
        cls,
        train: Float[Tensor, "n dim"],
        train_labels: Int[Tensor, " n"],
        validation: Float[Tensor, "v dim"],
        validation_labels: Int[Tensor, " v"],
        progress: Progress = silent,
    ) -> "LinearProbe":
        """Fit the training samples at every strength, and keep what classifies the validation samples best.

        Among equals the stronger regularisation wins. Validation samples choose the strength and nothing else: the
        probe is not fitted to them afterwards, so it has seen exactly what the bank of a kNN has.
        """
        mean, scale = standard(finite(train))
        classes, targets = torch.unique(train_labels, return_inverse=True)
        problem = _Problem((train.double() - mean).div_(scale), targets, len(classes))
        weight, bias = mean.new_zeros(len(classes), len(mean)), mean.new_zeros(len(classes))
        best, highest = cls(weight, bias, mean, scale, classes, STRENGTHS[0]), -1.0
        for done, strength in enumerate(STRENGTHS):
            progress("linear probe", done, len(STRENGTHS))
            weight, bias = problem.solve(strength, weight, bias, CHOOSING)
            probe = cls(weight, bias, mean, scale, classes, strength)
            reached = probe.accuracy(validation, validation_labels)
            if reached > highest:
                best, highest = probe, reached
        weight, bias = problem.solve(best.strength, best.weight, best.bias, FINISHED)
        progress("linear probe", len(STRENGTHS), len(STRENGTHS))
        return cls(weight, bias, mean, scale, classes, best.strength)

    def logits(self, points: Float[Tensor, "q dim"]) -> Float64[Tensor, "q classes"]:
        """Return the log-probabilities of the classes, up to a constant of each row."""
        return (points.double() - self.mean).div_(self.scale) @ self.weight.T + self.bias

    def predict(self, points: Float[Tensor, "q dim"]) -> Int[Tensor, " q"]:
        """Return the most probable label of every point."""
        return self.classes[self.logits(points).argmax(dim=1)]

    def accuracy(self, points: Float[Tensor, "q dim"], labels: Int[Tensor, " q"]) -> float:
        """Return the share of points whose label is found."""
        return float((self.predict(points) == labels).double().mean())


def standard(points: Float[Tensor, "n dim"]) -> tuple[Float64[Tensor, " dim"], Float64[Tensor, " dim"]]:
    """Return mean and standard deviation of every feature, infinite for what is constant up to rounding.

    A constant that is rounded this way in one sample and that way in another has a deviation of half an ε of its
    own size, ε that of the points' precision; dividing by it would make noise as large as any signal.
    """
    deviation, mean = torch.std_mean(points.double(), dim=0, correction=0)
    rounding = torch.finfo(points.dtype).eps * torch.hypot(mean, deviation)
    return mean, deviation.where(deviation > rounding, torch.inf)


class _Problem:
    """The regression, in coordinates v = H^{1/2} w in which its curvature is about the same everywhere.

    H is the curvature at equal probabilities, (K − 1)/K² XᵀX/n + λ: L-BFGS needs a third of the steps.
    """

    def __init__(self, features: Float64[Tensor, "n dim"], targets: Int[Tensor, " n"], classes: int) -> None:
        self._features = features
        self._targets = torch.nn.functional.one_hot(targets, classes).double()
        curvature, self._axes = torch.linalg.eigh(features.T @ features / len(features))
        self._curvature = curvature.clamp(min=0) * (classes - 1) / classes**2

    def solve(
        self,
        strength: float,
        weight: Float64[Tensor, "classes dim"],
        bias: Float64[Tensor, " classes"],
        tolerance: float,
    ) -> tuple[Float64[Tensor, "classes dim"], Float64[Tensor, " classes"]]:
        """Minimise from these weights on, until no entry of the gradient is above the tolerance."""
        from scipy.optimize import minimize  # heavy to import

        stretch = (self._curvature + strength).sqrt()[:, None]
        back = self._axes.T / stretch

        def objective(flat: NDArray[Any]) -> tuple[float, NDArray[Any]]:
            found = torch.from_numpy(flat).to(weight).view(len(bias), -1)
            value, slope, slope_of_bias = self.loss(strength, found[:, :-1] @ back, found[:, -1])
            return value, torch.cat((slope @ back.T, slope_of_bias[:, None]), dim=1).flatten().cpu().numpy()

        start = torch.cat((weight @ self._axes * stretch.T, bias[:, None]), dim=1).flatten().cpu().numpy()
        limits = {"gtol": tolerance, "ftol": 0.0, "maxiter": STEPS, "maxfun": 2 * STEPS, "maxcor": MEMORY}
        end = minimize(objective, start, jac=True, method="L-BFGS-B", options=limits).x
        found = torch.from_numpy(end).to(weight).view(len(bias), -1)
        return found[:, :-1] @ back, found[:, -1]

    def loss(
        self, strength: float, weight: Float64[Tensor, "classes dim"], bias: Float64[Tensor, " classes"]
    ) -> tuple[float, Float64[Tensor, "classes dim"], Float64[Tensor, " classes"]]:
        """Return the loss, its gradient by the weights and by the biases."""
        logarithms = (self._features @ weight.T + bias).log_softmax(dim=1)
        value = strength / 2 * weight.square().sum() - (logarithms * self._targets).sum() / len(logarithms)
        errors = logarithms.exp_().sub_(self._targets).div_(len(logarithms))
        return float(value), errors.T @ self._features + strength * weight, errors.sum(dim=0)
