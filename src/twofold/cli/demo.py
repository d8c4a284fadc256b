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
    from twofold.training import settings, train

    out, control_out = Path(chosen.out), Path(f"{chosen.out}-no-predictor")
    earlier = [
        folder for folder, method in ((out, "simclr"), (control_out, "no-predictor")) if _replaceable(folder, method)
    ]
    settings({"steps": chosen.steps})  # refuses what cannot be before anything is removed
    for folder in earlier:
        shutil.rmtree(folder)
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


def _replaceable(folder: Path, method: str) -> bool:
    """Tell whether an earlier demo is there; anything else that is there is refused."""
    from twofold.training import as_mapping, settings
    from twofold.training.folder import RunFolder

    before = RunFolder(folder)
    if not folder.exists():
        return False
    if not before.exists() or before.running():
        raise BadInput(f"{folder} is no earlier demo that could be replaced: choose another --out")
    stored = as_mapping(before.settings())
    own = {name: stored[name] for name in ("encoder", "lr", "steps")}
    if stored != as_mapping(settings({"method": method, **own})):
        raise BadInput(f"{folder} holds a run that is no demo: choose another --out")
    return True
