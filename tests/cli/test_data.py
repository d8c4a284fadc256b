"""``twofold data``: people get tables, programs one JSON document, mistakes one sentence."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from twofold.cli.data import ACTIONS, HELP, run
from twofold.data import fetch as fetching
from twofold.data.fetch import HOMES, Archive
from twofold.data.published import PUBLISHED, File
from twofold.errors import BadInput, Failed

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither look at this machine's data nor write into its cache."""
    monkeypatch.delenv("TWOFOLD_DATA", raising=False)
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a small CIFAR-100, which counts as the published one."""
    folder = tmp_path / "root" / "cifar-100-binary"
    folder.mkdir(parents=True)
    for name, n in (("train.bin", 200), ("test.bin", 20)):
        rows = RANDOM.integers(0, 20, (n, 3074), dtype=np.uint8)
        rows[:, 1] = np.arange(n) % 20
        (folder / name).write_bytes(rows.tobytes())
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    sums = {name: File(len(content), hashlib.md5(content).hexdigest()) for name, content in sorted(files.items())}
    monkeypatch.setitem(PUBLISHED, "cifar100", dataclasses.replace(PUBLISHED["cifar100"], files=sums))  # type: ignore[arg-type]
    return folder.parent


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        for i in range(100):
            pixels = RANDOM.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{i}.png")
    return folder


def document(capsys: pytest.CaptureFixture[str], *words: str | Path, status: int = 0) -> Any:
    """Run with --json; all of standard output is the document."""
    assert run([*map(str, words), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def refusal(*words: str | Path) -> str:
    with pytest.raises(BadInput) as caught:
        run([str(word) for word in words])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_list_names_all_data_and_where_they_are(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = document(capsys, "list", "--data-root", root)
    assert listed["root"] == str(root)
    found = {it["name"]: it["found"] for it in listed["data"]}
    assert found == {"digits": "built in", **dict.fromkeys(PUBLISHED), "cifar100": str(root / "cifar-100-binary")}
    monkeypatch.chdir(root.parent)  # short paths fit into any table
    assert run(["--data-root", "root"]) == 0  # to list is the default
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.split()}
    assert "built in" in rows["digits"]
    assert "root/cifar-100-binary" in rows["cifar100"]
    for name in ("cifar10", "stl10", "mnist", "fashion-mnist"):
        assert "not here" in rows[name]


def test_list_looks_where_the_variable_says(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWOFOLD_DATA", str(root))
    assert document(capsys, "list")["root"] == str(root)


@pytest.mark.parametrize("which", ["name", "root", "folder"])
def test_check_finds_published_data_by_name_and_by_folder(
    root: Path, capsys: pytest.CaptureFixture[str], which: str
) -> None:
    words = {"name": ["cifar100", "--data-root", root], "root": [root], "folder": [root / "cifar-100-binary"]}[which]
    checked = document(capsys, "check", *words)
    assert checked["data"] == "cifar100"
    assert checked["place"] == str(root / "cifar-100-binary")
    assert checked["samples"] == {"pool": 180, "train": 180, "validation": 20, "test": 20}
    assert checked["shape"] == [3, 32, 32]
    assert checked["classes"] == list(PUBLISHED["cifar100"].classes)
    assert checked["problems"] == checked["notes"] == []


def test_check_tells_a_file_that_is_not_the_published_one(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "cifar-100-binary" / "test.bin"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    problems = ["test.bin can be read, but is not the published file"]
    assert document(capsys, "check", root, status=1)["problems"] == problems
    assert run(["check", str(root)]) == Failed.exit_status
    assert f"problem: {problems[0]}" in capsys.readouterr().out


def test_check_says_what_only_the_size_was_checked_of(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {name: File(file.size) for name, file in PUBLISHED["cifar100"].files.items()}
    monkeypatch.setitem(PUBLISHED, "cifar100", dataclasses.replace(PUBLISHED["cifar100"], files=sizes))  # type: ignore[arg-type]
    checked = document(capsys, "check", root)
    assert checked["problems"] == []
    assert checked["notes"] == [f"of {name} only the size was checked" for name in sizes]


def test_check_names_a_malformed_file(root: Path) -> None:
    path = root / "cifar-100-binary" / "train.bin"
    path.write_bytes(path.read_bytes()[:-1])
    sentence = refusal("check", root)
    assert f"'{path}' is malformed or truncated: found 614799 bytes, expected a multiple of 3074" in sentence


def test_check_counts_a_folder_of_images(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = document(capsys, "check", photos)
    assert checked["files"] == 200
    assert checked["skipped"] == {}
    assert checked["samples"] == {"pool": 160, "train": 160, "validation": 20, "test": 20}
    assert checked["classes"] == ["cat", "dog"]
    assert checked["problems"] == []


def test_check_lists_images_that_are_left_out(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "cat" / "0.png").write_bytes(b"")
    checked = document(capsys, "check", photos)
    assert list(checked["skipped"]) == ["cat/0.png"]
    assert checked["problems"] == []
    assert run(["check", str(photos)]) == 0
    printed = capsys.readouterr().out
    assert "cat/0.png" in printed
    assert "all is well" in printed


def test_check_fails_where_training_would_refuse(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corrupt = [f"dog/{i}.png" for i in range(10)]
    for name in corrupt:
        (photos / name).write_bytes(b"no image")
    checked = document(capsys, "check", photos, status=1)
    assert sorted(checked["skipped"]) == corrupt
    assert len(checked["problems"]) == 1
    assert "10 of the 200 images" in checked["problems"][0]


def test_check_opens_vectors_and_the_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "vectors.npy", RANDOM.normal(size=(30, 4)))
    checked = document(capsys, "check", tmp_path / "vectors.npy")
    assert (checked["shape"], checked["labelled"], checked["problems"]) == ([4], False, [])
    assert document(capsys, "check", "digits")["place"] == "built in"


def test_what_cannot_be_checked_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "has no images" in refusal("check", tmp_path / "empty")
    assert "did you mean 'cifar10'?" in refusal("check", "cifar")
    assert "cifar10 was not found" in refusal("check", "cifar10")


def test_fetch_says_where_it_is(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(root / "cifar-100-binary")
    assert document(capsys, "fetch", "cifar100", "--data-root", root) == {"data": "cifar100", "place": place}
    assert run(["fetch", "cifar100", "--data-root", str(root)]) == 0
    assert capsys.readouterr().out == f"cifar100: {place}\n"


def test_a_fetch_that_fails_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(fetching, "TIMEOUT", 1.0)
    archive = Archive(("http://127.0.0.1:1/cifar-10-binary.tar.gz",), "")
    monkeypatch.setitem(HOMES, "cifar10", (archive,))  # type: ignore[arg-type]
    with pytest.raises(Failed, match=r"cifar-10-binary\.tar\.gz could not be fetched: http://127\.0\.0\.1:1/"):
        run(["fetch", "cifar10", "--data-root", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_answered_with_what_is_allowed() -> None:
    assert "allowed are list, fetch, check; did you mean 'fetch'?" in refusal("fetsh", "cifar10")
    assert "did you mean 'cifar100'?" in refusal("fetch", "cifar-100")
    assert "say what to fetch" in refusal("fetch")
    assert "say what to check" in refusal("check")
    assert "takes no name, found 'mnist'" in refusal("list", "mnist")
    assert "did you mean '--json'?" in refusal("list", "--jsom")
    assert "--data-root" in refusal("list", "--data-root")


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(["--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert HELP in " ".join(printed.split())
    for action in ACTIONS:
        assert f"twofold data {action}" in printed
