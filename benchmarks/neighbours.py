"""kNN of 50 000 × 10 000 embeddings of dimension 512: seconds, and memory above the process without it."""

import json
import resource
import time
from typing import Any

import torch

from twofold.evaluation import knn_accuracy

BANK, QUERIES, DIM, CLASSES = 50_000, 10_000, 512, 10
GIBIBYTES = 2.0


def peak() -> float:
    """Return the most memory that this process ever held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure() -> dict[str, Any]:
    """Measure once; the inputs count as part of it."""
    before = peak()
    start = time.perf_counter()
    bank, queries = torch.randn(BANK, DIM), torch.randn(QUERIES, DIM)
    labels, wanted = torch.randint(CLASSES, (BANK,)), torch.randint(CLASSES, (QUERIES,))
    knn_accuracy(bank, labels, queries, wanted)
    taken, memory = time.perf_counter() - start, peak() - before
    what = f"kNN, {BANK} x {QUERIES} x {DIM}"
    return {
        "name": "neighbours",
        "rows": [
            {"what": f"{what}: memory", "value": memory, "unit": "GiB", "reach": GIBIBYTES, "met": memory < GIBIBYTES},
            {"what": f"{what}: time", "value": taken, "unit": "s", "reach": None, "met": None},
        ],
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
