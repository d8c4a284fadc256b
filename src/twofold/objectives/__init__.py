"""What is minimised: a ``Pair`` of two views' representations in, a ``Loss`` out; one family a file."""

from typing import Annotated

from pydantic import Field

from twofold.objectives.alignment import BYOL
from twofold.objectives.contrastive import InfoNCE

Objective = Annotated[InfoNCE | BYOL, Field(discriminator="kind")]
"""Any member of the room, told apart by its ``kind``."""

__all__ = ["BYOL", "InfoNCE", "Objective"]
