"""Training as one call, and a run as an object."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from twofold.data import Source, ViewMaker, known_names, open_data, preparation, raw
from twofold.errors import BadInput, Failed, Interrupted
from twofold.networks import Branch
from twofold.records import Evaluation, RunRecord
from twofold.training import checkpoint
from twofold.training.arithmetic import Arithmetic
from twofold.training.display import usual_observer
from twofold.training.folder import LOCK, RunFolder
from twofold.training.loop import Loop, Observer, Quiet
from twofold.training.measure import Embeddings, evaluate, project_all
from twofold.training.randomness import seeded
from twofold.training.settings import TrainSettings, as_mapping, overlay, settings
from twofold.training.student import Plan, plan
from twofold.training.trainer import Trainer

RUNS = Path("runs")
OWN = "own: "
"""Before the name of data that were given as a value: they cannot be opened again by their name."""
Data = str | Path | Source | NDArray[Any]


class Run:
    """A trained representation: its encoder, what it was made from, and its folder."""

    def __init__(
        self, folder: RunFolder, plan: Plan, branch: Branch, step: int, views: ViewMaker, source: Source | None = None
    ) -> None:
        self.folder = folder
        self.plan = plan
        self.branch = branch.eval()
        self.step = step
        self.views = views
        self._source = source

    @property
    def encoder(self) -> nn.Module:
        """The trained encoder: samples as ``views.plain`` prepares them in, features out."""
        return self.branch.encoder

    @property
    def settings(self) -> TrainSettings:
        """What the run was made from."""
        return self.plan.settings

    @property
    def source(self) -> Source:
        """The data that it was trained on, opened when they are first asked for."""
        if self._source is None:
            self._source = _source(self.settings, None, Quiet())
        return self._source

    @property
    def record(self) -> RunRecord:
        """All that its folder tells."""
        return self.folder.record()

    @property
    def evaluation(self) -> Evaluation | None:
        """What was measured last."""
        return self.folder.evaluation()

    def embed(self, samples: NDArray[Any]) -> Float[np.ndarray, "n features"]:
        """Embed raw samples like those it was trained on: images (n, channels, height, width) of bytes, or vectors."""
        embedded: NDArray[np.float32] = self.project(torch.from_numpy(np.ascontiguousarray(samples))).features.numpy()
        return embedded

    def project(self, samples: Tensor) -> Embeddings:
        """Give features and projections of raw samples."""
        ready = self.views.plain(raw(samples, self.plan.shape))
        if tuple(ready.shape[1:]) != self.plan.shape:
            raise BadInput(f"this encoder takes samples of shape {self.plan.shape}, not {tuple(ready.shape[1:])}")
        return project_all(self.branch, ready)

    def evaluate(self, observer: Observer | None = None) -> Evaluation:
        """Measure the encoder on held-out data; the numbers and pictures go into the run's folder."""
        progress = (observer or Quiet()).progress
        measured, gallery = evaluate(self.branch, self.plan.encoder(), self.source, self.step, progress=progress)
        self.folder.write_evaluation(measured, gallery)
        return measured


def train(
    data: Data | None = None,
    *,
    encoder: str | nn.Module | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    observer: Observer | None = None,
    **choices: Any,
) -> Run:
    """Train, measure, and write a run folder: what ``twofold train`` does.

    ``choices`` are fields of ``TrainSettings`` (``method="byol"``, ``epochs=20``, ``predictor=Linear()`` …).
    ``data`` is a name or a path, an array of images (n, channels, height, width) or of vectors (n, dim), or a
    ``Source``; ``encoder`` a name, or any module that maps a batch to features (a copy of it is trained).
    Without ``out``, the folder is a new one in ``runs/``; with ``resume``, the run in ``out`` goes on to the very
    weights that it would have had. Everything that can be refused is refused before the first file is written.
    """
    given = dict(choices)
    if data is not None:
        given["data"] = _named(data)
    if isinstance(given.get("data_root"), str):
        given["data_root"] = str(Path(given["data_root"]).expanduser().absolute())
    if encoder is not None:
        given["encoder"] = encoder if isinstance(encoder, str) else f"module:{type(encoder).__name__}"
    folder = RunFolder(Path(out)) if out is not None else None
    chosen = _settings(given, folder, resume)
    observer = observer or usual_observer()
    try:
        source = _source(chosen, data, observer)
        made = plan(chosen, source.shape, encoder if isinstance(encoder, nn.Module) else None)
        with seeded(chosen.seed):
            return (
                _resumed(made, source, folder, observer)
                if resume and folder
                else _begun(made, source, folder, observer)
            )
    finally:
        observer.close()


def load(
    path: str | Path, which: checkpoint.Which = "last", data: Data | None = None, encoder: nn.Module | None = None
) -> Run:
    """Open a run on disk; data and encoder must be given again where they were not names."""
    folder = RunFolder(Path(path))
    chosen = folder.settings()
    if encoder is None and chosen.encoder.startswith("module:"):
        raise BadInput(f"{path} was trained with an encoder of your own ({chosen.encoder}): give it as encoder=")
    if not checkpoint.exists(folder.checkpoints, which):
        raise BadInput(f"{path} has no '{which}' checkpoint yet")
    prepared = folder.preparation()
    source = _source(chosen, data, Quiet()) if prepared is None or data is not None else None
    if source is not None:
        views, shape = source.views, source.shape
    elif prepared is not None:
        views, shape = prepared.maker(), prepared.shape
    made = plan(chosen, shape, encoder)
    dual = made.student().dual
    weights, _ = checkpoint.load(folder.checkpoints, which)
    try:
        dual.load_state_dict(weights)
    except RuntimeError as mismatch:
        raise Failed(f"the weights in {folder.checkpoints} do not fit the encoder and settings of {path}") from mismatch
    return Run(folder, made, dual.online, checkpoint.step_of(folder.checkpoints, which), views, source)


def runs(root: str | Path = RUNS) -> list[tuple[Path, RunRecord]]:
    """List the runs below a folder, the oldest first; a folder that is no readable run is passed over."""
    files = sorted(Path(root).glob("**/settings.yaml"), key=lambda file: file.stat().st_mtime)
    found = []
    for file in files:
        try:
            found.append((file.parent, RunFolder(file.parent).record()))
        except (BadInput, Failed):
            continue
    return found


def _settings(given: Mapping[str, Any], folder: RunFolder | None, resume: bool) -> TrainSettings:
    """Check what was given; a resumed run has its own settings, and no others."""
    if not resume:
        if folder is not None:
            _refuse_taken(folder)
        return settings(given)
    if folder is None:
        raise BadInput("resuming needs the run's folder: --resume --out runs/NAME")
    stored = as_mapping(folder.settings())
    asked = as_mapping(settings(overlay(stored, given)))
    for name, value in asked.items():
        if value != stored[name]:
            raise BadInput(
                f"{folder.path} was started with {name} {_short(stored[name])}, not {_short(value)}: "
                "resume without it, or choose another --out for a new run"
            )
    return folder.settings()


def _short(value: Any) -> str:
    return ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _refuse_taken(folder: RunFolder) -> None:
    path = folder.path
    if folder.exists():
        step = folder.status()["step"]
        raise BadInput(f"{path} already holds a run (step {step}): go on with --resume, or choose another --out")
    try:
        taken = path.exists() and (not path.is_dir() or any(file.name != LOCK for file in path.iterdir()))
    except OSError as failure:
        raise BadInput(f"the output folder {path} cannot be read: {failure.strerror}") from failure
    if taken:
        raise BadInput(f"{path} is already there and is no run: choose another --out")


def _named(data: Any) -> str:
    """Name data for the settings, so that the run finds them again from any folder."""
    if isinstance(data, Source):
        return f"{OWN}{data.name}"
    if isinstance(data, np.ndarray):
        return f"{OWN}array of shape {data.shape}"
    if not isinstance(data, str | Path):
        raise BadInput(f"data must be a name, a path, an array or a Source, not {type(data).__name__}")
    path = Path(data).expanduser()
    return str(path.absolute()) if str(data) not in known_names() and path.exists() else str(data)


def _source(chosen: TrainSettings, data: Data | None, observer: Observer) -> Source:
    """Open the data that the settings name, or those that were given."""
    if data is None and chosen.data.startswith(OWN):
        raise BadInput(f"the run was trained on data of your own ({chosen.data.removeprefix(OWN)}): give them as data=")
    root = None if chosen.data_root is None else Path(chosen.data_root)
    spec = chosen.data if data is None else data
    return open_data(spec, root, chosen.views, chosen.image_size, observer.progress)


def _begun(made: Plan, source: Source, wished: RunFolder | None, observer: Observer) -> Run:
    """Start a run; the folder is made when nothing is left that could be refused."""
    trainer = Trainer(made, source)
    folder = _made(wished, f"{made.settings.method}-{Path(source.name).stem}")
    with folder.locked():
        _refuse_started(folder)
        folder.begin(made.settings, preparation(source.views, made.shape))
        observer.say(_announcement(trainer, folder))
        trainer.start()
        return _trained(trainer, folder, observer)


def _resumed(made: Plan, source: Source, folder: RunFolder, observer: Observer) -> Run:
    """Go on from the last checkpoint, or from the start where none was made."""
    with folder.locked():
        folder.sweep()
        if not checkpoint.exists(folder.checkpoints):
            trainer = Trainer(made, source)
            trainer.start()
        else:
            weights, state = checkpoint.load(folder.checkpoints)
            trainer = Trainer(made, source, Arithmetic(**state["arithmetic"]))
            trainer.start()
            trainer.restore(weights, state)
        observer.say(_announcement(trainer, folder))
        if folder.status()["state"] == "done":
            observer.say(f"{folder.path} is done: there is nothing to go on with")
            return _run(trainer, folder)
        observer.say(f"going on from step {trainer.step} of {trainer.steps}")
        folder.keep_metrics_to(trainer.step)
        return _trained(trainer, folder, observer)


def _trained(trainer: Trainer, folder: RunFolder, observer: Observer) -> Run:
    Loop(trainer, folder, observer).run()
    try:
        return _finish(trainer, folder, observer)
    except KeyboardInterrupt as asked:
        raise Interrupted(f"all steps are done, the evaluation is not; {folder.how_to_go_on()}") from asked


def _made(folder: RunFolder | None, stem: str) -> RunFolder:
    """Make the run's folder; without a wish, the first free one of this name and a number."""
    if folder is not None:
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise BadInput(f"the output folder {folder.path} cannot be made: {failure.strerror}") from failure
        return folder
    for number in itertools.count(1):
        path = RUNS / f"{stem}-{number}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as failure:
            raise BadInput(f"the output folder {path} cannot be made: {failure.strerror}") from failure
        return RunFolder(path)
    raise AssertionError("counting never ends")


def _refuse_started(folder: RunFolder) -> None:
    """Look again now that the folder is locked: another process may have been faster."""
    if folder.exists():
        raise BadInput(f"{folder.path} already holds a run: go on with --resume, or choose another --out")


def _announcement(trainer: Trainer, folder: RunFolder) -> str:
    chosen = trainer.plan.settings
    weights = sum(weight.numel() for _, weight in trainer.student.dual.learners())
    return (
        f"{chosen.method} on {trainer.source.name}: {len(trainer.source.pool)} samples, {chosen.encoder} "
        f"({weights / 1e6:.2f} M weights), {trainer.steps} steps of {chosen.batch_size}, "
        f"{trainer.arithmetic}, on {trainer.fabric.device}, into {folder.path}"
    )


def _run(trainer: Trainer, folder: RunFolder) -> Run:
    online = trainer.student.dual.online
    return Run(folder, trainer.plan, online, trainer.step, trainer.source.views, trainer.source)


def _finish(trainer: Trainer, folder: RunFolder, observer: Observer) -> Run:
    """Write the encoder, measure it, and call the run done."""
    run = _run(trainer, folder)
    folder.write_encoder(run.encoder)
    run.evaluate(observer)
    folder.set_status("done", trainer.step, trainer.steps)
    return run
