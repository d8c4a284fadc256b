"""The scenes: split by digit and never by scene, fixed by seeds, and every digit inside its frame."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from sklearn.datasets import load_digits
from torch import Generator

from twofold.data.digits import MEAN, SCENES_A_DIGIT, STD, Scenes, SceneViews, digits
from twofold.data.source import Picturing, Source, ViewMaker, stratified


@pytest.fixture(scope="module")
def source() -> Source:
    return digits()


def rendered(views: SceneViews, sample: torch.Tensor, n: int, seed: int = 0) -> torch.Tensor:
    return Scenes(views).render(sample.expand(n, 1, 8, 8), Generator().manual_seed(seed))


def keys(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


def test_shapes_ranges_and_counts(source: Source) -> None:
    assert source.pool.samples.shape == (1258, 1, 8, 8)
    for split in (source.train, source.validation, source.test):
        assert split is not None
        assert split.labels is not None
        assert split.samples.dtype == np.uint8
        assert split.samples.shape == (len(split.labels), 1, 24, 24)
        assert np.unique(split.labels).tolist() == list(range(10))
    sizes = [len(split) // SCENES_A_DIGIT for split in (source.train, source.validation, source.test) if split]
    assert sum(sizes) == 1797
    assert sizes[0] == len(source.pool)
    assert source.shape == (1, 24, 24)
    assert source.classes == tuple("0123456789")
    assert isinstance(source.views, ViewMaker)


def scenes_of(images: np.ndarray, seed: int) -> set[bytes]:
    """Draw digits as the source does."""
    drawn = Scenes(SceneViews()).render(
        torch.from_numpy(np.repeat(images, SCENES_A_DIGIT, axis=0)), Generator().manual_seed(seed)
    )
    return keys(drawn.mul(255).round().to(torch.uint8).numpy())


def test_the_splits_are_of_different_digits(source: Source) -> None:
    everything = np.round(load_digits().images[:, None] * (255 / 16)).astype(np.uint8)
    pool = keys(source.pool.samples)
    others = np.stack([image for image in everything if image.tobytes() not in pool])
    # The 1 797 images are distinct, so that an image tells a digit from all others.
    assert len(keys(everything)) == 1797
    assert len(others) == 1797 - len(source.pool)
    assert source.test is not None
    # Found again one by one: every scene of the test set is of a digit that training never draws.
    rows = held_out_rows(source)
    assert not pool & keys(everything[rows["test"]])
    assert not pool & keys(everything[rows["validation"]])
    assert not keys(everything[rows["test"]]) & keys(everything[rows["validation"]])
    assert scenes_of(everything[rows["test"]], seed=3) == keys(source.test.samples)
    assert scenes_of(everything[rows["validation"]], seed=2) == keys(source.validation.samples)
    assert scenes_of(source.pool.samples, seed=1) == keys(source.train.samples)
    assert source.unseen is not None
    assert keys(source.unseen.samples) == keys(everything[rows["test"]])
    # The control: the same comparison tells other digits apart.
    assert not scenes_of(everything[rows["validation"]], seed=3) & keys(source.test.samples)


def held_out_rows(source: Source) -> dict[str, np.ndarray]:
    """Split the rows anew, as the module's documentation says: by digit, 70, 10 and 20 %."""
    _, validation, test = stratified(load_digits().target.astype(np.int64), (0.7, 0.1, 0.2), seed=0)
    return {"validation": validation, "test": test}


def test_the_splits_are_identical_on_reload(source: Source) -> None:
    again = digits()
    for name in ("pool", "train", "validation", "test"):
        np.testing.assert_array_equal(getattr(again, name).samples, getattr(source, name).samples)
        np.testing.assert_array_equal(getattr(again, name).labels, getattr(source, name).labels)


def test_views_follow_the_generator_and_differ_from_each_other(source: Source) -> None:
    samples = source.pool.take(slice(0, 64))
    first, second = source.views.pair(samples, Generator().manual_seed(5))
    again, _ = source.views.pair(samples, Generator().manual_seed(5))
    other, _ = source.views.pair(samples, Generator().manual_seed(6))
    assert first.shape == second.shape == (64, 1, 24, 24)
    assert first.dtype == torch.float32
    assert torch.equal(first, again)
    for different in (second, other):
        assert (first - different).abs().flatten(1).mean(1).min() > 0.05


def test_views_and_plain_scenes_have_one_range(source: Source) -> None:
    first, second = source.views.pair(source.pool.take(slice(0, 512)), Generator().manual_seed(0))
    plain = source.views.plain(source.train.take(slice(0, 2048)))
    black, white = -MEAN / STD, (1 - MEAN) / STD
    for images in (first, second, plain):
        assert images.min() >= black - 1e-5
        assert images.max() <= white + 1e-5
        assert abs(float(images.mean())) < 0.1
        assert float(images.std()) == pytest.approx(1, abs=0.1)


def test_plain_undoes_the_rounding_to_bytes() -> None:
    scenes = SceneViews().maker()
    samples = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 16, 16)
    expected = (samples.double() / 255 - MEAN) / STD
    torch.testing.assert_close(scenes.plain(samples).double(), expected, atol=1e-5, rtol=0)


def test_a_picture_undoes_what_the_network_sees(source: Source) -> None:
    assert isinstance(source.views, Picturing)
    samples = source.train.take(slice(0, 100))
    shown = source.views.picture(source.views.plain(samples))
    assert torch.equal(shown, samples.permute(0, 2, 3, 1))


@pytest.mark.parametrize("side", [0.5, 0.7, 0.9])
def test_a_digit_lies_inside_its_frame_wherever_it_is_placed(side: float) -> None:
    """A full square of side s covers s² of the frame, its rim fading over a pixel of the digit, half of it outside.

    Where it touches the frame, that half is cut off: 1/64 of the ink at each of two sides at most, which moves the
    centre inwards by s/64.
    """
    full = torch.full((1, 1, 8, 8), 255, dtype=torch.uint8)
    views = SceneViews(size=96, scale=(side, side), rotation=0.0, background=0.0, noise=0.0)
    scenes = rendered(views, full, 200)
    scenes = scenes / scenes.amax(dim=(1, 2, 3), keepdim=True)  # every scene has an ink of its own
    shown = scenes.mean(dim=(1, 2, 3)) / side**2
    assert shown.min() > 1 - 1 / 32 - 0.01
    assert shown.max() < 1.01
    centres = torch.stack([centre_of(scenes, 2), centre_of(scenes, 3)])
    room = 1 - side
    assert centres.abs().max() < room + 1e-3
    assert centres.max() > 0.97 * room - side / 64  # and all of the room is used
    assert centres.min() < -0.97 * room + side / 64


def centre_of(scenes: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the centre of the ink along an axis, in [−1, 1]."""
    places = (torch.arange(scenes.shape[axis]) + 0.5) / scenes.shape[axis] * 2 - 1
    profile = scenes.sum(dim=(1, 5 - axis))
    return (profile * places).sum(1) / profile.sum(1)


def test_scale_and_rotation_are_what_the_settings_say() -> None:
    bar = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    bar[..., 3:5, :] = 255
    still = {"background": 0.0, "noise": 0.0, "size": 96, "scale": (0.5, 0.5)}
    angles = torch.stack([tilt(image[0]) for image in rendered(SceneViews(rotation=20.0, **still), bar, 300)])
    assert angles.abs().max() < 21
    assert angles.min() < -17
    assert angles.max() > 17
    level = torch.stack([tilt(image[0]) for image in rendered(SceneViews(rotation=0.0, **still), bar, 20)])
    assert level.abs().max() < 1


def tilt(image: torch.Tensor) -> torch.Tensor:
    """Return the angle in degrees of the main axis of the ink, from its second moments."""
    y, x = torch.meshgrid(*[torch.arange(float(n)) for n in image.shape], indexing="ij")
    weight = image / image.sum()
    x, y = x - (weight * x).sum(), y - (weight * y).sum()
    xx, yy, xy = ((weight * a * b).sum() for a, b in ((x, x), (y, y), (x, y)))
    return torch.rad2deg(0.5 * torch.atan2(2 * xy, xx - yy))


def test_background_and_noise_are_bounded() -> None:
    blank = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    quiet = rendered(SceneViews(background=0.3, noise=0.0), blank, 100)
    assert quiet.min() >= 0
    assert 0.28 < quiet.max() <= 0.3
    noisy = rendered(SceneViews(background=0.0, noise=0.1), blank, 100)
    # Half of a normal's mass is cut off at black: what is left has the second moment σ²/2.
    assert float(noisy.square().mean()) == pytest.approx(0.1**2 / 2, rel=0.05)


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 4},
        {"scale": (0.0, 0.5)},
        {"scale": (0.5, 1.5)},
        {"rotation": 200},
        {"noise": -1},
        {"sise": 24},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SceneViews(**wrong)  # type: ignore[arg-type]
