"""Precision and memory layout of the networks: what a quick probe finds fastest on this machine."""

import copy
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from twofold.data import cache_root
from twofold.files import write_atomically

AnyModule = TypeVar("AnyModule", bound=nn.Module)

TURNS = 5
HOPELESS = 1.6
PROBE_BATCH = 32
SIMPLER_UNLESS = 0.97
"""A faster way must take less than this share of a simpler one's time: noise alone decides nothing."""


@dataclass(frozen=True)
class Arithmetic:
    """How the networks compute: weights are float32 in any case, activations in ``precision``."""

    precision: Literal["float32", "bf16"] = "float32"
    channels_last: bool = False

    def __str__(self) -> str:
        """Say it to a person."""
        return f"{self.precision}, {'channels last' if self.channels_last else 'channels first'}"

    def laid_out(self, batch: Tensor) -> Tensor:
        """Bring a batch of images into this layout; vectors have only one."""
        return batch.contiguous(memory_format=torch.channels_last) if self._images(batch) else batch

    def module(self, module: AnyModule) -> AnyModule:
        """Bring a module's weights into this layout."""
        return module.to(memory_format=torch.channels_last) if self.channels_last else module  # type: ignore[call-overload]

    def autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        """Compute in this precision."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def _images(self, batch: Tensor) -> bool:
        return self.channels_last and batch.ndim == 4


def choose(
    wish: Literal["auto", "float32", "bf16"], student: nn.Module, shape: tuple[int, ...], device: torch.device
) -> Arithmetic:
    """Pick the fastest way to compute a step of ``student``, within the wished precision.

    The answer is remembered for this network on this machine, so that the same run computes the same way twice.
    """
    precisions = ("float32", "bf16") if wish == "auto" else (wish,)
    layouts = (False, True) if len(shape) == 3 else (False,)
    options = [Arithmetic(precision, layout) for layout in layouts for precision in precisions]  # type: ignore[arg-type]
    if len(options) == 1:
        return options[0]
    key = _key(wish, student, shape, device)
    remembered = _remembered().get(key)
    for option in options:
        if asdict(option) == remembered:
            return option
    fastest = _fastest(_probe([_attempt(student, option, shape, device) for option in options], options))
    _remember(key, fastest)
    return fastest


def _probe(attempts: list[Callable[[], float]], options: list[Arithmetic]) -> dict[Arithmetic, float]:
    """Time all options in turns, so that whatever else the machine does meets all of them, and keep each one's best.

    What is hopeless after the first turn gets no other.
    """
    best = {option: attempt() for option, attempt in zip(options, attempts, strict=True)}
    hopeless = HOPELESS * min(best.values())
    for _ in range(TURNS - 1):
        for option, attempt in zip(options, attempts, strict=True):
            if best[option] < hopeless:
                best[option] = min(best[option], attempt())
    return best


def _fastest(seconds: dict[Arithmetic, float]) -> Arithmetic:
    best = next(iter(seconds))
    for option, taken in seconds.items():
        if taken < SIMPLER_UNLESS * seconds[best]:
            best = option
    return best


def _attempt(
    student: nn.Module, option: Arithmetic, shape: tuple[int, ...], device: torch.device
) -> Callable[[], float]:
    """Warm an option up, and return what times one forward and backward pass of it."""
    module = option.module(copy.deepcopy(student).to(device)).train()
    views = option.laid_out(torch.zeros(PROBE_BATCH, *shape, device=device).normal_(generator=_probe_noise(device)))

    def once() -> None:
        with option.autocast(device):
            loss = module(views, views)["loss"]
        loss.backward()

    once()
    return lambda: _timed(once, device)


def _probe_noise(device: torch.device) -> torch.Generator:
    return torch.Generator(device).manual_seed(0)


def _timed(action: Callable[[], None], device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    action()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _key(wish: str, student: nn.Module, shape: tuple[int, ...], device: torch.device) -> str:
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    facts = (repr(student), wish, shape, machine, torch.__version__, torch.get_num_threads())
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _processor() -> str:
    return f"{platform.machine()} {platform.processor()} {torch.backends.cpu.get_cpu_capability()} {os.cpu_count()}"


def _remembered() -> dict[str, Any]:
    try:
        found = json.loads((cache_root() / "arithmetic.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(key: str, choice: Arithmetic) -> None:
    try:
        text = json.dumps({**_remembered(), key: asdict(choice)}, indent=1)
        write_atomically(cache_root() / "arithmetic.json", text.encode())
    except OSError:
        pass  # a cache that cannot be written costs the next run a second
