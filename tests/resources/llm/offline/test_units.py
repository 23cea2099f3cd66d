from __future__ import annotations

import pytest

from resources.llm.providers.offline.units import may_mean


@pytest.mark.parametrize(
    ("name", "text", "number", "expected"),
    [
        ("World.TickMs", "wenn man in 100 Minuten fertig ist", "100", False),
        ("Session.IdleMinutes", "wenn man in 100 Minuten fertig ist", "100", True),
        ("Reward.BonusPercent", "20 Prozent Zuschlag", "20", True),
        ("Reward.BonusPercent", "a bonus of 20%", "20", True),
        ("Reward.BonusPercent", "after 20 seconds", "20", False),
        ("Contract.MaxOpen", "five of 20 contracts", "20", True),
        ("World.TickMs", "the value 100", "100", True),
        ("World.TickMs", "no number at all", "100", True),
    ],
)
def test_a_number_means_a_setting_only_in_its_unit(name: str, text: str, number: str, expected: bool) -> None:
    assert may_mean(name, text, number) is expected
