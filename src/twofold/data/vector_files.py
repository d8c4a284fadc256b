"""Files of vectors: ``.npy``, ``.npz`` and ``.parquet``, read without running anything that is in them."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from twofold.errors import BadInput, TwofoldError, nearest

SAMPLES = ("x", "z")
"""What an array of vectors is called in a ``.npz``, the first of these before the second."""

LABELS = ("y", "label", "labels")
"""What labels are called, in a ``.npz`` and in a ``.parquet``."""

BLOCK = 2**24
"""Values looked at once."""

log = logging.getLogger("twofold")

Table = tuple[NDArray[Any], NDArray[Any] | None]
"""Samples as they are in the file, and labels where there are any."""


def read_vectors(path: Path) -> Table:
    """Read the vectors of a file, and its labels; a ``.npy`` is memory-mapped."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        allowed = ", ".join(READERS)
        raise BadInput(f"'{path}' is no file of vectors: it must end in {allowed}{nearest(path.suffix, READERS)}")
    try:
        return reader(path)
    except TwofoldError:
        raise
    except Exception as error:  # what a broken file makes a reader raise has no bounds
        raise BadInput(f"'{path}' cannot be read as a {path.suffix.lower()} of vectors: {_reason(error)}") from error


def checked(array: NDArray[Any], where: str) -> Float32[np.ndarray, "n dim"]:
    """Return finite vectors in single precision, or say what is wrong with them."""
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{where} has values of type {array.dtype}: vectors are made of whole or real numbers")
    if array.ndim != 2:
        raise BadInput(f"{where} has shape {array.shape}: vectors need two dimensions, samples and features")
    if 0 in array.shape:
        raise BadInput(f"{where} has {array.shape[0]} samples of {array.shape[1]} features: there must be some")
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large becomes infinite, and is found below
        array = array.astype(np.float32, copy=False)
    rows = max(1, BLOCK // array.shape[1])
    for start in range(0, len(array), rows):
        finite = np.isfinite(array[start : start + rows]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise BadInput(f"{where} has a value in row {row} (the first is row 0) that is no finite 32-bit number")
    return array


def named(labels: NDArray[Any], count: int, where: str) -> NDArray[Any]:
    """Return labels that name classes, one a sample, or say what is wrong with them."""
    if labels.shape != (count,):
        raise BadInput(f"{where} has {count} samples, and labels of shape {labels.shape}: there must be one a sample")
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in "biuU":
        raise BadInput(f"{where} has labels of type {labels.dtype}: classes are whole numbers or names")
    return labels


def _read_npy(path: Path) -> Table:
    # Not np.load: it would take whatever is no array for a pickle, and an archive for a mapping.
    return np.lib.format.open_memmap(path, mode="r"), None


def _read_npz(path: Path) -> Table:
    # Not np.load: it would take the file for what it looks like, and leave one that is broken open.
    with path.open("rb") as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
        labels = _the_one(path, archive.files, LABELS)
        others = [key for key in archive.files if key != labels]
        samples = next((key for name in SAMPLES for key in others if key.lower() == name), None)
        if samples is None:
            if len(others) != 1:
                raise BadInput(f"'{path}' has the arrays {', '.join(archive.files)}: name the vectors x or z")
            samples = others[0]
        return archive[samples], None if labels is None else archive[labels]


def _read_parquet(path: Path) -> Table:
    """Every column of numbers is a feature, one of lists of numbers as many as the lists are long."""
    from pyarrow import parquet  # heavy to import

    with parquet.ParquetFile(path) as file:  # read_table would take folders too, and columns from their names
        table = file.read()
    label = _the_one(path, table.column_names, LABELS)
    features, labels, left_out = [np.empty((len(table), 0), np.float32)], None, []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name == label:
            labels = _column_of_labels(path, name, column)
        elif (block := _column_of_features(path, name, column)) is not None:
            features.append(block)
        else:
            left_out.append(name)
    if left_out:
        log.warning("'%s' has columns that are not numbers, they are left out: %s", path, ", ".join(left_out))
    return np.concatenate(features, axis=1), labels


def _column_of_features(path: Path, name: str, column: Any) -> NDArray[np.float32] | None:
    """Return the numbers of a column, missing ones as NaN; None where it has no numbers."""
    import pyarrow as pa  # heavy to import
    from pyarrow import compute

    width, numbers = 1, column
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        lengths = set(compute.unique(compute.list_value_length(column)).to_pylist())
        if len(lengths) > 1 or None in lengths:
            raise BadInput(f"'{path}' has lists of different lengths in the column '{name}': they must be as long")
        width, numbers = max(lengths, default=0), compute.list_flatten(column)
    kind = numbers.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (number or pa.types.is_boolean(kind)):
        return None
    flat: NDArray[np.float32] = numbers.cast(pa.float32(), safe=False).to_numpy()
    return flat.reshape(len(column), width)


def _column_of_labels(path: Path, name: str, column: Any) -> NDArray[Any]:
    if column.null_count:
        raise BadInput(f"'{path}' has rows without a label in the column '{name}': give them one or drop the column")
    return np.asarray(column.to_pylist())


def _the_one(path: Path, names: list[str], wanted: tuple[str, ...]) -> str | None:
    """Find the name that is one of those wanted, in capitals or not."""
    found = [name for name in names if name.lower() in wanted]
    if len(found) > 1:
        raise BadInput(f"'{path}' has labels in {' and in '.join(found)}: it must be clear which to take")
    return found[0] if found else None


def _reason(error: Exception) -> str:
    message = " ".join(str(getattr(error, "strerror", None) or error).split())
    if "pickle" in message or "Python objects" in message:
        return "it holds Python objects, which are never loaded, or is something else"
    return message or type(error).__name__


READERS: Mapping[str, Callable[[Path], Table]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
}
