"""``twofold report``."""

from pathlib import Path

from twofold.cli.parser import Parser, print_json

EXAMPLES = "twofold report runs/simclr-digits-1\ntwofold report runs/demo --control runs/demo-control --out page.html"


def run(words: list[str]) -> int:
    """Draw the page of a run."""
    parser = Parser("report", "Draw one self-contained HTML page of a run.", EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--control", metavar="RUN", help="a second run to set beside it")
    parser.add_argument("--out", metavar="FILE", help="the page (default: report.html in the run's folder)")
    chosen = parser.parse_args(words)
    from twofold.report import write_report
    from twofold.training.folder import RunFolder

    folder = RunFolder(Path(chosen.run))
    control = None if chosen.control is None else RunFolder(Path(chosen.control)).record()
    page = folder.report_file if chosen.out is None else Path(chosen.out)
    write_report(folder.record(), page, control)
    if chosen.json:
        print_json({"page": str(page)})
    else:
        print(page)  # noqa: T201
    return 0
