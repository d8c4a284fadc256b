"""The page in a real browser, where there is one."""

import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from twofold.records import RunRecord
from twofold.report import report_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ATTACK = "<img src=x onerror=\"document.title='taken'\"></script><script>document.title='taken'</script>"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


@dataclass(frozen=True)
class Shown:
    """What the browser made of a page, and what it complained about."""

    document: str
    complaints: list[str]


def show(page: str, folder: Path) -> Shown:
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr",
        "--virtual-time-budget=5000",
        "--dump-dom",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return Shown(done.stdout, re.findall(r"CONSOLE.*", done.stderr))


def title(document: str) -> str:
    found = re.search(r"<title>(.*?)</title>", document)
    assert found is not None
    return found[1]


def test_all_charts_are_drawn_and_nothing_is_complained_about(
    run: RunRecord, control: RunRecord, tmp_path: Path
) -> None:
    shown = show(report_page(run, control), tmp_path)
    assert shown.complaints == []
    assert title(shown.document) == "simclr on digits · twofold"
    charts = [chart.split("</figure>")[0] for chart in shown.document.split("<h3>")[1:]]
    assert len(charts) == 7
    for chart in charts:
        assert 'class="main-svg"' in chart
        assert chart.count('class="trace scatter') >= 2
        assert "var(--" not in chart


def test_hostile_names_are_read_and_not_obeyed(run: RunRecord, tmp_path: Path) -> None:
    settings = {"method": ATTACK, "data": ATTACK}
    rows = tuple({"step": step, "loss": 1.0, ATTACK: 2.0} for step in (1.0, 2.0, 3.0))
    shown = show(report_page(replace(run, name=ATTACK, settings=settings, metrics=rows)), tmp_path)
    assert shown.complaints == []
    assert title(shown.document).startswith("&lt;img")
    assert shown.document.count('class="main-svg"') >= 4
    assert '<img src="x"' not in shown.document


def test_a_foreign_script_is_refused_and_seen_here(run: RunRecord, tmp_path: Path) -> None:
    page = report_page(run).replace("</main>", "<script>document.title='taken'</script></main>")
    shown = show(page, tmp_path)
    assert title(shown.document) != "taken"
    assert any("Content Security Policy" in complaint for complaint in shown.complaints)
