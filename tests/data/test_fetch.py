"""Fetching from a server on loopback: whatever goes wrong, a wrong file never comes to be at its place."""

import dataclasses
import errno
import gzip
import hashlib
import io
import re
import shutil
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from twofold.data import fetch as fetching
from twofold.data.fetch import HOMES, Archive, differing, download, fetch, unpack
from twofold.data.published import PUBLISHED, File
from twofold.errors import BadInput, Failed


class Home:
    """A server of files, with the faults that are asked of it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.ranges = True
        self.cut: int | None = None  # break off after so many bytes
        self.shift = 0  # answer with a range that starts elsewhere
        self.pause = 0.0
        self.asked: list[tuple[str, str | None]] = []
        self.sent = 0
        home = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                home.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        time.sleep(self.pause)
        content = self.files.get(request.path)
        if content is None:
            request.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        if start and start >= len(content):
            request.send_error(416)
            return
        body = content[start:]
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(body)))
        if start:
            request.send_header("Content-Range", f"bytes {start + self.shift}-{len(content) - 1}/{len(content)}")
        request.end_headers()
        body = body[: self.cut]
        self.sent += len(body)
        with suppress(ConnectionError):  # who asked may have given up
            request.wfile.write(body)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("no_proxy", "*")
    server = Home()
    yield server
    server.close()


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


NOISE = np.random.default_rng(0).bytes(300_000)  # more than a block, and nothing that compression makes small
CIFAR100 = {"train.bin": NOISE, "test.bin": b"test"}
TAR = tar({f"cifar-100-binary/{name}": content for name, content in CIFAR100.items()} | {"cifar-100-binary/more": b""})
NAME = "cifar-100-binary.tar.gz"


def publish(monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes], *archives: Archive) -> None:
    """Make a collection be these files for the time of a test."""
    sums = {file: File(len(content), md5(content)) for file, content in files.items()}
    monkeypatch.setitem(PUBLISHED, name, dataclasses.replace(PUBLISHED[name], files=sums))  # type: ignore[arg-type]
    monkeypatch.setitem(HOMES, name, archives)  # type: ignore[arg-type]


@pytest.fixture
def cifar100(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that has CIFAR-100, as it were."""
    home.files[f"/{NAME}"] = TAR
    publish(monkeypatch, "cifar100", CIFAR100, Archive((f"{home.url}/{NAME}",), md5(TAR)))
    return home


@pytest.fixture
def mnist(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that has MNIST, as it were."""
    files = {name: name.encode() for name in PUBLISHED["mnist"].files}
    packed = {f"{name}.gz": gzip.compress(content) for name, content in files.items()}
    home.files |= {f"/{name}": content for name, content in packed.items()}
    archives = [Archive((f"{home.url}/{name}",), md5(content)) for name, content in packed.items()]
    publish(monkeypatch, "mnist", files, *archives)
    return home


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refusal(root: Path, name: str = "cifar100") -> str:
    with pytest.raises(Failed) as caught:
        fetch(name, root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_archive_is_fetched_and_unpacked(tmp_path: Path, cifar100: Home) -> None:
    assert fetch("cifar100", tmp_path) == tmp_path / "cifar-100-binary"
    assert contents(tmp_path / "cifar-100-binary") == CIFAR100
    assert fetch("cifar100", tmp_path) == tmp_path / "cifar-100-binary"
    assert cifar100.asked == [(f"/{NAME}", None)]


def test_single_files_are_fetched_and_unpacked(tmp_path: Path, mnist: Home) -> None:
    fetch("mnist", tmp_path)
    assert contents(tmp_path / "mnist") == {name: name.encode() for name in PUBLISHED["mnist"].files}


def test_only_what_is_missing_or_damaged_is_fetched(tmp_path: Path, mnist: Home) -> None:
    folder = fetch("mnist", tmp_path)
    first, second, third, _ = PUBLISHED["mnist"].files
    (folder / first).write_bytes(b"damaged")
    (folder / second).unlink()
    (folder / third).unlink()
    (folder / f"{third}.gz").write_bytes(gzip.compress(third.encode()))  # is as good
    mnist.asked.clear()
    fetch("mnist", tmp_path)
    assert sorted(path for path, _ in mnist.asked) == sorted([f"/{first}.gz", f"/{second}.gz"])
    assert not differing(PUBLISHED["mnist"], folder)


def test_the_root_may_be_the_folder_itself(tmp_path: Path, cifar100: Home) -> None:
    root = tmp_path / "cifar-100-binary"
    assert fetch("cifar100", root) == root
    assert contents(tmp_path) == {f"cifar-100-binary/{name}": content for name, content in CIFAR100.items()}


def test_a_transfer_that_broke_off_goes_on_from_there(tmp_path: Path, cifar100: Home) -> None:
    cifar100.cut = 100_000
    sentence = refusal(tmp_path)
    assert f"it broke off after 100000 of {len(TAR)} bytes" in sentence
    assert "100000 bytes are kept, trying again goes on from there" in sentence
    part = tmp_path / "cifar-100-binary" / f"{NAME}.part"
    assert contents(tmp_path) == {str(part.relative_to(tmp_path)): TAR[:100_000]}
    assert "it broke off after 200000" in refusal(tmp_path)
    cifar100.cut = None
    fetch("cifar100", tmp_path)
    assert [wanted for _, wanted in cifar100.asked] == [None, "bytes=100000-", "bytes=200000-"]
    assert cifar100.sent == len(TAR)
    assert contents(tmp_path / "cifar-100-binary") == CIFAR100


def test_a_server_without_ranges_is_asked_for_all(tmp_path: Path, cifar100: Home) -> None:
    cifar100.cut = 100_000
    refusal(tmp_path)
    cifar100.cut, cifar100.ranges = None, False
    fetch("cifar100", tmp_path)
    assert cifar100.sent == 100_000 + len(TAR)
    assert contents(tmp_path / "cifar-100-binary") == CIFAR100


@pytest.mark.parametrize("kept", [TAR + b"more", NOISE * 2])
def test_a_part_that_is_too_long_is_started_again(tmp_path: Path, cifar100: Home, kept: bytes) -> None:
    part = tmp_path / "cifar-100-binary" / f"{NAME}.part"
    part.parent.mkdir()
    part.write_bytes(kept)
    fetch("cifar100", tmp_path)
    assert [wanted for _, wanted in cifar100.asked] == [f"bytes={len(kept)}-", None]
    assert contents(tmp_path / "cifar-100-binary") == CIFAR100


def test_a_part_of_another_file_is_dropped_after_the_checksum(tmp_path: Path, cifar100: Home) -> None:
    part = tmp_path / "cifar-100-binary" / f"{NAME}.part"
    part.parent.mkdir()
    part.write_bytes(b"something else")
    assert "MD5" in refusal(tmp_path)
    assert contents(tmp_path) == {}
    fetch("cifar100", tmp_path)
    assert contents(tmp_path / "cifar-100-binary") == CIFAR100


def test_a_whole_part_needs_no_server(tmp_path: Path, cifar100: Home) -> None:
    part = tmp_path / "cifar-100-binary" / f"{NAME}.part"
    part.parent.mkdir()
    part.write_bytes(TAR)
    fetch("cifar100", tmp_path)
    assert cifar100.asked == []
    assert contents(tmp_path / "cifar-100-binary") == CIFAR100


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path, cifar100: Home) -> None:
    changed = bytearray(TAR)
    changed[1000] ^= 1
    cifar100.files[f"/{NAME}"] = bytes(changed)
    assert f"its MD5 sum was {md5(changed)}, expected {md5(TAR)}" in refusal(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_range_that_was_not_asked_for_is_refused(tmp_path: Path, cifar100: Home) -> None:
    cifar100.cut = 1000
    refusal(tmp_path)
    cifar100.cut, cifar100.shift = None, 1
    assert "another range than it was asked for" in refusal(tmp_path)
    assert list(contents(tmp_path).values()) == [TAR[:1000]]


def test_mirrors_are_tried_in_their_order(tmp_path: Path, cifar100: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    cifar100.files[f"/page/{NAME}"] = b"<html>moved</html>"
    urls = [f"{cifar100.url}/{where}{NAME}" for where in ("gone/", "page/", "")]
    publish(monkeypatch, "cifar100", CIFAR100, Archive(tuple(urls), md5(TAR)))
    fetch("cifar100", tmp_path)
    assert [path for path, _ in cifar100.asked] == [f"/gone/{NAME}", f"/page/{NAME}", f"/{NAME}"]
    publish(monkeypatch, "cifar100", CIFAR100, Archive(tuple(urls[:2]), md5(TAR)))
    sentence = refusal(tmp_path / "elsewhere")
    assert f"{urls[0]}: the server answered 404" in sentence
    assert f"{urls[1]}: its MD5 sum was" in sentence


def test_no_network_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    gone = Home()
    gone.close()
    publish(monkeypatch, "cifar100", CIFAR100, Archive((f"{gone.url}/{NAME}",), md5(TAR)))
    sentence = refusal(tmp_path)
    assert f"{gone.url}/{NAME}: " in sentence
    assert "refused" in sentence
    assert f"it can also be put at '{tmp_path / 'cifar-100-binary' / NAME}' by hand" in sentence
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_nothing_is_given_up(
    tmp_path: Path, cifar100: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", 0.1)
    cifar100.pause = 0.5
    assert "timed out" in refusal(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_was_put_there_by_hand_is_used_and_left(tmp_path: Path, cifar100: Home) -> None:
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / NAME).write_bytes(TAR)
    fetch("cifar100", tmp_path)
    assert cifar100.asked == []
    assert contents(folder) == {**CIFAR100, NAME: TAR}


def test_a_wrong_archive_that_was_put_there_by_hand_is_not_touched(tmp_path: Path, cifar100: Home) -> None:
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / NAME).write_bytes(b"wrong")
    with pytest.raises(BadInput, match=f"has the MD5 sum {md5(b'wrong')}, expected {md5(TAR)}"):
        fetch("cifar100", tmp_path)
    assert contents(folder) == {NAME: b"wrong"}


def test_an_archive_cannot_write_anywhere_else(tmp_path: Path) -> None:
    packed = tar(
        {
            "../evil": b"x",
            "/tmp/evil": b"x",
            "cifar-100-binary/../../evil": b"x",
            "cifar-100-binary/unknown": b"x",
            "elsewhere/train.bin": b"x",
            "./cifar-100-binary/train.bin": b"good",
        }
    )
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "a.tar.gz").write_bytes(packed)
    unpack(folder / "a.tar.gz", folder, ["train.bin"], "cifar-100-binary")
    assert contents(tmp_path) == {"deep/er/a.tar.gz": packed, "deep/er/train.bin": b"good"}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_what_is_no_regular_file_is_not_unpacked(tmp_path: Path, kind: bytes) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        whole = tarfile.TarInfo("in/test.bin")
        archive.addfile(whole, io.BytesIO(b""))
        odd = tarfile.TarInfo("in/train.bin")
        odd.type, odd.linkname = kind, "/etc/hostname"
        archive.addfile(odd)
    (tmp_path / "a.tar.gz").write_bytes(packed.getvalue())
    with pytest.raises(Failed, match=r"in/train\.bin is not a regular file"):
        unpack(tmp_path / "a.tar.gz", tmp_path, ["train.bin", "test.bin"], "in")
    assert list(contents(tmp_path)) == ["a.tar.gz"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.tar.gz", tar({"in/test.bin": b""}), "it has no train.bin"),
        ("a.tar.gz", b"no archive", "cannot be unpacked"),
        ("a.tar.gz", TAR[:-1000], "cannot be unpacked"),
        ("train.bin.gz", gzip.compress(NOISE)[:-1000], "cannot be unpacked"),
        ("train.bin.gz", b"no archive", "cannot be unpacked"),
    ],
)
def test_a_broken_archive_leaves_nothing(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Failed, match=says):
        unpack(tmp_path / name, tmp_path, ["train.bin"], "in")
    assert list(contents(tmp_path)) == [name]


def test_what_a_kill_left_while_unpacking_is_cleared(tmp_path: Path, cifar100: Home) -> None:
    left = tmp_path / "cifar-100-binary" / ".unpacking"
    left.mkdir(parents=True)
    (left / "train.bin").write_bytes(b"half")
    fetch("cifar100", tmp_path)
    assert contents(tmp_path / "cifar-100-binary") == CIFAR100


def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path: Path, cifar100: Home) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BadInput, match=re.escape(f"the folder '{tmp_path}/file/cifar-100-binary' cannot be made")):
        fetch("cifar100", tmp_path / "file")
    assert cifar100.asked == []


def test_a_full_disk_is_one_sentence(tmp_path: Path, cifar100: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", full)
        assert "cifar100 could not be written to" in refusal(tmp_path)
        assert list(contents(tmp_path / "cifar-100-binary")) == [NAME]
    cifar100.asked.clear()
    fetch("cifar100", tmp_path)  # once there is room, what was fetched is not fetched again
    assert cifar100.asked == []


def test_progress_is_told_to_the_end(tmp_path: Path, cifar100: Home) -> None:
    told: dict[str, list[tuple[int, int]]] = {}
    fetch("cifar100", tmp_path, lambda what, done, total: told.setdefault(what, []).append((done, total)))
    assert list(told) == ["checking cifar100", f"fetching {NAME}", f"unpacking {NAME}"]
    assert told[f"fetching {NAME}"][-1] == (len(TAR), len(TAR))
    for steps in told.values():
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1] > 0


def test_a_checksum_in_another_place_is_found_out(tmp_path: Path, cifar100: Home) -> None:
    folder = fetch("cifar100", tmp_path)
    assert differing(PUBLISHED["cifar100"], folder) == frozenset()
    (folder / "test.bin").write_bytes(b"tesT")  # as long
    assert differing(PUBLISHED["cifar100"], folder) == {"test.bin"}
    (folder / "test.bin").unlink()
    assert differing(PUBLISHED["cifar100"], folder) == {"test.bin"}
    (folder / "test.bin.gz").write_bytes(gzip.compress(b"test")[:-3])
    assert differing(PUBLISHED["cifar100"], folder) == {"test.bin"}


def test_without_a_checksum_the_size_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataclasses.replace(PUBLISHED["cifar100"], files={"train.bin": File(4)})
    (tmp_path / "train.bin").write_bytes(b"1234")
    assert differing(data, tmp_path) == frozenset()
    (tmp_path / "train.bin").write_bytes(b"12345")
    assert differing(data, tmp_path) == {"train.bin"}


def test_all_collections_have_a_home_with_checksums() -> None:
    assert HOMES.keys() == PUBLISHED.keys()
    for name, archives in HOMES.items():
        members = set[str]()
        for archive in archives:
            assert re.fullmatch("[0-9a-f]{32}", archive.md5)
            assert all(re.match(r"https?://", url) and url.endswith(f"/{archive.name}") for url in archive.urls)
            members |= fetching._members(archive, PUBLISHED[name])
        assert members == PUBLISHED[name].files.keys()
    assert len({archive.md5 for archives in HOMES.values() for archive in archives}) == 11


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"unknown data to fetch 'cifar1O'.*did you mean 'cifar10'"):
        fetch("cifar1O", tmp_path)


def test_a_download_does_not_touch_what_is_there(tmp_path: Path, home: Home) -> None:
    (tmp_path / "file").write_bytes(b"here")
    download(Archive((f"{home.url}/file",), md5(b"here")), tmp_path / "file")
    assert home.asked == []
