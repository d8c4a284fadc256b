"""Parts are disjoint, whole, fair and always alike; selected rows stay where they are until they are taken."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from twofold.data.parts import LEAST_PART, LEAST_SAMPLES, Selected, enough, existing, numbered, three_parts
from twofold.data.source import Split
from twofold.errors import BadInput


def counting(n: int, labels: list[int] | None = None) -> Split:
    """Build a split in which everything about a sample tells its row."""
    samples = np.stack([np.arange(n), -np.arange(n)], axis=1).astype(np.float32)
    return Split(samples, None if labels is None else np.array(labels), [f"row {i}" for i in range(n)])


def rows(split: Split) -> list[int]:
    """Return which rows these are, having seen that samples and names agree."""
    found = [int(row) for row in split.take(slice(None))[:, 0]]
    assert split.names == [f"row {row}" for row in found]
    assert len(split) == len(found)
    return found


@given(st.integers(LEAST_SAMPLES, 400), st.integers(1, 60))
def test_parts_of_any_size(n: int, classes: int) -> None:
    labels = [row % classes for row in range(n)]
    for whole in (counting(n), counting(n, labels)):
        parts = [rows(part) for part in three_parts(whole)]
        assert sorted(row for part in parts for row in part) == list(range(n))
        assert min(map(len, parts)) >= LEAST_PART
        assert [rows(part) for part in three_parts(whole)] == parts


def test_shares() -> None:
    assert [len(part) for part in three_parts(counting(200))] == [160, 20, 20]
    assert [len(part) for part in three_parts(counting(LEAST_SAMPLES))] == [6, 2, 2]


def test_classes_are_divided_alike() -> None:
    for part, expected in zip(three_parts(counting(400, [0] * 300 + [1] * 100)), (240, 30, 30), strict=True):
        assert part.labels is not None
        assert np.bincount(part.labels).tolist() == [expected, expected // 3]


def test_selected_rows() -> None:
    whole = counting(20, list(range(20)))
    some = Selected(whole, np.array([3, 5, 8, 13]))
    assert rows(some) == [3, 5, 8, 13]
    assert some.take(torch.tensor([3, 0, 0]))[:, 0].tolist() == [13, 3, 3]
    assert some.take(slice(1, 3))[:, 0].tolist() == [5, 8]
    assert some.samples[:, 0].tolist() == [3, 5, 8, 13]
    fewer = some.subset(np.array([2, 0]))
    assert rows(fewer) == [8, 3]
    assert fewer.labels is not None
    assert fewer.labels.tolist() == [8, 3]


def test_selecting_copies_nothing() -> None:
    whole = counting(20)
    train, _, _ = three_parts(whole)
    first = int(train.take(slice(0, 1))[0, 0])
    whole.samples[first] = 99
    assert train.take(slice(0, 1))[0].tolist() == [99, 99]
    train.take(slice(0, 1)).zero_()
    assert whole.samples[first].tolist() == [99, 99]


def test_too_few() -> None:
    enough(LEAST_SAMPLES, "image", "here")
    with pytest.raises(BadInput, match=r"^here has 9 images: at least 10 are needed"):
        enough(LEAST_SAMPLES - 1, "image", "here")
    with pytest.raises(BadInput, match=r"^here has 1 image: "):
        enough(1, "image", "here")


def test_classes_are_numbered_by_name() -> None:
    labels, classes = numbered(["cat", "ant", "cat", "bee"])
    assert labels is not None
    assert (labels.tolist(), labels.dtype, classes) == ([2, 0, 2, 1], np.int64, ("ant", "bee", "cat"))
    labels, classes = numbered(np.array([7, -1, 7]))
    assert labels is not None
    assert (labels.tolist(), classes) == ([1, 0, 1], ("-1", "7"))
    assert numbered(["cat", "cat"]) == numbered([]) == (None, ())


def test_paths_that_lead_nowhere_name_what_is_alike(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    assert existing(str(tmp_path / "photos")) == tmp_path / "photos"
    with pytest.raises(BadInput, match=r"there is no '.*photso'; did you mean 'photos'"):
        existing(tmp_path / "photso")
    with pytest.raises(BadInput, match=r"there is no '.*nowhere/photos'$"):
        existing(tmp_path / "nowhere" / "photos")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"Not a directory"):
        existing(tmp_path / "file" / "photos")
