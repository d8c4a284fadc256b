"""Colour jitter as one affine map of the colours of each image.

Brightness b, contrast c, hue h (in turns) and saturation s, applied in this order to the colours x of an
image whose mean colour is x̄, are together x ↦ Mx + t with

    M = b c (s R + (1 − s) 1wᵀR),    t = b (1 − c) (w·x̄) 1,

where w are the weights of the channels in luma and R is the rotation by 2πh about the axis of greys. The four
numbers mean what they mean in sequential jitter, where each operation takes the image that the last one left,
clamped to the range, and hue is turned in HSV. The map differs from that in three things:

- Hue. Either way greys stay, turns add up, and a third of a turn makes red green, green blue and blue red.
  But the rotation keeps the mean of the three channels, and HSV the largest and the smallest of them.
- Clamping. Colours are clamped once, after the map: what one operation drives out of the range, the next can
  bring back, and contrast is about the mean of colours that are not clamped.
- Order. It is fixed, where it is usually random; brightness, contrast and saturation commute anyway.

Greyscale is s = 0: the luma of the jittered colours in all channels. With one channel w = 1 and R = 1, so
that hue, saturation and greyscale do nothing.

Measured on 1 000 CIFAR-10 images in [0, 1] with the strengths of the preset ``cifar``: sequential jitter in
this order moves a pixel by 0.099 on average, and the map ends 0.012 from where it does (0.002 without hue),
while a random order alone makes 0.004. Means and standard deviations of the channels differ by at most 0.003.
"""

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)
"""What red, green and blue add to the brightness that is seen (ITU-R BT.601)."""


@cache
def luma(channels: int, device: torch.device) -> Float[Tensor, " channels"]:
    """Return the weights w for one channel or three; they are kept, since copying to a GPU waits for it."""
    return torch.tensor(LUMA if channels == 3 else (1.0,), device=device)


@cache
def _parts(channels: int, device: torch.device) -> Float[Tensor, "5 channels_channels"]:
    """Return U, K, J, GK and GJ, of which every map is a sum.

    U is the projection on grey, K = 1 − U, J the cross product with the unit vector of grey, and G = 1wᵀ.
    """
    unit = torch.eye(channels)
    grey, shift = torch.full_like(unit, 1 / channels), unit.roll(1, 0)
    chroma, turn = unit - grey, (shift - shift.T) / 3**0.5
    to_luma = luma(channels, unit.device).expand_as(unit)
    return torch.stack([grey, chroma, turn, to_luma @ chroma, to_luma @ turn]).flatten(1).to(device)


def colour_maps(
    brightness: Float[Tensor, "*batch"],
    contrast: Float[Tensor, "*batch"],
    saturation: Float[Tensor, "*batch"],
    hue: Float[Tensor, "*batch"],
    channels: int,
) -> tuple[Float[Tensor, "*batch channels channels"], Float[Tensor, "*batch"]]:
    """Compose jitter into x ↦ Mx + l (w·x̄) 1, and return M and l.

    R = U + cos(2πh) K + sin(2πh) J, and GU = U.
    """
    angle = hue * (2 * torch.pi)
    cos, sin = angle.cos(), angle.sin()
    rest = 1 - saturation
    shares = torch.stack([torch.ones_like(hue), saturation * cos, saturation * sin, rest * cos, rest * sin], dim=-1)
    matrix = (shares * (brightness * contrast)[..., None]) @ _parts(channels, hue.device).to(hue.dtype)
    return matrix.view(*hue.shape, channels, channels), brightness * (1 - contrast)
