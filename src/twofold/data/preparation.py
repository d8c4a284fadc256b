"""How raw samples are prepared for a network, as plain values: what is needed of the data once training is over."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from twofold.data.digits import Scenes, SceneViews
from twofold.data.source import ViewMaker
from twofold.data.vectors import AdditiveViews, Standardised
from twofold.data.views import Images, ImageViews
from twofold.errors import BadInput
from twofold.records import STRICT


@dataclass(frozen=True, config=STRICT)
class Preparation:
    """The normalisation of one data set, and the shape of its samples as a network sees them."""

    kind: Literal["scenes", "image", "vectors"]
    shape: tuple[Annotated[int, Field(ge=1, le=2**24)], ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def maker(self) -> ViewMaker:
        """Build a maker that prepares samples like the one that this was read from."""
        if self.kind == "scenes":
            return SceneViews(size=self.shape[-1]).maker()
        if self.kind == "vectors":
            return AdditiveViews().maker(torch.tensor(self.mean), torch.tensor(self.std))
        channels, *_, size = self.shape
        return ImageViews(size=size).maker((channels, size, size), self.mean, self.std)


def raw(samples: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Check raw samples for an encoder of samples of this shape: bytes for images, numbers for vectors."""
    images = len(shape) == 3
    fits = samples.ndim == 1 + len(shape) and len(samples) > 0 and samples.shape[1] == shape[0]
    if not fits or (images and samples.dtype != torch.uint8):
        wanted = (
            f"bytes (uint8) of shape (n, {shape[0]}, height, width)" if images else f"numbers of shape (n, {shape[0]})"
        )
        raise BadInput(f"this encoder takes {wanted}, not {samples.dtype} of shape {tuple(samples.shape)}")
    if images:
        return samples
    vectors = samples.float()
    if not vectors.isfinite().all():
        raise BadInput("the samples have entries that are not finite numbers")
    return vectors


def preparation(views: ViewMaker, shape: tuple[int, ...]) -> Preparation | None:
    """Read how a maker prepares samples; None for one that is not of this room."""
    if isinstance(views, Scenes):
        return Preparation("scenes", shape)
    if isinstance(views, Standardised):
        return Preparation("vectors", shape, tuple(views.mean.tolist()), tuple(views.std.tolist()))
    if isinstance(views, Images):
        return Preparation("image", shape, views.mean, views.std)
    return None
