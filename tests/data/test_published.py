"""Published collections are found where they should be, opened whole, and never mixed up."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Generator

from twofold.data.fetch import differing
from twofold.data.published import PUBLISHED, channel_statistics, data_root, find, locate, published
from twofold.data.source import Split
from twofold.data.views import IMAGE_PRESETS
from twofold.errors import BadInput

EACH = 20  # training images of a class, and as many test images in all


def numbered(n: int, shape: tuple[int, ...], start: int) -> NDArray[np.uint8]:
    """Make images that are all different: each begins with its own number."""
    images = np.random.default_rng(start).integers(0, 256, (n, *shape), dtype=np.uint8)
    images.reshape(n, -1)[:, :4] = np.arange(start, start + n, dtype="<u4").view(np.uint8).reshape(n, 4)
    return images


def numbers(samples: NDArray[np.uint8]) -> list[int]:
    """Read the numbers back, whichever way the images lie in memory."""
    first = np.stack([sample.reshape(-1)[:4] for sample in samples])
    return [int(number) for number in first.copy().view("<u4")[:, 0]]


def labels(n: int, classes: int) -> NDArray[np.uint8]:
    return (np.arange(n) % classes).astype(np.uint8)


def write_cifar(folder: Path, classes: int, train: list[str], test: str) -> None:
    def write(name: str, n: int, start: int) -> None:
        fine = labels(n, classes)[:, None]
        parts = [fine] if classes == 10 else [fine // 5, fine]
        rows = np.concatenate([*parts, numbered(n, (3072,), start)], axis=1)
        (folder / name).write_bytes(rows.tobytes())

    each = EACH * classes // len(train)
    for i, name in enumerate(train):
        write(name, each, i * each)
    write(test, EACH, 100_000)


def write_stl(folder: Path) -> None:
    for name, n, start in (("train", EACH * 10, 0), ("test", EACH, 100_000), ("unlabeled", 30, 200_000)):
        images = numbered(n, (3, 96, 96), start)
        (folder / f"{name}_X.bin").write_bytes(images.transpose(0, 1, 3, 2).tobytes())
        (folder / f"{name}_y.bin").write_bytes((labels(n, 10) + 1).tobytes())
    (folder / "unlabeled_y.bin").unlink()


def write_mnist(folder: Path, start: int = 0) -> None:
    for name, n, first in (("train", EACH * 10, start), ("t10k", EACH, start + 100_000)):
        images = numbered(n, (28, 28), first)
        head = struct.pack(">4I", 0x803, n, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        head = struct.pack(">2I", 0x801, n)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(head + labels(n, 10).tobytes())


WRITERS: dict[str, Callable[[Path], None]] = {
    "cifar10": lambda folder: write_cifar(folder, 10, [f"data_batch_{i}.bin" for i in range(1, 6)], "test_batch.bin"),
    "cifar100": lambda folder: write_cifar(folder, 100, ["train.bin"], "test.bin"),
    "stl10": write_stl,
    "mnist": write_mnist,
    "fashion-mnist": write_mnist,
}
SHAPES = {"cifar10": (3, 32, 32), "cifar100": (3, 32, 32), "stl10": (3, 96, 96)}


def write(name: str, root: Path) -> Path:
    folder = root / PUBLISHED[name].folder
    folder.mkdir(parents=True)
    WRITERS[name](folder)
    return folder


def whole(split: Split) -> NDArray[np.uint8]:
    return np.asarray(split.take(slice(None)).numpy())


def test_there_is_a_writer_for_each() -> None:
    assert WRITERS.keys() == PUBLISHED.keys()


@pytest.mark.parametrize("name", WRITERS)
def test_a_collection_is_opened_whole(tmp_path: Path, name: str) -> None:
    write(name, tmp_path)
    source = published(name, tmp_path)
    classes = len(PUBLISHED[name].classes)
    train, validation, test = source.train, source.validation, source.test
    assert test is not None
    assert (len(train), len(validation), len(test)) == (classes * EACH * 9 // 10, classes * EACH // 10, EACH)
    # Every training image is in one split, with its label, and the official test set is the test set.
    held, used, tested = (numbers(whole(split)) for split in (validation, train, test))
    assert sorted(held + used) == list(range(classes * EACH))
    assert tested == list(range(100_000, 100_000 + EACH))
    for split, found in ((train, used), (validation, held)):
        assert split.labels is not None
        assert split.labels.dtype == np.int64
        assert split.labels.tolist() == [number % (classes * EACH // batches(name)) % classes for number in found]
    assert test.labels is not None
    assert test.labels.tolist() == [i % classes for i in range(EACH)]
    assert np.bincount(validation.labels).tolist() == [EACH // 10] * classes
    # Training sees the training split and what has no labels, and no label of any.
    more = list(range(200_000, 200_030)) if name == "stl10" else []
    assert numbers(whole(source.pool)) == used + more
    assert source.pool.labels is None
    assert source.name == name
    assert source.shape == SHAPES.get(name, (1, 28, 28))
    assert len(source.classes) == classes


def batches(name: str) -> int:
    return 5 if name == "cifar10" else 1


@pytest.mark.parametrize("name", WRITERS)
def test_views_are_drawn_of_the_pool(tmp_path: Path, name: str) -> None:
    write(name, tmp_path)
    source = published(name, tmp_path)
    rows = torch.tensor([0, len(source.pool) - 1, 3])
    for view in source.views.pair(source.pool.take(rows), Generator().manual_seed(0)):
        assert view.shape == (3, *source.shape)
        assert view.isfinite().all()
    # What evaluation sees is standardised with the training split's own statistics.
    plain = source.views.plain(source.train.take(slice(None)))
    torch.testing.assert_close(plain.mean(dim=(0, 2, 3)), torch.zeros(len(plain[0])), atol=1e-3, rtol=0)
    torch.testing.assert_close(plain.std(dim=(0, 2, 3)), torch.ones(len(plain[0])), atol=1e-3, rtol=0)


def test_the_split_is_the_same_every_time(tmp_path: Path) -> None:
    write("mnist", tmp_path)
    first, again = published("mnist", tmp_path), published("mnist", tmp_path)
    np.testing.assert_array_equal(whole(first.validation), whole(again.validation))


def test_other_views_are_taken(tmp_path: Path) -> None:
    write("mnist", tmp_path)
    views = published("mnist", tmp_path, IMAGE_PRESETS["none"]).views
    sample = torch.zeros(1, 1, 28, 28, dtype=torch.uint8)
    first, second = views.pair(sample, Generator().manual_seed(0))
    assert torch.equal(first, second)


def test_digits_are_never_mirrored() -> None:
    assert (PUBLISHED["mnist"].views.first.flip, PUBLISHED["mnist"].views.second.flip) == (0, 0)
    for name in ("cifar10", "cifar100", "stl10", "fashion-mnist"):
        assert PUBLISHED[name].views.first.flip == 0.5


def test_class_names_are_as_many_as_there_are_classes() -> None:
    counts = {name: len(set(data.classes)) for name, data in PUBLISHED.items()}
    assert counts == {"cifar10": 10, "cifar100": 100, "stl10": 10, "mnist": 10, "fashion-mnist": 10}
    for name in ("cifar10", "cifar100", "stl10"):  # these are numbered in the order of the alphabet
        assert list(PUBLISHED[name].classes) == sorted(PUBLISHED[name].classes)


def test_too_few_images_for_a_validation_split(tmp_path: Path) -> None:
    folder = write("cifar100", tmp_path)
    rows = (folder / "train.bin").read_bytes()
    (folder / "train.bin").write_bytes(rows[: 100 * 3074])  # one image of each class
    with pytest.raises(BadInput, match="has 100 training images: too few of a class to hold any out"):
        published("cifar100", tmp_path)


def test_the_root_is_the_argument_then_the_variable_then_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TWOFOLD_CACHE", raising=False)
    monkeypatch.setenv("TWOFOLD_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root() == tmp_path / "variable"
    monkeypatch.setenv("TWOFOLD_DATA", "")
    assert data_root() == tmp_path / "cache" / "twofold" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_root() == tmp_path / "home" / ".cache" / "twofold" / "data"
    assert data_root(Path("~/here")) == tmp_path / "home" / "here"


def test_the_root_may_be_the_folder_itself(tmp_path: Path) -> None:
    folder = write("cifar10", tmp_path)
    assert find("cifar10", tmp_path) == find("cifar10", folder) == folder
    renamed = folder.rename(tmp_path / "mine")
    assert find("cifar10", renamed) == renamed
    assert find("cifar10", tmp_path) is None


def test_files_of_the_same_names_are_not_mixed_up(tmp_path: Path) -> None:
    mnist, fashion = write("mnist", tmp_path), write("fashion-mnist", tmp_path)
    assert (find("mnist", tmp_path), find("fashion-mnist", tmp_path)) == (mnist, fashion)
    assert (find("mnist", mnist), find("fashion-mnist", mnist)) == (mnist, None)
    assert (find("mnist", fashion), find("fashion-mnist", fashion)) == (None, fashion)
    renamed = mnist.rename(tmp_path / "whose")
    assert (find("mnist", renamed), find("fashion-mnist", renamed)) == (None, None)


def test_what_is_not_there_is_said_with_where_and_how(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        locate("cifar10", tmp_path / "nowhere")
    sentence = str(caught.value)
    for part in (f"'{tmp_path}/nowhere/cifar-10-batches-bin'", f"'{tmp_path}/nowhere'", "'twofold data fetch cifar10'"):
        assert part in sentence


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    folder = write("cifar10", tmp_path)
    (folder / "data_batch_3.bin").unlink()
    (folder / "test_batch.bin").unlink()
    with pytest.raises(BadInput, match=r"lacks data_batch_3\.bin, test_batch\.bin of cifar10") as caught:
        published("cifar10", tmp_path)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("name", WRITERS)
def test_every_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write(name, tmp_path)
    for file in PUBLISHED[name].files:
        content = (folder / file).read_bytes()
        for damaged in (content[:-1], b""):
            if file.endswith("_y.bin") and damaged:
                continue  # one label less is found out by counting, below
            (folder / file).write_bytes(damaged)
            with pytest.raises(BadInput, match="malformed or truncated") as caught:
                published(name, tmp_path)
            assert str(folder / file) in str(caught.value)
        (folder / file).write_bytes(content)
    assert len(published(name, tmp_path).train) > 0


def test_labels_must_be_as_many_as_images(tmp_path: Path) -> None:
    folder = write("stl10", tmp_path)
    (folder / "train_y.bin").write_bytes((folder / "train_y.bin").read_bytes()[:-1])
    with pytest.raises(BadInput, match=r"train_y\.bin' has 199 labels for 200 images"):
        published("stl10", tmp_path)


def test_the_unlabelled_images_stay_on_disk(tmp_path: Path) -> None:
    write("stl10", tmp_path)
    source = published("stl10", tmp_path)
    assert source.test is not None
    assert isinstance(source.test.samples, np.memmap)
    assert isinstance(vars(source.pool)["more"], np.memmap)


def test_channel_statistics_are_exact() -> None:
    images = np.random.default_rng(0).integers(0, 256, (1500, 3, 5, 4), dtype=np.uint8)
    images[:, 1] //= 2
    mean, std = channel_statistics(images)
    exact = images.astype(np.float64) / 255
    np.testing.assert_allclose(mean, exact.mean(axis=(0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std, exact.std(axis=(0, 2, 3)), rtol=1e-12)


def test_a_channel_without_variation_is_divided_by_one() -> None:
    mean, std = channel_statistics(np.full((3, 1, 2, 2), 51, np.uint8))
    assert mean == pytest.approx([0.2])
    assert std == [1.0]


def test_statistics_of_large_collections_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4000, 1, 6, 6), dtype=np.uint8)
    exact = channel_statistics(images)
    monkeypatch.setattr("twofold.data.published.STATISTICS_OF", images.size // 10)
    estimated = channel_statistics(images)
    assert estimated != exact
    np.testing.assert_allclose(estimated, exact, atol=0.01)


REAL = os.environ.get("TWOFOLD_DATA")
MEANS = {  # as they are commonly given, of all training images
    "cifar10": ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "cifar100": ([0.5071, 0.4865, 0.4409], [0.2673, 0.2564, 0.2762]),
    "mnist": ([0.1307], [0.3081]),
    "fashion-mnist": ([0.2860], [0.3530]),
}
SIZES = {"stl10": (104_500, 4_500, 500, 8_000), "mnist": (54_000, 54_000, 6_000, 10_000)}


@pytest.mark.skipif(not REAL, reason="$TWOFOLD_DATA is not set")
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_real_files(name: str) -> None:
    if find(name) is None:
        pytest.skip(f"{name} is not in $TWOFOLD_DATA")
    source = published(name)
    assert source.test is not None
    found = tuple(len(split) for split in (source.pool, source.train, source.validation, source.test))
    sizes = {**SIZES, "fashion-mnist": SIZES["mnist"]}
    assert found == sizes.get(name, (45_000, 45_000, 5_000, 10_000))
    assert source.train.labels is not None
    assert source.test.labels is not None
    assert len(np.unique(source.train.labels)) == len(np.unique(source.test.labels)) == len(source.classes)
    if name in MEANS:
        mean, std = channel_statistics(np.asarray(source.train.samples))
        np.testing.assert_allclose([mean, std], MEANS[name], atol=2e-3)
    assert not differing(PUBLISHED[name], locate(name))
