"""Predictors that gradients train, and the absence of one."""

from dataclasses import field
from typing import Annotated, Literal

from jaxtyping import Float
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from twofold.predictors.predictor import Predictor
from twofold.records import STRICT


@dataclass(config=STRICT, eq=False)
class NoPredictor(Predictor):
    """The identity: predictions are the projections themselves."""

    kind: Literal["none"] = field(default="none", kw_only=True)

    def build(self, dim: int) -> None:
        """Nothing to make."""

    def predict(self, z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        """Return the projections."""
        return z


@dataclass(config=STRICT, eq=False)
class Linear(Predictor):
    """One matrix: q(z) = W_p z (directpred, Sec. 2)."""

    bias: bool = False
    """Whether a vector is added."""
    kind: Literal["linear"] = field(default="linear", kw_only=True)

    def build(self, dim: int) -> None:
        """Draw W_p as PyTorch does."""
        self.map = nn.Linear(dim, dim, bias=self.bias)

    def predict(self, z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        """Multiply."""
        predicted: Tensor = self.map(z)
        return predicted


@dataclass(config=STRICT, eq=False)
class MLP(Predictor):
    """Two layers, with BatchNorm (without affine part) and ReLU between them: BYOL's predictor."""

    hidden: Annotated[int, Field(ge=1, le=2**16)] = 512
    """Hidden units."""
    kind: Literal["mlp"] = field(default="mlp", kw_only=True)

    def build(self, dim: int) -> None:
        """Draw both layers as PyTorch does."""
        self.layers = nn.Sequential(
            nn.Linear(dim, self.hidden),
            nn.BatchNorm1d(self.hidden, affine=False),
            nn.ReLU(inplace=True),
            nn.Linear(self.hidden, dim),
        )

    def predict(self, z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        """Apply both layers."""
        predicted: Tensor = self.layers(z)
        return predicted
