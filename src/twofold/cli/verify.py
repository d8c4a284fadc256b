"""``twofold verify``: the papers' statements, each with a control that must fail."""

import fnmatch
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from twofold.cli.parser import Parser, print_json
from twofold.cli.show import table
from twofold.errors import BadInput, nearest

if TYPE_CHECKING:
    from twofold.papers import Claim, Outcome

EXAMPLES = "twofold verify\ntwofold verify alpha_cl\ntwofold verify '*/thm*' --seed 7 --json\ntwofold verify --list"
MOST_SEED = 2**32 - 1


def run(words: list[str]) -> int:
    """Measure the claims that match; status 1 where one fails, or its control survives."""
    parser = Parser("verify", "Check what the papers state, and that a wrong variant of it is refuted.", EXAMPLES)
    parser.add_argument(
        "pattern", nargs="?", default="*", metavar="PATTERN", help="paper, paper/claim or claim; * stands for anything"
    )
    parser.add_argument("--list", action="store_true", help="list the claims without checking them")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random instances (default: 0)")
    chosen = parser.parse_args(words)
    if not 0 <= chosen.seed <= MOST_SEED:
        raise BadInput(f"--seed must be from 0 to {MOST_SEED}, not {chosen.seed}")
    from twofold.papers import claims, verify  # heavy to import

    found = _matching(chosen.pattern, claims())
    if chosen.list:
        return _list(found, chosen.json)
    outcomes = []
    for number, claim in enumerate(found, start=1):
        print(f"{number} of {len(found)}: {claim.id} …", file=sys.stderr)  # noqa: T201
        outcomes.append(verify(claim, chosen.seed))
    if chosen.json:
        print_json([asdict(outcome) for outcome in outcomes])
    else:
        _show(outcomes)
    return 0 if all(outcome.passes for outcome in outcomes) else 1


def _matching(pattern: str, known: "tuple[Claim, ...]") -> "list[Claim]":
    """Find claims by a paper, by a whole name, or by the part behind the paper."""
    wishes = (pattern, f"{pattern}/*", f"*/{pattern}")
    found = [claim for claim in known if any(fnmatch.fnmatchcase(claim.id, wish) for wish in wishes)]
    if not found:
        spellings = {spelling for claim in known for spelling in (claim.id, claim.paper, claim.name)}
        raise BadInput(f"no claim matches '{pattern}': --list names all{nearest(pattern, sorted(spellings))}")
    return found


def _list(found: "list[Claim]", as_json: bool) -> int:
    told = ("id", "place", "kind", "statement", "control")
    rows = [{name: getattr(claim, name) for name in told} for claim in found]
    if as_json:
        print_json(rows)
    else:
        table("", told, [row.values() for row in rows])
    return 0


def _show(outcomes: "list[Outcome]") -> None:
    rows = [
        (
            outcome.id,
            outcome.statement,
            "holds" if outcome.holds else "FAILS",
            f"{outcome.residual:.1e}",
            f"{outcome.tolerance:.0e}",
            f"{'refuted' if outcome.control_refuted else 'SURVIVES'}: {outcome.control}",
            f"{outcome.seconds:.1f} s",
        )
        for outcome in outcomes
    ]
    table("", ("claim", "what it states", "", "residual", "tolerance", "control", ""), rows)
    passed = sum(outcome.passes for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} hold, with their controls refuted")  # noqa: T201
