"""What is trained: the dual network and its objective, and the encoder, views and sizes that a run's settings mean."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor, nn

from twofold.networks import Dual, encoder, feature_dim
from twofold.records import Loss, Pair
from twofold.training.randomness import NETWORK, derived, seeded
from twofold.training.settings import DEFAULT_EPOCHS, TrainSettings


class Student(nn.Module):
    """Two views in, the loss and its named parts out: all that a step computes before the backward pass."""

    dual: Dual

    def __init__(self, dual: Dual, objective: Callable[[Pair], Loss]) -> None:
        super().__init__()
        self.dual = dual
        self.objective = objective

    def forward(self, first: Tensor, second: Tensor) -> dict[str, Tensor]:
        """Compare two views of the same samples."""
        loss = self.objective(self.dual(first, second))
        return {"loss": loss.value, **loss.parts}


@dataclass(frozen=True)
class Plan:
    """What a run's settings mean for the data it was given: nothing is left to choose."""

    settings: TrainSettings
    shape: tuple[int, ...]
    custom: nn.Module | None = None

    def encoder(self) -> nn.Module:
        """Build the encoder as it is before training; the same each time."""
        if self.custom is not None:
            return copy.deepcopy(self.custom)
        chosen = self.settings
        with seeded(derived(chosen.seed, NETWORK)):
            return encoder(chosen.encoder, self.shape, chosen.width, chosen.stem)

    def student(self) -> Student:
        """Build all that is trained, as it is before training; the same each time."""
        chosen = self.settings
        trunk = self.encoder()
        features = feature_dim(trunk, self.shape)
        with seeded(derived(chosen.seed, NETWORK, 1)):
            predictor = chosen.predictor.sized(chosen.projector.width(features))
            dual = Dual(trunk, features, predictor, chosen.target, chosen.projector)
        return Student(dual, chosen.objective)


def plan(chosen: TrainSettings, shape: tuple[int, ...], custom: nn.Module | None = None) -> Plan:
    """Settle what was left to us, so that the settings on disk mean the same when a default changes."""
    if chosen.encoder == "auto":
        chosen = replace(chosen, encoder="convnet" if len(shape) == 3 else "mlp")
    if chosen.steps is None and chosen.epochs is None:
        chosen = replace(chosen, epochs=DEFAULT_EPOCHS)
    chosen = replace(chosen, lr=chosen.highest_lr)
    return Plan(chosen, shape, custom)
