"""One HTML page that tells all of a run: it needs nothing beside itself, and may not fetch anything."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from twofold.errors import BadInput, Failed
from twofold.records import RunRecord
from twofold.report import sections
from twofold.report.charts import Chart, curve_charts, spectrum_charts
from twofold.report.markup import Markup, embedded, tag
from twofold.report.words import title

WRONG_PLACE = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def report_page(run: RunRecord, control: RunRecord | None = None) -> str:
    """Write the page of a run, compared with a control where there is one."""
    curves, spectra = curve_charts(run, control), spectrum_charts(run, control)
    parts = [
        sections.header(run),
        sections.verdict(run, control),
        sections.numbers(run, control),
        sections.training(curves, run, control),
        sections.spectrum(spectra, run, control),
        sections.neighbours(run),
        sections.views(run),
        sections.settings(run, control),
        sections.environment(run),
        sections.repeat(run),
        tag("footer", "Written by twofold from the records of the run. The page works offline."),
    ]
    main = tag("main", *(part for part in parts if part is not None))
    return _document(title(run), main, [*curves, *spectra])


def write_report(run: RunRecord, path: Path, control: RunRecord | None = None) -> None:
    """Write the page in one piece: after any failure, the file is as it was before."""
    from twofold.files import write_atomically  # heavy to import

    page = report_page(run, control)
    try:
        write_atomically(path, page.encode())
    except WRONG_PLACE as error:
        raise BadInput(f"the report cannot be written to {path}: {error.strerror}") from error
    except OSError as error:
        raise Failed(f"the report could not be written to {path}: {error.strerror}") from error


def _document(name: str, main: Markup, charts: Sequence[Chart]) -> str:
    """Put the page together."""
    from plotly.offline import get_plotlyjs  # heavy to import

    resources = files("twofold.report")
    style, draw = ((resources / file).read_text("utf-8") for file in ("page.css", "page.js"))
    scripts = [get_plotlyjs(), draw] if charts else []
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{name} · twofold"),
        tag("style", Markup(style)),
    )
    figures = tag("script", embedded([chart.figure for chart in charts]), type="application/json", id="figures")
    body = tag("body", main, figures, *(tag("script", Markup(script)) for script in scripts))
    return f"<!doctype html>\n{tag('html', head, body, lang='en').html}\n"


def _policy(scripts: Sequence[str]) -> str:
    """Let the browser run these scripts and no others, and load nothing from anywhere."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
