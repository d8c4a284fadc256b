"""The extra map on the online side: a ``torch.nn.Module`` from projections to predictions."""

from typing import Annotated

from pydantic import Field

from twofold.predictors.predictor import Predictor
from twofold.predictors.trained import MLP, Linear, NoPredictor

AnyPredictor = Annotated[NoPredictor | Linear | MLP, Field(discriminator="kind")]
"""Any member of the room, told apart by its ``kind``."""

__all__ = ["MLP", "AnyPredictor", "Linear", "NoPredictor", "Predictor"]
