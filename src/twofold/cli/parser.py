"""The parser of the small commands: argparse, with errors as one sentence."""

import argparse
import json
import math
import sys
from typing import Any, NoReturn

from twofold.errors import BadInput, nearest


class Parser(argparse.ArgumentParser):
    """Raises ``BadInput`` instead of printing usage; every command has ``--json``."""

    def __init__(self, command: str, purpose: str, examples: str) -> None:
        super().__init__(
            prog=f"twofold {command}",
            description=purpose,
            epilog="examples:\n" + "".join(f"  {line}\n" for line in examples.splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--json", action="store_true", help="print one JSON document on standard output")

    def error(self, message: str) -> NoReturn:
        """Refuse, with the nearest spelling of a flag that is not known."""
        unknown_flags = message.removeprefix("unrecognized arguments: ").split()
        close = nearest(unknown_flags[0], self._option_string_actions) if message.startswith("unrecognized") else ""
        raise BadInput(f"{message}{close}; {self.prog} --help lists what is allowed")


def print_json(document: Any) -> None:
    """Write the one JSON document of a command; a number that is none becomes null, which JSON has."""
    json.dump(_finite(document), sys.stdout, indent=1, default=str, allow_nan=False)
    sys.stdout.write("\n")


def _finite(document: Any) -> Any:
    if isinstance(document, float):
        return document if math.isfinite(document) else None
    if isinstance(document, dict):
        return {name: _finite(part) for name, part in document.items()}
    if isinstance(document, list | tuple):
        return [_finite(part) for part in document]
    return document
