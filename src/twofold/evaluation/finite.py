"""The one thing asked of every embedding: that it is made of numbers."""

from jaxtyping import Float
from torch import Tensor

from twofold.errors import BadInput


def finite(points: Float[Tensor, "n dim"]) -> Float[Tensor, "n dim"]:
    """Return the points, or refuse them where an entry is NaN or infinite."""
    bad = (~points.isfinite()).any(dim=1)
    if bad.any():
        raise BadInput(
            f"embeddings must be finite, and {int(bad.sum())} of {len(points)} rows have NaN or infinite entries, "
            f"first row {int(bad.nonzero()[0, 0])}"
        )
    return points
