"""Batched random views of images: which views there are, and the maker that draws both of them at once.

A view is made in this order: random resized crop and flip (one bilinear ``grid_sample`` for both views),
jitter and greyscale (one affine map of the colours, see ``colour``), blur, solarisation. Normalisation is
part of the colour map: it commutes with blurring, and solarising is a reflection in any unit. Colours are
clamped to their range once, after that map. Everything random is drawn first, for all images and both views
in one go, from the generator that is passed; the views are then made block by block, in bounded memory.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from types import MappingProxyType
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Complex64, Float, Float32, UInt8
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn import functional as F

from twofold.data.augmentation import Augmentation, Choices, choose
from twofold.data.colour import colour_maps, luma
from twofold.errors import BadInput
from twofold.records import STRICT

_BLOCK = 2**19
"""Values of both views that a CPU makes at once: 2 MiB of float32, which stays in its caches."""
_LARGE_BLOCK = 2**26
"""The same elsewhere: 256 MiB, so that few kernels are launched."""

_SIMCLR = Augmentation(
    crop=(0.08, 1.0),
    flip=0.5,
    jitter=0.8,
    brightness=0.8,
    contrast=0.8,
    saturation=0.8,
    hue=0.2,
    greyscale=0.2,
    blur=0.5,
)


@dataclass(frozen=True, config=STRICT)
class ImageViews:
    """How the two views of an image are drawn; the second may be drawn unlike the first."""

    size: Annotated[int, Field(ge=2, le=4096)] | None = None
    """Side of a view in pixels; without it that of the images, when they are square."""
    first: Augmentation = _SIMCLR
    """What happens to the first view."""
    second: Augmentation = _SIMCLR
    """What happens to the second view."""
    kind: Literal["image"] = field(default="image", kw_only=True)

    def maker(self, shape: tuple[int, int, int], mean: Sequence[float], std: Sequence[float]) -> "Images":
        """Build the maker for samples of this shape; the range of colours is [0, 1] for mean and std."""
        channels, height, width = shape
        if channels not in (1, 3):
            raise BadInput(f"views are made of images with 1 or 3 channels, not {channels}")
        if self.size is None and height != width:
            raise BadInput(f"images of {width}x{height} pixels are not square: give the views a size")
        return Images(self, self.size or height, mean, std)


class Images:
    """Makes normalised views (n, c, size, size) of images of bytes (n, c, h, w).

    Images whose shorter side is longer than a view's are first reduced to that length, with a filter against
    aliasing: a crop of a square image is then only ever enlarged.
    """

    def __init__(self, settings: ImageViews, size: int, mean: Sequence[float], std: Sequence[float]) -> None:
        self.settings = settings
        self.size = size
        self._augmentations = (settings.first, settings.second)
        self.mean = tuple(mean)
        self.std = tuple(max(spread, 1 / 255) for spread in std)  # a channel may be constant

    def pair(
        self, samples: UInt8[Tensor, "n c h w"], generator: Generator
    ) -> tuple[Float32[Tensor, "n c s s"], Float32[Tensor, "n c s s"]]:
        """Draw two views of every image; the generator is on the images' device."""
        if all(augmentation == Augmentation() for augmentation in self._augmentations):
            return self.plain(samples), self.plain(samples)
        return self.drawn(samples, self.choose(samples, generator))

    def plain(self, samples: UInt8[Tensor, "n c h w"]) -> Float32[Tensor, "n c s s"]:
        """Normalise the square in the middle of every image, brought to the size of a view."""
        images = _with_shorter_side(samples.float(), self.size)
        top, left = ((side - self.size) // 2 for side in images.shape[2:])
        square = images[:, :, top : top + self.size, left : left + self.size]
        black, white = _black_and_white(self.mean, self.std, samples.device)
        return torch.addcmul(black, square, (white - black) / 255)

    def picture(self, batch: Float[Tensor, "n c h w"]) -> UInt8[Tensor, "n h w c"]:
        """Turn what a network sees back into bytes for the eye."""
        black, white = _black_and_white(self.mean, self.std, batch.device)
        colours = (batch - black) / (white - black)
        return colours.mul(255).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()

    def choose(self, samples: UInt8[Tensor, "n c h w"], generator: Generator) -> Choices:
        """Draw everything random about two views of these images, in one call of the generator."""
        n, _, height, width = samples.shape
        return choose(self._augmentations, n, width / height, generator)

    def drawn(
        self, samples: UInt8[Tensor, "n c h w"], choices: Choices
    ) -> tuple[Float32[Tensor, "n c s s"], Float32[Tensor, "n c s s"]]:
        """Make the two views that these choices describe, block by block."""
        n, channels = samples.shape[:2]
        black, white = (bound[..., 0] for bound in _black_and_white(self.mean, self.std, samples.device))
        weights, scale = luma(channels, samples.device), (white - black) / 255
        matrix, lift = colour_maps(choices.brightness, choices.contrast, choices.saturation, choices.hue, channels)
        matrix = matrix * scale
        across, down = self._places(choices)
        views = samples.new_empty(2, n, channels, self.size, self.size, dtype=torch.float32)
        for rows in _blocks(n, 2 * channels * self.size**2, samples.device):
            crops = self._crops(samples[rows], across[rows] + down[rows])
            grey = (crops.mean(dim=-1).mT @ weights).T
            shift = (lift[:, rows] * grey)[..., None, None] * scale + black
            for i, (augmentation, view) in enumerate(zip(self._augmentations, views, strict=True)):
                colours = view[rows].flatten(2)
                torch.baddbmm(shift[i], matrix[i, rows], crops[:, :, i], out=colours)
                torch.minimum(torch.maximum(colours, black, out=colours), white, out=colours)
                if augmentation.blur > 0:
                    view[rows] = blurred(view[rows], choices.sigma[i, rows])
                if augmentation.solarise > 0:
                    colours.copy_(solarised(colours, choices.solarise[i, rows], black + white))
        return views[0], views[1]

    def _places(self, choices: Choices) -> tuple[Complex64[Tensor, "n 2 1 s"], Complex64[Tensor, "n 2 s 1"]]:
        """Return x of the columns and iy of the rows of both views, so that one sum makes a grid."""
        centres = (torch.arange(self.size, device=choices.x.device) * 2 + 1) / self.size - 1
        x, y, width, height = (choice.T.contiguous()[..., None] for choice in choices[:4])
        x, y = x + width * centres, y + height * centres
        zero = centres.new_zeros(())
        return torch.complex(x, zero)[:, :, None, :], torch.complex(zero, y)[:, :, :, None]

    def _crops(
        self, samples: UInt8[Tensor, "n c h w"], grid: Complex64[Tensor, "n 2 s s"]
    ) -> Float32[Tensor, "n c 2 pixels"]:
        """Cut both crops out of every image at once, where the second view lies below the first."""
        images = samples.to(torch.float32, memory_format=torch.contiguous_format)
        if min(images.shape[2:]) > self.size:
            images = _with_shorter_side(images, self.size)
        points = torch.view_as_real(grid).flatten(1, 2)
        crops = F.grid_sample(images, points, padding_mode="border", align_corners=False)
        return crops.view(len(images), -1, 2, self.size**2)


def blurred(images: Float32[Tensor, "n c h w"], sigma: Float32[Tensor, " n"]) -> Float32[Tensor, "n c h w"]:
    """Blur every image with its own Gaussian, reflected at the borders; a sigma of 0 leaves it as it is.

    The kernel has 2r + 1 taps, r a twentieth of the shorter side, and is applied along rows, then columns.
    """
    n, channels, height, width = images.shape
    radius = max(1, min(height, width) // 20)
    offsets = torch.arange(-radius, radius + 1, device=images.device)
    taps = torch.exp(-0.5 * (offsets / sigma.clamp(min=1e-3)[:, None]) ** 2)
    taps = (taps / taps.sum(dim=1, keepdim=True)).repeat_interleave(channels, dim=0)
    padded = F.pad(images, (radius,) * 4, mode="reflect").flatten(0, 1)[None]
    padded = padded.contiguous(memory_format=torch.channels_last)  # several times as fast on a CPU
    across = F.conv2d(padded, taps[:, None, None, :], groups=n * channels)
    return F.conv2d(across, taps[:, None, :, None], groups=n * channels).view(images.shape)


def solarised(
    colours: Float32[Tensor, "n c pixels"], which: Bool[Tensor, " n"], mirror: Float32[Tensor, "c 1"]
) -> Float32[Tensor, "n c pixels"]:
    """Invert what is brighter than the middle of the range; ``mirror`` is black + white, twice the middle."""
    return torch.where(which[:, None, None], torch.minimum(colours, mirror - colours), colours)


@cache
def _black_and_white(
    mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> tuple[Float32[Tensor, "c 1 1"], Float32[Tensor, "c 1 1"]]:
    """Return the bounds of normalised colours; they are kept, since copying to a GPU waits for it."""
    centre, spread = torch.tensor((mean, std), device=device)[..., None, None]
    return -centre / spread, (1 - centre) / spread


def _with_shorter_side(images: Float32[Tensor, "n c h w"], side: int) -> Float32[Tensor, "n c h2 w2"]:
    """Resize images to this length of their shorter side."""
    height, width = images.shape[2:]
    shorter = min(height, width)
    if shorter == side:
        return images
    size = (round(height * side / shorter), round(width * side / shorter))
    return F.interpolate(images, size, mode="bilinear", antialias=True)


def _blocks(n: int, values: int, device: torch.device) -> Iterator[slice]:
    """Cut n images, with so many values each, into equal blocks that suit the device."""
    blocks = math.ceil(n * values / (_BLOCK if device.type == "cpu" else _LARGE_BLOCK))
    rows = math.ceil(n / max(1, blocks))
    return (slice(start, start + rows) for start in range(0, n, max(1, rows)))


def _both(augmentation: Augmentation) -> ImageViews:
    return ImageViews(first=augmentation, second=augmentation)


_BYOL = replace(_SIMCLR, brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1)
_CIFAR = replace(_SIMCLR, brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, blur=0.0)

IMAGE_PRESETS: Mapping[str, ImageViews] = MappingProxyType(
    {
        "simclr": _both(_SIMCLR),
        "byol": ImageViews(first=replace(_BYOL, blur=1.0), second=replace(_BYOL, blur=0.1, solarise=0.2)),
        "cifar": _both(_CIFAR),
        "stl10": _both(replace(_SIMCLR, blur=1.0)),
        "none": _both(Augmentation()),
    }
)
"""Named settings, from papers and their public code.

``simclr``: SimCLR (Chen et al. 2020, App. A) with jitter of strength 1. ``byol``: BYOL (Grill et al. 2020,
App. B): weaker jitter, the first view always blurred, the second rarely, and only the second solarised.
``cifar``, ``stl10``: the reference code of directpred (also that of dual_networks and alpha_cl); ``cifar`` is
SimCLR's for CIFAR as well (App. B.9), ``stl10`` is SimCLR's with every view blurred. ``none``: plain images.
"""
