import base64
import errno
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import yaml

from twofold.errors import BadInput, Failed
from twofold.records import Accuracy, RunRecord, Verdict
from twofold.report import report_page, write_report
from twofold.report.markup import VOID

HOSTILE = (
    "</script></style><img src=x onerror=\"document.title='taken'\">&amp;'\"\x00\x1b\u202e\udc80{{x}}%{y}var(--run)"
)
ADDRESS = re.compile(r"https?:|//|url\(")


class Structure(HTMLParser):
    """The elements of a page; complains where one is not closed, or closed twice."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.content: dict[str, str] = {}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements[name] += 1
        self.attributes += [(name, key, value or "") for key, value in attributes]
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        self.content[self.open[-1] if self.open else ""] = (
            self.content.get(self.open[-1] if self.open else "", "") + text
        )

    @property
    def words(self) -> str:
        """All that a reader sees."""
        return " ".join(text for name, text in self.content.items() if name not in ("script", "style"))


def variants(run: RunRecord) -> dict[str, RunRecord]:
    assert run.evaluation is not None
    assert run.gallery is not None
    unlabelled = replace(run.evaluation, accuracy=None, baselines={}, chance=None, classes=None)
    plain_gallery = replace(run.gallery, query_labels=(), neighbour_labels=())
    broken = tuple({**row, "loss": float("nan")} for row in run.metrics)
    return {
        "whole": run,
        "unlabelled": replace(run, evaluation=unlabelled, gallery=plain_gallery),
        "vectors": replace(run, gallery=None),
        "running": replace(run, state="running", evaluation=None, gallery=None, step=7),
        "nothing logged": replace(run, state="running", metrics=(), evaluation=None, gallery=None, step=0),
        "one row": replace(run, metrics=run.metrics[:1]),
        "diverged": replace(run, state="diverged", metrics=broken, evaluation=None, gallery=None),
        "bare": RunRecord("bare", "stopped", 0, 10, {}),
    }


@pytest.mark.parametrize("with_control", [False, True])
@pytest.mark.parametrize(
    "name", ["whole", "unlabelled", "vectors", "running", "nothing logged", "one row", "diverged", "bare"]
)
def test_every_kind_of_run_has_a_whole_page(run: RunRecord, control: RunRecord, name: str, with_control: bool) -> None:
    record = variants(run)[name]
    page = Structure(report_page(record, control if with_control else None))
    assert page.elements["h1"] == page.elements["main"] == page.elements["title"] == 1
    assert page.elements["noscript"] == (page.attributes.count(("div", "class", "charts")))
    assert record.name in page.words
    assert ("The control, no-predictor, ended collapsed." in page.words) == with_control
    sections = page.content["h2"]
    assert ("Nearest neighbours" in sections) == ("Views" in sections) == (record.gallery is not None)
    assert ("Numbers" in sections) == ("Spectrum" in sections) == (record.evaluation is not None)
    assert ("How to repeat it" in sections) == bool(record.settings)


def test_the_verdict_is_said_first_and_not_by_colour_alone(run: RunRecord) -> None:
    assert run.evaluation is not None
    for state, words in (("alive", "● alive"), ("partial", "◐ partly collapsed"), ("collapsed", "○ collapsed")):
        verdict = Verdict(state, "A sentence.", ("a reason",))
        page = report_page(replace(run, evaluation=replace(run.evaluation, verdict=verdict)))
        body = page[page.index("<body>") :]
        assert body.index("<h1>") < body.index(words) < body.index("A sentence.") < body.index("a reason")
        assert body.index("a reason") < body.index("<table>")


def test_the_page_says_how_the_control_ended(run: RunRecord, control: RunRecord) -> None:
    words = Structure(report_page(run, control)).words
    assert "All samples have one embedding." in words
    assert "Its kNN accuracy is 11.0 % on 400 test samples: at the level of chance (10.0 %), below" in words


def test_a_divergence_is_said(run: RunRecord) -> None:
    words = Structure(report_page(variants(run)["diverged"])).words
    assert "the run diverged" in words
    assert "The loss was not a number at step 1." in words


def test_nothing_is_fetched(run: RunRecord, control: RunRecord) -> None:
    page = Structure(report_page(run, control))
    for _, key, value in page.attributes:
        if key in ("src", "href", "srcset", "poster", "data", "action"):
            assert value.startswith("data:")
        else:
            assert not ADDRESS.search(value)
    assert not ADDRESS.search(page.content["style"])
    policy = next(value for name, _, value in page.attributes if name == "meta" and value.startswith("default-src"))
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_the_settings_can_be_saved_as_they_are(run: RunRecord) -> None:
    settings = {**run.settings, "data": "/photos/Übung\udc80 <b>", "views": {"scale": [0.5, 0.9]}, "lr": None}
    page = Structure(report_page(replace(run, settings=settings)))
    (address,) = [value for name, key, value in page.attributes if (name, key) == ("a", "href")]
    saved = base64.b64decode(address.removeprefix("data:text/yaml;base64,"))
    assert yaml.safe_load(saved) == settings
    assert saved.decode() in page.content["code"]
    assert "twofold train --config settings.yaml" in page.content["code"]


def made_of(run: RunRecord, word: str) -> RunRecord:
    """Put a word wherever a run has words."""
    assert run.evaluation is not None
    assert run.gallery is not None
    shape = run.gallery.similarities.shape
    return RunRecord(
        word,
        "done",
        3,
        3,
        {"method": word, "data": word, "encoder": word, word: {word: [word]}},
        {word: word},
        tuple({"step": step, "loss": 1.0, word: 2.0} for step in (1.0, 2.0, 3.0)),
        replace(
            run.evaluation,
            data=word,
            verdict=Verdict("partial", word, (word,)),
            baselines={word: Accuracy(0.5)},
        ),
        replace(
            run.gallery,
            query_labels=(word,) * shape[0],
            neighbour_labels=((word,) * shape[1],) * shape[0],
            similarities=np.full(shape, np.nan, np.float32),
        ),
    )


def test_words_never_become_structure(run: RunRecord) -> None:
    tame, hostile = made_of(run, "tame"), made_of(run, HOSTILE)
    expected, found = Structure(report_page(tame, tame)), Structure(report_page(hostile, hostile))
    assert found.elements == expected.elements
    assert [(name, key) for name, key, _ in found.attributes] == [(name, key) for name, key, _ in expected.attributes]
    assert (
        "<img src=x onerror=\"document.title='taken'\">&amp;'\"\\x00\\x1b\\u202e\\udc80{{x}}%{y}var(--run)"
        in found.words
    )


def test_the_figures_of_hostile_words_are_whole_json(run: RunRecord) -> None:
    page = report_page(made_of(run, HOSTILE))
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page)
    assert found is not None
    assert len(json.loads(found[1])) == page.count('class="plot"') == 4


def test_a_report_is_written_whole(run: RunRecord, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "report.html"
    write_report(run, file)
    assert file.read_text("utf-8") == report_page(run)
    assert [path.name for path in file.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_bad_input(run: RunRecord, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for place in (tmp_path, tmp_path / "file" / "report.html"):
        with pytest.raises(BadInput, match="the report cannot be written to"):
            write_report(run, place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_the_last_report(run: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    file.write_text("the last one")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Failed, match="No space left"):
        write_report(run, file)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the last one"]
