"""Alignment losses: the prediction from one view meets the target of the other."""

from dataclasses import field
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from pydantic.dataclasses import dataclass
from torch import Tensor

from twofold.objectives.sphere import unit, widen
from twofold.records import STRICT, Loss, Pair


@dataclass(frozen=True, config=STRICT)
class BYOL:
    """Both directions of BYOL's squared distance (directpred, eq. 1; dual_networks, Sec. 5):

        L = E ‖q(z₁) − t₂‖² + E ‖q(z₂) − t₁‖²,

    with all vectors divided by their norm unless ``normalised`` is off. Normalised, it is 4 − 2 cos − 2 cos: the
    reference implementation's −2 cos − 2 cos up to the constant. The linear theory halves the plain distance.
    """

    normalised: bool = True
    """Compare directions only; off: the plain squared distance of the linear theory."""
    kind: Literal["byol"] = field(default="byol", kw_only=True)

    def __call__(self, pair: Pair) -> Loss:
        """Compare predictions with targets; the target says by itself whether it passes gradients."""
        (predicted_1, predicted_2), (target_1, target_2) = pair.predicted, pair.target
        forth = self._distance(predicted_1, target_2)
        back = self._distance(predicted_2, target_1)
        return Loss(forth + back, {"forth": forth.detach(), "back": back.detach()})

    def _distance(self, predicted: Float[Tensor, "batch dim"], target: Float[Tensor, "batch dim"]) -> Float[Tensor, ""]:
        predicted, target = widen(predicted), widen(target)
        if self.normalised:
            predicted, target = unit(predicted), unit(target)
        return F.mse_loss(predicted, target, reduction="sum") / len(predicted)
