"""The loop: settings, steps, checkpoints, and what a run leaves on disk."""

from twofold.training.loop import Observer, Quiet
from twofold.training.run import RUNS, Run, load, runs, train
from twofold.training.settings import TrainSettings, as_mapping, members, overlay, settings

__all__ = [
    "RUNS",
    "Observer",
    "Quiet",
    "Run",
    "TrainSettings",
    "as_mapping",
    "load",
    "members",
    "overlay",
    "runs",
    "settings",
    "train",
]
