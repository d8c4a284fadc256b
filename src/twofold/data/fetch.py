"""Fetching published collections from their homes: checked by MD5 sums, resumed where a transfer broke off.

A file is at its place once its checksum fits; until then it is a ``.part`` beside it, with which the next try goes
on. An archive has no say in where it is unpacked: only regular files of expected names are, and we name them.
"""

import gzip
import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from twofold.data.binary import exists, present
from twofold.data.published import PUBLISHED, Published, data_root, find
from twofold.errors import BadInput, Failed, unknown
from twofold.records import Progress, silent

TIMEOUT = 30.0  # seconds without a byte
BLOCK = 2**18


@dataclass(frozen=True)
class Archive:
    """A file to fetch: its addresses, to be tried in this order, and its MD5 sum."""

    urls: tuple[str, ...]
    md5: str

    @property
    def name(self) -> str:
        """The file's name at all of its addresses."""
        return PurePosixPath(self.urls[0]).name


def _idx(homes: tuple[str, ...], checksums: tuple[str, str, str, str]) -> tuple[Archive, ...]:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        Archive(tuple(f"{home}{name}-ubyte.gz" for home in homes), md5)
        for name, md5 in zip(names, checksums, strict=True)
    )


_KRIZ = "https://www.cs.toronto.edu/~kriz"
_COATES = "http://ai.stanford.edu/~acoates/stl10"

HOMES: Mapping[str, tuple[Archive, ...]] = {
    "cifar10": (Archive((f"{_KRIZ}/cifar-10-binary.tar.gz",), "c32a1d4ab5d03f1284b67883e8d87530"),),
    "cifar100": (Archive((f"{_KRIZ}/cifar-100-binary.tar.gz",), "03b5dce01913d631647c71ecec9e9cb8"),),
    "stl10": (Archive((f"{_COATES}/stl10_binary.tar.gz",), "91f7769df0f17e558f3565bffb0c7dfb"),),
    "mnist": _idx(
        ("http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    "fashion-mnist": _idx(
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
}
"""The official homes, and a mirror where the home no longer answers everyone."""


def fetch(name: str, root: Path | None = None, progress: Progress = silent) -> Path:
    """Bring a published collection into the folder where it is looked for, unless it is there already."""
    if name not in HOMES:
        raise unknown("data to fetch", name, HOMES)
    data = PUBLISHED[name]
    place = data_root(root)
    folder = find(name, place) or (place if place.absolute().name == data.folder else place / data.folder)
    wrong = differing(data, folder, progress)
    try:
        for archive in HOMES[name]:
            if wrong.intersection(_members(archive, data)):
                _bring(archive, data, folder, progress)
    finally:
        with suppress(OSError):
            folder.rmdir()  # only if nothing came to be in it
    return folder


def differing(data: Published, folder: Path, progress: Progress = silent) -> frozenset[str]:
    """Return which files of a collection are missing, or are not the published ones."""
    found = set()
    for done, (name, published) in enumerate(data.files.items()):
        progress(f"checking {data.name}", done, len(data.files))
        path = present(folder, name)
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
                same = published.md5 in (_md5(stream), None) and stream.tell() == published.size
        except (OSError, EOFError, zlib.error):
            same = False
        if not same:
            found.add(name)
    progress(f"checking {data.name}", len(data.files), len(data.files))
    return frozenset(found)


def _members(archive: Archive, data: Published) -> set[str]:
    """Return the files of a collection that an archive has."""
    return set(data.files) if archive.name.endswith(".tar.gz") else {archive.name.removesuffix(".gz")}


def _bring(archive: Archive, data: Published, folder: Path, progress: Progress) -> None:
    """Fetch one archive and unpack it; an archive that was put there by hand is used, and left there."""
    path = folder / archive.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"the folder '{folder}' cannot be made ({error.strerror}): --data-root names another") from error
    if not os.access(folder, os.W_OK):
        raise BadInput(f"the folder '{folder}' cannot be written to: --data-root names another")
    try:
        by_hand = exists(path)
        download(archive, path, progress)
        unpack(path, folder, _members(archive, data), data.folder, progress)
        if not by_hand:
            path.unlink()
    except OSError as error:
        raise Failed(f"{data.name} could not be written to '{folder}': {error.strerror or error}") from error


def download(archive: Archive, target: Path, progress: Progress = silent) -> None:
    """Bring a file to ``target`` from the first of its addresses that has it whole, as its checksum tells."""
    if exists(target):
        if (found := _md5_of(target)) != archive.md5:
            raise BadInput(f"'{target}' has the MD5 sum {found}, expected {archive.md5}: please remove it")
        return
    part = target.with_name(f"{target.name}.part")
    if exists(part) and _md5_of(part) == archive.md5:  # stopped between the last byte and its proper name
        part.replace(target)
        return
    reasons = []
    for url in archive.urls:
        reason = _transfer(url, part, progress)
        if reason is None and (found := _md5_of(part)) != archive.md5:
            part.unlink()
            reason = f"its MD5 sum was {found}, expected {archive.md5}"
        if reason is None:
            part.replace(target)
            return
        reasons.append(f"{url}: {reason}")
    size = _size(part)
    if size == 0:
        part.unlink(missing_ok=True)
    kept = f" ({size} bytes are kept, trying again goes on from there)" if size else ""
    raise Failed(
        f"{archive.name} could not be fetched: {'; '.join(reasons)}{kept}; "
        f"it can also be put at '{target}' by hand before trying again"
    )


class _Broken(Exception):
    """A transfer that did not bring all there is; says why."""


@contextmanager
def _network() -> Iterator[None]:
    """Tell what goes wrong on the network from what goes wrong on this disk."""
    try:
        yield
    except HTTPError as error:
        error.close()
        raise _Broken(f"the server answered {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", error)  # of a URLError
        raise _Broken(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__) from error


def _transfer(url: str, part: Path, progress: Progress) -> str | None:
    """Append what a file's part still lacks; return why not all of it came, or None."""
    try:
        with _network():
            response, done = _answer(url, _size(part))
        with response, part.open("ab" if done else "wb") as sink:
            total = done + (response.length or 0)
            while block := _read(response):
                sink.write(block)
                done += len(block)
                progress(f"fetching {PurePosixPath(url).name}", done, total)
        if done < total:
            raise _Broken(f"it broke off after {done} of {total} bytes")
    except _Broken as broken:
        return str(broken)
    return None


def _answer(url: str, start: int) -> tuple[HTTPResponse, int]:
    """Ask for a file from byte ``start`` on; return the answer, and the byte that it really starts at."""
    headers = {"User-Agent": "twofold"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not start:
            raise
        error.close()
        return _answer(url, 0)  # what we have is longer than the file, so it is not its beginning
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return response, 0
    if response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        return response, start
    response.close()
    raise _Broken("the server sent another range than it was asked for")


def _read(response: HTTPResponse) -> bytes:
    with _network():
        return response.read(BLOCK)


def unpack(archive: Path, folder: Path, names: Collection[str], inside: str, progress: Progress = silent) -> None:
    """Unpack files, all or none, from a ``.gz``, or from a ``.tar.gz`` that has them in a folder ``inside``."""
    staging = folder / ".unpacking"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        for done, (name, stream) in enumerate(_streams(archive, names, inside)):
            progress(f"unpacking {archive.name}", done, len(names))
            with (staging / name).open("wb") as sink:
                shutil.copyfileobj(stream, sink, BLOCK)
        missing = [name for name in names if not exists(staging / name)]
        if missing:
            raise tarfile.TarError(f"it has no {', '.join(sorted(missing))}")
        for name in names:
            (staging / name).replace(folder / name)
        progress(f"unpacking {archive.name}", len(names), len(names))
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Failed(f"'{archive}' cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _streams(archive: Path, names: Collection[str], inside: str) -> Iterator[tuple[str, IO[bytes] | gzip.GzipFile]]:
    """Go through the files of these names in an archive."""
    if not archive.name.endswith(".tar.gz"):
        with gzip.open(archive) as stream:
            yield archive.name.removesuffix(".gz"), stream
        return
    wanted = {PurePosixPath(inside, name): name for name in names}
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if (name := wanted.get(PurePosixPath(member.name))) is None:
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise tarfile.TarError(f"{member.name} is not a regular file")
            yield name, content


def _size(path: Path) -> int:
    return path.stat().st_size if exists(path) else 0


def _md5_of(path: Path) -> str:
    with path.open("rb") as stream:
        return _md5(stream)


def _md5(stream: BufferedReader | gzip.GzipFile) -> str:
    return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
