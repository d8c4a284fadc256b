"""What a claim is: a statement of a paper as a program, with a control that the same program must refute."""

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float64
from torch import Tensor

Kind = Literal["exact", "bound", "dynamic"]


class Draw:
    """Fresh random instances in float64, the same again for the same seed."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Float64[Tensor, "..."]:
        """Draw independent standard normals."""
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64)

    def integer(self, least: int, most: int) -> int:
        """Draw a whole number, both ends included."""
        return int(torch.randint(least, most + 1, (), generator=self.generator))

    def between(self, least: float, most: float) -> float:
        """Draw a number."""
        return least + (most - least) * float(torch.rand((), generator=self.generator, dtype=torch.float64))


@dataclass(frozen=True)
class Claim:
    """A statement, and how far from it the library is.

    ``measure(draw, wrong)`` returns the residual: of an exact claim the relative difference of both sides, of a bound
    by how much it is violated at worst, of a dynamic one the distance from what is stated. With ``wrong`` it measures
    the control. The claim holds where the residual is within the tolerance, which comes from arithmetic alone.
    """

    name: str
    paper: str
    place: str
    statement: str
    kind: Kind
    tolerance: float
    control: str
    measure: Callable[[Draw, bool], float]

    @property
    def id(self) -> str:
        """Name the claim among those of all papers."""
        return f"{self.paper}/{self.name}"


@dataclass(frozen=True)
class Outcome:
    """What came out of a claim; it passes where it holds and its control is refuted."""

    id: str
    paper: str
    place: str
    statement: str
    kind: Kind
    residual: float
    tolerance: float
    holds: bool
    control: str
    control_residual: float
    control_refuted: bool
    seconds: float

    @property
    def passes(self) -> bool:
        """Tell whether the claim can be believed."""
        return self.holds and self.control_refuted


def verify(claim: Claim, seed: int = 0) -> Outcome:
    """Measure a claim and its control on the same random instances."""
    start = time.perf_counter()
    own_seed = zlib.crc32(claim.id.encode()) ^ seed
    residual, wrong = (claim.measure(Draw(own_seed), control) for control in (False, True))
    return Outcome(
        id=claim.id,
        paper=claim.paper,
        place=claim.place,
        statement=claim.statement,
        kind=claim.kind,
        residual=residual,
        tolerance=claim.tolerance,
        holds=residual <= claim.tolerance,
        control=claim.control,
        control_residual=wrong,
        control_refuted=wrong > claim.tolerance,
        seconds=time.perf_counter() - start,
    )
