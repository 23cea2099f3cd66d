"""R10: twelve clocks, and every decision that depends on time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock_settings import DECISIONS, SETTINGS, Setting, play


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
@pytest.mark.parametrize("decision", DECISIONS)
def test_no_clock_decides_an_order_or_holds_a_case(decision: str, setting: Setting, tmp_path: Path) -> None:
    assert play(decision, setting, tmp_path) == []
