"""Small encoders: four convolutions, a perceptron, and the linear map of the theory."""

from jaxtyping import Float
from torch import Tensor, nn


def convnet(channels: int = 3, width: int = 32) -> nn.Sequential:
    """Four 3×3 convolutions with BatchNorm, each twice as wide as the one before; the first and third halve the image.

    The first halves it because the cost is there, the last does not because the average over places is better for it
    (docs/log.md, 2026-11-19).
    """
    widths = (width, 2 * width, 4 * width, 8 * width)
    stages: list[nn.Module] = []
    for inputs, outputs, stride in zip((channels, *widths), widths, (2, 1, 2, 1), strict=False):
        stages += [
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def mlp(inputs: int, width: int = 512) -> nn.Sequential:
    """Two hidden layers with BatchNorm and ReLU; images are flattened."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(inputs, width, bias=False),
        nn.BatchNorm1d(width),
        nn.ReLU(inplace=True),
        nn.Linear(width, width, bias=False),
        nn.BatchNorm1d(width),
        nn.ReLU(inplace=True),
    )


class LinearEncoder(nn.Module):
    """f = W x, the encoder of the linear theory (directpred, Sec. 3); images are flattened."""

    def __init__(self, inputs: int, width: int = 64) -> None:
        super().__init__()
        self.map = nn.Linear(inputs, width, bias=False)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch features"]:
        """Multiply."""
        features: Tensor = self.map(x.flatten(1))
        return features
