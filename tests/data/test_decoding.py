"""Every kind of image file becomes the square that it shows, and every broken one an error with a reason."""

import io
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageOps

from twofold.data.decoding import Undecodable, Unreadable, decode

RANDOM = np.random.default_rng(0)
WHITE = [255, 255, 255]


def photograph(width: int, height: int) -> Image.Image:
    """Draw something smooth, in which every shift can be seen."""
    coarse = RANDOM.integers(0, 256, (height // 12, width // 12, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def plain(colour: object, mode: str, size: tuple[int, int] = (12, 12)) -> Image.Image:
    return Image.new(mode, size, colour)  # type: ignore[arg-type]


def saved(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)  # type: ignore[arg-type]
    return path


def colours(square: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the different colours of a decoded square."""
    return np.unique(square.reshape(3, -1).T, axis=0)


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.ppm", "a.gif", "a.webp"])
def test_a_square_of_the_right_size_is_returned_as_it_is(tmp_path: Path, name: str) -> None:
    pixels = RANDOM.integers(0, 2, (8, 8, 3), dtype=np.uint8) * 255
    options = {"lossless": True} if name == "a.webp" else {}
    found = decode(saved(Image.fromarray(pixels), tmp_path / name, **options), 8)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, pixels.transpose(2, 0, 1))


@pytest.mark.parametrize("size", [(60, 20), (20, 60)])
def test_the_middle_is_kept(tmp_path: Path, size: tuple[int, int]) -> None:
    image = plain("red", "RGB", size)
    image.paste("lime", ((size[0] - 20) // 2, (size[1] - 20) // 2, (size[0] + 20) // 2, (size[1] + 20) // 2))
    found = decode(saved(image, tmp_path / "a.png"), 8)
    np.testing.assert_array_equal(colours(found[:, 1:-1, 1:-1]), [[0, 255, 0]])
    assert found[1].min() > 225  # at the border the filter looks a pixel further


def test_reducing_antialiases(tmp_path: Path) -> None:
    """A fine checkerboard becomes grey; without a filter it would become black and white."""
    board = (np.indices((96, 96)).sum(axis=0) % 2 * 255).astype(np.uint8)
    found = decode(saved(Image.fromarray(board), tmp_path / "a.png"), 16)
    assert np.abs(found[:, 2:-2, 2:-2].astype(int) - 127).max() < 8
    assert set(np.unique(board[::6, ::7])) == {0, 255}


@pytest.mark.parametrize("size", [(501, 375), (375, 502)])
def test_quick_jpegs_are_where_slow_ones_are(tmp_path: Path, size: tuple[int, int]) -> None:
    """Decoding at reduced size must not shift the picture, not even by a part of a pixel."""
    path = saved(photograph(*size), tmp_path / "a.jpg", quality=95)
    (width, height), edge = size, min(size)
    found = decode(path, 32).transpose(1, 2, 0)

    def distance(shift: int) -> float:
        """Compare with a slow decoding, the square in its middle moved along the longer side."""
        left, upper = (width - edge) / 2 + shift * (width > height), (height - edge) / 2 + shift * (width < height)
        with Image.open(path) as image:
            slow = image.resize((32, 32), Image.Resampling.BICUBIC, box=(left, upper, left + edge, upper + edge))
        return float(np.sqrt(np.mean((found - np.asarray(slow, float)) ** 2)))

    assert distance(0) < 1.5  # of 255: it is not quite the same filter
    assert distance(1) > 1.5  # the control: one pixel, a twelfth of one that is returned


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".webp"])
def test_pictures_are_put_upright(tmp_path: Path, orientation: int, suffix: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(photograph(60, 36), tmp_path / f"a{suffix}", exif=exif)
    with Image.open(path) as image:
        image.load()
        upright = saved(ImageOps.exif_transpose(image), tmp_path / "upright.png")
    difference = decode(path, 12).astype(int) - decode(upright, 12)
    assert np.abs(difference).max() <= 1


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
@pytest.mark.parametrize("level", [0, 1, 128, 254, 255])
def test_greys_of_sixteen_bits_are_scaled(tmp_path: Path, suffix: str, level: int) -> None:
    greys = np.full((9, 9), level * 257, np.uint16)
    path = saved(Image.fromarray(greys), tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(colours(decode(path, 8)), [[level] * 3])


def test_greys_of_thirty_two_bits(tmp_path: Path) -> None:
    half = saved(Image.fromarray(np.full((9, 9), 0.6, np.float32)), tmp_path / "half.tif")
    np.testing.assert_array_equal(colours(decode(half, 8)), [[153] * 3])
    for number, value in enumerate([np.float32(2), np.float32(-1), np.float32(np.nan), np.int32(70_000)]):
        path = saved(Image.fromarray(np.full((9, 9), value)), tmp_path / f"{number}.tif")
        with pytest.raises(Undecodable, match="greys of 32 bits"):
            decode(path, 8)


@pytest.mark.parametrize(
    ("image", "suffix", "expected"),
    [
        (plain((255, 0, 0, 0), "CMYK"), ".tif", [0, 255, 255]),
        (plain(100, "L"), ".png", [100, 100, 100]),
        (plain(1, "1"), ".png", WHITE),
        (plain("blue", "RGB").quantize(2), ".png", [0, 0, 255]),
        (plain((10, 20, 30, 255), "RGBA"), ".png", [10, 20, 30]),
        (plain((10, 20, 30, 0), "RGBA"), ".png", WHITE),
        (plain((0, 0), "LA"), ".png", WHITE),
        (plain((0, 51), "LA"), ".png", [204, 204, 204]),
    ],
)
def test_every_mode_becomes_rgb(tmp_path: Path, image: Image.Image, suffix: str, expected: list[int]) -> None:
    np.testing.assert_array_equal(colours(decode(saved(image, tmp_path / f"a{suffix}"), 8)), [expected])


def test_cmyk_jpeg(tmp_path: Path) -> None:
    path = saved(plain((0, 255, 255, 0), "CMYK"), tmp_path / "a.jpg", quality=95)
    assert np.abs(decode(path, 8).astype(int) - np.array([255, 0, 0])[:, None, None]).max() < 6


@pytest.mark.parametrize("mode", ["P", "RGB", "L"])
def test_a_transparent_colour_shows_white(tmp_path: Path, mode: str) -> None:
    image = plain("black", "RGB").convert(mode)
    transparent = (0, 0, 0) if mode == "RGB" else image.getpixel((0, 0))
    path = saved(image, tmp_path / "a.png", transparency=transparent)
    np.testing.assert_array_equal(colours(decode(path, 8)), [WHITE])


@pytest.mark.parametrize("suffix", [".gif", ".png", ".webp", ".tif"])
def test_an_animation_gives_its_first_frame(tmp_path: Path, suffix: str) -> None:
    frames = [plain(colour, "RGB") for colour in ("red", "lime", "blue")]
    options = {"lossless": True} if suffix == ".webp" else {}
    path = saved(frames[0], tmp_path / f"a{suffix}", save_all=True, append_images=frames[1:], **options)
    with Image.open(path) as image:
        assert getattr(image, "n_frames", 1) == 3
    np.testing.assert_array_equal(colours(decode(path, 8)), [[255, 0, 0]])


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".gif", ".webp", ".tif", ".bmp"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_truncated_files_are_refused(tmp_path: Path, suffix: str, share: float) -> None:
    path = saved(photograph(80, 60), tmp_path / f"a{suffix}")
    content = path.read_bytes()
    assert decode(path, 8).shape == (3, 8, 8)
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(Undecodable):
        decode(path, 8)


def test_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(path: Path) -> str:
        with pytest.raises(Undecodable) as caught:
            decode(path, 8)
        return str(caught.value)

    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_text("not an image")
    (tmp_path / "folder.jpg").mkdir()
    os.mkfifo(tmp_path / "pipe.jpg")
    large = saved(photograph(120, 60), tmp_path / "large.png")
    assert reason(tmp_path / "empty.jpg") == "empty"
    assert reason(tmp_path / "text.jpg") == "not an image of a known format"
    assert reason(tmp_path / "folder.jpg") == reason(tmp_path / "pipe.jpg") == "not a file"
    assert decode(large, 8).shape == (3, 8, 8)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 120 * 60 // 2 - 1)
    assert reason(large) == "too many pixels to be decoded safely"


def test_what_the_system_refuses_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        decode(tmp_path / "missing.jpg", 8)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = saved(photograph(24, 24), tmp_path / "a.png")
    monkeypatch.setattr(Image, "open", refuse)
    with pytest.raises(Unreadable, match="Permission denied"):
        decode(path, 8)


def test_postscript_is_not_run_whatever_its_name(tmp_path: Path) -> None:
    path = saved(plain("red", "RGB"), tmp_path / "a.eps").rename(tmp_path / "a.jpg")
    with Image.open(path) as image:
        assert image.format == "EPS"
    with pytest.raises(Undecodable, match="not an image of a known format"):
        decode(path, 8)


def test_little_memory_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(plain("red", "RGB"), tmp_path / "a.png")

    def exhaust(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "resize", exhaust)
    with pytest.raises(Unreadable, match="not enough memory"):
        decode(path, 8)


JPEG, PNG = io.BytesIO(), io.BytesIO()
photograph(36, 24).save(JPEG, "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0")
photograph(36, 24).save(PNG, "PNG")


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([JPEG.getvalue(), PNG.getvalue()]),
    st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_damage_gives_an_image_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, damage: list[tuple[int, int]]
) -> None:
    broken = bytearray(content)
    for place, value in damage:
        broken[place % len(broken)] = value
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(broken)
    with suppress(Undecodable):
        found = decode(path, 8)
        assert (found.shape, found.dtype) == ((3, 8, 8), np.uint8)
