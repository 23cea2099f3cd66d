"""Seed 004's table: the declared cumulative effect caps the requested confidence.

The controller judges no meaning. A review that declares `supports` keeps its request; the evaluation on
known bugs shows whether it was right.
"""

from __future__ import annotations

from typing import NamedTuple

from viano_assets.phases.investigation.contract import Effect
from viano_assets.phases.wire import Confidence

_CAPPED = frozenset({Confidence.SUPPORTED, Confidence.STRONGLY_SUPPORTED})


class Calibrated(NamedTuple):
    """Both levels, and whether the table changed the requested one."""

    requested: Confidence
    effective: Confidence

    @property
    def capped(self) -> bool:
        """True when the effective level is not the requested one."""
        return self.requested is not self.effective


def calibrate(requested: Confidence, effect: Effect | None) -> Calibrated:
    """Return the effective level of a requested one.

    contradicts: always weakened. neutral or mixed with supported or strongly_supported: plausible.
    Otherwise, and for contracts without a causal review (`effect` None), the requested level.
    """
    if effect is Effect.CONTRADICTS:
        return Calibrated(requested, Confidence.WEAKENED)
    if effect in {Effect.NEUTRAL, Effect.MIXED} and requested in _CAPPED:
        return Calibrated(requested, Confidence.PLAUSIBLE)
    return Calibrated(requested, requested)
