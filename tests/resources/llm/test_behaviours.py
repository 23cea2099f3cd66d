"""Every behaviour that does not wait for a deadline, at alternating positions; the rest is in tests/deep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.behaviour_run import POSITIONS, WAITING, Figures, run
from tests.support.provider_behaviours import Behaviour, behaviours

QUICK = [b for b in behaviours() if b.code not in WAITING and "{" not in b.settings.get("base_url", "")]


def test_there_are_at_least_sixty_behaviours_with_names_of_their_own() -> None:
    names = [behaviour.name for behaviour in behaviours()]
    assert len(names) == len(set(names)) >= 60


@pytest.mark.parametrize(("number", "behaviour"), list(enumerate(QUICK)), ids=[b.name for b in QUICK])
def test_a_behaviour_is_classified_booked_once_and_leaks_no_key(
    tmp_path: Path, number: int, behaviour: Behaviour
) -> None:
    sums = Figures()
    run(behaviour, POSITIONS[number % 3], tmp_path, {}, sums)
    assert sums.wrong == []
    assert sums.requests == sums.ledger_entries
    assert (sums.duplicates, sums.canary_leaks) == (0, 0)
