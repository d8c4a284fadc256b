"""A straight answer to the first question: has it collapsed?"""

import torch

from twofold.evaluation import isotropic_rank
from twofold.records import Geometry, Verdict

SAME = torch.finfo(torch.bfloat16).eps
"""Below this spread, mean cosines are 1 up to a rounding (2⁻⁷) of the coarsest numbers that networks are trained in."""

SHARE_OF_ENTROPY = 0.25


def verdict(features: Geometry, projections: Geometry) -> Verdict:
    """Judge an encoder by its projections, which the objective sees, and its features, which are used.

    Complete collapse is the fixed point f = const of the non-contrastive dynamics (directpred, Sec. 2): all
    projections have one direction. Projections are functions of the features: while they tell samples apart, so
    do the features, and once they do not, nothing is learned any more.

    Dimensional collapse: the features have few directions left, that is less than a quarter of the entropy that
    the spectrum of isotropic noise has for as many samples and dimensions. A quarter is a convention, chosen after
    half had condemned ten perfect clusters and nearly the demo's own encoder (docs/log.md, 2026-11-19).
    """
    reasons = (_sameness(projections), _fullness(features, _few(features)), *_constancy(projections))
    if projections.spread < SAME or projections.effective_rank == 0 or features.effective_rank == 0:
        sentence = "All samples are projected to nearly the same direction: nothing of the data is left to learn from."
        return Verdict("collapsed", sentence, reasons)
    if features.effective_rank < _few(features):
        sentence = "Samples differ from each other, but their features fill only a few of their directions."
        return Verdict("partial", sentence, reasons)
    directions = f"about {features.effective_rank:.0f} of {features.dim} directions"
    return Verdict("alive", f"Samples differ from each other, and their features do so along {directions}.", reasons)


def _few(cloud: Geometry) -> float:
    return float(isotropic_rank(cloud.samples, cloud.dim) ** SHARE_OF_ENTROPY)


def _sameness(cloud: Geometry) -> str:
    cosine = 1 - cloud.spread * cloud.samples / (cloud.samples - 1)  # without that of each with itself
    return f"the projections of two samples have a mean cosine of {cosine:.4f} (collapsed above {1 - SAME:.4f})"


def _fullness(cloud: Geometry, few: float) -> str:
    return (
        f"the features have an effective rank of {cloud.effective_rank:.1f} in {cloud.dim} dimensions "
        f"(few below {few:.1f}, the fourth root of what isotropic noise has)"
    )


def _constancy(cloud: Geometry) -> tuple[str, ...]:
    """Say how much nearer two views of one sample are than two samples."""
    if cloud.alignment is None or cloud.spread == 0:
        return ()
    share = cloud.alignment / (2 * cloud.spread)
    return (f"two views of a sample are {share:.2f} times as far apart as two samples (mean squared distance)",)
