"""Pair-weighted contrastive learning, α-CL (alpha_cl, Def. 1)."""

from dataclasses import field
from typing import Literal

import torch
from pydantic.dataclasses import dataclass

from twofold.covariance.pairwise import Other, Own, Rule, Terms
from twofold.objectives.contrastive import Pairing
from twofold.objectives.importance import Direct, Importance
from twofold.records import STRICT


@dataclass(frozen=True, config=STRICT)
class PairWeighted(Pairing):
    """Ascend the energy E_α = tr C_α[z, z] with α = α(z) held fixed (alpha_cl, Def. 1).

    The loss is −E_α/2 = Σ αᵢⱼ (dᵢ² − dᵢⱼ²) (alpha_cl, eq. 20), divided by the number of anchors: with the α of a
    contrastive loss (eq. 4) its gradient is that of the contrastive loss (Thm 1).
    """

    importance: Importance = Direct()
    """Where α comes from."""
    through_importance: bool = False
    """Whether gradients also pass through α, an ablation (alpha_cl, Table 1)."""
    kind: Literal["pair-weighted"] = field(default="pair-weighted", kw_only=True)

    def rule(self) -> Rule:
        """Weigh the differences of a row."""
        return self._through if self.through_importance else self._fixed

    def _fixed(self, own: Own, other: Other) -> Terms:
        struck = other == torch.inf
        alpha = self.importance(own, other).masked_fill(struck, 0.0)
        differences = torch.sub(own[:, None], other.masked_fill(struck, 0.0))
        return Terms((alpha * differences).sum(dim=1), alpha.sum(dim=1), alpha)

    def _through(self, own: Own, other: Other) -> Terms:
        with torch.enable_grad():
            own, other = own.detach().requires_grad_(), other.detach().requires_grad_()
            loss = self._fixed(own, other).loss
            pull, towards = torch.autograd.grad(loss.sum(), (own, other))
        return Terms(loss.detach(), pull, -towards)
