"""What happens to one view of an image, and the random choices that it leaves open."""

import math
from functools import cache
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Bool, Float
from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from twofold.errors import BadInput
from twofold.records import STRICT

ATTEMPTS = 10
"""Crops drawn for a view until one fits into the image, as in the usual random resized crop."""


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    least, most = bounds
    if least > most:
        raise BadInput(f"the least value comes first: {most:g} {least:g} instead of {least:g} {most:g}")
    return bounds


Probability = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Positive = Annotated[float, Field(gt=0, le=100)]


@dataclass(frozen=True, config=STRICT)
class Augmentation:
    """How one view of an image is drawn; what is not said here does not happen to it."""

    crop: Annotated[tuple[Share, Share], AfterValidator(_ordered)] = (1.0, 1.0)
    """Least and greatest area of the crop, as a share of the image's."""
    ratio: Annotated[tuple[Positive, Positive], AfterValidator(_ordered)] = (3 / 4, 4 / 3)
    """Least and greatest ratio of the crop's width to its height."""
    flip: Probability = 0.0
    """Probability that left and right change places."""
    jitter: Probability = 0.0
    """Probability that brightness, contrast, saturation and hue are jittered."""
    brightness: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Brightness is multiplied by a factor of at most this above or below 1."""
    contrast: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Contrast is multiplied by a factor of at most this above or below 1."""
    saturation: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Saturation is multiplied by a factor of at most this above or below 1."""
    hue: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Hue is shifted by at most this, to either side, in turns of the colour circle."""
    greyscale: Probability = 0.0
    """Probability that all colour is taken away."""
    blur: Probability = 0.0
    """Probability of a Gaussian blur; its kernel is a tenth as wide as the view."""
    blur_sigma: Annotated[tuple[Positive, Positive], AfterValidator(_ordered)] = (0.1, 2.0)
    """Least and greatest standard deviation of the blur in pixels."""
    solarise: Probability = 0.0
    """Probability that the colours brighter than the middle of their range are inverted."""

    def bounds(self) -> dict[str, tuple[float, float]]:
        """Return the bounds of every number that is drawn; an event happens when its number is below 0."""
        return {
            "area": self.crop,
            "log_ratio": (math.log(self.ratio[0]), math.log(self.ratio[1])),
            "x": (-1.0, 1.0),
            "y": (-1.0, 1.0),
            "flip": _event(self.flip),
            "jitter": _event(self.jitter),
            "brightness": (1 - self.brightness, 1 + self.brightness),
            "contrast": (1 - self.contrast, 1 + self.contrast),
            "saturation": (1 - self.saturation, 1 + self.saturation),
            "hue": (-self.hue, self.hue),
            "greyscale": _event(self.greyscale),
            "blur": _event(self.blur),
            "sigma": self.blur_sigma,
            "solarise": _event(self.solarise),
        }


def _event(probability: float) -> tuple[float, float]:
    return (-probability, 1 - probability)


class Choices(NamedTuple):
    """All that chance decides about the views of a batch: a row for each view, a column for each image.

    The crop's centre (``x``, ``y``) is in [-1, 1] from edge to edge of the image, its sides are shares of the
    image's, and a width below zero means that left and right change places. Without jitter its factors are 1
    and the shift of hue (in turns) is 0. Greyscale is a saturation of 0, and no blur a sigma of 0.
    """

    x: Float[Tensor, "views n"]
    y: Float[Tensor, "views n"]
    width: Float[Tensor, "views n"]
    height: Float[Tensor, "views n"]
    brightness: Float[Tensor, "views n"]
    contrast: Float[Tensor, "views n"]
    saturation: Float[Tensor, "views n"]
    hue: Float[Tensor, "views n"]
    sigma: Float[Tensor, "views n"]
    solarise: Bool[Tensor, "views n"]


def choose(views: tuple[Augmentation, ...], n: int, aspect: float, generator: Generator) -> Choices:
    """Draw views of n images whose width is ``aspect`` times their height, in one call of the generator."""
    low, high = _bounds(views, generator.device)
    uniform = torch.rand(len(low), len(views), n, generator=generator, device=generator.device)
    parts = torch.split(uniform.mul_(high - low).add_(low), list(_COUNTS.values()))
    drawn = dict(zip(_COUNTS, parts, strict=True))
    ratio = torch.clamp(torch.full_like(low[0], math.log(aspect)), low[ATTEMPTS], high[ATTEMPTS])
    width, height = _sides(drawn.pop("area"), drawn.pop("log_ratio"), ratio, math.log(aspect))
    one = {name: part[0] for name, part in drawn.items()}
    jittered = one["jitter"] < 0
    saturation = torch.where(jittered, one["saturation"], 1.0)
    return Choices(
        x=one["x"] * (1 - width),
        y=one["y"] * (1 - height),
        width=torch.where(one["flip"] < 0, -width, width),
        height=height,
        brightness=torch.where(jittered, one["brightness"], 1.0),
        contrast=torch.where(jittered, one["contrast"], 1.0),
        saturation=torch.where(one["greyscale"] < 0, 0.0, saturation),
        hue=torch.where(jittered, one["hue"], 0.0),
        sigma=torch.where(one["blur"] < 0, one["sigma"], 0.0),
        solarise=one["solarise"] < 0,
    )


_COUNTS = {name: ATTEMPTS if name in ("area", "log_ratio") else 1 for name in Augmentation().bounds()}
"""How many of each number are drawn for a view, in this order."""


@cache
def _bounds(
    views: tuple[Augmentation, ...], device: torch.device
) -> tuple[Float[Tensor, "draws views 1"], Float[Tensor, "draws views 1"]]:
    """Return the least and the greatest of every number; kept, since copying to a GPU waits for it."""
    table = torch.tensor([list(view.bounds().values()) for view in views]).transpose(0, 1)
    table = table.repeat_interleave(torch.tensor(list(_COUNTS.values())), dim=0).to(device)
    return table[..., :1], table[..., 1:]


def _sides(
    area: Float[Tensor, "attempts views n"],
    log_ratio: Float[Tensor, "attempts views n"],
    largest: Float[Tensor, "views 1"],
    log_aspect: float,
) -> tuple[Float[Tensor, "views n"], Float[Tensor, "views n"]]:
    """Return the sides of the first crop that fits, else of the largest crop, whose log-ratio is given."""
    log_ratio = torch.cat([log_ratio, largest.expand_as(log_ratio[:1])]) - log_aspect
    log_area = torch.cat([area.log(), -log_ratio[-1:].abs()])
    fits = log_area + log_ratio.abs() <= 0  # neither side is longer than the image's
    first = fits.int().max(dim=0, keepdim=True).indices
    log_area, log_ratio = log_area.gather(0, first)[0], log_ratio.gather(0, first)[0]
    return ((log_area + log_ratio) / 2).exp(), ((log_area - log_ratio) / 2).exp()
