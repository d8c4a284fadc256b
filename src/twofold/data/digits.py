"""The default data: handwritten digits drawn into scenes, so that a view is the same digit in another scene.

This is the paradigm x(z₀, z′) of dual_networks, Sec. 4: the class and the digit's shape are z₀, the scene
(position, scale, rotation, contrast, background and noise) is z′. The 1 797 digits are scikit-learn's.
"""

from dataclasses import field
from typing import Annotated, Literal, Protocol

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn import functional as F

from twofold.data.source import Source, Split, stratified
from twofold.records import STRICT

SPLIT_SEED = 0
SCENES_A_DIGIT = 4
VISITS_AN_EPOCH = 10
MEAN, STD = 0.336, 0.199  # of rendered scenes, so that what a network sees is roughly standardised


@dataclass(frozen=True, config=STRICT)
class SceneViews:
    """How a digit is drawn into a scene; every scene draws all of these anew."""

    size: Annotated[int, Field(ge=12, le=256)] = 24
    """Side of the scene in pixels."""
    scale: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(le=1)]] = (0.5, 0.9)
    """Least and greatest side of the digit, as a share of the scene's."""
    rotation: Annotated[float, Field(ge=0, le=180)] = 20.0
    """Greatest rotation in degrees, to either side."""
    background: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Greatest brightness of the smooth background."""
    noise: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Standard deviation of the pixel noise."""
    kind: Literal["scenes"] = field(default="scenes", kw_only=True)

    def maker(self) -> "Scenes":
        """Build the renderer of these scenes."""
        return Scenes(self)


class Scenes:
    """Renders batches of digits (n, 1, 8, 8) into scenes (n, 1, size, size)."""

    def __init__(self, settings: SceneViews) -> None:
        self.settings = settings

    def pair(
        self, samples: UInt8[Tensor, "n 1 8 8"], generator: Generator
    ) -> tuple[Float[Tensor, "n 1 h w"], Float[Tensor, "n 1 h w"]]:
        """Draw every digit into two independent scenes."""
        first, second = self.render(samples.repeat(2, 1, 1, 1), generator).sub_(MEAN).div_(STD).chunk(2)
        return first, second

    def plain(self, samples: UInt8[Tensor, "n 1 h w"]) -> Float[Tensor, "n 1 h w"]:
        """Scale scenes that were drawn before."""
        return samples.float().mul_(1 / (255 * STD)).sub_(MEAN / STD)

    def picture(self, batch: Float[Tensor, "n 1 h w"]) -> UInt8[Tensor, "n h w 1"]:
        """Turn what a network sees back into bytes for the eye."""
        brightness = (batch * STD + MEAN).clamp(0, 1)
        return brightness.mul(255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()

    def render(self, digits: UInt8[Tensor, "n 1 8 8"], generator: Generator) -> Float[Tensor, "n 1 h w"]:
        """Draw digits into random scenes with brightness in [0, 1]."""
        n, size, device = len(digits), self.settings.size, digits.device

        def uniform(low: float, high: float, *shape: int) -> Tensor:
            return torch.rand(n, *shape, generator=generator, device=device) * (high - low) + low

        placed = F.grid_sample(
            digits.float() / 255,
            F.affine_grid(self._placement(uniform), [n, 1, size, size], align_corners=False),
            align_corners=False,
        )
        coarse = uniform(0.0, self.settings.background, 1, 3, 3)
        ground = F.interpolate(coarse, size=(size, size), mode="bilinear", align_corners=True)
        ink = uniform(0.6, 1.0, 1, 1, 1)
        noise = torch.randn(placed.shape, generator=generator, device=device)
        return torch.lerp(ground, ink, placed).add_(noise, alpha=self.settings.noise).clamp_(0, 1)

    def _placement(self, uniform: "_Uniform") -> Float[Tensor, "n 2 3"]:
        """Draw the map from scene to digit coordinates: scale and rotation, then a shift that keeps it inside."""
        side = uniform(*self.settings.scale)
        angle = uniform(-1.0, 1.0) * (self.settings.rotation * torch.pi / 180)
        centre = uniform(-1.0, 1.0, 2) * (1 - side)[:, None]
        cos, sin = angle.cos() / side, angle.sin() / side
        turn = torch.stack([torch.stack([cos, sin], 1), torch.stack([-sin, cos], 1)], 1)
        return torch.cat([turn, -turn @ centre[:, :, None]], 2)


class _Uniform(Protocol):
    """The signature of a batch of uniform draws."""

    def __call__(self, low: float, high: float, *shape: int) -> Tensor: ...


def digits(views: SceneViews | None = None) -> Source:
    """Load the digits, split by digit (never by scene), each split with scenes fixed by a seed."""
    from sklearn.datasets import load_digits  # heavy to import

    bunch = load_digits()
    images: NDArray[np.uint8] = np.round(bunch.images[:, None] * (255 / 16)).astype(np.uint8)
    labels: NDArray[np.int64] = bunch.target.astype(np.int64)
    maker = (views or SceneViews()).maker()
    train, validation, test = stratified(labels, shares=(0.7, 0.1, 0.2), seed=SPLIT_SEED)

    def scenes(rows: NDArray[np.int64], seed: int) -> Split:
        rows = np.repeat(rows, SCENES_A_DIGIT)
        drawn = maker.render(torch.from_numpy(images[rows]), torch.Generator().manual_seed(seed))
        return Split(drawn.mul(255).round().to(torch.uint8).numpy(), labels[rows])

    return Source(
        name="digits",
        pool=Split(images[train], labels[train]),
        train=scenes(train, 1),
        validation=scenes(validation, 2),
        test=scenes(test, 3),
        views=maker,
        classes=tuple("0123456789"),
        visits=VISITS_AN_EPOCH,
        unseen=Split(images[test], labels[test]),
    )
