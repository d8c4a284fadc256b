"""HTML out of words that nobody vouches for: whatever a label or a file name holds is shown, never obeyed."""

import html
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

VOID = {"img", "meta"}
SHAPELESS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True)
class Markup:
    """Text that is HTML already; every other text is escaped where it meets one."""

    html: str


Content = Markup | str


def visible(text: str) -> str:
    """Spell out what has no shape of its own: control characters, text direction marks, lone surrogates."""
    return "".join(character if _has_shape(character) else _escape(character) for character in text)


def _has_shape(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character) not in SHAPELESS


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def escaped(text: str) -> str:
    """Make any text safe as content and as the value of a quoted attribute."""
    return html.escape(visible(text))


def tag(name: str, /, *children: Content, **attributes: str | int | None) -> Markup:
    """Build an element; ``class_`` is written class, ``aria_label`` aria-label, and None leaves one out."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{words}>")
    return Markup(f"<{name}{words}>{together(*children).html}</{name}>")


def together(*parts: Content) -> Markup:
    """Put parts one after the other."""
    return Markup("".join(part.html if isinstance(part, Markup) else escaped(part) for part in parts))


def table(head: Iterable[Content], rows: Iterable[Iterable[Content]], caption: str) -> Markup:
    """Build a table whose first column names its rows; on a narrow screen it scrolls in its own box."""
    columns = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    body = tag("tbody", *(_row(*row) for row in rows))
    whole = tag("table", tag("caption", caption), tag("thead", columns), body)
    return tag("div", whole, class_="scroll", role="region", aria_label=caption, tabindex=0)


def _row(first: Content, *rest: Content) -> Markup:
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))


def embedded(data: Any) -> Markup:
    """Write JSON that can stand inside a script element: nothing in it can end the element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e"))
