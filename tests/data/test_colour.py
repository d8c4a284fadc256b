"""The colour map against its parts written naively, and against sequential jitter that turns hue in HSV."""

import colorsys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from sklearn.datasets import load_sample_images

from twofold.data.colour import LUMA, colour_maps, luma
from twofold.data.views import IMAGE_PRESETS

Array = NDArray[np.float64]
Jitter = tuple[float, float, float, float]
"""Brightness, contrast, saturation, hue."""

factors = st.floats(0, 2)
shifts = st.floats(-0.5, 0.5)
QUARTER = 0.25
TIGHT = 1e-5
relaxed = settings(deadline=None, max_examples=50)


def mapped(image: Array, jitter: Jitter) -> Array:
    """Apply the colour map to one image (pixels, channels), without the clamp."""
    brightness, contrast, saturation, hue = torch.tensor(jitter, dtype=torch.float64)
    weights = luma(image.shape[1], torch.device("cpu")).double()
    matrix, lift = colour_maps(brightness, contrast, saturation, hue, image.shape[1])
    return image @ matrix.numpy().T + lift.item() * (image.mean(axis=0) @ weights.numpy())


def brighten(image: Array, factor: float) -> Array:
    return factor * image


def contrast(image: Array, factor: float) -> Array:
    return factor * image + (1 - factor) * (image @ LUMA).mean()


def saturate(image: Array, factor: float) -> Array:
    return factor * image + (1 - factor) * (image @ LUMA)[:, None]


def turn_in_hsv(image: Array, turns: float) -> Array:
    colours = (colorsys.rgb_to_hsv(*colour) for colour in image)
    return np.array([colorsys.hsv_to_rgb((hue + turns) % 1, *rest) for hue, *rest in colours])


def turn_about_grey(image: Array, turns: float) -> Array:
    axis = np.full(3, 2 * np.pi * turns / 3**0.5)
    return Rotation.from_rotvec(axis).apply(image)


def sequential(image: Array, jitter: Jitter, turn: Callable[[Array, float], Array] = turn_in_hsv) -> Array:
    """Jitter as it is usually done: one operation after the other, each clamped."""
    b, c, s, h = jitter
    for operation, amount in ((brighten, b), (contrast, c), (turn, h), (saturate, s)):
        image = operation(image, amount).clip(0, 1)
    return image


@pytest.fixture(scope="module")
def photographs() -> Array:
    """Patches of two photographs, as images (n, pixels, 3) in [0, 1]."""
    corners = [(top, left) for top in range(0, 290, 72) for left in range(0, 510, 72)]
    patches = [
        photo[top : top + 128 : 8, left : left + 128 : 8]
        for photo in load_sample_images().images
        for top, left in corners
    ]
    return np.stack(patches).reshape(len(patches), -1, 3) / 255


def draws(preset: str, count: int) -> list[Jitter]:
    """Draw jitter as a preset does, independently of the code that is tested."""
    view = IMAGE_PRESETS[preset].first
    strengths = (view.brightness, view.contrast, view.saturation, view.hue)
    uniform = np.random.default_rng(0).uniform(-1, 1, (count, 4)) * strengths
    return [(1 + b, 1 + c, 1 + s, h) for b, c, s, h in uniform]


def random_image(seed: int, channels: int = 3) -> Array:
    return np.random.default_rng(seed).uniform(size=(64, channels))


@relaxed
@given(factor=factors, seed=st.integers(0, 99))
def test_each_operation_alone_is_the_naive_one(factor: float, seed: int) -> None:
    image = random_image(seed)
    np.testing.assert_allclose(mapped(image, (factor, 1, 1, 0)), brighten(image, factor), atol=TIGHT)
    np.testing.assert_allclose(mapped(image, (1, factor, 1, 0)), contrast(image, factor), atol=TIGHT)
    np.testing.assert_allclose(mapped(image, (1, 1, factor, 0)), saturate(image, factor), atol=TIGHT)


@relaxed
@given(turns=shifts, seed=st.integers(0, 99))
def test_hue_is_a_rotation_about_the_axis_of_greys(turns: float, seed: int) -> None:
    image = random_image(seed)
    np.testing.assert_allclose(mapped(image, (1, 1, 1, turns)), turn_about_grey(image, turns), atol=TIGHT)


@pytest.mark.parametrize("turns", [-1 / 3, 0.0, 1 / 3])
def test_hue_agrees_with_hsv_at_thirds_of_a_turn(turns: float) -> None:
    image = random_image(0)
    np.testing.assert_allclose(mapped(image, (1, 1, 1, turns)), turn_in_hsv(image, turns), atol=TIGHT)


@relaxed
@given(jitter=st.tuples(factors, factors, factors, shifts), seed=st.integers(0, 99))
def test_the_map_is_the_composition_without_clamps(jitter: Jitter, seed: int) -> None:
    image = random_image(seed)
    b, c, s, h = jitter
    composed = saturate(turn_about_grey(contrast(brighten(image, b), c), h), s)
    np.testing.assert_allclose(mapped(image, jitter), composed, atol=TIGHT)


@relaxed
@given(jitter=st.tuples(factors, factors, factors, shifts), seed=st.integers(0, 99))
def test_greys_stay_grey_and_no_saturation_is_greyscale(jitter: Jitter, seed: int) -> None:
    grey = random_image(seed, channels=1).repeat(3, axis=1)
    assert np.ptp(mapped(grey, jitter), axis=1).max() < TIGHT
    b, c, _, h = jitter
    colourless = mapped(random_image(seed), (b, c, 0.0, h))
    assert np.ptp(colourless, axis=1).max() < TIGHT


@relaxed
@given(jitter=st.tuples(factors, factors, factors, shifts), seed=st.integers(0, 99))
def test_one_channel_has_brightness_and_contrast_only(jitter: Jitter, seed: int) -> None:
    grey = random_image(seed, channels=1)
    b, c, _, _ = jitter
    expected = c * b * grey + (1 - c) * b * grey.mean()
    np.testing.assert_allclose(mapped(grey, jitter), expected, atol=TIGHT)


def test_turns_of_hue_add_up() -> None:
    image = random_image(0)
    twice = mapped(mapped(image, (1, 1, 1, 0.07)), (1, 1, 1, -0.3))
    np.testing.assert_allclose(twice, mapped(image, (1, 1, 1, 0.07 - 0.3)), atol=TIGHT)


def departure(ours: Array, exact: Array, untouched: Array) -> list[float]:
    """Compare pixels, and the means and deviations of the channels of each image, in units of what jitter does."""
    statistics = [(lambda x: x), (lambda x: x.mean(axis=1)), (lambda x: x.std(axis=1))]
    return [float(np.abs(of(ours) - of(exact)).mean() / np.abs(of(untouched) - of(exact)).mean()) for of in statistics]


@pytest.mark.parametrize("preset", ["simclr", "byol", "cifar"])
def test_jitter_is_sequential_jitter_within_a_quarter_of_what_it_does(photographs: Array, preset: str) -> None:
    jitters = draws(preset, len(photographs))
    exact = np.stack([sequential(x, jitter) for x, jitter in zip(photographs, jitters, strict=True)])

    def all_mapped(change: Callable[[Jitter], Jitter]) -> Array:
        pairs = zip(photographs, jitters, strict=True)
        return np.stack([mapped(x, change(jitter)) for x, jitter in pairs]).clip(0, 1)

    ours = all_mapped(lambda jitter: jitter)
    assert max(departure(ours, exact, photographs)) < QUARTER
    for statistic in (np.mean, np.std):
        population = statistic(ours, axis=(0, 1)) - statistic(exact, axis=(0, 1))
        assert np.abs(population).max() < 0.02  # of a range of 1
    reversed_hue = all_mapped(lambda j: (j[0], j[1], j[2], -j[3]))
    no_contrast = all_mapped(lambda j: (j[0], 1.0, j[2], j[3]))
    no_brightness = all_mapped(lambda j: (1.0, j[1], j[2], j[3]))
    for wrong in (reversed_hue, no_contrast, no_brightness):
        assert max(departure(wrong, exact, photographs)) > QUARTER


@pytest.mark.parametrize("preset", ["simclr", "byol", "cifar"])
@pytest.mark.parametrize("part", range(4))
def test_every_part_of_the_map_brings_it_nearer(photographs: Array, preset: str, part: int) -> None:
    some = photographs[::3]
    neutral = (1.0, 1.0, 1.0, 0.0)
    whole, without = [], []
    for image, jitter in zip(some, draws(preset, len(some)), strict=True):
        exact = sequential(image, jitter)
        lacking = tuple(neutral[i] if i == part else amount for i, amount in enumerate(jitter))
        whole.append(np.abs(mapped(image, jitter).clip(0, 1) - exact).mean())
        without.append(np.abs(mapped(image, lacking).clip(0, 1) - exact).mean())
    assert np.mean(whole) < np.mean(without)


def test_only_the_turn_of_hue_tells_the_map_from_sequential_jitter_inside_the_range() -> None:
    image = 0.4 + 0.2 * random_image(1)  # nothing is clamped
    jitter = (1.1, 0.8, 1.3, 0.05)
    np.testing.assert_allclose(mapped(image, jitter), sequential(image, jitter, turn_about_grey), atol=TIGHT)
    assert np.abs(mapped(image, jitter) - sequential(image, jitter)).max() > 1e-3
