"""A folder of images is a source: every image under its name, sub-folders as classes, clear words for the rest."""

import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from twofold.data.folder import folder, folder_split, image_files
from twofold.data.source import Source, Split
from twofold.data.views import IMAGE_PRESETS
from twofold.errors import BadInput


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "images"


def save(path: Path, level: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (9, 9), (level, 255 - level, 50)).save(path)
    return path


def filled(root: Path, **counts: int) -> Path:
    """Make a sub-folder of so many images for each name; their levels number them all."""
    level = 0
    for name, count in counts.items():
        for number in range(count):
            save(root / name / f"{number:03}.png", level % 256)
            level += 1
    return root


def names(root: Path) -> list[str]:
    return [file.name for file in image_files(root)]


def levels(split: Split) -> list[int]:
    return [int(level) for level in split.take(slice(None))[:, 0, 0, 0]]


def test_images_are_found_at_any_depth_and_sorted(root: Path) -> None:
    images = ["a/1.webp", "a/deep/er/1.png", "b/10.jpeg", "b/2.JPG", "c.d/1.tiff"]
    others = [".thumbnails/1.png", "a/._1.png", ".DS_Store", "b/notes.txt", "png"]
    for name in reversed(images + others):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    assert names(root) == images


def test_sub_folders_are_classes(root: Path) -> None:
    filled(root, dog=12, ant=8)
    (root / "dog" / "puppies").mkdir()
    (root / "dog" / "000.png").rename(root / "dog" / "puppies" / "000.png")
    whole = folder_split(root, 8)
    assert whole.names == names(root)
    assert whole.labels is not None
    assert whole.labels.tolist() == [0] * 8 + [1] * 12
    assert levels(whole) == [*range(12, 20), *range(1, 12), 0]
    assert folder(root, image_size=8).classes == ("ant", "dog")


def test_parts_of_a_folder(root: Path) -> None:
    source = folder(filled(root, a=50, b=100), image_size=8)
    assert isinstance(source, Source)
    assert (source.name, source.shape, source.classes) == ("images", (3, 8, 8), ("a", "b"))
    seen: list[str] = []
    for part, counts in ((source.train, [40, 80]), (source.validation, [5, 10]), (source.test, [5, 10])):
        assert part is not None
        assert part.labels is not None
        assert part.names is not None
        assert np.bincount(part.labels).tolist() == counts
        seen += part.names
        numbers = [int(name[2:5]) + 50 * (name[0] == "b") for name in part.names]
        assert levels(part) == numbers
        assert part.labels.tolist() == [number >= 50 for number in numbers]
    assert sorted(seen) == names(root)
    assert source.pool is source.train


def test_samples_stay_in_the_file(root: Path) -> None:
    whole = folder_split(filled(root, a=10, b=10), 8)
    assert isinstance(whole.samples, np.memmap)
    assert whole.samples.shape == (20, 3, 8, 8)


def test_views_are_normalised_by_the_training_images(root: Path) -> None:
    for number in range(40):
        pixels = np.random.default_rng(number).normal([90, 120, 200], [30, 20, 10], (16, 16, 3))
        path = save(root / f"{number}.png")
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
    source = folder(root, image_size=16)
    plain = source.views.plain(source.train.take(slice(None)))
    assert plain.mean(dim=(0, 2, 3)).abs().max() < 1e-3
    assert (plain.std(dim=(0, 2, 3)) - 1).abs().max() < 1e-3
    first, second = source.views.pair(source.pool.take(slice(0, 5)), torch.Generator().manual_seed(0))
    assert first.shape == second.shape == (5, 3, 16, 16)
    assert not first.equal(second)


def test_views_and_sizes_can_be_chosen(root: Path) -> None:
    filled(root, a=20)
    assert folder(root).shape == (3, 64, 64)
    large = replace(IMAGE_PRESETS["simclr"], size=20)
    assert folder(root, large).train.take(slice(0, 1)).shape == (1, 3, 20, 20)
    assert folder(root, large, image_size=12).shape == (3, 12, 12)
    source = folder(root, views=IMAGE_PRESETS["none"], image_size=12)
    first, second = source.views.pair(source.pool.take(slice(0, 2)), torch.Generator())
    assert first.shape == (2, 3, 12, 12)
    assert first.equal(second)
    for size in (0, 7, 1025):
        with pytest.raises(BadInput, match=f"between 8 and 1024 pixels, not {size}$"):
            folder(root, image_size=size)


def test_a_path_may_be_relative(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(filled(root, a=20))
    assert folder(".", image_size=8).name == "images"
    monkeypatch.setenv("HOME", str(root.parent))
    assert folder("~/images", image_size=8).name == "images"


@pytest.mark.parametrize("counts", [{".": 20}, {"only": 20}])
def test_without_sub_folders_to_tell_apart_nothing_is_labelled(root: Path, counts: dict[str, int]) -> None:
    source = folder(filled(root, **counts), image_size=8)
    assert source.classes == ()
    assert source.train.labels is None
    assert [len(part) for part in (source.train, source.validation, source.test) if part] == [16, 2, 2]


def test_images_outside_of_the_sub_folders_take_the_classes_away(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(root, a=10, b=10)
    assert folder(root, image_size=8).classes == ("a", "b")
    assert not caplog.records
    save(root / "stray.png")
    source = folder(root, image_size=8)
    assert (source.classes, source.train.labels) == ((), None)
    (record,) = caplog.records
    assert "1 outside of them (stray.png): the sub-folders are not taken for classes" in record.getMessage()


def test_classes_of_a_single_image_do_not_crash(root: Path) -> None:
    source = folder(filled(root, **{f"c{number}": 1 for number in range(12)}), image_size=8)
    assert len(source.classes) == 12
    assert min(len(source.validation), len(source.test or ())) == 2


def test_links_that_lead_round_in_circles(root: Path) -> None:
    filled(root, a=2, b=1)
    (root / "a" / "self").symlink_to(root / "a")
    (root / "a" / "up").symlink_to(root)
    (root / "b" / "out").symlink_to(root.parent)
    (root / "b" / "everything").symlink_to("/")
    (root / "b" / "other").symlink_to(root / "a")
    (root / "a" / "other").symlink_to(root / "b")
    (root / "loop.png").symlink_to(root / "loop.png")
    assert names(root) == ["a/000.png", "a/001.png", "b/000.png", "loop.png"]


def test_links_to_elsewhere_are_followed(root: Path, tmp_path: Path) -> None:
    filled(tmp_path / "elsewhere", ants=2, bees=1)
    (tmp_path / "elsewhere" / "ants" / "back").symlink_to(tmp_path / "elsewhere")
    root.mkdir()
    (root / "ant").symlink_to(tmp_path / "elsewhere" / "ants")
    (root / "bee.png").symlink_to(tmp_path / "elsewhere" / "bees" / "000.png")
    assert names(root) == ["ant/000.png", "ant/001.png", "ant/back/bees/000.png", "bee.png"]


def test_a_few_corrupt_images_are_skipped_and_named(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(root, a=100, b=100)
    (root / "a" / "003.png").write_bytes(b"")
    whole = (root / "b" / "004.png").read_bytes()
    (root / "b" / "004.png").write_bytes(whole[:40])
    source = folder(root, image_size=8)
    parts = [part for part in (source.train, source.validation, source.test) if part]
    assert sum(map(len, parts)) == 198
    assert not any({"a/003.png", "b/004.png"} & set(part.names or ()) for part in parts)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("twofold", logging.WARNING)
    said = record.getMessage()
    assert "2 of the 200 images in" in said
    assert "a/003.png (empty), b/004.png (" in said
    assert len(folder_split(root, 8)) == 198
    assert len(caplog.records) == 2


def test_more_than_one_in_a_hundred_are_refused(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(root, a=100, b=100)
    for number in range(7):
        (root / "b" / f"{number:03}.png").write_bytes(b"")
    with pytest.raises(BadInput) as caught:
        folder(root, image_size=8)
    said = str(caught.value)
    assert "7 of the 200 images in" in said
    assert all(f"b/{number:03}.png (empty)" in said for number in range(5))
    assert "and 2 more listed in" in said
    assert Path(said.partition("listed in '")[2].partition("'")[0]).read_text().count('"empty"') == 7
    assert not caplog.records
    assert len(folder_split(root, 8)) == 193  # embedding goes on, with a warning
    assert len(caplog.records) == 1


def test_nothing_that_can_be_decoded(root: Path) -> None:
    for number in range(20):
        save(root / f"{number}.png").write_bytes(b"nonsense")
    for call in (folder, folder_split):
        with pytest.raises(BadInput, match=r"20 of the 20 images in .* cannot be decoded: .*known format"):
            call(root, image_size=8)


@pytest.mark.parametrize(("count", "said"), [(1, "has 1 image:"), (9, "has 9 images:")])
def test_too_few_images(root: Path, count: int, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        folder(filled(root, a=count), image_size=8)
    assert not (root.parent / "cache").exists()
    assert len(folder_split(root, 8)) == count


def test_ten_images_are_enough(root: Path) -> None:
    source = folder(filled(root, a=5, b=5), image_size=8)
    assert [len(part) for part in (source.train, source.validation, source.test) if part] == [6, 2, 2]


def test_folders_that_are_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(path: Path) -> str:
        with pytest.raises(BadInput) as caught:
            folder(path)
        return str(caught.value)

    assert said(root).startswith("there is no ")
    root.mkdir()
    assert said(root.parent / "imaegs").endswith("; did you mean 'images'?")
    assert "has no images: no file ends in .avif, .bmp" in said(root)
    (root / "notes.txt").touch()
    assert "has no images" in said(root)
    assert "(Not a directory)" in said(root / "notes.txt")
    (root / "secret").mkdir()
    scandir = os.scandir

    def guarded(path: Path) -> object:
        if path.name == "secret":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert said(root).endswith("images/secret' cannot be read (Permission denied)")


def test_names_that_are_no_text(root: Path) -> None:
    """A file's name is bytes; those that are no UTF-8 must survive the manifest."""
    filled(root, a=12)
    odd = os.fsdecode(b"odd\xff.png")
    try:
        shutil.copy(root / "a" / "000.png", root / "a" / odd)
    except OSError:
        pytest.skip("this file system has only names that are text")
    for _ in range(2):
        assert folder_split(root, 8).names == [*(f"a/{number:03}.png" for number in range(12)), f"a/{odd}"]
