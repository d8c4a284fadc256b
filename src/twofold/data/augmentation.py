"""What happens to one view of an image, and the random choices that it leaves open."""

import math
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
    """All that chance decides about the views of a batch, a row for each image and a column for each view.

    The crop's centre (``x``, ``y``) is in [-1, 1] from edge to edge of the image, its sides are shares of the
    image's, and a width below zero means that left and right change places. Without jitter its factors are 1
    and the shift of hue (in turns) is 0. Greyscale is a saturation of 0, and no blur a sigma of 0.
    """

    x: Float[Tensor, "n views"]
    y: Float[Tensor, "n views"]
    width: Float[Tensor, "n views"]
    height: Float[Tensor, "n views"]
    brightness: Float[Tensor, "n views"]
    contrast: Float[Tensor, "n views"]
    saturation: Float[Tensor, "n views"]
    hue: Float[Tensor, "n views"]
    sigma: Float[Tensor, "n views"]
    solarise: Bool[Tensor, "n views"]


class Chance:
    """Draws the choices of several views, each with its own augmentation."""

    def __init__(self, views: tuple[Augmentation, ...]) -> None:
        self._views = views

    def draw(self, n: int, aspect: float, generator: Generator) -> Choices:
        """Draw for n images whose width is ``aspect`` times their height: one call of the generator."""
        device = generator.device
        low, high = _bounds(self._views, device)
        uniform = torch.rand(len(low), n, len(self._views), generator=generator, device=device)
        parts = torch.split(torch.lerp(low, high, uniform), list(_COUNTS.values()))
        drawn = dict(zip(_COUNTS, parts, strict=True))
        width, height = self._sides(drawn.pop("area"), drawn.pop("log_ratio"), math.log(aspect))
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

    def _sides(
        self,
        area: Float[Tensor, "attempts n views"],
        log_ratio: Float[Tensor, "attempts n views"],
        log_aspect: float,
    ) -> tuple[Float[Tensor, "n views"], Float[Tensor, "n views"]]:
        """Return the sides of the first crop that fits, else of the largest that the ratio's bounds allow."""
        ratios = self._ratios.to(area.device)
        largest = torch.clamp(torch.full_like(ratios[0], log_aspect), ratios[0], ratios[1])
        log_ratio = torch.cat([log_ratio, largest.expand_as(log_ratio[:1])]) - log_aspect
        log_area = torch.cat([area.log(), -log_ratio[-1:].abs()])
        width, height = ((log_area + log_ratio) / 2).exp(), ((log_area - log_ratio) / 2).exp()
        fits = (width <= 1) & (height <= 1)
        fits[-1] = True
        first = fits.int().argmax(dim=0, keepdim=True)
        return width.gather(0, first)[0].clamp(max=1), height.gather(0, first)[0].clamp(max=1)
