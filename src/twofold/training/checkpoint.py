"""Checkpoints: weights in safetensors, the rest loadable without running code, and both or neither on disk.

``checkpoint/step-120/`` holds one state; ``checkpoint/last`` and ``checkpoint/best`` are small files with the name
of the state that they mean. A state is written under another name and renamed when it is whole, then the
small file is replaced, then what nothing points to is removed: at every moment there is a whole one.
"""

import os
import shutil
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from twofold.errors import Failed
from twofold.files import sync, write_atomically

Which = Literal["last", "best"]
_WEIGHTS, _STATE = "weights.safetensors", "state.pt"


def save(
    folder: Path, weights: Mapping[str, Tensor], state: Mapping[str, Any], step: int, names: tuple[Which, ...]
) -> None:
    """Write a state, and let these names mean it."""
    whole = folder / f"step-{step}"
    try:
        if not whole.exists():
            _write(whole, weights, state)
        for name in names:
            write_atomically(folder / name, whole.name.encode())
        sync(folder)
    except (OSError, RuntimeError, SafetensorError) as failure:
        kept = f"the last good one is of step {step_of(folder)}" if exists(folder) else "there is none before it"
        raise Failed(f"the checkpoint of step {step} cannot be written to {folder}: {failure}; {kept}") from failure
    _remove_unnamed(folder)


def load(folder: Path, which: Which = "last") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the state that a name means; nothing in it can run code."""
    state_folder = folder / _meaning(folder, which)
    try:
        weights = load_file(state_folder / _WEIGHTS)
        state = torch.load(state_folder / _STATE, weights_only=True, map_location="cpu")
    except Exception as failure:
        raise Failed(f"the checkpoint {state_folder} cannot be read: {failure}") from failure
    return weights, state


def exists(folder: Path, which: Which = "last") -> bool:
    """Tell whether there is a state of that name."""
    return (folder / which).is_file()


def step_of(folder: Path, which: Which = "last") -> int:
    """Tell the step of a state without reading it."""
    return int(_meaning(folder, which).removeprefix("step-"))


def _meaning(folder: Path, which: Which) -> str:
    name = (folder / which).read_text(errors="replace").strip()
    if not name.removeprefix("step-").isdigit():
        raise Failed(f"{folder / which} should name a state like step-120, not '{name[:40]}'")
    return name


def _write(whole: Path, weights: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    part = whole.with_name(f".{whole.name}.{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        save_file(separate(weights), part / _WEIGHTS)
        rest = BytesIO()  # torch's own writer hides why a disk took no more
        torch.save(dict(state), rest)
        (part / _STATE).write_bytes(rest.getvalue())
        for file in part.iterdir():
            _to_disk(file)
        sync(part)
        part.rename(whole)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def separate(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give every weight memory of its own, as safetensors wants it: tied weights are stored twice."""
    seen: set[int] = set()
    stored = {}
    for name, weight in weights.items():
        place = weight.untyped_storage().data_ptr()
        stored[name] = weight.detach().clone() if place in seen else weight.detach()
        stored[name] = stored[name].contiguous()
        seen.add(place)
    return stored


def _to_disk(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


def _remove_unnamed(folder: Path) -> None:
    """Remove states that no name means, and what an interrupted writer left."""
    named = {(folder / which).read_text().strip() for which in ("last", "best") if (folder / which).is_file()}
    for path in folder.iterdir():
        if path.is_dir() and path.name not in named:
            shutil.rmtree(path, ignore_errors=True)
        elif path.name.startswith("."):
            path.unlink(missing_ok=True)
