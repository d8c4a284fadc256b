"""The map from features to projections, where the objective looks."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from twofold.records import STRICT


@dataclass(frozen=True, config=STRICT)
class Projector:
    """A perceptron with one hidden layer: linear, BatchNorm without affine part, ReLU, linear, both with biases."""

    hidden: Annotated[int, Field(ge=1, le=2**16)] = 512
    """Hidden units."""
    dim: Annotated[int, Field(ge=1, le=2**16)] = 128
    """Dimension d of the projections."""
    kind: Literal["mlp"] = field(default="mlp", kw_only=True)

    def module(self, features: int) -> nn.Module:
        """Build the map for this many features."""
        return nn.Sequential(
            nn.Linear(features, self.hidden),
            nn.BatchNorm1d(self.hidden, affine=False),
            nn.ReLU(inplace=True),
            nn.Linear(self.hidden, self.dim),
        )

    def width(self, features: int) -> int:
        """Say how wide the projections of this many features are."""
        return self.dim


@dataclass(frozen=True, config=STRICT)
class LinearProjector:
    """One linear map without bias."""

    dim: Annotated[int, Field(ge=1, le=2**16)] = 128
    """Dimension d of the projections."""
    kind: Literal["linear"] = field(default="linear", kw_only=True)

    def module(self, features: int) -> nn.Module:
        """Build the map for this many features."""
        return nn.Linear(features, self.dim, bias=False)

    def width(self, features: int) -> int:
        """Say how wide the projections of this many features are."""
        return self.dim


@dataclass(frozen=True, config=STRICT)
class NoProjector:
    """The features are the projections."""

    kind: Literal["none"] = field(default="none", kw_only=True)

    def module(self, features: int) -> nn.Module:
        """Build the identity."""
        return nn.Identity()

    def width(self, features: int) -> int:
        """Say how wide the projections of this many features are."""
        return features


AnyProjector = Annotated[Projector | LinearProjector | NoProjector, Field(discriminator="kind")]
"""Any projector, told apart by its ``kind``."""
