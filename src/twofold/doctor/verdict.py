"""A straight answer to the first question: has it collapsed?"""

from twofold.records import Geometry, Verdict

SAME_FOR_ALL = 0.01
"""Complete collapse: of the squared length of an embedding, less than one part in a hundred tells samples apart."""
FEW_DIRECTIONS = 3.0
"""Dimensional collapse: fewer directions than four points in general position need."""


def verdict(features: Geometry, projections: Geometry) -> Verdict:
    """Judge an encoder by its features, which are used, and its projections, which the objective sees.

    Complete collapse means that all samples have one direction (spread → 0): the fixed point w = 0 or f = const of
    the non-contrastive dynamics (directpred, Sec. 2). Dimensional collapse means that the samples differ along a
    few directions only (effective rank). The two limits are conventions, stated above, and not fitted.
    """
    clouds = {"projections": projections, "features": features}
    reasons = tuple(_measured(name, cloud) for name, cloud in clouds.items())
    for name, cloud in clouds.items():
        if cloud.spread < SAME_FOR_ALL or cloud.effective_rank == 0:
            return Verdict(
                "collapsed", f"The {name} of all samples are nearly one vector: nothing is left of the data.", reasons
            )
    for name, cloud in clouds.items():
        if cloud.effective_rank < min(FEW_DIRECTIONS, cloud.dim):
            rank = f"{cloud.effective_rank:.1f} of {cloud.dim}"
            return Verdict(
                "partial", f"The {name} differ along {rank} directions only: most of the data is lost.", reasons
            )
    return Verdict("alive", "Samples differ from each other along many directions.", reasons)


def _measured(name: str, cloud: Geometry) -> str:
    return (
        f"{name}: {cloud.spread:.2%} of the squared length tells samples apart, "
        f"along {cloud.effective_rank:.1f} of {cloud.dim} directions (effective rank)"
    )
