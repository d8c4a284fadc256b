"""Diagnosis: where what was measured meets what the theory says."""

from twofold.doctor.verdict import verdict

__all__ = ["verdict"]
