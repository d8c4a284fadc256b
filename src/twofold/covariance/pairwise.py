"""Losses of all pairs of a batch, in memory linear in the batch.

A loss is given row by row: of an anchor i with its positive, ``own`` is half their squared distance dᵢ², and
``other`` are the halves dᵢⱼ² of those to its negatives (alpha_cl, Sec. 3). A ``Rule`` turns a block of such rows
into losses and their derivatives; blocks of the matrix of all pairs are made, used and forgotten one by one. The
gradient is made in the forward pass, while the block is at hand, so nothing is computed twice.
"""

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from pydantic import BeforeValidator
from torch import Tensor
from torch.autograd.function import once_differentiable

from twofold.covariance.processes import added_up, gathered, place, processes
from twofold.errors import BadInput, nearest

_BLOCK = 2**21
"""Pairs held at once: 8 MiB of float32."""
_WIDE = 2**15
"""Rows with more pairs than this make larger blocks: all views are read anew for each, which costs more than memory."""
_NARROW = 64
"""Rows of a block at least, so that its products are worth calling for."""

Own = Float[Tensor, " anchors"]
Other = Float[Tensor, "anchors negatives"]


def _known(value: object) -> object:
    """Refuse what names no negatives, in one sentence."""
    named = str(value)
    if value in ("views", "anchors") or (named.isdecimal() and int(named) > 0):
        return value
    close = nearest(named, ("views", "anchors"))
    raise BadInput(f"unknown negatives '{value}', allowed are views, anchors or a number of them from 1{close}")


Negatives = Annotated[Literal["views", "anchors"] | int, BeforeValidator(_known)]
"""Who is contrasted with an anchor.

``anchors``: view 1 of every other sample, the anchors being view 1 of each (alpha_cl, eq. 1). ``views``: both views
of every other sample, the anchors being all views (SimCLR). A number H: view 1 of the next H samples of the batch,
whose order is random (dual_networks, Sec. 3).
"""


class Terms(NamedTuple):
    """Of a block of rows: each row's loss, its derivative by ``own``, and minus those by ``other``."""

    loss: Float[Tensor, " anchors"]
    pull: Float[Tensor, " anchors"]
    push: Float[Tensor, "anchors negatives"]


Rule = Callable[[Own, Other], Terms]
"""May overwrite ``other``, where pairs that are none (an anchor with itself) are infinitely far apart."""


def pairwise(
    first: Float[Tensor, "batch dim"], second: Float[Tensor, "batch dim"], rule: Rule, negatives: Negatives
) -> Float[Tensor, ""]:
    """Average the losses of all anchors of the batch, that of all processes; differentiable once."""
    with torch.autocast(first.device.type, enabled=False):
        value: Tensor = _Pairwise.apply(first, second, rule, negatives)  # type: ignore[no-untyped-call]
    return value


def fewest(negatives: Negatives) -> int:
    """Count the samples that a batch needs for an anchor to have its negatives."""
    return 2 if isinstance(negatives, str) else negatives + 1


class _Pairwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, rule: Rule, negatives: Negatives) -> Tensor:
        own = len(first)
        views = gathered(torch.stack((first, second), dim=1)).transpose(0, 1)
        views = views - views.mean(dim=(0, 1))  # distances know no origin; near it they lose least to rounding
        layout = _layout(views, negatives)
        total, gradient = _run(layout, rule, own, any(ctx.needs_input_grad[:2]))
        (total,) = added_up(total)
        if gradient is not None:
            (gradient,) = added_up(gradient)
            mine = gradient[:, place() * own : (place() + 1) * own]
            ctx.save_for_backward(mine * (processes() / len(layout.anchors)))
        return total / len(layout.anchors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None, None]:
        first, second = upstream * ctx.saved_tensors[0]
        return first, second, None, None


class _Layout(NamedTuple):
    """Who is compared with whom; ``samples`` are those of the whole batch."""

    anchors: Tensor
    positives: Tensor
    negatives: Negatives
    samples: int


def _layout(views: Tensor, negatives: Negatives) -> _Layout:
    samples = views.shape[1]
    if samples < fewest(negatives):
        raise BadInput(
            f"samples are contrasted with each other: the batch needs at least {fewest(negatives)}, not {samples}"
        )
    if negatives == "views":
        return _Layout(views.flatten(0, 1), views.flip(0).flatten(0, 1), negatives, samples)
    return _Layout(views[0], views[1], negatives, samples)


class _Forces(NamedTuple):
    """The gradient by anchors and by positives so far (alpha_cl, eqs. 51 and 52).

    By an anchor it still lacks −``weight`` times the anchor, which is all that its pairs weigh: that comes at the end.
    """

    by_anchor: Tensor
    by_positive: Tensor
    weight: Tensor


def _run(layout: _Layout, rule: Rule, own: int, differentiate: bool) -> tuple[Tensor, Tensor | None]:
    """Sum the losses of this process's own anchors, and their gradient by all views of the batch."""
    half = layout.anchors.square().sum(dim=1) / 2
    total = half.new_zeros(())
    forces = _Forces(torch.zeros_like(layout.anchors), torch.zeros_like(layout.positives), torch.zeros_like(half))
    for start in range(place() * own, len(layout.anchors), layout.samples):
        for rows in _blocks(layout, start, start + own):
            total += _add_block(layout, half, rows, rule, forces if differentiate else None)
    if not differentiate:
        return total, None
    by_anchor = forces.by_anchor - forces.weight[:, None] * layout.anchors
    if layout.negatives == "views":
        return total, (by_anchor + forces.by_positive.roll(layout.samples, 0)).view(2, layout.samples, -1)
    return total, torch.stack((by_anchor, forces.by_positive))


def _blocks(layout: _Layout, start: int, stop: int) -> Iterator[slice]:
    rows = max(1, _BLOCK // min(len(layout.anchors), _WIDE))
    if isinstance(layout.negatives, int):
        rows = max(1, min(max(layout.negatives, _NARROW), math.isqrt(_BLOCK // 2), _BLOCK // layout.negatives))
    for at in range(start, stop, rows):
        yield slice(at, min(at + rows, stop))


def _add_block(layout: _Layout, half: Tensor, rows: slice, rule: Rule, forces: _Forces | None) -> Tensor:
    """Sum the losses of these rows, and add what they contribute to the gradient."""
    anchors, columns = layout.anchors[rows], _columns(layout, rows)
    gap = anchors - layout.positives[rows]
    candidates, size = (layout.anchors, half) if columns is None else (layout.anchors[columns], half[columns])
    distances = torch.addmm(size, anchors, candidates.T, alpha=-1).add_(half[rows, None]).clamp_(min=0)
    loss, pull, push = rule(gap.square().sum(dim=1) / 2, _seen(distances, layout, rows))
    if forces is not None:
        push = _spread(push, layout, rows, len(candidates))
        attraction = pull[:, None] * gap
        forces.by_positive[rows] -= attraction
        forces.by_anchor[rows] += torch.addmm(attraction, push, candidates)
        forces.weight[rows] += push.sum(dim=1)
        if columns is None:
            forces.by_anchor.addmm_(push.T, anchors)
            forces.weight.add_(push.sum(dim=0))
        else:
            forces.by_anchor.index_add_(0, columns, push.T @ anchors)
            forces.weight.index_add_(0, columns, push.sum(dim=0))
    return loss.sum()


def _columns(layout: _Layout, rows: slice) -> Tensor | None:
    """Name the candidates of these rows, where they are not all anchors."""
    if isinstance(layout.negatives, str):
        return None
    last = rows.stop + layout.negatives
    return torch.arange(rows.start + 1, last, device=layout.anchors.device) % layout.samples


def _seen(distances: Tensor, layout: _Layout, rows: slice) -> Tensor:
    """Show a rule the distances to the negatives; what is none is infinitely far."""
    if isinstance(layout.negatives, int):
        return _band(distances, layout.negatives).clone()
    _strike(distances, layout, rows, torch.inf)
    return distances


def _spread(push: Tensor, layout: _Layout, rows: slice, candidates: int) -> Tensor:
    """Put what a rule said of the negatives where their distances were."""
    if isinstance(layout.negatives, int):
        whole = push.new_zeros(len(push), candidates)
        _band(whole, layout.negatives).copy_(push)
        return whole
    _strike(push, layout, rows, 0.0)
    return push


def _band(block: Tensor, width: int) -> Tensor:
    """View the entries (r, r) … (r, r + width − 1) of every row r."""
    return block.as_strided((len(block), width), (block.stride(0) + 1, 1))


def _strike(block: Tensor, layout: _Layout, rows: slice, value: float) -> None:
    """Overwrite the pairs that are no negatives: an anchor with itself, and with its other view."""
    offsets = [rows.start]
    if layout.negatives == "views":
        offsets += [rows.start + layout.samples, rows.start - layout.samples]
    for offset in offsets:
        if -len(block) < offset < block.shape[1]:
            block.diagonal(offset).fill_(value)
