"""Views of images against each operation written naively, and what is promised about them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter
from torch import Generator, Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from twofold.data import views as module
from twofold.data.augmentation import Augmentation, Choices
from twofold.data.digits import Scenes, SceneViews
from twofold.data.source import Picturing, ViewMaker
from twofold.data.views import IMAGE_PRESETS, Images, ImageViews, blurred
from twofold.errors import BadInput

TIGHT = 1e-5
Array = NDArray[np.float64]
PRESETS = list(IMAGE_PRESETS)


def images(n: int = 8, channels: int = 3, height: int = 16, width: int = 16, seed: int = 0) -> Tensor:
    generator = Generator().manual_seed(seed)
    return torch.randint(0, 256, (n, channels, height, width), dtype=torch.uint8, generator=generator)


def bare(view: Augmentation, samples: Tensor, size: int | None = None) -> Images:
    """Make views whose colours are in [0, 1]."""
    channels, height, width = samples.shape[1:]
    settings = ImageViews(size=size, first=view, second=view)
    return settings.maker((channels, height, width), [0.0] * channels, [1.0] * channels)


def neutral(n: int) -> Choices:
    """Choose that nothing happens, in both views."""
    zero, one = torch.zeros(2, n), torch.ones(2, n)
    return Choices(zero, zero, one, one, one, one, one, zero, zero, zero.bool())


def exactly(actual: Tensor, expected: Array) -> None:
    np.testing.assert_allclose(actual.double().numpy(), expected, atol=TIGHT)


def in_unit(samples: Tensor) -> Array:
    return samples.double().numpy() / 255


def naive_crop(image: Array, left: float, top: float, width: float, height: float, size: int) -> Array:
    """Sample a box, in pixels from the image's corner, at the centres of size × size pixels."""
    last_row, last_column = image.shape[1] - 1, image.shape[2] - 1
    view = np.empty((len(image), size, size))
    for i in range(size):
        for j in range(size):
            y = min(max(top + (i + 0.5) * height / size - 0.5, 0), last_row)
            x = min(max(left + (j + 0.5) * width / size - 0.5, 0), last_column)
            row, column = int(y), int(x)
            below, right = min(row + 1, last_row), min(column + 1, last_column)
            dy, dx = y - row, x - column
            upper = (1 - dx) * image[:, row, column] + dx * image[:, row, right]
            lower = (1 - dx) * image[:, below, column] + dx * image[:, below, right]
            view[:, i, j] = (1 - dy) * upper + dy * lower
    return view


@pytest.mark.parametrize(("channels", "height", "width", "size"), [(3, 16, 16, None), (1, 12, 12, 20), (3, 11, 17, 11)])
def test_crop_and_flip_are_bilinear_sampling(channels: int, height: int, width: int, size: int | None) -> None:
    samples = images(4, channels, height, width)
    maker = bare(Augmentation(crop=(0.08, 1.0), flip=0.5), samples, size)
    choices = maker.choose(samples, Generator().manual_seed(1))
    pair = maker.pair(samples, Generator().manual_seed(1))
    assert 0 < int((choices.width < 0).sum()) < 8
    for column, view in enumerate(pair):
        for i, image in enumerate(in_unit(samples)):
            x, y, across, down = (float(choice[column, i]) for choice in choices[:4])
            left, top = (x + 1 - abs(across)) / 2 * width, (y + 1 - down) / 2 * height
            expected = naive_crop(image, left, top, abs(across) * width, down * height, maker.size)
            exactly(view[i], expected[:, :, ::-1] if across < 0 else expected)
            assert across > 0 or not np.allclose(view[i].numpy(), expected, atol=0.1)


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.7])
def test_each_colour_operation_alone(factor: float) -> None:
    samples = images()
    x = in_unit(samples)
    grey = np.tensordot(x, [0.299, 0.587, 0.114], axes=(1, 0))[:, None]
    expected = {
        "brightness": factor * x,
        "contrast": factor * x + (1 - factor) * grey.mean(axis=(2, 3), keepdims=True),
        "saturation": factor * x + (1 - factor) * grey,
    }
    maker = bare(Augmentation(), samples)
    for name, exact in expected.items():
        choices = neutral(len(samples))
        choices = choices._replace(**{name: choices.brightness * factor})
        for view in maker.drawn(samples, choices):
            exactly(view, exact.clip(0, 1))


def test_contrast_is_about_the_mean_of_the_crop() -> None:
    samples = images()
    choices = neutral(len(samples))
    half = choices._replace(width=choices.width / 2, x=choices.x - 0.5)
    maker = bare(Augmentation(), samples)
    crops, _ = maker.drawn(samples, half)
    flat, _ = maker.drawn(samples, half._replace(contrast=choices.contrast * 0))
    luma = torch.tensordot(crops, torch.tensor([0.299, 0.587, 0.114]), dims=([1], [0]))
    exactly(flat, luma.double().mean(dim=(1, 2)).numpy()[:, None, None, None] * np.ones(flat.shape))


def test_every_image_and_view_has_its_own_choices() -> None:
    samples = images()
    choices = neutral(len(samples))
    factors = torch.rand(2, len(samples))
    first, second = bare(Augmentation(), samples).drawn(samples, choices._replace(brightness=factors))
    for view, column in ((first, 0), (second, 1)):
        exactly(view, in_unit(samples) * factors[column, :, None, None, None].double().numpy())


@pytest.mark.parametrize(("side", "radius"), [(32, 1), (96, 4)])
def test_blur_is_a_gaussian_filter(side: int, radius: int) -> None:
    samples = images(4, 3, side, side).float() / 255
    sigma = torch.tensor([0.1, 0.7, 2.0, 0.0])
    result = blurred(samples, sigma)
    for image, original, spread in zip(result, in_unit(samples * 255), sigma.tolist(), strict=True):
        sizes = (0, spread, spread)
        exact = gaussian_filter(original, sizes, mode="mirror", radius=radius) if spread else original
        exactly(image, exact)
    assert not np.allclose(result[2].numpy(), samples[2].numpy(), atol=0.05)


def test_blur_and_solarisation_come_after_the_colours_and_in_this_order() -> None:
    samples = images()
    view = Augmentation(blur=1, solarise=1)
    choices = neutral(len(samples))
    even = torch.arange(len(samples)) % 2 == 0
    choices = choices._replace(
        brightness=choices.brightness * 1.5, sigma=choices.sigma + 1, solarise=torch.stack([even, ~even])
    )
    bright = (in_unit(samples) * 1.5).clip(0, 1)
    soft = np.stack([gaussian_filter(x, (0, 1, 1), mode="mirror", radius=1) for x in bright])
    first, second = bare(view, samples).drawn(samples, choices)
    for actual, which in ((first, even), (second, ~even)):
        exactly(actual, np.where(which[:, None, None, None].numpy(), np.minimum(soft, 1 - soft), soft))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("channels", [1, 3])
def test_normalisation_commutes_with_everything(preset: str, channels: int) -> None:
    samples = images(channels=channels)
    shape = (channels, 16, 16)
    mean, std = [0.2, 0.5, 0.4][:channels], [0.1, 0.2, 0.3][:channels]
    plain = IMAGE_PRESETS[preset].maker(shape, [0.0] * channels, [1.0] * channels)
    normalised = IMAGE_PRESETS[preset].maker(shape, mean, std)
    pairs = zip(
        plain.pair(samples, Generator().manual_seed(2)),
        normalised.pair(samples, Generator().manual_seed(2)),
        strict=True,
    )
    for colours, view in pairs:
        units = (np.array(mean)[:, None, None], np.array(std)[:, None, None])
        np.testing.assert_allclose(view.numpy() * units[1] + units[0], colours.numpy(), atol=TIGHT)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("colour", [0, 255, None])
def test_views_are_numbers_in_range(preset: str, colour: int | None) -> None:
    samples = images(64) if colour is None else torch.full((64, 3, 16, 16), colour, dtype=torch.uint8)
    maker = IMAGE_PRESETS[preset].maker((3, 16, 16), (0.5, 0.4, 0.3), (0.2, 0.2, 0.2))
    black, white = (maker.plain(torch.full((1, 3, 16, 16), c, dtype=torch.uint8)) for c in (0, 255))
    for view in maker.pair(samples, Generator().manual_seed(0)):
        assert view.shape == (64, 3, 16, 16)
        assert view.dtype == torch.float32
        assert view.is_contiguous()
        assert bool(view.isfinite().all())
        assert bool((view >= black - TIGHT).all() & (view <= white + TIGHT).all())


@pytest.mark.parametrize("preset", PRESETS)
def test_grey_images_stay_grey(preset: str) -> None:
    samples = images(64, 1).expand(-1, 3, -1, -1)
    view = IMAGE_PRESETS[preset].first
    for drawn in bare(view, samples).pair(samples, Generator().manual_seed(0)):
        assert float((drawn.amax(dim=1) - drawn.amin(dim=1)).max()) < TIGHT


def test_one_channel_is_treated_like_grey() -> None:
    samples = images(32, 1)
    view = replace(IMAGE_PRESETS["simclr"].first, solarise=0.5)
    alone = bare(view, samples).pair(samples, Generator().manual_seed(0))
    three = samples.expand(-1, 3, -1, -1)
    tripled = bare(view, three).pair(three, Generator().manual_seed(0))
    for one, all_three in zip(alone, tripled, strict=True):
        torch.testing.assert_close(one.expand(-1, 3, -1, -1), all_three, atol=TIGHT, rtol=0)


def test_no_augmentation_is_the_plain_image() -> None:
    samples = images(4, 3, 16, 24)
    maker = replace(IMAGE_PRESETS["none"], size=12).maker((3, 16, 24), (0.5,) * 3, (0.2,) * 3)
    for view in maker.pair(samples, Generator()):
        assert torch.equal(view, maker.plain(samples))
    other = replace(IMAGE_PRESETS["none"], second=Augmentation(flip=1)).maker((3, 16, 16), (0.5,) * 3, (0.2,) * 3)
    square = images(4)
    first, second = other.pair(square, Generator())
    torch.testing.assert_close(first, other.plain(square), atol=1e-4, rtol=0)
    torch.testing.assert_close(second, other.plain(square).flip(3), atol=1e-4, rtol=0)


def test_plain_is_normalised_and_nothing_else() -> None:
    samples = images()
    maker = IMAGE_PRESETS["simclr"].maker((3, 16, 16), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    mean, std = (np.array(values)[:, None, None] for values in ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)))
    exactly(maker.plain(samples), (in_unit(samples) - mean) / std)


@pytest.mark.parametrize("size", [10, 40])
def test_plain_resizes_the_square_in_the_middle(size: int) -> None:
    samples = images(3, 3, 20, 32)
    plain = bare(Augmentation(), samples, size).plain(samples)
    width = round(32 * size / 20)
    for view, sample in zip(plain, samples, strict=True):
        picture = Image.fromarray(sample.permute(1, 2, 0).numpy()).resize((width, size), Image.Resampling.BILINEAR)
        left = (width - size) // 2
        expected = np.asarray(picture)[:, left : left + size].transpose(2, 0, 1) / 255
        np.testing.assert_allclose(view.numpy(), expected, atol=1.01 / 255)  # it rounds twice


def test_large_images_are_reduced_without_aliasing() -> None:
    stripes = torch.zeros(2, 1, 64, 64, dtype=torch.uint8)
    stripes[:, :, :, ::4] = 255
    view = bare(Augmentation(flip=0.5), stripes, 16).pair(stripes, Generator().manual_seed(0))[0]
    picked = F.interpolate(stripes.float() / 255, (16, 16), mode="bilinear")
    inside = (..., slice(2, -2))
    assert float((view[inside] - 0.25).abs().max()) < 0.01
    assert float((picked[inside] - 0.25).abs().max()) > 0.2


@pytest.mark.parametrize("threads", [1, 2])
def test_views_are_a_function_of_samples_and_seed(threads: int) -> None:
    samples = images(200)
    maker = replace(IMAGE_PRESETS["byol"]).maker((3, 16, 16), (0.5,) * 3, (0.2,) * 3)
    before = torch.get_num_threads()
    reference = maker.pair(samples, Generator().manual_seed(5))
    torch.manual_seed(123)  # the global generator plays no part
    try:
        torch.set_num_threads(threads)
        again = maker.pair(samples, Generator().manual_seed(5))
    finally:
        torch.set_num_threads(before)
    other = maker.pair(samples, Generator().manual_seed(6))
    for first, second, third in zip(reference, again, other, strict=True):
        assert torch.equal(first, second)
        assert not torch.equal(first, third)


def test_no_images_have_no_views() -> None:
    first, second = bare(IMAGE_PRESETS["cifar"].first, images()).pair(images(0), Generator())
    assert first.shape == second.shape == (0, 3, 16, 16)


def test_a_generator_goes_on_from_batch_to_batch() -> None:
    samples = images()
    maker = bare(IMAGE_PRESETS["cifar"].first, samples)
    generator = Generator().manual_seed(0)
    first = maker.pair(samples, generator)[0]
    state = generator.get_state()
    second = maker.pair(samples, generator)[0]
    generator.set_state(state)
    assert not torch.equal(first, second)
    assert torch.equal(maker.pair(samples, generator)[0], second)


def test_the_views_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = images(50)
    maker = IMAGE_PRESETS["byol"].maker((3, 16, 16), (0.5,) * 3, (0.2,) * 3)
    whole = maker.pair(samples, Generator().manual_seed(0))
    monkeypatch.setattr(module, "_BLOCK", 7 * 2 * 3 * 16 * 16)
    pieces = maker.pair(samples, Generator().manual_seed(0))
    for one, other in zip(whole, pieces, strict=True):
        torch.testing.assert_close(one, other, atol=TIGHT, rtol=0)


class _Allocations(TorchDispatchMode):
    """Remembers the sizes, in bytes, of the memory behind whatever any operation returned."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.sizes.add(result.untyped_storage().nbytes())
        return result


def test_memory_is_bounded_beside_the_views(monkeypatch: pytest.MonkeyPatch) -> None:
    image = 3 * 16 * 16
    monkeypatch.setattr(module, "_BLOCK", 10 * 2 * image)
    largest = {}
    for n in (30, 120):
        samples = images(n)
        with _Allocations() as allocated:
            bare(IMAGE_PRESETS["simclr"].first, samples).pair(samples, Generator().manual_seed(0))
        given = {samples.nbytes, 2 * 4 * n * image}  # the samples, and both views of them
        assert given <= allocated.sizes
        largest[n] = max(allocated.sizes - given)
    assert largest[30] == largest[120]


def test_channels_last_and_transposed_samples_give_the_same_views() -> None:
    samples = images()
    maker = bare(IMAGE_PRESETS["simclr"].first, samples)
    reference = maker.pair(samples, Generator().manual_seed(0))
    for order in ((0, 2, 3, 1), (0, 1, 3, 2)):
        back = [order.index(axis) for axis in range(4)]
        strided = samples.permute(order).contiguous().permute(back)
        assert not strided.is_contiguous()
        for one, other in zip(reference, maker.pair(strided, Generator().manual_seed(0)), strict=True):
            assert torch.equal(one, other)
            assert other.is_contiguous()


def test_byol_is_asymmetric() -> None:
    preset = IMAGE_PRESETS["byol"]
    samples = images(500)
    maker = preset.maker((3, 16, 16), (0.5,) * 3, (0.2,) * 3)
    choices = maker.choose(samples, Generator().manual_seed(0))
    assert bool((choices.sigma[0] > 0).all())
    assert not bool(choices.solarise[0].any())
    assert 0 < int((choices.sigma[1] > 0).sum()) < 100
    assert 50 < int(choices.solarise[1].sum()) < 150
    first, second = maker.pair(samples, Generator().manual_seed(0))

    def roughness(view: Tensor) -> float:
        return float(view.diff(dim=3).abs().mean())

    assert roughness(first) < roughness(second)
    for name in ("simclr", "cifar", "stl10", "none"):
        assert IMAGE_PRESETS[name].first == IMAGE_PRESETS[name].second


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_are_the_bytes_again(channels: int) -> None:
    samples = images(channels=channels)
    maker = IMAGE_PRESETS["simclr"].maker((channels, 16, 16), [0.5, 0.4, 0.3][:channels], [0.2] * channels)
    assert torch.equal(maker.picture(maker.plain(samples)), samples.permute(0, 2, 3, 1))
    scenes = Scenes(SceneViews())
    grey = images(channels=1)
    assert torch.equal(scenes.picture(scenes.plain(grey)), grey.permute(0, 2, 3, 1))
    for view_maker in (maker, scenes):
        assert isinstance(view_maker, ViewMaker)
        assert isinstance(view_maker, Picturing)


def test_pictures_are_clamped() -> None:
    maker = bare(Augmentation(), images())
    colours = torch.tensor([-0.3, 0.0, 0.5, 1.0, 1.7]).repeat(1, 3, 5, 1)
    assert maker.picture(colours)[0, 0, :, 0].tolist() == [0, 0, 128, 255, 255]


def test_what_cannot_be_seen_is_refused() -> None:
    settings = ImageViews()
    with pytest.raises(BadInput, match="1 or 3 channels, not 4"):
        settings.maker((4, 16, 16), (0.5,) * 4, (0.2,) * 4)
    with pytest.raises(BadInput, match="24x16 pixels are not square"):
        settings.maker((3, 16, 24), (0.5,) * 3, (0.2,) * 3)


def test_everything_stays_on_the_device_of_the_samples() -> None:
    samples = images()
    maker = IMAGE_PRESETS["byol"].maker((3, 16, 16), (0.5,) * 3, (0.2,) * 3)
    choices = maker.choose(samples, Generator().manual_seed(0))
    # Tensors without values, which refuse to meet those of another device.
    elsewhere = Choices(*(choice.to("meta") for choice in choices))
    views = maker.drawn(samples.to("meta"), elsewhere)
    assert {view.device.type for view in (*views, maker.plain(samples.to("meta")))} == {"meta"}
    assert maker.picture(views[0]).device.type == "meta"
    with pytest.raises(RuntimeError, match="device"):
        maker.drawn(samples.to("meta"), choices)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_views_on_a_gpu_are_those_on_the_cpu() -> None:
    samples = images(64)
    maker = IMAGE_PRESETS["byol"].maker((3, 16, 16), (0.5,) * 3, (0.2,) * 3)
    choices = maker.choose(samples, Generator().manual_seed(0))
    there = maker.drawn(samples.cuda(), Choices(*(choice.cuda() for choice in choices)))
    for here, view in zip(maker.drawn(samples, choices), there, strict=True):
        torch.testing.assert_close(view.cpu(), here, atol=1e-3, rtol=0)
    assert maker.pair(samples.cuda(), Generator("cuda"))[0].is_cuda
