"""The readers return what was written, byte by byte, and refuse everything else in one sentence."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from twofold.data.binary import (
    Joined,
    cifar_folder,
    mnist_folder,
    present,
    read_cifar,
    read_idx,
    read_stl_images,
    read_stl_labels,
    stl_folder,
)
from twofold.errors import BadInput

RANDOM = np.random.default_rng(0)


def pictures(n: int, channels: int, side: int) -> NDArray[np.uint8]:
    return RANDOM.integers(0, 256, (n, channels, side, side), dtype=np.uint8)


def cifar_bytes(images: NDArray[np.uint8], *labels: NDArray[np.uint8]) -> bytes:
    return b"".join(bytes(row) + image.tobytes() for *row, image in zip(*labels, images, strict=True))


def stl_bytes(images: NDArray[np.uint8]) -> bytes:
    """Write pixel by pixel: by image, channel, column, row."""
    return bytes(image[c, y, x] for image in images for c in range(3) for x in range(96) for y in range(96))


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_cifar_with_one_label_byte_reads_back(tmp_path: Path) -> None:
    images, labels = pictures(7, 3, 32), np.arange(7, dtype=np.uint8)
    found = read_cifar(write(tmp_path / "batch.bin", cifar_bytes(images, labels)), (10,))
    np.testing.assert_array_equal(found[0], images)
    np.testing.assert_array_equal(found[1], labels)


def test_cifar100_keeps_the_fine_label(tmp_path: Path) -> None:
    images = pictures(4, 3, 32)
    coarse, fine = np.array([0, 19, 3, 4], np.uint8), np.array([99, 0, 50, 20], np.uint8)
    found = read_cifar(write(tmp_path / "train.bin", cifar_bytes(images, coarse, fine)), (20, 100))
    np.testing.assert_array_equal(found[0], images)
    np.testing.assert_array_equal(found[1], fine)


def test_stl_is_read_column_by_column(tmp_path: Path) -> None:
    images = pictures(2, 3, 96)
    path = write(tmp_path / "train_X.bin", stl_bytes(images))
    np.testing.assert_array_equal(read_stl_images(path), images)
    assert not np.array_equal(read_stl_images(path), images.transpose(0, 1, 3, 2))
    assert isinstance(read_stl_images(path), np.memmap)


def test_stl_labels_start_at_one(tmp_path: Path) -> None:
    assert read_stl_labels(write(tmp_path / "y.bin", bytes([1, 10, 5]))).tolist() == [0, 9, 4]
    for wrong in (0, 11):
        with pytest.raises(BadInput, match=f"found the label {wrong}, expected labels from 1 to 10"):
            read_stl_labels(write(tmp_path / "y.bin", bytes([1, wrong])))


@pytest.mark.parametrize("packed", [False, True])
def test_idx_reads_back_plain_and_packed(tmp_path: Path, packed: bool) -> None:
    images, labels = pictures(5, 1, 28)[:, 0], np.arange(5, dtype=np.uint8)
    suffix, pack = (".gz", gzip.compress) if packed else ("", bytes)
    found = read_idx(write(tmp_path / f"images{suffix}", pack(idx_bytes(images))), (28, 28))
    np.testing.assert_array_equal(found, images)
    found = read_idx(write(tmp_path / f"labels{suffix}", pack(idx_bytes(labels))), ())
    np.testing.assert_array_equal(found, labels)


IMAGES = idx_bytes(pictures(3, 1, 28)[:, 0])
MALFORMED_IDX = {
    "empty": (b"", "found 0 bytes, expected a header of 16 bytes"),
    "header cut": (IMAGES[:9], "found 9 bytes, expected a header of 16 bytes"),
    "labels": (idx_bytes(np.zeros(4000, np.uint8)), "magic number 0x00000801, expected 0x00000803"),
    "floats": (b"\0\0\x0d\x03" + IMAGES[4:], "magic number 0x00000d03, expected 0x00000803"),
    "other size": (idx_bytes(np.zeros((2, 32, 32), np.uint8)), "samples of 32 × 32, expected 28 × 28"),
    "truncated": (IMAGES[:-1], f"found {len(IMAGES) - 1} bytes, expected {len(IMAGES)} bytes"),
    "too long": (IMAGES + b"\0", f"found {len(IMAGES) + 1} bytes, expected {len(IMAGES)} bytes"),
    "huge": (IMAGES[:4] + b"\xff" * 4 + IMAGES[8:], "for the 4294967295 samples"),
    "no samples": (idx_bytes(np.zeros((0, 28, 28), np.uint8)), "at least one sample"),
}


@pytest.mark.parametrize(("content", "says"), MALFORMED_IDX.values(), ids=list(MALFORMED_IDX))
def test_malformed_idx_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = write(tmp_path / "images", content)
    with pytest.raises(BadInput, match=says) as caught:
        read_idx(path, (28, 28))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\0", bytes(3072), bytes(3 * 3073 - 1)])
def test_cifar_of_a_wrong_size_is_named(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "batch.bin", content)
    with pytest.raises(BadInput, match=f"found {len(content)} bytes, expected a multiple of 3073") as caught:
        read_cifar(path, (10,))
    assert str(path) in str(caught.value)


def test_cifar_labels_out_of_range_are_named(tmp_path: Path) -> None:
    images = pictures(2, 3, 32)
    path = write(tmp_path / "b.bin", cifar_bytes(images, np.array([3, 10], np.uint8)))
    with pytest.raises(BadInput, match="found the label 10, expected labels from 0 to 9"):
        read_cifar(path, (10,))
    coarse_out_of_range = cifar_bytes(images, np.array([3, 20], np.uint8), np.array([3, 20], np.uint8))
    with pytest.raises(BadInput, match="found the label 20, expected labels from 0 to 19"):
        read_cifar(write(path, coarse_out_of_range), (20, 100))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(BadInput, match="cannot be read") as caught:
            read_cifar(path, (10,))
        assert str(path) in str(caught.value)
    whole = gzip.compress(IMAGES)
    for content in (whole[:-9], whole[:20], b"no gzip at all", whole[:30] + b"\xff\xff\xff" + whole[33:]):
        with pytest.raises(BadInput, match="cannot be read"):
            read_idx(write(tmp_path / "images.gz", content), (28, 28))


def test_images_and_labels_must_be_as_many(tmp_path: Path) -> None:
    for part in ("train", "t10k"):
        write(tmp_path / f"{part}-images-idx3-ubyte", IMAGES)
        write(tmp_path / f"{part}-labels-idx1-ubyte", idx_bytes(np.zeros(4, np.uint8)))
    with pytest.raises(BadInput, match="train-labels-idx1-ubyte' has 4 labels for 3 images"):
        mnist_folder(tmp_path)
    for part in ("train", "t10k"):
        write(tmp_path / f"{part}-labels-idx1-ubyte", idx_bytes(np.array([0, 10, 1], np.uint8)))
    with pytest.raises(BadInput, match="found the label 10, expected labels from 0 to 9"):
        mnist_folder(tmp_path)


def test_the_batches_of_cifar_are_put_together_in_order(tmp_path: Path) -> None:
    parts = [pictures(2, 3, 32) for _ in range(3)]
    for i, images in enumerate(parts):
        write(tmp_path / f"{i}.bin", cifar_bytes(images, np.full(2, i, np.uint8)))
    contents = cifar_folder(tmp_path, train=["0.bin", "1.bin"], test="2.bin", classes=(10,))
    np.testing.assert_array_equal(contents.train.samples, np.concatenate(parts[:2]))
    assert contents.train.labels is not None
    assert contents.train.labels.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(contents.test.samples, parts[2])


def test_stl_has_three_parts(tmp_path: Path) -> None:
    for name in ("train", "test", "unlabeled"):
        write(tmp_path / f"{name}_X.bin", bytes(2 * 3 * 96 * 96))
        write(tmp_path / f"{name}_y.bin", bytes([1, 2]))
    contents = stl_folder(tmp_path)
    assert (len(contents.train), len(contents.test)) == (2, 2)
    assert contents.unlabelled is not None
    assert contents.unlabelled.shape == (2, 3, 96, 96)


def test_a_plain_file_comes_before_a_packed_one(tmp_path: Path) -> None:
    packed = write(tmp_path / "file.gz", b"")
    assert present(tmp_path, "file") == packed
    plain = write(tmp_path / "file", b"")
    assert present(tmp_path, "file") == plain
    assert present(tmp_path, "other") == tmp_path / "other"


def test_joined_takes_what_a_concatenation_would() -> None:
    first, second = pictures(5, 3, 4), pictures(4, 3, 4)
    joined, whole = Joined(first, more=second), np.concatenate([first, second])
    assert len(joined) == 9
    for rows in ([0, 8], [4, 5, 4, 5], [8, 0, 3, 6], [-1], []):
        index = torch.tensor(rows, dtype=torch.int64)
        np.testing.assert_array_equal(joined.take(index).numpy(), whole[index.numpy()])
        np.testing.assert_array_equal(joined.subset(index.numpy()).samples, whole[index.numpy()])
    for part in (slice(0, 3), slice(3, 7), slice(6, None), slice(None, None, 2), slice(20, 30)):
        np.testing.assert_array_equal(joined.take(part).numpy(), whole[part])
    with pytest.raises(IndexError):
        joined.take(torch.tensor([9]))


def survives(read: object, content: bytes, folder: Path) -> None:
    """Read, or refuse with one sentence that names the file."""
    path = write(folder / "file", content)
    try:
        assert callable(read)
        read(path)
    except BadInput as error:
        assert str(path) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017


@given(st.binary(max_size=200) | st.integers(0, 4).flatmap(lambda n: st.just(bytes(n * 3073))))
def test_any_bytes_are_cifar_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    survives(lambda path: read_cifar(path, (10,)), content, tmp_path_factory.getbasetemp() / "fuzz")


headers = st.tuples(st.sampled_from([0x803, 0x801, 0x802, 0xD03]), *[st.integers(0, 40)] * 3)


@given(st.binary(max_size=200) | st.tuples(headers, st.binary(max_size=2000)))
def test_any_bytes_are_idx_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | tuple[tuple[int, ...], bytes]
) -> None:
    if isinstance(content, tuple):
        content = struct.pack(">4I", *content[0]) + content[1]
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    survives(lambda path: read_idx(path, (28, 28)), content, folder)
    survives(lambda path: read_idx(path, ()), content, folder)


@given(st.integers(0, 200), st.integers(0, 255), st.sampled_from(["cut", "changed"]))
def test_a_damaged_gzip_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int, how: str
) -> None:
    whole = gzip.compress(idx_bytes(np.arange(200, dtype=np.uint8)), mtime=0)
    content = whole[:at] if how == "cut" else whole[:at] + bytes([value]) + whole[at + 1 :]
    path = write(tmp_path_factory.getbasetemp() / "fuzz" / "labels.gz", content)
    try:
        np.testing.assert_array_equal(read_idx(path, ()), np.arange(200))
    except BadInput as error:
        assert str(path) in str(error)  # noqa: PT017
