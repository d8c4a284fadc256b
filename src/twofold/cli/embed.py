"""``twofold embed``."""

import itertools
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twofold.cli.parser import Parser, print_json
from twofold.errors import BadInput, Failed, nearest

if TYPE_CHECKING:
    from twofold.data import Split
    from twofold.records import Progress
    from twofold.training import Run

EXAMPLES = """twofold embed runs/simclr-digits-1 --data digits --split test --out z.npy
twofold embed runs/byol-photos-1 --data ./more-photos --out z.parquet"""
ENDINGS = (".npy", ".npz", ".parquet")
ROWS_AT_ONCE = 512


def run(words: list[str]) -> int:
    """Write the embeddings of a data set, batch by batch, in its order and with its names."""
    parser = Parser("embed", "Write the embeddings of a data set, in its order and with its names.", EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--data", metavar="SPEC", help="what to embed (default: what the run was trained on)")
    parser.add_argument("--data-root", metavar="DIR", help="where known data sets are looked for")
    parser.add_argument("--split", choices=("train", "validation", "test"), default="test",
                        help="part of a data set that has a name (default: test); others are taken whole")  # fmt: skip
    parser.add_argument("--out", metavar="FILE", required=True, help="a .npy, .npz or .parquet file")
    parser.add_argument("--projections", action="store_true", help="write projections in place of features")
    parser.add_argument("--checkpoint", choices=("last", "best"), default="last", help="whose weights (default: last)")
    chosen = parser.parse_args(words)
    from twofold.data import open_split
    from twofold.training import load
    from twofold.training.display import usual_observer

    out = _checked(Path(chosen.out))
    finished = load(chosen.run, chosen.checkpoint)
    observer = usual_observer()
    try:
        spec = chosen.data or finished.settings.data
        root = chosen.data_root or finished.settings.data_root
        size = finished.plan.shape[-1] if len(finished.plan.shape) == 3 else None
        split = open_split(spec, chosen.split, None if root is None else Path(root), size, observer.progress)
        blocks = _blocks(finished, split, chosen.projections, observer.progress)
        dim = _write(out, blocks, split)
    finally:
        observer.close()
    if chosen.json:
        print_json({"file": str(out), "samples": len(split), "dim": dim})
    else:
        print(f"{out}: {len(split)} embeddings of dimension {dim}")  # noqa: T201
    return 0


def _checked(out: Path) -> Path:
    if out.suffix not in ENDINGS:
        raise BadInput(
            f"embeddings are written to {', '.join(ENDINGS)}, not '{out.name}'{nearest(out.suffix, ENDINGS)}"
        )
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise BadInput(f"the folder '{out.parent}' for {out.name} is not there or cannot be written to")
    return out


def _blocks(finished: "Run", split: "Split", projections: bool, progress: "Progress") -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(split), ROWS_AT_ONCE):
        progress("embedding", start, len(split))
        embedded = finished.project(split.take(slice(start, start + ROWS_AT_ONCE)))
        yield (embedded.projections if projections else embedded.features).numpy()
    progress("embedding", len(split), len(split))


def _write(out: Path, blocks: Iterator[NDArray[np.float32]], split: "Split") -> int:
    writers = {".npy": _write_npy, ".npz": _write_npz, ".parquet": _write_parquet}
    with _whole_or_nothing(out) as part:
        return writers[out.suffix](part, blocks, split)


@contextmanager
def _whole_or_nothing(out: Path) -> Iterator[Path]:
    """Write beside the file, and put it in place when it is whole."""
    handle, name = tempfile.mkstemp(prefix=f".{out.stem}.", suffix=out.suffix, dir=out.parent)
    os.close(handle)
    try:
        yield Path(name)
        Path(name).chmod(0o644)
        Path(name).replace(out)
    except OSError as failure:
        raise Failed(f"the embeddings cannot be written to {out}: {failure.strerror or failure}") from failure
    finally:
        Path(name).unlink(missing_ok=True)


def _write_npy(part: Path, blocks: Iterator[NDArray[np.float32]], split: "Split") -> int:
    first = next(blocks)
    shape = (len(split), first.shape[1])
    header = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False, "shape": shape}
    with part.open("wb") as file:  # not a mapped file: a disk that is full must be an error, not a signal
        np.lib.format.write_array_header_2_0(file, header)
        for block in itertools.chain([first], blocks):
            file.write(np.ascontiguousarray(block).data)
    return int(shape[1])


def _write_npz(part: Path, blocks: Iterator[NDArray[np.float32]], split: "Split") -> int:
    """Write ``z``, and ``names`` and ``labels`` where there are any."""
    with tempfile.TemporaryDirectory(dir=part.parent) as folder:
        table = Path(folder) / "z.npy"
        dim = _write_npy(table, blocks, split)
        columns = {"names": _names(split), "labels": split.labels}
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(table, "z.npy")
            for name, column in columns.items():
                if column is not None:
                    with archive.open(f"{name}.npy", "w") as file:
                        np.lib.format.write_array(file, np.asarray(column), allow_pickle=False)
    return dim


def _write_parquet(part: Path, blocks: Iterator[NDArray[np.float32]], split: "Split") -> int:
    """Write columns ``name``, ``label`` where there are any, and ``embedding``, a row group a batch."""
    import pyarrow as pa  # heavy to import
    import pyarrow.parquet as pq

    writer, row, dim = None, 0, 0
    names, labels = _names(split), split.labels
    for block in blocks:
        rows, dim = slice(row, row + len(block)), block.shape[1]
        columns = {"name": pa.array(list(names[rows]))} if names is not None else {}
        if labels is not None:
            columns["label"] = pa.array(labels[rows])
        columns["embedding"] = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), dim)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(part, table.schema)
        writer.write_table(table)
        row += len(block)
    if writer is not None:
        writer.close()
    return dim


def _names(split: "Split") -> list[str] | None:
    return None if split.names is None else list(split.names)
