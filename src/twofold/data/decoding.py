"""One image file, of whatever kind, as a small square of pixels."""

import os
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "AVIF", "HEIF", "JPEG2000", "PPM", "TGA")
"""What is decoded, where Pillow can; not all that it knows: it gives PostScript to an interpreter, for one."""

DETAIL = 2
"""Pixels to each pixel of the square that a quick reduction leaves for the antialiasing filter."""

WHITE = {"F": 1.0, "I": 65535.0}
"""What is white in the modes of more than 8 bits, by their first letter."""

TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""What puts a picture upright, by its EXIF orientation."""


class Undecodable(Exception):
    """The file is no whole image; the message says why."""


class Unreadable(Undecodable):
    """The system refused to read the file, which can be mended without a change to the file."""


def decode(path: Path, side: int) -> UInt8[np.ndarray, "3 side side"]:
    """Return the centre square of an image as RGB, upright, its shorter side scaled to ``side``.

    Greys of 16 bits are scaled, not clipped; what is transparent shows white; an animation gives its first
    frame. Values of 32 bits are read as greys of 16 bits, floats as greys from 0 to 1.
    """
    from PIL import Image, UnidentifiedImageError  # heavy to import

    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would be to wait for somebody to write into it
            raise Undecodable("not a file")
        if status.st_size == 0:
            raise Undecodable("empty")
        with Image.open(path, formats=_formats()) as image:
            return _pixels(image, side)
    except Undecodable:
        raise
    except UnidentifiedImageError as error:
        raise Undecodable("not an image of a known format") from error
    except Image.DecompressionBombError as error:
        raise Undecodable("too many pixels to be decoded safely") from error
    except MemoryError as error:
        raise Unreadable("not enough memory") from error
    except Exception as error:  # what a broken file makes a decoder raise has no bounds
        if isinstance(error, OSError) and error.errno is not None:
            raise Unreadable(os.strerror(error.errno)) from error
        raise Undecodable(" ".join(str(error).split()) or type(error).__name__) from error


@cache
def _formats() -> tuple[str, ...]:
    """Return those of the formats that this Pillow was built with."""
    from PIL import Image  # heavy to import

    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _pixels(image: "Image", side: int) -> UInt8[np.ndarray, "3 side side"]:
    from PIL import ExifTags, Image  # heavy to import

    reduced = image.draft(None, (DETAIL * side, DETAIL * side))
    image.load()
    # A reduced JPEG is a fraction of a pixel smaller than its whole number of pixels.
    width, height = reduced[1][2:] if reduced else image.size
    edge = min(width, height)
    left, upper = (width - edge) / 2, (height - edge) / 2
    square = _eight_bits(image).resize(
        (side, side),
        Image.Resampling.BICUBIC,
        box=(left, upper, left + edge, upper + edge),
        reducing_gap=DETAIL,
    )
    if square.mode == "RGBA":
        paper = Image.new("RGBA", square.size, "white")
        paper.alpha_composite(square)
        square = paper.convert("RGB")
    if turn := TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1)):
        square = square.transpose(Image.Transpose[turn])
    return np.ascontiguousarray(np.asarray(square).transpose(2, 0, 1))


def _eight_bits(image: "Image") -> "Image":
    """Convert to RGB, or to RGBA where something may be transparent."""
    from PIL import Image  # heavy to import

    if white := WHITE.get(image.mode[0]):
        greys = np.asarray(image)
        if not (greys.min() >= 0 and greys.max() <= white):
            raise Undecodable(f"its greys of 32 bits are not all between 0 and {white:g}")
        image = Image.fromarray(np.round(greys * np.float32(255 / white)).astype(np.uint8))
    return image.convert("RGBA" if image.has_transparency_data else "RGB")
