"""``twofold methods``."""

from dataclasses import fields
from typing import Any

from twofold.cli.parser import Parser, print_json
from twofold.cli.show import table

EXAMPLES = "twofold methods\ntwofold methods --json"


def run(words: list[str]) -> int:
    """List the zoo."""
    chosen = Parser("methods", "List the methods: each is objective × predictor × target.", EXAMPLES).parse_args(words)
    from twofold.methods import methods

    if chosen.json:
        print_json([_document(row) for row in methods()])
        return 0
    rows = [
        (row.name, _words(row.objective), _words(row.predictor), _words(row.target), _place(row), row.summary)
        for row in methods()
    ]
    table("", ("method", "objective", "predictor", "target", "paper", ""), rows)
    return 0


def _document(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        **{axis: _values(getattr(row, axis)) for axis in ("objective", "predictor", "target", "views")},
        "paper": row.citation.paper,
        "place": row.citation.place,
        "summary": row.summary,
        "recipe": dict(row.recipe),
    }


def _values(member: Any) -> dict[str, Any] | None:
    """Read the settings of a member of a room, its kind first."""
    if member is None:
        return None
    found = {field.name: getattr(member, field.name) for field in fields(member)}
    return {"kind": member.kind} | {
        name: _values(value) if hasattr(value, "kind") else value for name, value in found.items()
    }


def _words(member: Any) -> str:
    """Name the kind, and the settings that are not its usual ones."""
    told = []
    for field in fields(member):
        value = getattr(member, field.name)
        if field.name != "kind" and value != field.default:
            told.append(f"{field.name}={_words(value) if hasattr(value, 'kind') else value}")
    return f"{member.kind}({', '.join(told)})" if told else str(member.kind)


def _place(row: Any) -> str:
    return f"{row.citation.paper}, {row.citation.place}"
