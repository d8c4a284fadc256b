"""Readers of the official binary files of published image collections.

CIFAR-10 and -100: one or two label bytes, then 32 × 32 pixels as a red, a green and a blue plane, row by row.
STL-10: planes of 96 × 96 pixels, column by column, without labels, which are numbered from 1 in other files.
MNIST and Fashion-MNIST (IDX): a magic number, the size along every dimension, then the bytes, row by row.
"""

import gzip
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, Int64, UInt8
from numpy.typing import NDArray
from torch import Tensor

from twofold.data.source import Split
from twofold.errors import BadInput

ImageArray = UInt8[np.ndarray, "n channels height width"]
LabelArray = Int64[np.ndarray, " n"]


def read_cifar(path: Path, classes: Sequence[int]) -> tuple[ImageArray, LabelArray]:
    """Read a batch of CIFAR; ``classes`` are the numbers of classes of the label bytes, of which the last is kept."""
    width = len(classes) + 3 * 32 * 32
    records = _records(path, width, f"{len(classes)} label byte(s) and 3 × 32 × 32 pixels")
    for column, count in enumerate(classes):
        _within(path, records[:, column], 0, count - 1)
    images = records[:, len(classes) :].reshape(-1, 3, 32, 32)
    return np.asarray(images), np.array(records[:, len(classes) - 1], np.int64)


def read_stl_images(path: Path) -> ImageArray:
    """Map a file of STL-10 images; its columns become rows only when samples are taken."""
    return _records(path, 3 * 96 * 96, "3 × 96 × 96 pixels").reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2)


def read_stl_labels(path: Path) -> LabelArray:
    """Read the labels 1 to 10 of STL-10 as 0 to 9."""
    labels = _records(path, 1, "one label")[:, 0]
    _within(path, labels, 1, 10)
    return np.array(labels, np.int64) - 1


def read_idx(path: Path, shape: tuple[int, ...]) -> UInt8[np.ndarray, "n ..."]:
    """Map an IDX file of unsigned bytes whose samples have this shape, () for labels."""
    content = _content(path)
    head = 4 * (2 + len(shape))
    if len(content) < head:
        raise _malformed(path, f"{len(content)} bytes", f"a header of {head} bytes")
    magic, count, *found = struct.unpack(f">{2 + len(shape)}I", content[:head].tobytes())
    expected = 0x801 + len(shape)  # 0x08 for unsigned bytes, then the number of dimensions
    if magic != expected:
        raise _malformed(path, f"the magic number 0x{magic:08x}", f"0x{expected:08x}")
    if tuple(found) != shape:
        raise _malformed(path, f"samples of {' × '.join(map(str, found))}", " × ".join(map(str, shape)))
    if count == 0 or len(content) != head + count * prod(shape):
        wanted = f"{head + count * prod(shape)} bytes for the {count} samples that it announces"
        raise _malformed(path, f"{len(content)} bytes", wanted if count else "at least one sample")
    return content[head:].reshape(count, *shape)


def _records(path: Path, width: int, what: str) -> UInt8[np.ndarray, "n width"]:
    """Map a file that is nothing but records of one width."""
    content = _content(path)
    if len(content) == 0 or len(content) % width:
        raise _malformed(path, f"{len(content)} bytes", f"a multiple of {width} ({what})")
    return content.reshape(-1, width)


def _content(path: Path) -> UInt8[np.ndarray, " bytes"]:
    """Map the bytes of a file, or unpack those of a ``.gz`` into memory."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                return np.frombuffer(stream.read(), np.uint8)
        # An empty file cannot be mapped.
        return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"'{path}' cannot be read: {reason}") from error


def _within(path: Path, labels: UInt8[np.ndarray, " n"], least: int, greatest: int) -> None:
    """Refuse labels out of range."""
    wrong = labels[(labels < least) | (labels > greatest)]
    if len(wrong):
        raise _malformed(path, f"the label {wrong[0]}", f"labels from {least} to {greatest}")


def _malformed(path: Path, found: str, expected: str) -> BadInput:
    return BadInput(f"'{path}' is malformed or truncated: found {found}, expected {expected}")


@dataclass(frozen=True, eq=False)
class Contents:
    """The official splits of a collection."""

    train: Split
    test: Split
    unlabelled: ImageArray | None = None


@dataclass(frozen=True, eq=False)
class Joined(Split):
    """Samples, then ``more`` of them; both stay where they are, so that neither is copied to join them."""

    more: ImageArray = field(kw_only=True)

    def __len__(self) -> int:
        return len(self.samples) + len(self.more)

    def take(self, rows: Int[Tensor, " batch"] | slice) -> Tensor:
        """Copy these rows, counted through both parts, into a tensor."""
        index = np.arange(len(self))[rows if isinstance(rows, slice) else rows.numpy()]
        later = index - len(self.samples)
        taken = np.empty((len(index), *self.samples.shape[1:]), self.samples.dtype)
        taken[later < 0] = self.samples[index[later < 0]]
        taken[later >= 0] = self.more[later[later >= 0]]
        return torch.from_numpy(taken)

    def subset(self, rows: NDArray[np.int64]) -> Split:
        """Copy these rows into a split of their own."""
        return Split(self.take(torch.from_numpy(rows)).numpy())


def present(folder: Path, name: str) -> Path:
    """Return the path of a file, or of its ``.gz`` where only that is there."""
    plain, packed = folder / name, folder / f"{name}.gz"
    return packed if exists(packed) and not exists(plain) else plain


def exists(path: Path) -> bool:
    """Tell whether there is such a file; not even a folder that may not be entered is an error."""
    return os.access(path, os.F_OK)


def _labelled(path: Path, images: ImageArray, labels: Int64[np.ndarray, " labels"]) -> Split:
    """Put together images and the labels that were read from ``path``."""
    if len(images) != len(labels):
        raise BadInput(f"'{path}' has {len(labels)} labels for {len(images)} images")
    return Split(images, labels)


def cifar_folder(folder: Path, train: Sequence[str], test: str, classes: Sequence[int]) -> Contents:
    """Read a folder of CIFAR's batches."""
    batches = [read_cifar(present(folder, name), classes) for name in train]
    images, labels = (np.concatenate(part) for part in zip(*batches, strict=True))
    return Contents(Split(images, labels), Split(*read_cifar(present(folder, test), classes)))


def stl_folder(folder: Path) -> Contents:
    """Map a folder of STL-10; its images stay on disk."""

    def part(name: str) -> Split:
        labels = present(folder, f"{name}_y.bin")
        return _labelled(labels, read_stl_images(present(folder, f"{name}_X.bin")), read_stl_labels(labels))

    return Contents(part("train"), part("test"), read_stl_images(present(folder, "unlabeled_X.bin")))


def mnist_folder(folder: Path) -> Contents:
    """Read a folder of MNIST, or of a collection in its format."""

    def part(name: str) -> Split:
        path = present(folder, f"{name}-labels-idx1-ubyte")
        labels = read_idx(path, ())
        _within(path, labels, 0, 9)
        images = read_idx(present(folder, f"{name}-images-idx3-ubyte"), (28, 28))
        return _labelled(path, images[:, None], np.array(labels, np.int64))

    return Contents(part("train"), part("t10k"))
