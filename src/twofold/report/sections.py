"""The sections of the page, from the verdict to how the run is repeated; each copes with what is missing."""

import base64

from twofold.records import RunRecord, Verdict
from twofold.report.charts import Chart
from twofold.report.curves import breakdown
from twofold.report.markup import Content, Markup, tag
from twofold.report.pictures import agreement, neighbour_rows, view_pairs
from twofold.report.tables import accuracy_table, environment_table, geometry_table, settings_table
from twofold.report.words import STATES, VERDICTS, ended, label, setting, standing, title

SYMBOLS = {"alive": "●", "partial": "◐", "collapsed": "○"}
LEVEL_NOTE = "“At the level of” means that two accuracies differ by at most two standard errors of their difference."
SHAPE_NOTE = (
    "The effective rank is exp of the entropy of the covariance's eigenvalues: the number of directions in "
    "use. Alignment is the mean squared distance between two views of a sample on the sphere (0: they "
    "agree); uniformity is the logarithm of the mean Gaussian potential of all pairs (0: all in one point; "
    "the lower, the more evenly spread)."
)


def _section(heading: str, *parts: Content | None, tone: str | None = None) -> Markup:
    return tag("section", tag("h2", heading), *(part for part in parts if part is not None), class_=tone)


def header(run: RunRecord) -> Markup:
    """Say what this run is."""
    facts = {
        "run": run.name,
        "method": setting(run.settings, "method"),
        "data": setting(run.settings, "data"),
        "encoder": setting(run.settings, "encoder"),
        "steps": f"{run.step:,} of {run.steps:,}",
        "state": run.state,
    }
    told = [tag("div", tag("dt", name), tag("dd", fact)) for name, fact in facts.items() if fact is not None]
    return tag("header", tag("p", "twofold report", class_="brand"), tag("h1", title(run)), tag("dl", *told))


def verdict(run: RunRecord, control: RunRecord | None) -> Markup:
    """Say first how it went: the verdict and its reasons, the accuracy, and how the control ended."""
    parts: list[Content] = []
    if run.evaluation is None:
        words = f"No verdict: the run {STATES[run.state]}, and has not been evaluated."
        parts.append(tag("p", words, class_="lead"))
        parts.append(tag("p", "The evaluation brings accuracies, spectrum and pictures."))
    else:
        parts += _judgement(run.evaluation.verdict)
        parts += [tag("p", words) for words in [standing(run.evaluation)] if words]
    broken = breakdown(run)
    if broken is not None:
        parts.append(tag("p", f"The loss was not a number at step {broken:,}."))
    if control is not None:
        parts.append(_control(control))
    state = "" if run.evaluation is None else f" {run.evaluation.verdict.state}"
    return _section("Verdict", *parts, tone=f"verdict{state}")


def _judgement(verdict: Verdict) -> list[Markup]:
    badge = tag("span", f"{SYMBOLS[verdict.state]} {VERDICTS[verdict.state]}", class_="badge")
    reasons = [tag("ul", *(tag("li", reason) for reason in verdict.reasons))] if verdict.reasons else []
    return [tag("p", badge, " ", verdict.sentence, class_="lead"), *reasons]


def _control(control: RunRecord) -> Markup:
    words: list[Content] = [tag("strong", ended(control))]
    if control.evaluation is not None:
        words += [" ", control.evaluation.verdict.sentence, " ", standing(control.evaluation) or ""]
    return tag("p", *words, class_="control")


def numbers(run: RunRecord, control: RunRecord | None) -> Markup | None:
    """Tabulate what was measured, and say what the numbers are."""
    found = run.evaluation
    if found is None:
        return None
    where = f"Measured on {found.samples:,} {found.split} samples of {found.data}, after {found.step:,} steps."
    scores = accuracy_table(run, control)
    under = tag("p", LEVEL_NOTE, class_="note") if scores else tag("p", "There are no labels, so no accuracy.")
    shapes = geometry_table(run, control)
    return _section("Numbers", tag("p", where), scores, under, shapes, tag("p", SHAPE_NOTE, class_="note"))


def training(charts: list[Chart], run: RunRecord, control: RunRecord | None) -> Markup:
    """Draw what was logged."""
    if not charts:
        return _section("Training", tag("p", "No step has been logged yet."))
    return _section("Training", _legend(run, control), _drawn(charts))


def spectrum(charts: list[Chart], run: RunRecord, control: RunRecord | None) -> Markup | None:
    """Draw the eigenvalues."""
    if not charts:
        return None
    words = "Eigenvalues of the covariance, as shares of the largest: the sooner they fall, the fewer are in use."
    return _section("Spectrum", tag("p", words), _legend(run, control), _drawn(charts))


def _legend(run: RunRecord, control: RunRecord | None) -> Markup:
    entries = [tag("li", tag("span", class_="line"), label(run))]
    if control is not None:
        entries.append(tag("li", tag("span", class_="line control"), f"{label(control)} (control)"))
    return tag("ul", *entries, class_="legend")


def _drawn(charts: list[Chart]) -> Markup:
    script = tag("noscript", tag("p", "The charts need JavaScript; the tables do not."))
    return tag("div", script, *(_figure(chart) for chart in charts), class_="charts")


def _figure(chart: Chart) -> Markup:
    plot = tag("div", class_="plot", role="img", aria_label=f"Chart: {chart.title}. {chart.note}")
    return tag("figure", tag("h3", chart.title), plot, tag("figcaption", chart.note))


def neighbours(run: RunRecord) -> Markup | None:
    """Show what the encoder takes to be alike."""
    gallery = run.gallery
    if gallery is None or not len(gallery.queries):
        return None
    words = "Held-out samples, and the training samples whose features have the largest cosine with theirs."
    told = tag("p", f"{words} {agreement(gallery) or ''}")
    return _section("Nearest neighbours", told, neighbour_rows(gallery))


def views(run: RunRecord) -> Markup | None:
    """Show what was trained on."""
    if run.gallery is None or not len(run.gallery.views):
        return None
    words = "Two views of each sample: what training takes to be the same thing."
    return _section("Views", tag("p", words), view_pairs(run.gallery))


def settings(run: RunRecord, control: RunRecord | None) -> Markup | None:
    """List all settings, and where the control's differ."""
    return _section("Settings", settings_table(run, control)) if run.settings else None


def environment(run: RunRecord) -> Markup | None:
    """List where the run was made."""
    return _section("Environment", environment_table(run)) if run.environment else None


def repeat(run: RunRecord) -> Markup | None:
    """Give the command, and the file that it reads, to be saved with a click."""
    import yaml  # heavy to import

    if not run.settings:
        return None
    content = yaml.safe_dump(dict(run.settings), sort_keys=False)
    address = "data:text/yaml;base64," + base64.b64encode(content.encode()).decode("ascii")
    link = tag("a", "Save settings.yaml", href=address, download="settings.yaml", class_="button")
    command = tag("pre", tag("code", "twofold train --config settings.yaml"))
    shown = tag("details", tag("summary", "settings.yaml"), tag("pre", tag("code", content)))
    return _section("How to repeat it", tag("p", link, " and run"), command, shown)
