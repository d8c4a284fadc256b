"""What is minimised: a ``Pair`` of two views' representations in, a ``Loss`` out; one family a file."""

from typing import Annotated

from pydantic import Field

from twofold.covariance import (
    alignment,
    contrastive_covariance,
    distance_from_identity,
    generalisation_bound,
    uniformity,
)
from twofold.objectives.alignment import BYOL, RAFT, Align, BYOLPrime, CrossModel
from twofold.objectives.contrastive import (
    MINE,
    NCE,
    Contrastive,
    Family,
    InfoNCE,
    LiftedStructured,
    MarginTriplet,
    ModifiedTriplet,
    NPlusOneTuplet,
    Pairing,
    Quadratic,
    SimpleContrastive,
    SoftTriplet,
    Triplet,
    TripletContrastive,
)
from twofold.objectives.importance import Custom, Direct, Entropy, Implied, Inverse, Regularised, Square, Tsallis
from twofold.objectives.redundancy import BarlowTwins, CorrelationIdentity, Uniformity
from twofold.objectives.weighted import PairWeighted

Objective = Annotated[
    Family
    | PairWeighted
    | BYOL
    | BYOLPrime
    | RAFT
    | Align
    | CrossModel
    | BarlowTwins
    | CorrelationIdentity
    | Uniformity,
    Field(discriminator="kind"),
]
"""Any member of the room, told apart by its ``kind``."""

__all__ = [
    "BYOL",
    "MINE",
    "NCE",
    "RAFT",
    "Align",
    "BYOLPrime",
    "BarlowTwins",
    "Contrastive",
    "CorrelationIdentity",
    "CrossModel",
    "Custom",
    "Direct",
    "Entropy",
    "Implied",
    "InfoNCE",
    "Inverse",
    "LiftedStructured",
    "MarginTriplet",
    "ModifiedTriplet",
    "NPlusOneTuplet",
    "Objective",
    "PairWeighted",
    "Pairing",
    "Quadratic",
    "Regularised",
    "SimpleContrastive",
    "SoftTriplet",
    "Square",
    "Triplet",
    "TripletContrastive",
    "Tsallis",
    "Uniformity",
    "alignment",
    "contrastive_covariance",
    "distance_from_identity",
    "generalisation_bound",
    "uniformity",
]
