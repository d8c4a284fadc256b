"""``twofold train``."""

from pathlib import Path
from typing import Any

from twofold.cli.flags import fields, help_of, read
from twofold.cli.parser import print_json
from twofold.cli.show import plain, show_evaluation
from twofold.errors import BadInput, unknown

OWN_FLAGS = """
  --out DIR       folder of the run (default: a new one in runs/)
  --resume        go on with the run in --out
  --config FILE   settings from a YAML file, as in a run's settings.yaml; flags change them
  --json          print one JSON document on standard output
"""


def run(words: list[str]) -> int:
    """Train, and say what came out."""
    from twofold.methods import AXES
    from twofold.training import TrainSettings, overlay, settings, train
    from twofold.training.folder import mapping_from_yaml

    flags, alone = read(words, [*fields(TrainSettings), "out", "config"], ["resume", "json", "help"])
    if "-h" in alone or flags.get("help"):
        shown = {name: value for name, value in flags.items() if name in fields(TrainSettings)}
        print(help_of(settings(shown), "twofold train") + OWN_FLAGS)  # noqa: T201
        return 0
    if alone:
        raise BadInput(f"'{alone[0]}' is no flag: settings are written as --name value; --help lists them")
    out, config, resume = flags.pop("out", None), flags.pop("config", None), flags.pop("resume", False)
    as_json = flags.pop("json", False)
    for name, value in (("out", out), ("config", config), ("data", flags.get("data"))):
        if value is not None and not isinstance(value, str):
            raise BadInput(f"--{name} takes one value")
    if config is not None:
        below = mapping_from_yaml(Path(config))
        if "method" in flags:
            below = {name: value for name, value in below.items() if name not in AXES}
        if "steps" in flags or "epochs" in flags:
            below = {name: value for name, value in below.items() if name not in ("steps", "epochs")}
        flags = overlay(below, flags)
        for name in flags:
            if name not in fields(TrainSettings):
                raise unknown("setting", name, fields(TrainSettings))
    finished = train(**flags, out=out, resume=resume)
    evaluation = finished.evaluation
    assert evaluation is not None
    if as_json:
        print_json(document(finished))
    else:
        show_evaluation(finished.settings.method, evaluation)
        print(f"the run is in {finished.folder.path}; its page: twofold report {finished.folder.path}")  # noqa: T201
    return 0


def document(finished: Any) -> dict[str, Any]:
    """Write a finished run for machines."""
    from twofold.training import as_mapping

    return {
        "folder": str(finished.folder.path),
        "settings": as_mapping(finished.settings),
        "evaluation": plain(finished.evaluation),
    }
