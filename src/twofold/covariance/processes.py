"""What several processes hold together: the rows of all of them, and means over them, with their gradients.

Every process has as many rows of the batch as every other, and the loss of the whole batch. Data parallel
training averages the gradients of the processes, so what is handed back to one is as many times the derivative
by its own rows as there are processes: the average is the gradient that one process would find on all rows.
Without ``torch.distributed`` there is one process, and all of this costs nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.autograd.function import once_differentiable

from twofold.errors import BadInput

_ALONE: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Look at what this process holds and at nothing else: in here nobody waits for the others."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def processes() -> int:
    """Count the processes that share the batch."""
    together = dist.is_available() and dist.is_initialized() and not _ALONE.get()
    return dist.get_world_size() if together else 1


def place() -> int:
    """Tell which of them this is, from 0."""
    return dist.get_rank() if processes() > 1 else 0


@torch.no_grad()
def gathered(rows: Shaped[Tensor, "n ..."]) -> Shaped[Tensor, "all_n ..."]:
    """Bring the rows of all processes together, in the order of the processes; without gradients."""
    if processes() == 1:
        return rows
    refuse_uneven(rows)
    everyones = rows.new_empty(processes() * len(rows), *rows.shape[1:])
    dist.all_gather_into_tensor(everyones, rows.contiguous())
    return everyones


def refuse_uneven(rows: Shaped[Tensor, "n ..."]) -> None:
    """Stop where the processes hold different numbers of rows, as in the last batch of an epoch."""
    if processes() == 1:
        return
    counts = rows.new_empty(processes(), dtype=torch.int64)
    dist.all_gather_into_tensor(counts, counts.new_full((1,), len(rows)))
    held = counts.tolist()
    if len(set(held)) > 1:
        raise BadInput(
            f"every process must hold as many samples as the others, and they hold {', '.join(map(str, held))}: "
            "leave out the last batch of an epoch, or fill it up"
        )


def added_up(*parts: Float[Tensor, "..."]) -> tuple[Tensor, ...]:
    """Sum tensors over all processes, in one collective and without gradients."""
    if processes() == 1:
        return parts
    flat = torch.cat([part.reshape(-1) for part in parts])
    dist.all_reduce(flat)
    pieces = torch.split(flat, [part.numel() for part in parts])
    return tuple(piece.view_as(part) for piece, part in zip(pieces, parts, strict=True))


def averaged(value: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Average a tensor over the processes, and its gradient with it."""
    if processes() == 1:
        return value
    mean: Tensor = _Averaged.apply(value)  # type: ignore[no-untyped-call]
    return mean


class _Averaged(torch.autograd.Function):
    """The mean over processes passes the mean of what comes back: see the top of this file."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        (total,) = added_up(value)
        return total / processes()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        (total,) = added_up(upstream)
        return total / processes()
