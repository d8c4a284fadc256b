"""The command line: one file a command, imported only when it is asked for."""

import importlib
import sys

from twofold.errors import BadInput, TwofoldError, unknown

COMMANDS = {
    "train": "train a representation from unlabelled data",
    "demo": "train on the built-in digits beside a control that collapses, and draw the report",
    "evaluate": "measure a run on held-out data",
    "embed": "write the embeddings of a data set",
    "report": "draw one self-contained HTML page of a run",
    "runs": "list the runs on this disk",
    "methods": "list the methods",
    "verify": "check what the papers state",
    "data": "list, fetch and check data sets",
    "bench": "measure speed against its limits",
}

EXAMPLES = """examples:
  twofold train                                   about a minute, no download
  twofold train --method byol --data cifar10 --encoder resnet18 --width 16
  twofold report runs/simclr-digits-1
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a user's mistake is one sentence and exit status 2, never a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        return _command(words)
    except TwofoldError as error:
        print(f"twofold: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_status
    except KeyboardInterrupt:
        print("twofold: interrupted", file=sys.stderr)  # noqa: T201
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # who read our output has left, and Python would complain about it
        return 0


def _command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_help())  # noqa: T201
        return 0
    if words[0] == "--version":
        from importlib.metadata import version  # not needed for anything else

        print(f"twofold {version('twofold')}")  # noqa: T201
        return 0
    if words[0] not in COMMANDS:
        if words[0].startswith("-"):
            raise BadInput(f"'{words[0]}' stands before any command, allowed there are --help and --version")
        raise unknown("command", words[0], COMMANDS)
    status: int = importlib.import_module(f"twofold.cli.{words[0]}").run(words[1:])
    return status


def _help() -> str:
    from twofold import __doc__ as purpose

    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {does}" for name, does in COMMANDS.items())
    return f"{purpose}\n\nusage: twofold COMMAND [--help]\n\n{rows}\n\n{EXAMPLES}"
