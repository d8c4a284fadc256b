"""A run on disk: enough to repeat it, to go on with it, to list it and to draw it."""

import fcntl
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
import yaml
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import save as safetensors_bytes
from torch import nn

from twofold.data import Preparation
from twofold.errors import BadInput, Failed
from twofold.files import write_atomically
from twofold.records import Evaluation, Gallery, Row, RunRecord
from twofold.training.checkpoint import separate
from twofold.training.settings import TrainSettings, as_mapping, settings

State = Literal["stopped", "diverged", "done"]
Record = TypeVar("Record")
LOCK = ".lock"
_LARGEST_SETTINGS = 2**20


class RunFolder:
    """The paths of a run, and how each is read and written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings_file = path / "settings.yaml"
        self.metrics_file = path / "metrics.jsonl"
        self.checkpoints = path / "checkpoint"
        self.encoder_file = path / "encoder.safetensors"
        self.environment_file = path / "environment.json"
        self.preparation_file = path / "preparation.json"
        self.status_file = path / "status.json"
        self.evaluation_file = path / "evaluation.json"
        self.gallery_file = path / "gallery.npz"
        self.report_file = path / "report.html"

    def exists(self) -> bool:
        """Tell whether a run was ever started here."""
        return self.settings_file.is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from training here."""
        try:
            lock = (self.path / LOCK).open("a")
        except OSError as failure:
            raise BadInput(f"the run folder {self.path} cannot be written to: {failure.strerror}") from failure
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as taken:
                raise BadInput(
                    f"another process is training in {self.path}: wait for it, or choose another --out"
                ) from taken
            yield

    def sweep(self) -> None:
        """Remove what a killed process left half-written; only for who holds the lock."""
        for path in self.path.glob(".*"):
            if path.name != LOCK and path.is_file():
                path.unlink(missing_ok=True)

    def running(self) -> bool:
        """Tell whether some process is training here now."""
        try:
            with (self.path / LOCK).open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (FileNotFoundError, PermissionError):
            return False
        except OSError:
            return True
        return False

    def how_to_go_on(self) -> str:
        """Say how a run that stopped is resumed."""
        return f"go on with: twofold train --resume --out {shlex.quote(str(self.path))}"

    def begin(self, chosen: TrainSettings, prepared: Preparation | None) -> None:
        """Write what the run is made of, before its first step; its settings come last, and make it a run."""
        try:
            self._begin(chosen, prepared)
        except Failed:
            shutil.rmtree(self.path, ignore_errors=True)  # it never became a run
            raise

    def _begin(self, chosen: TrainSettings, prepared: Preparation | None) -> None:
        _write(self.environment_file, _json(environment()))
        if prepared is not None:
            _write(self.preparation_file, _json(asdict(prepared)))
        _write(self.settings_file, to_yaml(chosen).encode())

    def settings(self) -> TrainSettings:
        """Read what the run is made of."""
        if not self.exists():
            raise BadInput(f"there is no run in {self.path}: it has no settings.yaml")
        return from_yaml(self.settings_file)

    def preparation(self) -> Preparation | None:
        """Read how raw samples are prepared for the encoder; None where the run had views of somebody's own."""
        found = _read_json(self.preparation_file)
        return None if found is None else _validated(self.preparation_file, Preparation, found)

    def set_status(self, state: State, step: int, steps: int) -> None:
        """Note how far the run is, and why it is not going on."""
        _write(self.status_file, _json({"state": state, "step": step, "steps": steps}))

    def status(self) -> dict[str, Any]:
        """Read how far the run is."""
        found = _read_json(self.status_file)
        return {"state": "stopped", "step": 0, "steps": 0} | (found if isinstance(found, dict) else {})

    def append_metrics(self, rows: Iterable[Row]) -> None:
        """Add rows to the log."""
        try:
            with self.metrics_file.open("a") as log:
                log.writelines(json.dumps(row) + "\n" for row in rows)
        except OSError as failure:
            raise _unwritable(self.metrics_file, failure) from failure

    def metrics(self) -> tuple[dict[str, float | int], ...]:
        """Read the log; a torn last line is no row."""
        return tuple(_rows(self.metrics_file))

    def keep_metrics_to(self, step: int) -> None:
        """Forget what was logged after a step, which a resumed run will do again."""
        kept = "".join(json.dumps(row) + "\n" for row in self.metrics() if row["step"] <= step)
        _write(self.metrics_file, kept.encode())

    def write_evaluation(self, evaluation: Evaluation, gallery: Gallery | None) -> None:
        """Store what was measured, and pictures of it."""
        if gallery is not None:
            _write(self.gallery_file, _packed(gallery))
        _write(self.evaluation_file, _json(asdict(evaluation)))

    def write_encoder(self, encoder: nn.Module) -> None:
        """Store the trained encoder's weights alone, for use elsewhere."""
        _write(self.encoder_file, safetensors_bytes(separate(encoder.state_dict())))

    def evaluation(self) -> Evaluation | None:
        """Read what was measured."""
        found = _read_json(self.evaluation_file)
        return None if found is None else _validated(self.evaluation_file, Evaluation, found)

    def record(self) -> RunRecord:
        """Read all of it."""
        status = self.status()
        return RunRecord(
            name=self.path.name,
            state="running" if self.running() else status["state"],
            step=status["step"],
            steps=status["steps"],
            settings=as_mapping(self.settings()),
            environment=_read_json(self.environment_file) or {},
            metrics=self.metrics(),
            evaluation=self.evaluation(),
            gallery=_unpacked(self.gallery_file),
        )


def to_yaml(chosen: TrainSettings) -> str:
    """Write settings for people and for ``--config``."""
    return yaml.safe_dump(as_mapping(chosen), sort_keys=False)


def from_yaml(file: Path) -> TrainSettings:
    """Read settings; the file can only hold plain values, and no aliases."""
    return settings(mapping_from_yaml(file))


def mapping_from_yaml(file: Path) -> dict[str, Any]:
    """Read a mapping of plain values."""
    try:
        text = file.read_text()
        if len(text) > _LARGEST_SETTINGS:
            raise BadInput(f"{file} has {len(text)} characters, settings have at most {_LARGEST_SETTINGS}")
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=yaml.SafeLoader)):
            raise BadInput(f"{file} uses YAML aliases, which settings do not need")
        found = yaml.safe_load(text)
    except OSError as failure:
        raise BadInput(f"the settings {file} cannot be read: {failure.strerror}") from failure
    except BadInput:  # a ValueError too, but a sentence already
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as failure:
        raise BadInput(f"{file} is not YAML: {' '.join(str(failure).split())}") from failure
    if not isinstance(found, dict):
        raise BadInput(f"{file} should hold settings by name, not {type(found).__name__}")
    if odd := [name for name in found if not isinstance(name, str)]:
        raise BadInput(f"{file} should hold settings by name, and {odd[0]!r} is no name")
    return found


def environment() -> dict[str, Any]:
    """Say on what a run is made."""
    packages = ("twofold", "torch", "numpy", "lightning-fabric")
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        **{package: importlib.metadata.version(package) for package in packages},
    }


def _write(file: Path, content: bytes) -> None:
    try:
        write_atomically(file, content)
    except OSError as failure:
        raise _unwritable(file, failure) from failure


def _unwritable(file: Path, failure: OSError) -> Failed:
    return Failed(f"{file} cannot be written: {failure.strerror}")


def _validated(file: Path, record: type[Record], found: Any) -> Record:
    """Check what a file holds."""
    try:
        return TypeAdapter(record).validate_python(found)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        place = ".".join(map(str, error["loc"])) or "it"
        raise Failed(f"{file} is damaged: {place}: {error['msg'].lower()}") from invalid


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as failure:
        raise Failed(f"{file} cannot be read: {failure}") from failure


def _rows(file: Path) -> Iterator[dict[str, float | int]]:
    if not file.exists():
        return
    with file.open(errors="replace") as log:
        for line in log:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and isinstance(row.get("step"), int):
                yield row


def _packed(gallery: Gallery) -> bytes:
    arrays = {name: np.asarray(value) for name, value in vars(gallery).items() if len(value)}
    packed = BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    return packed.getvalue()


def _unpacked(file: Path) -> Gallery | None:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found: dict[str, Any] = {name: arrays[name] for name in arrays.files}
        if "query_labels" in found:
            found["query_labels"] = tuple(found["query_labels"].tolist())
            found["neighbour_labels"] = tuple(tuple(row) for row in found["neighbour_labels"].tolist())
        return Gallery(**found)
    except FileNotFoundError:
        return None
    except Exception as failure:
        raise Failed(f"{file} cannot be read: {failure}") from failure
