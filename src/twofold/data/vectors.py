"""Vectors as data, and random views of them: the two augmentation models of the linear theory.

Everything random happens to standardised features: each has mean 0 and standard deviation 1 over the training
samples (a constant one is only centred). Below, x is such a sample and Σ^x = E[x xᵀ]; Σ^s = E[x₁ x₁ᵀ] is the
correlation of one view, Σ^d = E[x₁ x₂ᵀ] that between two views of the same sample.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from twofold.data.parts import enough, existing, numbered, three_parts
from twofold.data.source import Source, Split
from twofold.data.vector_files import checked, named, read_vectors
from twofold.errors import BadInput
from twofold.records import STRICT

ROWS_AT_ONCE = 16384


@dataclass(frozen=True, config=STRICT)
class AdditiveViews:
    """Gaussian noise on every feature: x′ = x + noise · n, n ~ N(0, I).

    This is the additive scrambling of dual_networks, App. F.2 (directpred, App. D.2) with Σⁿ = noise² I:
    Σ^s = Σ^x + noise² I and Σ^d = Σ^x.
    """

    noise: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5
    """Standard deviation of the noise, where that of every feature is 1."""
    kind: Literal["additive"] = field(default="additive", kw_only=True)

    def maker(self, mean: Float[Tensor, " dim"], std: Float[Tensor, " dim"]) -> "Additive":
        """Build the maker for features of this mean and standard deviation."""
        return Additive(mean, std, self.noise)


@dataclass(frozen=True, config=STRICT)
class ScramblingViews:
    """The last ``dims`` features are multiplied by a random matrix, the others are kept: x′ = (P^c + U B Uᵀ) x.

    This is the multiplicative scrambling of dual_networks, App. F.2 (directpred, App. D.2): the k = ``dims``
    columns of U are the unit vectors of the scrambled features, P^c = I − U Uᵀ, and every view of every sample
    has its own k × k matrix B of independent N(0, 1). So

        Σ^d = P^c Σ^x P^c  and  Σ^s = P^c Σ^x P^c + tr(Uᵀ Σ^x U) U Uᵀ.

    The papers print Σ^s = Σ^x, which leaves out that E[B M Bᵀ] = tr(M) I.
    """

    dims: Annotated[int, Field(ge=1)] = 1
    """How many features are scrambled: so many of the last ones."""
    kind: Literal["scrambling"] = field(default="scrambling", kw_only=True)

    def maker(self, mean: Float[Tensor, " dim"], std: Float[Tensor, " dim"]) -> "Scrambling":
        """Build the maker for features of this mean and standard deviation."""
        if self.dims >= len(mean):
            raise BadInput(
                f"{self.dims} of {len(mean)} features cannot be scrambled: dims must leave at least one to be kept"
            )
        return Scrambling(mean, std, self.dims)


VectorViews = AdditiveViews | ScramblingViews


class Standardised:
    """Prepares vectors: every feature less its mean, divided by its standard deviation."""

    def __init__(self, mean: Float[Tensor, " dim"], std: Float[Tensor, " dim"]) -> None:
        self.mean, self.std = mean.float(), std.float()

    def plain(self, samples: Float[Tensor, "n dim"]) -> Float32[Tensor, "n dim"]:
        """Standardise the samples."""
        if self.mean.device != samples.device:  # once, not in every step
            self.mean, self.std = self.mean.to(samples.device), self.std.to(samples.device)
        return (samples.float() - self.mean) / self.std


class Additive(Standardised):
    """Adds noise to standardised vectors."""

    def __init__(self, mean: Float[Tensor, " dim"], std: Float[Tensor, " dim"], noise: float) -> None:
        super().__init__(mean, std)
        self.noise = noise

    def pair(
        self, samples: Float[Tensor, "n dim"], generator: Generator
    ) -> tuple[Float32[Tensor, "n dim"], Float32[Tensor, "n dim"]]:
        """Add two draws of noise to every sample."""
        first = self.plain(samples)
        second = first.clone()
        return self._noisy(first, generator), self._noisy(second, generator)

    def _noisy(self, x: Float32[Tensor, "n dim"], generator: Generator) -> Float32[Tensor, "n dim"]:
        return x.add_(torch.randn(x.shape, generator=generator, device=x.device), alpha=self.noise)


class Scrambling(Standardised):
    """Scrambles the last features of standardised vectors."""

    def __init__(self, mean: Float[Tensor, " dim"], std: Float[Tensor, " dim"], dims: int) -> None:
        super().__init__(mean, std)
        self.dims = dims

    def pair(
        self, samples: Float[Tensor, "n dim"], generator: Generator
    ) -> tuple[Float32[Tensor, "n dim"], Float32[Tensor, "n dim"]]:
        """Draw two matrices for every sample.

        Given v = Uᵀx, the entries of B v are independent N(0, ‖v‖²): they are drawn as such, without B.
        """
        first = self.plain(samples)
        second = first.clone()
        length = first[:, -self.dims :].norm(dim=1, keepdim=True)
        return self._scrambled(first, length, generator), self._scrambled(second, length, generator)

    def _scrambled(
        self, x: Float32[Tensor, "n dim"], length: Float32[Tensor, "n 1"], generator: Generator
    ) -> Float32[Tensor, "n dim"]:
        normal = torch.randn(len(x), self.dims, generator=generator, device=x.device)
        x[:, -self.dims :] = length * normal
        return x


def vectors(
    samples: str | Path | NDArray[Any],
    views: VectorViews | None = None,
    labels: Sequence[str] | NDArray[Any] | None = None,
    name: str | None = None,
) -> Source:
    """Open vectors, a file or an array of shape (samples, features), and split them at random.

    ``labels``, one a sample, come before those of the file; they are whole numbers or names of classes.
    """
    whole, classes = _whole(samples, labels)
    where = name or (f"'{samples}'" if isinstance(samples, str | Path) else "the array")
    enough(len(whole), "sample", where)
    train, validation, test = three_parts(whole)
    maker = (views or AdditiveViews()).maker(*feature_statistics(train))
    if name is None:
        name = Path(samples).stem if isinstance(samples, str | Path) else "vectors"
    return Source(name, train, train, validation, test, maker, classes)


def vector_split(path: str | Path) -> Split:
    """Open all vectors of a file, in its order."""
    return _whole(path, None)[0]


def feature_statistics(split: Split) -> tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]]:
    """Return the mean and the standard deviation of every feature; that of a constant one counts as 1."""

    def blocks() -> Iterator[Float[Tensor, "rows dim"]]:
        for start in range(0, len(split), ROWS_AT_ONCE):
            yield split.take(slice(start, start + ROWS_AT_ONCE)).double()

    total = squares = torch.zeros((), dtype=torch.float64)
    for block in blocks():
        total = total + block.sum(dim=0)
    mean = total / len(split)
    for block in blocks():
        squares = squares + (block - mean).square().sum(dim=0)
    std = (squares / len(split)).sqrt()  # of a constant exactly 0: sums of equal float32 do not round in float64
    return mean, torch.where(std >= torch.finfo(torch.float32).tiny, std, 1.0)


def _whole(
    samples: str | Path | NDArray[Any], labels: Sequence[str] | NDArray[Any] | None
) -> tuple[Split, tuple[str, ...]]:
    """Read and check all samples, and number their classes."""
    if isinstance(samples, str | Path):
        path = existing(samples)
        where, (array, found) = f"'{path}'", read_vectors(path)
    else:
        where, (array, found) = "the array", (samples, None)
    array = checked(array, where)
    if labels is not None:
        found = np.asarray(labels)
    if found is None:
        return Split(array), ()
    numbers, classes = numbered(named(found, len(array), where))
    return Split(array, numbers), classes
