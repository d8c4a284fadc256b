"""The images of a folder, decoded once into a memory-mapped file beside a manifest of what it was made from."""

import hashlib
import json
import os
import shutil
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from jaxtyping import UInt8

from twofold.data.decoding import Undecodable, Unreadable, decode
from twofold.errors import BadInput, Failed
from twofold.records import Progress

FORMAT = 1
"""Of the cache; to be raised when the same file gives other pixels than before."""

AHEAD = 8
"""Images a thread may be ahead of the one that is written next."""


class ImageFile(NamedTuple):
    """A file as it was found: its path below the folder, and what changes when it is written anew."""

    name: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, eq=False)
class Decoded:
    """The images in the order of their files, without those skipped; ``manifest`` says why these were."""

    images: UInt8[np.ndarray, "n 3 side side"]
    skipped: Mapping[str, str]
    manifest: Path


def cache_root() -> Path:
    """Return ``$TWOFOLD_CACHE``, else ``twofold`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``."""
    if own := os.environ.get("TWOFOLD_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "twofold"


def decoded(folder: Path, files: Sequence[ImageFile], side: int, progress: Progress) -> Decoded:
    """Open the decoded images of these files of a folder; what is not there, or outdated, is made.

    One process at a time looks after a folder's images, others wait for it. The manifest is written last: as
    long as there is none, whatever else is there is no cache, and is overwritten.
    """
    folder = folder.resolve()
    key = hashlib.sha256(os.fsencode(f"{FORMAT}\0{side}\0{folder}")).hexdigest()[:32]
    home = cache_root() / "folders" / key
    source = {"version": FORMAT, "folder": str(folder), "side": side}
    with _locked(home, progress):
        return _opened(home, source, files) or _made(home, source, files, progress)


def _locked(home: Path, progress: Progress) -> BinaryIO:
    """Open the lock of a cache, alone; the system takes it back from a process that is killed."""
    import fcntl  # not on every system

    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / "lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another process to decode", 0, 1)
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        reason = f"the cache folder '{home}' cannot be written ({error.strerror})"
        raise BadInput(f"{reason}: set $TWOFOLD_CACHE to another") from error
    return lock


def _opened(home: Path, source: Mapping[str, Any], files: Sequence[ImageFile]) -> Decoded | None:
    """Map the images, provided that they are whole and were made from just these files."""
    try:
        manifest = json.loads((home / "manifest.json").read_bytes())
        if manifest != {**source, "files": [list(file) for file in files], "skipped": manifest["skipped"]}:
            return None
        images = np.load(home / "images.npy", mmap_mode="r", allow_pickle=False)
        skipped: dict[str, str] = manifest["skipped"]
        whole = images.shape == _shape(len(files) - len(skipped), source["side"]) and images.dtype == np.uint8
    except (OSError, ValueError, EOFError, LookupError, TypeError):
        return None
    return Decoded(images, skipped, home / "manifest.json") if whole else None


def _made(home: Path, source: Mapping[str, Any], files: Sequence[ImageFile], progress: Progress) -> Decoded:
    """Decode the files, and then say in the manifest that it is done."""
    needed = prod(_shape(len(files), source["side"]))
    try:
        for outdated in ("manifest.json", "images.npy"):
            (home / outdated).unlink(missing_ok=True)
        if needed > (free := shutil.disk_usage(home).free):
            raise _full(home, f"it takes {needed / 1e9:.2f} GB and {free / 1e9:.2f} GB are free")
        with _replacing(home / "images.npy") as stream:
            skipped = _decode_into(stream, source, files, progress)
        # What the system refused is entered as absent: unless it really is, this will be outdated next time.
        listed = [file._replace(size=-1, mtime_ns=0) if _refused(file, skipped) else file for file in files]
        reasons = {name: str(reason) for name, reason in skipped.items()}
        with _replacing(home / "manifest.json") as stream:
            stream.write(json.dumps({**source, "files": listed, "skipped": reasons}).encode())
    except OSError as error:
        raise _full(home, error.strerror or str(error)) from error
    images = np.load(home / "images.npy", mmap_mode="r", allow_pickle=False)
    return Decoded(images, reasons, home / "manifest.json")


def _refused(file: ImageFile, skipped: Mapping[str, Undecodable]) -> bool:
    return isinstance(skipped.get(file.name), Unreadable)


def _full(home: Path, reason: str) -> Failed:
    return Failed(
        f"the decoded images cannot be kept in '{home}' ({reason}): make room or set $TWOFOLD_CACHE to another folder"
    )


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file under a temporary name, the same every time, and give it its own when it is whole."""
    temporary = path.with_name(f"{path.name}.building")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _decode_into(
    stream: BinaryIO, source: Mapping[str, Any], files: Sequence[ImageFile], progress: Progress
) -> dict[str, Undecodable]:
    """Write a ``.npy`` of all images that can be decoded, and return why the others cannot.

    It is written, not mapped: a full disk is then an error that can be caught.
    """
    skipped: dict[str, Undecodable] = {}
    folder, side = Path(source["folder"]), source["side"]
    _write_header(stream, len(files), side)
    results = _attempts([folder / file.name for file in files], side)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd metadata, which no one here will use
        for done, (file, result) in enumerate(zip(files, results, strict=True), 1):
            if isinstance(result, Undecodable):
                skipped[file.name] = result
            else:
                stream.write(result.tobytes())
            progress("decoding", done, len(files))
    stream.seek(0)
    _write_header(stream, len(files) - len(skipped), side)
    return skipped


def _attempts(paths: Sequence[Path], side: int) -> Iterator[UInt8[np.ndarray, "3 s s"] | Undecodable]:
    """Decode on all cores, in order, never holding more than a few images."""

    def attempt(path: Path) -> UInt8[np.ndarray, "3 s s"] | Undecodable:
        try:
            return decode(path, side)
        except Undecodable as error:
            return error

    workers = os.cpu_count() or 1
    pending: deque[Future[UInt8[np.ndarray, "3 s s"] | Undecodable]] = deque()
    with ThreadPoolExecutor(workers) as executor:  # decoders let other threads run: processes are no faster
        for path in paths:
            pending.append(executor.submit(attempt, path))
            if len(pending) > AHEAD * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _shape(count: int, side: int) -> tuple[int, int, int, int]:
    return count, 3, side, side


def _write_header(stream: BinaryIO, count: int, side: int) -> None:
    """Write the header of a ``.npy``, as long for one image as for any number of them."""
    layout = {"descr": "|u1", "fortran_order": False, "shape": _shape(count, side)}
    np.lib.format.write_array_header_1_0(stream, layout)
