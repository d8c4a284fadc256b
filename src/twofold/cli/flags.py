"""Typed flags: any field of a settings record, read from the words of a command line.

tyro draws the help from the same record. The words are read here because what a user gets wrong must be answered
by one sentence with the nearest spelling, and because a flag like ``--predictor linear`` changes which other flags
there are.
"""

import contextlib
import dataclasses
import io
from collections.abc import Iterable
from typing import Any

from twofold.errors import BadInput, nearest

Nested = dict[str, Any]


def read(words: list[str], known: Iterable[str], switches: Iterable[str]) -> tuple[Nested, list[str]]:
    """Split words into flags with their values, nested by their dots, and what stands alone.

    ``known`` are the first parts of flags that take values, ``switches`` the flags that take none.
    """
    flags: Nested = {}
    alone: list[str] = []
    known, switches = list(known), list(switches)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            alone.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        path = name.replace("-", "_").split(".")
        if name.replace("-", "_") in switches:
            _put(flags, path, True, word)
            continue
        if path[0] not in known:
            spelt = [flag.replace("_", "-") for flag in (*known, *switches)]
            raise BadInput(f"unknown flag '--{name}'{_suggestion(name, spelt)}; --help lists all")
        values = [value] if equals else _values(rest)
        if not values:
            raise BadInput(f"the flag --{name} needs a value")
        _put(flags, path, _plain(values), word)
    return flags, alone


def _suggestion(name: str, spelt: list[str]) -> str:
    return nearest(name, spelt).replace("'", "'--", 1)


def _values(rest: list[str]) -> list[str]:
    """Take one value, and more for as long as they are numbers, which a pair of numbers has."""
    values: list[str] = []
    while rest and not rest[0].startswith("--") and (not values or (_number(rest[0]) and _number(values[0]))):
        values.append(rest.pop(0))
    return values


def _number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _plain(values: list[str]) -> Any:
    found = [None if value in ("None", "none-given") else value for value in values]
    return found[0] if len(found) == 1 else found


def _put(flags: Nested, path: list[str], value: Any, word: str) -> None:
    *outer, last = path
    for part in outer:
        held = flags.get(part, {})
        if not isinstance(held, str | dict):
            raise BadInput(f"the flag {word} does not fit --{part}, which is given as a value")
        flags[part] = {"kind": held} if isinstance(held, str) else held
        flags = flags[part]
    if last in flags and not isinstance(flags[last], dict):
        raise BadInput(f"the flag {word} is given twice")
    if isinstance(flags.get(last), dict) and isinstance(value, str):
        flags[last]["kind"] = value
    else:
        flags[last] = value


def help_of(record: Any, program: str) -> str:
    """Draw the help of a settings record, with the values of this one as defaults."""
    import tyro  # heavy to import

    drawn = io.StringIO()
    config = (tyro.conf.AvoidSubcommands, tyro.conf.FlagConversionOff)
    with contextlib.redirect_stdout(drawn), contextlib.suppress(SystemExit):
        tyro.cli(type(record), prog=program, default=record, args=["--help"], config=config)
    return drawn.getvalue()


def fields(record: type) -> list[str]:
    """Name the fields of a settings record."""
    return [field.name for field in dataclasses.fields(record)]
