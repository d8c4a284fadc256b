"""The papers as programs: one folder a paper, with its claims, tables and figures."""

from twofold.papers.claim import Claim, Draw, Outcome, verify

__all__ = ["Claim", "Draw", "Outcome", "claims", "verify"]


def claims() -> tuple[Claim, ...]:
    """List the claims of all papers, in the order of the papers."""
    from twofold.papers.alpha_cl.claims import CLAIMS as ALPHA_CL

    return ALPHA_CL
