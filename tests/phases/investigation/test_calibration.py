"""Seed 004's table over every requested level and declared effect."""

from __future__ import annotations

import pytest

from viano_assets.phases.investigation.calibration import calibrate
from viano_assets.phases.investigation.contract import Effect
from viano_assets.phases.wire import Confidence

W, U, P, S, SS = Confidence

TABLE = {
    Effect.CONTRADICTS: {W: W, U: W, P: W, S: W, SS: W},
    Effect.NEUTRAL: {W: W, U: U, P: P, S: P, SS: P},
    Effect.MIXED: {W: W, U: U, P: P, S: P, SS: P},
    Effect.SUPPORTS: {W: W, U: U, P: P, S: S, SS: SS},
    None: {W: W, U: U, P: P, S: S, SS: SS},
}


@pytest.mark.parametrize("effect", list(TABLE))
@pytest.mark.parametrize("requested", list(Confidence))
def test_the_declared_effect_caps_the_request_and_nothing_else(
    effect: Effect | None, requested: Confidence
) -> None:
    result = calibrate(requested, effect)
    assert result.requested is requested
    assert result.effective is TABLE[effect][requested]
    assert result.capped is (result.effective is not requested)
