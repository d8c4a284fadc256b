"""Images are decoded once, anew when anything has changed, and nothing half-made is ever taken for whole."""

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from twofold.data import cache
from twofold.data.cache import Decoded, ImageFile, cache_root, decoded
from twofold.data.decoding import Unreadable
from twofold.data.folder import image_files
from twofold.errors import BadInput, Failed
from twofold.records import silent

COUNT = 60
SIDE = 8

BUILDER = """
import os, signal, sys, time
from pathlib import Path
from twofold.data.cache import decoded
from twofold.data.folder import image_files

def progress(what, done, total):
    if done == 5:
        print("five", flush=True)
        if sys.argv[2] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.5)

folder = Path(sys.argv[1])
decoded(folder, image_files(folder), 8, progress)
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(COUNT):
        save(folder / f"{number:02}.png", number)
    return folder


def save(path: Path, level: int) -> None:
    Image.new("RGB", (9, 9), (level, 255 - level, 0)).save(path)


def levels(found: Decoded) -> list[int]:
    """Return what tells the images apart, having seen that each is of one colour."""
    images: NDArray[np.uint8] = found.images
    assert (images == images[:, :, :1, :1]).all()
    assert (images[:, 1, 0, 0] == 255 - images[:, 0, 0, 0]).all()
    return [int(level) for level in images[:, 0, 0, 0]]


class Watched:
    """Remembers what progress it was told of."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def __call__(self, what: str, done: int, total: int) -> None:
        self.told.append((what, done, total))


def opened(folder: Path, side: int = SIDE) -> tuple[Decoded, int]:
    """Open the images of a folder, and count how many were decoded for that."""
    watched = Watched()
    found = decoded(folder, image_files(folder), side, watched)
    return found, sum(what == "decoding" for what, _, _ in watched.told)


def home(root: Path) -> Path:
    (only,) = (root / "folders").iterdir()
    return only


def contents(root: Path) -> set[str]:
    return {path.name for path in home(root).iterdir()}


def test_images_are_decoded_once(photos: Path, root: Path) -> None:
    watched = Watched()
    found = decoded(photos, image_files(photos), SIDE, watched)
    assert watched.told == [("decoding", done, COUNT) for done in range(1, COUNT + 1)]
    assert levels(found) == list(range(COUNT))
    assert isinstance(found.images, np.memmap)
    assert not found.images.flags.writeable
    again, count = opened(photos)
    assert (levels(again), count) == (list(range(COUNT)), 0)
    assert contents(root) == {"lock", "images.npy", "manifest.json"}


def test_another_path_to_the_folder_finds_the_same(photos: Path, tmp_path: Path) -> None:
    opened(photos)
    (tmp_path / "link").symlink_to(photos)
    assert opened(tmp_path / "link")[1] == 0
    assert opened(photos / ".." / "photos")[1] == 0


def test_another_size_is_kept_beside(photos: Path) -> None:
    assert opened(photos, 8)[1] == opened(photos, 16)[1] == COUNT
    assert opened(photos, 8)[1] == opened(photos, 16)[1] == 0


def test_changes_are_noticed(photos: Path) -> None:
    opened(photos)
    save(photos / "07.png", 200)
    assert levels(opened(photos)[0])[7] == 200
    (photos / "00.png").unlink()
    assert levels(opened(photos)[0])[:2] == [1, 2]
    (photos / "03.png").rename(photos / "99.png")
    assert levels(opened(photos)[0])[-1] == 3
    assert opened(photos)[1] == 0


def test_open_images_outlive_a_change(photos: Path) -> None:
    before = opened(photos)[0]
    for path in photos.iterdir():
        save(path, 250)
    assert levels(opened(photos)[0]) == [250] * COUNT
    assert levels(before) == list(range(COUNT))


def test_corrupt_files_are_left_out_and_named(photos: Path) -> None:
    (photos / "10.png").write_bytes((photos / "10.png").read_bytes()[:40])
    (photos / "20.png").write_bytes(b"")
    found, _ = opened(photos)
    assert levels(found) == [level for level in range(COUNT) if level not in (10, 20)]
    assert found.skipped["20.png"] == "empty"
    assert list(found.skipped) == ["10.png", "20.png"]
    assert json.loads(found.manifest.read_text())["skipped"] == found.skipped
    again, count = opened(photos)
    assert (again.skipped, count) == (found.skipped, 0)


def test_a_folder_in_which_nothing_can_be_decoded(photos: Path) -> None:
    for path in photos.iterdir():
        path.write_bytes(b"")
    for _ in range(2):
        found, _ = opened(photos)
        assert found.images.shape == (0, 3, SIDE, SIDE)
        assert len(found.skipped) == COUNT


def test_what_the_system_refused_is_tried_again(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, side: int) -> NDArray[np.uint8]:
        if path.name == "33.png":
            raise Unreadable("Permission denied")
        return decode(path, side)

    decode = cache.decode
    with monkeypatch.context() as patch:
        patch.setattr(cache, "decode", refuse)
        assert opened(photos)[0].skipped == {"33.png": "Permission denied"}
    found, count = opened(photos)
    assert (count, found.skipped, levels(found)) == (COUNT, {}, list(range(COUNT)))


def test_a_link_that_leads_nowhere_is_skipped_until_it_leads_somewhere(photos: Path, tmp_path: Path) -> None:
    (photos / "link.png").symlink_to(tmp_path / "later.png")
    found, _ = opened(photos)
    assert found.skipped == {"link.png": "No such file or directory"}
    assert opened(photos)[1] == 0
    save(tmp_path / "later.png", 77)
    assert levels(opened(photos)[0])[-1] == 77


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b""),
        ("manifest.json", b"[]"),
        ("manifest.json", b"null"),
        ("manifest.json", b'{"version": 1}'),
        ("images.npy", b""),
        ("images.npy", b"garbage" * 100),
    ],
)
def test_a_damaged_cache_is_made_again(photos: Path, root: Path, name: str, content: bytes) -> None:
    opened(photos)
    (home(root) / name).write_bytes(content)
    found, count = opened(photos)
    assert (levels(found), count) == (list(range(COUNT)), COUNT)


def test_a_truncated_cache_is_made_again(photos: Path, root: Path) -> None:
    opened(photos)
    images = home(root) / "images.npy"
    images.write_bytes(images.read_bytes()[:-1])
    found, count = opened(photos)
    assert (levels(found), count) == (list(range(COUNT)), COUNT)


@contextmanager
def builder(photos: Path, then: str) -> Iterator[subprocess.Popen[str]]:
    """Let another process decode, and wait until it is at it."""
    with subprocess.Popen([sys.executable, "-c", BUILDER, photos, then], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "five\n"
        yield process


def test_a_killed_process_leaves_nothing_that_is_taken_for_whole(photos: Path, root: Path) -> None:
    with builder(photos, "die") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    assert contents(root) == {"lock", "images.npy.building"}
    found, count = opened(photos)
    assert (levels(found), count) == (list(range(COUNT)), COUNT)
    assert contents(root) == {"lock", "images.npy", "manifest.json"}


def test_a_second_process_waits_for_the_first(photos: Path) -> None:
    watched = Watched()
    with builder(photos, "go on") as process:
        found = decoded(photos, image_files(photos), SIDE, watched)
        assert process.wait(timeout=60) == 0
    assert levels(found) == list(range(COUNT))
    assert watched.told == [("waiting for another process to decode", 0, 1)]


def test_many_at_once_all_end_well(photos: Path) -> None:
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(levels(opened(photos)[0]))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [list(range(COUNT))] * 6


def test_an_interruption_leaves_nothing_half_made(photos: Path, root: Path) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if done == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decoded(photos, image_files(photos), SIDE, interrupt)
    assert contents(root) == {"lock"}


@pytest.fixture
def full_disk(photos: Path, root: Path) -> Iterator[None]:
    """Make the file that is written the device on which there is never any room."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    opened(photos)
    save(photos / "00.png", 99)
    (home(root) / "images.npy.building").symlink_to("/dev/full")
    yield
    assert contents(root) == {"lock"}


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_one_sentence(photos: Path) -> None:
    with pytest.raises(Failed, match=r"No space left on device.*TWOFOLD_CACHE"):
        opened(photos)


def test_too_little_room_is_noticed_before(photos: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=COUNT * 3 * SIDE**2 - 1))
    watched = Watched()
    with pytest.raises(Failed, match=r"0\.00 GB are free"):
        decoded(photos, image_files(photos), SIDE, watched)
    assert watched.told == []
    assert contents(root) == {"lock"}


def test_a_cache_that_cannot_be_written(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(BadInput, match=r"cannot be written \(Not a directory\): set \$TWOFOLD_CACHE"):
        opened(photos)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("TWOFOLD_CACHE", "~/mine")
    assert cache_root() == Path("/home/someone/mine")
    monkeypatch.delenv("TWOFOLD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/caches")
    assert cache_root() == Path("/var/caches/twofold")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_root() == Path("/home/someone/.cache/twofold")


def test_memory_does_not_grow_with_the_folder(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the writing is, only so many images are decoded ahead of it."""
    begun: list[Path] = []
    decode = cache.decode

    def counting(path: Path, side: int) -> NDArray[np.uint8]:
        begun.append(path)
        return decode(path, side)

    ahead: list[int] = []
    monkeypatch.setattr(cache, "decode", counting)
    monkeypatch.setattr(cache.os, "cpu_count", lambda: 2)
    decoded(photos, image_files(photos), SIDE, lambda _, done, __: ahead.append(len(begun) - done))
    assert len(begun) == COUNT
    assert max(ahead) <= 2 * cache.AHEAD


def test_a_file_that_vanishes_meanwhile_is_skipped(photos: Path) -> None:
    files = [*image_files(photos), ImageFile("gone.png", 5, 5)]
    found = decoded(photos, files, SIDE, silent)
    assert found.skipped == {"gone.png": "No such file or directory"}
    assert levels(found) == list(range(COUNT))
