"""How raw samples are prepared for a network, as plain values: what is needed of the data once training is over."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from twofold.data.digits import Scenes, SceneViews
from twofold.data.source import ViewMaker
from twofold.data.vectors import AdditiveViews, Standardised
from twofold.data.views import Images, ImageViews
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


def preparation(views: ViewMaker, shape: tuple[int, ...]) -> Preparation | None:
    """Read how a maker prepares samples; None for one that is not of this room."""
    if isinstance(views, Scenes):
        return Preparation("scenes", shape)
    if isinstance(views, Standardised):
        return Preparation("vectors", shape, tuple(views.mean.tolist()), tuple(views.std.tolist()))
    if isinstance(views, Images):
        return Preparation("image", shape, views.mean, views.std)
    return None
