"""How long a user waits before anything happens: ``twofold --help`` and ``import twofold``, best of a few."""

import json
import subprocess
import sys
import time
from typing import Any

TRIES = 7
CASES = (
    ("twofold --help", ["-m", "twofold", "--help"], 0.5),
    ("import twofold", ["-c", "import twofold"], 0.3),
)


def seconds(arguments: list[str]) -> float:
    """Time one start of Python with these arguments."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def measure() -> dict[str, Any]:
    """Measure both."""
    rows = []
    for what, arguments, reach in CASES:
        taken = min(seconds(arguments) for _ in range(TRIES))
        rows.append({"what": what, "value": taken, "unit": "s", "reach": reach, "met": taken < reach})
    return {"name": "start", "rows": rows}


if __name__ == "__main__":
    print(json.dumps(measure()))
