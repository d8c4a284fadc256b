"""Files of vectors read back, and whatever is wrong with one is said in a sentence."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import parquet

from twofold.data import vector_files
from twofold.data.vector_files import checked, named, read_vectors
from twofold.data.vectors import vector_split
from twofold.errors import BadInput

ARRAY = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


class Trap:
    """Says so when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return pytest.fail, ("a file's code was run",)


def npy(folder: Path, array: NDArray[Any]) -> Path:
    np.save(folder / "a.npy", array)
    return folder / "a.npy"


def npz(folder: Path, **arrays: NDArray[Any]) -> Path:
    np.savez(folder / "a.npz", **arrays)  # type: ignore[arg-type]
    return folder / "a.npz"


def table(folder: Path, columns: Mapping[str, Any]) -> Path:
    parquet.write_table(pa.table(dict(columns)), folder / "a.parquet")
    return folder / "a.parquet"


def written(folder: Path, suffix: str) -> Path:
    """Write a good file of any format."""
    writers = {
        ".npy": lambda: npy(folder, ARRAY),
        ".npz": lambda: npz(folder, x=ARRAY),
        ".parquet": lambda: table(folder, {"a": ARRAY[:, 0]}),
    }
    return writers[suffix]()


def refused(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        vector_split(path)
    said = str(caught.value)
    assert said.startswith(f"'{path}' ")
    assert "\n" not in said
    return said


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", ">f8", "i1", "u2", "i8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_numbers(tmp_path: Path, dtype: str, order: Any) -> None:
    array = np.asarray(ARRAY * 10, dtype, order=order)
    found = vector_split(npy(tmp_path, array)).samples
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, array.astype(np.float32))


def test_npz_of_any_spelling(tmp_path: Path) -> None:
    labels = np.arange(20) % 3
    spellings: list[dict[str, NDArray[Any]]] = [
        {"x": ARRAY, "y": labels},
        {"Z": ARRAY, "labels": labels, "other": labels},
        {"embedding": ARRAY, "Label": labels},
        {"x": ARRAY, "z": -ARRAY, "y": labels},
    ]
    for arrays in spellings:
        split = vector_split(npz(tmp_path, **arrays))
        np.testing.assert_array_equal(split.samples, ARRAY)
        np.testing.assert_array_equal(split.labels, labels)
    assert vector_split(npz(tmp_path, arr_0=ARRAY)).labels is None


@pytest.mark.parametrize("labels", [["a", "b"] * 10, [b"a", b"b"] * 10, [3, 9] * 10, [True, False] * 10])
def test_labels_of_any_type(tmp_path: Path, labels: list[Any]) -> None:
    split = vector_split(npz(tmp_path, x=ARRAY, y=np.array(labels)))
    assert split.labels is not None
    assert split.labels.tolist() == [labels.index(label) ^ (labels[0] is True) for label in labels]


def test_npz_that_leave_it_open(tmp_path: Path) -> None:
    assert "has the arrays a, b: name the vectors x or z" in refused(npz(tmp_path, a=ARRAY, b=ARRAY))
    assert "has the arrays y: name" in refused(npz(tmp_path, y=ARRAY))
    assert "labels in y and in label" in refused(npz(tmp_path, x=ARRAY, y=ARRAY, label=ARRAY))
    path = tmp_path / "b.npz"
    path.write_bytes(npy(tmp_path, ARRAY).read_bytes())
    assert "File is not a zip file" in refused(path)
    npz(tmp_path, x=ARRAY).rename(tmp_path / "c.npy")
    assert "cannot be read" in refused(tmp_path / "c.npy")


def test_parquet_of_columns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(
        tmp_path,
        {
            "name": [f"image {i}" for i in range(20)],
            "a": ARRAY[:, 0],
            "label": ["cat", "dog"] * 10,
            "whole": pa.array(range(20), pa.int64()),
            "yes": [True, False] * 10,
        },
    )
    split = vector_split(path)
    expected = np.stack([ARRAY[:, 0], np.arange(20), np.arange(20) % 2 == 0], axis=1)
    np.testing.assert_array_equal(split.samples, expected)
    assert split.labels is not None
    assert split.labels.tolist() == [0, 1] * 10
    assert "not numbers, they are left out: name" in caplog.text


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3), pa.large_list(pa.float16())])
def test_parquet_of_lists(tmp_path: Path, kind: pa.DataType) -> None:
    array = ARRAY.astype(np.float16)
    split = vector_split(table(tmp_path, {"z": pa.array(list(array), kind), "more": ARRAY[:, 0]}))
    np.testing.assert_array_equal(split.samples, np.hstack([array, ARRAY[:, :1]]))


def test_parquet_in_pieces(tmp_path: Path) -> None:
    whole = pa.table({"z": pa.array(ARRAY.tolist(), pa.list_(pa.float32())), "y": pa.array([4, 2] * 10)})
    parquet.write_table(whole, tmp_path / "a.parquet", row_group_size=3)
    split = vector_split(tmp_path / "a.parquet")
    np.testing.assert_array_equal(split.samples, ARRAY)
    assert split.labels is not None
    assert split.labels.tolist() == [1, 0] * 10


def test_parquet_of_categories(tmp_path: Path) -> None:
    labels = pa.array(["cat", "dog"] * 10).dictionary_encode()
    split = vector_split(table(tmp_path, {"a": ARRAY[:, 0], "y": labels}))
    assert split.labels is not None
    assert split.labels.tolist() == [0, 1] * 10


def test_parquet_that_cannot_be_vectors(tmp_path: Path) -> None:
    def said(**columns: Any) -> str:
        return refused(table(tmp_path, columns))

    assert "row 1 " in said(a=[1.0, None, 2.0])
    assert "row 2 " in said(a=[1, 2, None])
    assert "row 1 " in said(z=[[1.0, 2.0], [3.0, None]])
    assert "lists of different lengths in the column 'z'" in said(z=[[1.0, 2.0], [3.0]])
    assert "lists of different lengths" in said(z=[[1.0, 2.0], None])
    assert "2 samples of 0 features" in said(name=["a", "b"])
    assert "2 samples of 0 features" in said(z=pa.array([[], []], pa.list_(pa.float32())))
    assert "0 samples of 1 features" in said(a=pa.array([], pa.float32()))
    assert "rows without a label in the column 'y'" in said(a=[1.0, 2.0], y=["a", None])
    assert "labels in y and in Label" in said(a=[1.0, 2.0], y=[1, 2], Label=[1, 2])
    assert "labels of type float64" in said(a=[1.0, 2.0], y=[0.5, 2.0])


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((0, 3)), "0 samples of 3 features"),
        (np.zeros((3, 0)), "3 samples of 0 features"),
        (np.zeros(3), "shape (3,): vectors need two dimensions"),
        (np.float64(3), "shape (): vectors need two dimensions"),
        (np.zeros((2, 3, 4)), "shape (2, 3, 4): vectors need"),
        (np.zeros((2, 3), complex), "values of type complex128"),
        (np.full((2, 3), "a"), "values of type <U1"),
        (np.zeros((2, 3), "M8[s]"), "values of type datetime64[s]"),
        (np.zeros(2, [("a", "f4")]), "values of type ["),
        (np.array([[0.0, 1], [2, np.nan]]), "row 1 (the first is row 0)"),
        (np.array([[np.inf, 1], [2, np.nan]]), "row 0 "),
        (np.array([[1, 2], [3, 4], [0, -1e39]]), "row 2 "),
    ],
)
def test_arrays_that_cannot_be_vectors(tmp_path: Path, array: NDArray[Any], said: str) -> None:
    assert said in refused(npy(tmp_path, array))
    assert said in refused(npz(tmp_path, x=array))


@given(st.integers(0, 99), st.integers(1, 7), st.integers(1, 40))
def test_the_first_bad_row_is_named(row: int, dim: int, block: int) -> None:
    array = np.zeros((100, dim), np.float32)
    array[row:, -1] = np.nan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_files, "BLOCK", block)
        with pytest.raises(BadInput, match=f"^here has a value in row {row} "):
            checked(array, "here")


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    objects = np.array([[Trap(), 1], [2, 3]], object)
    (tmp_path / "b.npy").write_bytes(pickle.dumps(objects))
    for path in (npy(tmp_path, objects), npz(tmp_path, x=objects), npz(tmp_path, x=ARRAY, y=objects[:, 0])):
        assert "Python objects, which are never loaded" in refused(path)
    assert "cannot be read as a .npy" in refused(tmp_path / "b.npy")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_broken_files(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, suffix)
    content = path.read_bytes()
    assert len(vector_split(path)) == 20
    for broken in (b"", b"nonsense" * 50, *(content[: int(share * len(content))] for share in (0.01, 0.4, 0.9))):
        path.write_bytes(broken)
        assert "cannot be read as a " in refused(path)
    path.unlink()
    path.mkdir()
    assert "cannot be read as a " in refused(path)


@given(st.sampled_from([".npy", ".npz", ".parquet"]), st.integers(0, 700), st.binary(min_size=1, max_size=4))
def test_damage_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, place: int, damage: bytes
) -> None:
    path = written(tmp_path_factory.getbasetemp(), suffix)
    content = bytearray(path.read_bytes())
    place %= len(content)
    content[place : place + len(damage)] = damage
    path.write_bytes(content)
    try:
        samples = vector_split(path).samples
    except BadInput:
        return
    assert samples.dtype == np.float32
    assert np.isfinite(samples).all()


def test_other_files(tmp_path: Path) -> None:
    for name, hint in (("a.csv", ""), ("a.npyy", "; did you mean '.npy'?")):
        (tmp_path / name).touch()
        assert refused(tmp_path / name).endswith(f"it must end in .npy, .npz, .parquet{hint}")
    capitals = npy(tmp_path, ARRAY).rename(tmp_path / "A.NPY")
    np.testing.assert_array_equal(read_vectors(capitals)[0], ARRAY)


def test_labels_that_name_no_classes() -> None:
    assert named(np.array(["a", "b"]), 2, "here").tolist() == ["a", "b"]
    for labels, said in (
        (np.zeros((2, 1), int), r"labels of shape \(2, 1\)"),
        (np.zeros(3, int), r"2 samples, and labels of shape \(3,\)"),
        (np.zeros(2), "labels of type float64"),
        (np.array([{}, None]), "labels of type object"),
    ):
        with pytest.raises(BadInput, match=f"^here has .*{said}"):
            named(labels, 2, "here")
