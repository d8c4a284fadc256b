"""``twofold bench``: the programs in ``benchmarks/``, each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import twofold
from twofold.cli.parser import Parser, print_json
from twofold.cli.show import table
from twofold.errors import BadInput, Failed, unknown

EXAMPLES = "twofold bench\ntwofold bench views start --json"


def run(words: list[str]) -> int:
    """Run benchmarks one after the other, and print each beside its limit."""
    programs = {file.stem: file for file in sorted(_folder().glob("*.py"))}
    parser = Parser("bench", f"Measure speed against its limits: {', '.join(programs)}.", EXAMPLES)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    chosen = parser.parse_args(words)
    for name in chosen.names:
        if name not in programs:
            raise unknown("benchmark", name, programs)
    found = []
    for name in chosen.names or programs:
        print(f"measuring {name} …", file=sys.stderr)  # noqa: T201
        measured = _measured(programs[name])
        found.append(measured)
        if not chosen.json:
            table(name, ("what", "measured", "unit", "reach", "reached"), map(_row, measured["rows"]))
    if chosen.json:
        print_json(found)
    return 0


def _folder() -> Path:
    """Find the programs: beside the sources in a checkout, inside the package once it is built."""
    package = Path(twofold.__file__).parent
    for folder in (package / "benchmarks", package.parents[1] / "benchmarks"):
        if folder.is_dir():
            return folder
    raise BadInput("this installation came without its benchmarks")


def _measured(program: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(program)], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise Failed(f"the benchmark {program.stem} ended with status {done.returncode}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    met = row.get("met")
    reach = row.get("reach")
    return (
        row["what"],
        f"{row['value']:.4g}",
        row["unit"],
        "" if reach is None else f"{reach:g}",
        "" if met is None else "yes" if met else "no",
    )
