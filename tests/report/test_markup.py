import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.report.markup import Markup, embedded, escaped, table, tag, together, visible

anything = st.text(st.characters(exclude_categories=()), max_size=40)
hostile = st.sampled_from(
    ["</script><script>alert(1)</script>", '" onload="x', "<!--", "&lt;", "\x00\x1b[31m", "\udc80"]
)


class Seen(HTMLParser):
    """What a browser would take a text to be."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_data(self, text: str) -> None:
        self.text += text


@given(anything | hostile)
def test_text_is_shown_and_adds_no_element(text: str) -> None:
    seen = Seen(tag("p", text, title=text).html)
    assert seen.elements == [("p", {"title": visible(text)})]
    assert seen.text == visible(text)


@given(anything | hostile)
def test_visible_text_can_be_written_to_a_file_and_is_its_own_visible_form(text: str) -> None:
    shown = visible(text)
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert visible(shown) == shown


def test_what_has_no_shape_is_spelled_out_and_the_rest_is_left_alone() -> None:
    assert visible("gpj\u202eexe \x00 \x1b \r \udc80") == r"gpj\u202eexe \x00 \x1b \r \udc80"
    assert visible("naïve 日本 \t\n 🙂") == "naïve 日本 \t\n 🙂"


def test_only_markup_is_taken_as_markup() -> None:
    inner = tag("b", "<i>")
    assert tag("p", inner, "<i>").html == "<p><b>&lt;i&gt;</b>&lt;i&gt;</p>"
    assert together(Markup("<br>"), "<br>").html == "<br>&lt;br&gt;"


def test_attributes_are_named_as_in_html_and_none_is_left_out() -> None:
    assert tag("img", src="a", class_=None, aria_label="b", width=3).html == '<img src="a" aria-label="b" width="3">'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | anything | hostile,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(anything, children, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_embedded_json_says_the_same_and_cannot_end_its_element(data: Any) -> None:
    text = embedded(data).html
    assert json.loads(text) == data
    assert not set("<>&") & set(text)
    assert text.isascii()


def test_embedded_json_has_no_word_for_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded([float("nan")])


def test_a_table_names_its_rows_and_columns() -> None:
    seen = Seen(table(["what", "value"], [["a", "1"], ["b", tag("b", "2")]], "All <of> it").html)
    headers = [attributes["scope"] for name, attributes in seen.elements if name == "th"]
    assert headers == ["col", "col", "row", "row"]
    assert [name for name, _ in seen.elements].count("td") == 2
    assert escaped("All <of> it") not in seen.text
    assert "All <of> it" in seen.text
