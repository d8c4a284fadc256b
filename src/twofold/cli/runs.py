"""``twofold runs``."""

from pathlib import Path
from typing import Any

from twofold.cli.parser import Parser, print_json
from twofold.cli.show import percent, table
from twofold.errors import BadInput
from twofold.records import RunRecord

EXAMPLES = "twofold runs\ntwofold runs elsewhere --json"


def run(words: list[str]) -> int:
    """List the runs below a folder."""
    parser = Parser("runs", "List the runs on this disk: method, data, state, best numbers.", EXAMPLES)
    parser.add_argument("folder", nargs="?", default="runs", help="where to look (default: runs)")
    chosen = parser.parse_args(words)
    from twofold.training import runs

    if not Path(chosen.folder).is_dir():
        raise BadInput(f"there is no folder '{chosen.folder}' to look for runs in; twofold train makes runs/")
    found = [(path, _summary(path, record)) for path, record in runs(chosen.folder)]
    if chosen.json:
        print_json([summary for _, summary in found])
        return 0
    rows = [
        (it["folder"], it["method"], it["data"], it["encoder"], it["state"], f"{it['step']}/{it['steps']}",
         percent(it["knn"]), percent(it["best_knn"]), percent(it["probe"]), it["verdict"] or "")
        for _, it in found
    ]  # fmt: skip
    columns = (
        "run",
        "method",
        "data",
        "encoder",
        "state",
        "step",
        "kNN",
        "best kNN seen",
        "linear probe",
        "verdict",
    )
    table("", columns, rows)
    return 0


def _summary(path: Path, record: RunRecord) -> dict[str, Any]:
    evaluation = record.evaluation
    accuracy = None if evaluation is None else evaluation.accuracy
    return {
        "folder": str(path),
        "method": record.settings["method"],
        "data": record.settings["data"],
        "encoder": record.settings["encoder"],
        "state": record.state,
        "step": record.step,
        "steps": record.steps,
        "knn": None if accuracy is None else accuracy.knn,
        "probe": None if accuracy is None else accuracy.probe,
        "best_knn": max((row["knn"] for row in record.metrics if "knn" in row), default=None),
        "verdict": None if evaluation is None else evaluation.verdict.state,
    }
