"""Encoders, projectors, and the dual network of an online branch and its target."""

from twofold.networks.dual import EMA, Branch, Dual, Online, Target
from twofold.networks.encoders import ENCODERS, encoder, feature_dim
from twofold.networks.projector import AnyProjector, LinearProjector, NoProjector, Projector
from twofold.networks.resnet import ResNet, resnet18, resnet34, resnet50
from twofold.networks.small import LinearEncoder, convnet, mlp

__all__ = [
    "EMA",
    "ENCODERS",
    "AnyProjector",
    "Branch",
    "Dual",
    "LinearEncoder",
    "LinearProjector",
    "NoProjector",
    "Online",
    "Projector",
    "ResNet",
    "Target",
    "convnet",
    "encoder",
    "feature_dim",
    "mlp",
    "resnet18",
    "resnet34",
    "resnet50",
]
