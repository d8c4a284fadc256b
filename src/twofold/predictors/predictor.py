"""What all predictors share: they are modules whose settings come first and whose dimension comes later."""

import copy
from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from twofold.errors import BadInput


class Predictor(nn.Module, ABC):
    """The map q from online projections to predictions.

    A predictor is constructed from its settings alone, so that a method can hold it; ``sized(dim)`` returns a
    fresh one with weights for projections of this dimension. Used without that, it takes the dimension of the
    first projections that it meets (do it once before an optimiser looks for parameters).
    """

    dim: int | None = None

    def __post_init__(self) -> None:
        """Become a module, once the settings are checked."""
        super().__init__()

    def sized(self, dim: int) -> "Predictor":
        """Copy the settings, with new weights for this dimension drawn from torch's global generator."""
        fresh = copy.deepcopy(self)
        fresh._modules.clear()
        fresh.dim = dim
        fresh.build(dim)
        return fresh

    @abstractmethod
    def build(self, dim: int) -> None:
        """Make the weights."""

    @abstractmethod
    def predict(self, z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        """Map projections of the right dimension."""

    def forward(self, z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        """Map projections to predictions of the other view's target."""
        if self.dim is None:
            self.dim = z.shape[1]
            self.build(self.dim)
            self.to(z.device)
        if z.shape[1] != self.dim:
            raise BadInput(f"this predictor was made for dimension {self.dim}, and got projections of {z.shape[1]}")
        return self.predict(z)
