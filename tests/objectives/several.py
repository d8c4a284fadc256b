"""One of several processes: every objective of the roster on its share of a batch, by a network that all share.

python several.py RANK WORLD MEETING ANSWERS
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from roster import ROSTER, Member

from twofold.errors import BadInput
from twofold.records import Pair

SAMPLES, INPUTS, DIM = 12, 5, 4


def batch() -> Tensor:
    """Draw inputs of two views for the whole batch; the same everywhere."""
    draw = torch.Generator().manual_seed(7)
    return torch.randn(2, SAMPLES, INPUTS, generator=draw, dtype=torch.float64)


def weights() -> tuple[Tensor, Tensor, Tensor]:
    """Draw an online network, a predictor and a target; the same everywhere."""
    draw = torch.Generator().manual_seed(8)
    shapes = (INPUTS, DIM), (DIM, DIM), (INPUTS, DIM)
    return tuple(torch.randn(*s, generator=draw, dtype=torch.float64).requires_grad_() for s in shapes)


def answer(member: Member, x: Tensor) -> list[Tensor]:
    """Return the loss of these rows, and its gradient by the weights."""
    online, predictor, target = weights()
    z = x[0] @ online, x[1] @ online
    pair = Pair(z, (z[0] @ predictor, z[1] @ predictor), (x[0] @ target, x[1] @ target))
    value = member.objective(pair).value
    gradients = torch.autograd.grad(value, (online, predictor, target), materialize_grads=True)
    return [value.detach(), *gradients]


def share(rank: int, world: int) -> Tensor:
    own = SAMPLES // world
    return batch()[:, rank * own : (rank + 1) * own]


def main(rank: int, world: int, meeting: str, answers: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    found = []
    for member in ROSTER:
        mine = answer(member, share(rank, world))
        for tensor in mine:  # what data parallel training does
            dist.all_reduce(tensor)
            tensor /= world
        found.append(mine)
    uneven = batch()[:, : 4 + rank]
    refused = []
    for member in ROSTER:
        if member.reaches != {"online"}:  # the others never meet the rows of other processes
            continue
        try:
            answer(member, uneven)
        except BadInput as refusal:
            refused.append(str(refusal))
    torch.save({"found": found, "refused": refused}, f"{answers}.{rank}")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
