"""``twofold demo``: what the project is about, in two minutes."""

import shutil
from pathlib import Path

from twofold.cli.parser import Parser, print_json
from twofold.cli.show import plain, show_evaluation
from twofold.errors import BadInput

EXAMPLES = "twofold demo\ntwofold demo --out elsewhere/demo --steps 100"
STEPS = 600


def run(words: list[str]) -> int:
    """Train on the digits, train a control that collapses for as many steps, and draw both on one page."""
    parser = Parser(
        "demo", "Train on the built-in digits beside a control that collapses, and draw the report.", EXAMPLES
    )
    parser.add_argument("--out", metavar="DIR", default="runs/demo", help="folder of the run (default: runs/demo)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps of each of both runs (default: {STEPS})")
    chosen = parser.parse_args(words)
    from twofold.report import write_report
    from twofold.training import train

    out, control_out = Path(chosen.out), Path(f"{chosen.out}-no-predictor")
    _clear(out, "simclr")
    _clear(control_out, "no-predictor")
    main = train(method="simclr", steps=chosen.steps, out=out)
    control = train(method="no-predictor", steps=chosen.steps, out=control_out)
    page = main.folder.report_file
    write_report(main.record, page, control.record)
    measured, collapsed = main.evaluation, control.evaluation
    assert measured is not None
    assert collapsed is not None
    if chosen.json:
        print_json({"page": str(page), "evaluation": plain(measured), "control": plain(collapsed)})
        return 0
    show_evaluation("simclr", measured, {"no-predictor (control)": collapsed})
    print(f"the page: {page}")  # noqa: T201
    return 0


def _clear(folder: Path, method: str) -> None:
    """Make room where the last demo was; nothing else is ever removed."""
    from twofold.training import as_mapping, settings
    from twofold.training.folder import RunFolder

    before = RunFolder(folder)
    if not folder.exists():
        return
    if not before.exists() or before.running():
        raise BadInput(f"{folder} is no earlier demo that could be replaced: choose another --out")
    stored = before.settings()
    if as_mapping(stored) != as_mapping(settings({"method": method, "encoder": stored.encoder, "steps": stored.steps})):
        raise BadInput(f"{folder} holds a run that is no demo: choose another --out")
    shutil.rmtree(folder)
