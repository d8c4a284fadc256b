"""What is drawn for a view: its distribution, against random resized crop written image by image."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy.stats import binomtest, kstest
from torch import Generator

from twofold.data.augmentation import Augmentation, Choices, choose

N = 4000
RARE = 1e-3
"""Probability of a fair test failing, were the seed not fixed."""
BUSY = Augmentation(
    crop=(0.08, 1.0),
    flip=0.3,
    jitter=0.8,
    brightness=0.4,
    contrast=0.5,
    saturation=0.6,
    hue=0.1,
    greyscale=0.2,
    blur=0.7,
    solarise=0.1,
)


def draw(*views: Augmentation, n: int = N, aspect: float = 1.0, seed: int = 0) -> Choices:
    return choose(views, n, aspect, Generator().manual_seed(seed))


def naive_crop(height: int, width: int, view: Augmentation, random: np.random.Generator) -> tuple[float, float]:
    """Return the sides of a crop in pixels: ten attempts, else the largest crop of an allowed ratio."""
    for _ in range(10):
        area = height * width * random.uniform(*view.crop)
        ratio = np.exp(random.uniform(*np.log(view.ratio)))
        w, h = np.sqrt(area * ratio), np.sqrt(area / ratio)
        if w <= width and h <= height:
            return w, h
    if width / height < view.ratio[0]:
        return width, width / view.ratio[0]
    if width / height > view.ratio[1]:
        return height * view.ratio[1], height
    return width, height


def naive_crops(height: int, width: int, view: Augmentation) -> NDArray[np.float64]:
    random = np.random.default_rng(0)
    return np.array([naive_crop(height, width, view, random) for _ in range(N)])


@pytest.mark.parametrize(("height", "width"), [(32, 32), (48, 96), (100, 25)])
def test_crops_are_distributed_as_in_random_resized_crop(height: int, width: int) -> None:
    drawn = draw(BUSY, aspect=width / height)
    sides = torch.stack([drawn.width[0].abs() * width, drawn.height[0] * height], 1).double().numpy()
    expected = naive_crops(height, width, BUSY)
    other = naive_crops(height, width, Augmentation(crop=(0.2, 1.0)))

    def area(sides: NDArray[np.float64]) -> NDArray[np.float64]:
        return sides.prod(axis=1).round(1)  # the largest crop is drawn often, and rounded differently

    def ratio(sides: NDArray[np.float64]) -> NDArray[np.float64]:
        return (sides[:, 0] / sides[:, 1]).round(3)

    assert kstest(area(sides), area(expected)).pvalue > RARE
    assert kstest(ratio(sides), ratio(expected)).pvalue > RARE
    assert kstest(area(sides), area(other)).pvalue < RARE


def test_crops_without_rejection_would_be_told_apart() -> None:
    drawn = draw(BUSY)
    area = (drawn.width.abs() * drawn.height)[0].numpy()
    assert kstest(area, "uniform", args=(0.08, 0.92)).pvalue < RARE


@pytest.mark.parametrize("aspect", [1.0, 2.0, 0.3])
def test_crops_lie_inside_the_image(aspect: float) -> None:
    drawn = draw(BUSY, Augmentation(crop=(0.9, 1.0)), aspect=aspect)
    for centre, side in ((drawn.x, drawn.width.abs()), (drawn.y, drawn.height)):
        assert bool(((side > 0) & (side <= 1)).all())
        assert float((centre.abs() + side).max()) <= 1 + 1e-6
    ratio = drawn.width.abs() / drawn.height * aspect
    assert float(ratio.min()) > 3 / 4 - 1e-5
    assert float(ratio.max()) < 4 / 3 + 1e-5


def test_a_crop_of_everything_is_the_whole_square() -> None:
    drawn = draw(Augmentation())
    assert bool((drawn.width == 1).all() & (drawn.height == 1).all())
    assert bool((drawn.x == 0).all() & (drawn.y == 0).all())


def test_events_happen_with_their_probability() -> None:
    drawn = draw(BUSY, n=20_000)
    shares = {
        BUSY.flip: drawn.width < 0,
        BUSY.jitter: drawn.hue != 0,
        BUSY.greyscale: drawn.saturation == 0,
        BUSY.blur: drawn.sigma > 0,
        BUSY.solarise: drawn.solarise,
    }
    for probability, happened in shares.items():
        count = int(happened.sum())
        assert binomtest(count, 20_000, probability).pvalue > RARE
        assert binomtest(count, 20_000, probability + 0.02).pvalue < RARE


def test_certain_and_impossible_events() -> None:
    always = Augmentation(flip=1, jitter=1, hue=0.5, greyscale=1, blur=1, solarise=1)
    drawn = draw(always, Augmentation(brightness=1, contrast=1, saturation=1, hue=0.5))
    assert bool((drawn.width[0] < 0).all() & (drawn.sigma[0] > 0).all() & drawn.solarise[0].all())
    assert bool((drawn.saturation[0] == 0).all() & (drawn.hue[0] != 0).all())
    assert bool((drawn.width[1] > 0).all() & (drawn.sigma[1] == 0).all())
    assert not bool(drawn.solarise[1].any())
    for name, neutral in {"brightness": 1, "contrast": 1, "saturation": 1, "hue": 0}.items():
        assert bool((getattr(drawn, name)[1] == neutral).all())


def test_jitter_is_uniform_within_its_bounds() -> None:
    drawn = draw(Augmentation(jitter=1, brightness=0.4, contrast=0.5, saturation=0.6, hue=0.1, blur=1))
    for name, least, most in (
        ("brightness", 0.6, 1.4),
        ("contrast", 0.5, 1.5),
        ("saturation", 0.4, 1.6),
        ("hue", -0.1, 0.1),
        ("sigma", 0.1, 2.0),
    ):
        values = getattr(drawn, name)[0].numpy()
        assert kstest(values, "uniform", args=(least, most - least)).pvalue > RARE


def test_the_two_views_are_independent() -> None:
    drawn = draw(BUSY, BUSY)
    first, second = (torch.stack([part.double()[view] for part in drawn]).numpy() for view in (0, 1))
    across = np.corrcoef(first, second)[: len(drawn), len(drawn) :]
    assert np.abs(across).max() < 4.5 / N**0.5
    within = np.corrcoef(first)  # crops share their area, and jitter gates four at once: these are not
    assert np.abs(within - np.eye(len(drawn))).max() > 4.5 / N**0.5


def test_the_same_generator_draws_the_same() -> None:
    for first, second in zip(draw(BUSY, BUSY, seed=3), draw(BUSY, BUSY, seed=3), strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(draw(BUSY, seed=3).x, draw(BUSY, seed=4).x)


@pytest.mark.parametrize(
    "wrong",
    [
        {"crop": (0.0, 1.0)},
        {"crop": (0.5, 1.5)},
        {"crop": (1.0, 0.5)},
        {"ratio": (2.0, 1.0)},
        {"blur_sigma": (2.0, 0.1)},
        {"flip": 1.5},
        {"hue": 0.6},
        {"brightness": -0.1},
        {"sepia": 0.5},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Augmentation(**wrong)  # type: ignore[arg-type]
