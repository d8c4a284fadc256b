"""Everything that can go wrong, as one tree.

TwofoldError            one sentence for a person
├── BadInput            what was asked for cannot be done: exit status 2, nothing written
└── Failed              it was tried and did not work: exit status 1
    ├── Diverged        the loss is no longer a number
    └── Interrupted     stopped by a signal after a checkpoint: exit status 130
"""

import difflib
from collections.abc import Iterable


class TwofoldError(Exception):
    """The root of the tree: its message is one sentence that a person can act on."""

    exit_status = 1


class BadInput(TwofoldError, ValueError):
    """The request itself is at fault; names the bad value, what is allowed and the nearest spelling."""

    exit_status = 2


class Failed(TwofoldError):
    """The request was fine, carrying it out was not possible."""


class Diverged(Failed):
    """The loss became infinite or not a number."""


class Interrupted(Failed):
    """A signal asked for the end, and the state is on disk."""

    exit_status = 130


def nearest(value: str, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest allowed spelling, or nothing."""
    close = difflib.get_close_matches(value, list(allowed), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(what: str, value: object, allowed: Iterable[str]) -> BadInput:
    """Build the error for a name that is not in a table."""
    names = list(allowed)
    return BadInput(f"unknown {what} '{value}', allowed are {', '.join(names)}{nearest(str(value), names)}")
