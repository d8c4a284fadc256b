"""Everything that a run is made of, in one typed record: the source of Python, YAML and the flags."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticSerializationError

from twofold.data import VIEW_PRESETS, Views
from twofold.errors import BadInput, unknown
from twofold.methods import AXES, Method, method, methods
from twofold.networks import AnyProjector, Projector, Target
from twofold.objectives import Objective, Pairing
from twofold.predictors import AnyPredictor
from twofold.records import STRICT
from twofold.training.optimizers import AdamW, Optimizer

Count = Annotated[int, Field(ge=1)]
DEFAULT_METHOD = "simclr"
DEFAULT_EPOCHS = 10


@dataclass(frozen=True, config=STRICT, kw_only=True)
class TrainSettings:
    """Train a representation from unlabelled data.

    examples:
      twofold train
      twofold train --method byol --data cifar10 --encoder resnet18 --width 16 --epochs 2
      twofold train --data ./photos --image-size 96 --views byol
      twofold train --method byol --predictor linear --target.decay 0.99 --steps 500
      twofold train --resume --out runs/simclr-digits-1
    """

    objective: Objective
    predictor: AnyPredictor
    target: Target
    views: Views | None = None
    method: str = DEFAULT_METHOD
    """A row of `twofold methods`; gives objective, predictor, target and views, which flags may change."""
    data: str = "digits"
    """A data set's name, a folder of images, or a .npy, .npz or .parquet of vectors."""
    data_root: str | None = None
    """Where known data sets are looked for; None: $TWOFOLD_DATA, then the cache."""
    image_size: Annotated[int, Field(ge=8, le=1024)] | None = None
    """Side to which a folder's images are brought once; None: 64."""
    encoder: str = "auto"
    """convnet, resnet18, resnet34, resnet50, mlp, linear or timm:NAME; auto: convnet for images, mlp for vectors."""
    width: Annotated[int, Field(ge=1, le=2**14)] | None = None
    """Channels of the first stage, or hidden units; None: the encoder's own."""
    stem: Literal["auto", "imagenet", "small"] = "auto"
    """First layers of a ResNet; auto: small below 64 pixels."""
    projector: AnyProjector = Projector()
    epochs: Count | None = None
    """Passes through the data; None: 10, unless steps are given."""
    steps: Count | None = None
    """Steps of the optimiser, instead of epochs."""
    batch_size: Annotated[int, Field(ge=2)] = 128
    """Samples a step, each in two views."""
    optimizer: Optimizer = AdamW()
    lr: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Learning rate at its highest; None: the optimiser's usual one."""
    schedule: Literal["constant", "cosine"] = "cosine"
    """What the learning rate does after warming up."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Share of the steps in which the learning rate rises."""
    clip: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Greatest norm of the gradient; None: no clipping."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Arithmetic of the networks; auto: what a quick probe finds fastest, memory layout included."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the initial weights, the order of the data and the views."""
    checkpoint_seconds: Annotated[float, Field(ge=0)] = 30.0
    """Seconds between checkpoints; 0: one at every step."""
    watch_every: Count | None = None
    """Steps between looks at kNN and effective rank; None: a twentieth of the run, at least 50."""

    def __post_init__(self) -> None:
        """Refuse a run with two lengths."""
        if self.epochs is not None and self.steps is not None:
            raise BadInput(f"give either epochs ({self.epochs}) or steps ({self.steps}), not both")
        if isinstance(self.objective, Pairing) and self.objective.fewest > self.batch_size:
            raise BadInput(
                f"objective.negatives {self.objective.negatives} needs a batch of at least {self.objective.fewest}, "
                f"not {self.batch_size}"
            )

    @property
    def highest_lr(self) -> float:
        """The learning rate after warming up."""
        return self.optimizer.usual_lr if self.lr is None else self.lr


_ADAPTER: TypeAdapter[TrainSettings] = TypeAdapter(TrainSettings)
AXES_OF_A_RUN: dict[str, Any] = {**AXES, "projector": AnyProjector, "optimizer": Optimizer}
"""Fields that hold a member of a room, told apart by its ``kind``."""


def members(axis: str) -> dict[str, type]:
    """List the kinds that an axis can have, and their classes."""
    return kinds_of(AXES_OF_A_RUN[axis])


def kinds_of(annotation: Any) -> dict[str, type]:
    """List the members of a room's union by their kinds; none for any other annotation."""
    union = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    choices: list[Any] = [choice for choice in get_args(union) if dataclasses.is_dataclass(choice)]
    return {choice.__dataclass_fields__["kind"].default: choice for choice in choices}


def settings(given: Mapping[str, Any]) -> TrainSettings:
    """Check what was given, and take the rest from its method and from the defaults.

    An axis may be given whole, by its name (``predictor: linear``, ``views: cifar``), or in part
    (``target: {decay: 0.99}``); the parts that are not given are the method's own where the kind is the same.
    """
    chosen = given.get("method", DEFAULT_METHOD)
    point = chosen if isinstance(chosen, Method) else _point(str(chosen), given)
    values = {name: value for name, value in {**point.recipe, **given}.items() if name not in AXES_OF_A_RUN}
    values["method"] = point.name
    for axis, default in _defaults(point).items():
        values[axis] = _axis(axis, given.get(axis), default)
    try:
        chosen_settings = _ADAPTER.validate_python(values)
    except ValidationError as invalid:
        raise BadInput(_sentence(invalid)) from invalid
    as_mapping(chosen_settings)  # what cannot be written down is refused before anything is done
    return chosen_settings


def _point(name: str, given: Mapping[str, Any]) -> Method:
    """Find a row of the zoo; a method of somebody's own is known by its axes, which its run has written down."""
    axes = {axis: given.get(axis) for axis in ("objective", "predictor", "target")}
    if name in {row.name for row in methods()} or not all(isinstance(axis, Mapping) for axis in axes.values()):
        return method(name)
    return dataclasses.replace(methods()[0], name=name)


def _defaults(point: Method) -> dict[str, Any]:
    """Take each axis from the method, from its recipe, or from the settings' own defaults."""
    usual = {field.name: field.default for field in dataclasses.fields(TrainSettings)}
    usual |= {axis: _axis(axis, wish, None) for axis, wish in point.recipe.items() if axis in AXES_OF_A_RUN}
    built = {axis: TypeAdapter(AXES_OF_A_RUN[axis]).validate_python(usual[axis]) for axis in ("optimizer", "projector")}
    return {axis: getattr(point, axis, built.get(axis)) for axis in AXES_OF_A_RUN}


def _axis(axis: str, given: Any, default: Any) -> Any:
    """Turn what was given of an axis into the whole of it."""
    if given is None:
        return default
    kind = given.get("kind") if isinstance(given, Mapping) else given
    if axis == "views" and isinstance(kind, str) and kind in VIEW_PRESETS:
        parts = {} if isinstance(given, str) else given
        default, given = VIEW_PRESETS[kind], {**parts, "kind": VIEW_PRESETS[kind].kind}
    if axis == "views" and default is None and isinstance(given, Mapping) and kind is None:
        raise BadInput(f"say which views before their parts: --views {', '.join(VIEW_PRESETS)}")
    return _chosen(axis, given, default, members(axis))


def _chosen(place: str, given: Any, default: Any, kinds: Mapping[str, type]) -> Any:
    """Turn a kind, or some parts of a member, into the whole member; a member may hold others."""
    parts: Any = {"kind": given} if isinstance(given, str) else given
    if not isinstance(parts, Mapping):
        return parts
    kind = parts.get("kind", getattr(default, "kind", None))
    if not isinstance(kind, str) or kind not in kinds:
        raise unknown(place, kind, VIEW_PRESETS if place == "views" else kinds)
    known = {field.name: field for field in dataclasses.fields(kinds[kind])}
    same = default if getattr(default, "kind", None) == kind else None
    whole = {} if same is None else dataclasses.asdict(same)
    for name, part in parts.items():
        if name not in known:
            raise unknown(f"setting of {place} {kind}", name, known)
        inner = kinds_of(known[name].type)
        if inner:
            part = _chosen(f"{place}.{name}", part, getattr(same, name, known[name].default), inner)
        whole = overlay(whole, {name: part})
    return whole | {"kind": kind}


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay some settings over others, part by part; where the kind changes, nothing shows through."""
    merged = dict(below)
    for name, part in above.items():
        held = merged.get(name)
        if isinstance(held, Mapping) and isinstance(part, str):
            part = {"kind": part}
        if isinstance(held, str) and isinstance(part, Mapping):
            held = {"kind": held}
        if isinstance(held, Mapping) and isinstance(part, Mapping) and _same_kind(held, part):
            part = overlay(held, part)
        merged[name] = part
    return merged


def _same_kind(held: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return bool(part.get("kind", held.get("kind")) == held.get("kind"))


def _sentence(invalid: ValidationError) -> str:
    """Say what is wrong first, in one sentence."""
    error = invalid.errors()[0]
    name, value, context = _flag(error["loc"]), error["input"], error.get("ctx", {})
    if error["type"] == "missing":
        return f"{name} must be given"
    if error["type"] == "unexpected_keyword_argument":
        fields = [field.name for field in dataclasses.fields(TrainSettings)]
        return str(unknown("setting", name, fields))
    if error["type"] == "literal_error":
        allowed = [choice.strip("'") for choice in re.findall(r"'[^']*'", context["expected"])]
        return str(unknown(name, value, allowed))
    if error["type"] == "value_error":
        said = error["msg"].removeprefix("Value error, ")
        return f"{name}: {said}" if name else said
    wish = error["msg"].removeprefix("Input ").removeprefix("should be ")
    return f"{name} must be {wish[0].lower()}{wish[1:]}, not {value!r}"


def _flag(location: tuple[int | str, ...]) -> str:
    """Name the flag at fault: of the way to an error, the fields, and neither the kinds nor the choices of a union."""
    names: list[str] = []
    fields: Mapping[str, Any] = AXES_OF_A_RUN
    kinds: Mapping[str, type] = {}
    for part in map(str, location):
        if part in kinds:
            fields = _annotations(kinds[part])
        elif part in fields or part.isdecimal() or not names:
            names.append(part)
            kinds = kinds_of(fields.get(part))
            fields = _annotations(fields.get(part)) or fields
    return ".".join(names)


def _annotations(record: Any) -> dict[str, Any]:
    return {field.name: field.type for field in dataclasses.fields(record)} if dataclasses.is_dataclass(record) else {}


def as_mapping(settings: TrainSettings) -> dict[str, Any]:
    """Write settings as plain values, for YAML and JSON."""
    try:
        plain: dict[str, Any] = _ADAPTER.dump_python(settings, mode="json")
    except PydanticSerializationError as unwritable:
        raise BadInput(
            "a run writes its settings down, and no file can hold a function of your own: "
            "use such an objective in a loop of your own"
        ) from unwritable
    return plain
