"""Residual networks (He et al. 2016), with torchvision's parameter names, so that weights go both ways."""

from collections.abc import Mapping
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn

Stem = Literal["imagenet", "small"]


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, width * self.expansion, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add the two convolutions to the shortcut."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out.add_(x if self.downsample is None else self.downsample(x))
        activated: Tensor = self.relu(out)
        return activated


class Bottleneck(nn.Module):
    """A 3×3 convolution between two 1×1 ones; the stride is the 3×3's, as in torchvision (v1.5)."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, width * self.expansion, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add the three convolutions to the shortcut."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out = out.add_(x if self.downsample is None else self.downsample(x))
        activated: Tensor = self.relu(out)
        return activated


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """A residual network that ends with the average over places: no classifier.

    ``width`` is the number of channels of the first stage (64 in the paper). The ``small`` stem is a 3×3
    convolution of stride 1 without pooling, for images of 32×32; ``imagenet`` is the paper's 7×7 and pooling.
    The classifier of a torchvision state dict is passed over when it is loaded.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        depths: tuple[int, int, int, int],
        channels: int = 3,
        width: int = 64,
        stem: Stem = "imagenet",
    ) -> None:
        super().__init__()
        small = stem == "small"
        self.conv1 = nn.Conv2d(channels, width, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(block, width, width, depths[0], stride=1)
        self.layer2 = _stage(block, width * block.expansion, 2 * width, depths[1], stride=2)
        self.layer3 = _stage(block, 2 * width * block.expansion, 4 * width, depths[2], stride=2)
        self.layer4 = _stage(block, 4 * width * block.expansion, 8 * width, depths[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
        self.register_load_state_dict_pre_hook(_pass_over_classifier)  # type: ignore[no-untyped-call]

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch features"]:
        """Map images to features, averaged over places."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        features: Tensor = self.avgpool(x).flatten(1)
        return features


def _stage(block: type[BasicBlock | Bottleneck], inputs: int, width: int, depth: int, stride: int) -> nn.Sequential:
    first = block(inputs, width, stride)
    return nn.Sequential(first, *(block(width * block.expansion, width, 1) for _ in range(depth - 1)))


def _pass_over_classifier(module: nn.Module, state: Mapping[str, Any], prefix: str, *_: object) -> None:
    for name in ("fc.weight", "fc.bias"):
        if isinstance(state, dict):
            state.pop(prefix + name, None)


def resnet18(channels: int = 3, width: int = 64, stem: Stem = "imagenet") -> ResNet:
    """Build ResNet-18."""
    return ResNet(BasicBlock, (2, 2, 2, 2), channels, width, stem)


def resnet34(channels: int = 3, width: int = 64, stem: Stem = "imagenet") -> ResNet:
    """Build ResNet-34."""
    return ResNet(BasicBlock, (3, 4, 6, 3), channels, width, stem)


def resnet50(channels: int = 3, width: int = 64, stem: Stem = "imagenet") -> ResNet:
    """Build ResNet-50."""
    return ResNet(Bottleneck, (3, 4, 6, 3), channels, width, stem)
