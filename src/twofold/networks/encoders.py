"""Encoders by name, for samples of a given shape."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

from twofold.errors import BadInput, unknown
from twofold.networks.resnet import Stem, resnet18, resnet34, resnet50
from twofold.networks.small import LinearEncoder, convnet, mlp

ENCODERS = ("convnet", "resnet18", "resnet34", "resnet50", "mlp", "linear")
_RESNETS: dict[str, Callable[..., nn.Module]] = {
    "resnet18": resnet18,
    "resnet34": resnet34,
    "resnet50": resnet50,
}
_SMALL_IMAGE = 64


def encoder(
    name: str,
    shape: tuple[int, ...],
    width: int | None = None,
    stem: Literal["auto", "imagenet", "small"] = "auto",
) -> nn.Module:
    """Build the encoder ``name`` for samples of this shape: (channels, height, width), or (dim,) for vectors.

    ``width`` is the number of channels of the first stage, or of hidden units, None the encoder's own. The
    ``stem`` of a ResNet is ``small`` below 64 pixels unless it is said. ``timm:NAME`` builds timm's NAME.
    """
    if name.startswith("timm:"):
        return _from_timm(name.removeprefix("timm:"), shape)
    if name not in ENCODERS:
        raise unknown("encoder", name, (*ENCODERS, "timm:NAME"))
    if width is not None and width < 1:
        raise BadInput(f"the width of an encoder must be at least 1, not {width}")
    if stem != "auto" and name not in _RESNETS:
        raise BadInput(f"only the residual networks have a stem to choose, not '{name}'")
    size: dict[str, Any] = {} if width is None else {"width": width}
    if name == "mlp":
        return mlp(inputs=torch.Size(shape).numel(), **size)
    if name == "linear":
        return LinearEncoder(inputs=torch.Size(shape).numel(), **size)
    if len(shape) != 3:
        raise BadInput(f"'{name}' encodes images, and these samples are vectors: allowed are mlp and linear")
    if name == "convnet":
        return convnet(shape[0], **size)
    chosen: Stem = stem if stem != "auto" else "small" if max(shape[1:]) < _SMALL_IMAGE else "imagenet"
    return _RESNETS[name](channels=shape[0], stem=chosen, **size)


def _from_timm(name: str, shape: tuple[int, ...]) -> nn.Module:
    try:
        import timm  # an optional guest
    except ImportError as absent:
        raise BadInput(f"'timm:{name}' needs timm, which is not installed: pip install 'twofold[timm]'") from absent
    if len(shape) != 3:
        raise BadInput(f"'timm:{name}' encodes images, and these samples are vectors: allowed are mlp and linear")
    if not timm.is_model(name):
        raise unknown("timm encoder", name, timm.list_models())
    model: nn.Module = timm.create_model(name, pretrained=False, num_classes=0, in_chans=shape[0])
    return model


@torch.no_grad()
def feature_dim(encoder: nn.Module, shape: tuple[int, ...]) -> int:
    """Find how many features an encoder gives for samples of this shape, by asking it once.

    It is asked in evaluation mode, so neither its statistics nor any random state moves.
    """
    mode = {part: part.training for part in encoder.modules()}
    try:
        device = next((weight.device for weight in encoder.parameters()), torch.device("cpu"))
        features = encoder.eval()(torch.zeros(2, *shape, device=device))
    except Exception as failure:
        raise BadInput(f"the encoder does not take samples of shape {shape}: {failure}") from failure
    finally:
        for part, training in mode.items():
            part.training = training
    if not isinstance(features, torch.Tensor) or features.ndim != 2 or len(features) != 2:
        found = tuple(features.shape) if isinstance(features, torch.Tensor) else type(features).__name__
        raise BadInput(f"an encoder must map a batch to a matrix of features (batch, features), not to {found}")
    return features.shape[1]
