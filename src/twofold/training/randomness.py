"""Where every random number of a run comes from, so that a resumed run draws the same ones."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from twofold.errors import BadInput

ORDER, VIEWS, NETWORK = 1, 2, 3
"""What a seed is for: each purpose has a stream of its own."""


def derived(seed: int, purpose: int, index: int = 0) -> int:
    """Mix a seed for one purpose and one place in the run."""
    return int(np.random.SeedSequence((seed, purpose, index)).generate_state(1, np.uint64)[0] >> 1)


def seed_all(seed: int) -> None:
    """Seed the global generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - networks may use the legacy generator
    torch.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators (which networks may use), and give them back as they were."""
    before = states()
    seed_all(seed)
    try:
        yield
    finally:
        restore(before)


def states() -> dict[str, Any]:
    """Read every global generator, as values that ``torch.load(weights_only=True)`` takes."""
    name, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    found: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "numpy": (name, torch.from_numpy(np.asarray(keys, np.int64)), position, has_gauss, gauss),
        "python": random.getstate(),
    }
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_rng_state_all()
    return found


def restore(found: dict[str, Any]) -> None:
    """Put every global generator where ``states`` found it."""
    torch.set_rng_state(found["torch"])
    name, keys, *rest = found["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    version, numbers, gauss = found["python"]
    random.setstate((version, tuple(numbers), gauss))
    if "cuda" in found and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(found["cuda"])


class Order:
    """Which samples each step takes, as a function of the seed and the step alone: nothing to save, nothing to lose.

    An epoch visits the pool ``visits`` times; each visit is a permutation of its own, cut into whole batches.
    """

    def __init__(self, samples: int, visits: int, batch_size: int, seed: int) -> None:
        if batch_size > samples:
            raise BadInput(f"a batch of {batch_size} is larger than the data, which has {samples} samples to train on")
        self.samples = samples
        self.batch_size = batch_size
        self.batches = samples // batch_size
        self.steps_an_epoch = self.batches * visits
        self._seed = seed
        self._visit = -1
        self._permutation = torch.empty(0, dtype=torch.int64)

    def rows(self, step: int) -> Int[Tensor, " batch"]:
        """List the samples of a step."""
        visit, batch = divmod(step, self.batches)
        if visit != self._visit:
            generator = np.random.default_rng((self._seed, ORDER, visit))
            self._permutation = torch.from_numpy(generator.permutation(self.samples))
            self._visit = visit
        return self._permutation[batch * self.batch_size : (batch + 1) * self.batch_size]
