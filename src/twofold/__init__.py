"""Two networks, unlabelled data, and why it does not collapse."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twofold.methods import Method, method, methods
    from twofold.training import Run, load, runs, train

__all__ = ["Method", "Run", "load", "method", "methods", "runs", "train"]

_ROOMS = {
    "Method": "twofold.methods",
    "method": "twofold.methods",
    "methods": "twofold.methods",
    "Run": "twofold.training",
    "load": "twofold.training",
    "runs": "twofold.training",
    "train": "twofold.training",
}


def __getattr__(name: str) -> Any:
    """Import a room when it is first asked for, so that ``import twofold`` costs nothing."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'twofold' has no attribute '{name}'")
    return getattr(importlib.import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
