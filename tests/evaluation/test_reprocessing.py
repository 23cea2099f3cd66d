"""Forty reprocessings of one case: no revision sees the hypotheses of another."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from resources.session import Session
from tests.support.graph import small_case
from viano_assets.case.reopening import new_revision
from viano_assets.phases.drive import drive
from viano_assets.phases.protocols import DispatchStatus, Phase


@pytest.mark.parametrize("mode", ["joint", "separate"])
def test_a_case_can_be_reprocessed_forty_times(tmp_path: Path, mode: str) -> None:
    """The limit of prior documents is 32, and prompts must stay the same from run to run."""
    home = tmp_path / "home"
    small_case(home, "BUG-1")
    session = Session.open(home, planning_mode=mode)
    rounds = 40 if mode == "separate" else 3
    for number in range(rounds):
        if number:
            new_revision(session.store, "BUG-1", reason="corpus", prior_generations="exclude")
        for phase in (Phase.INTERPRETATION, Phase.HYPOTHESES):
            result = asyncio.run(drive(session.store, session.builders[phase], phase, "BUG-1"))
            assert result.status is DispatchStatus.COMPLETED
    head = session.store.latest("BUG-1")
    assert head.revision == rounds
    for revision in (2, rounds):
        policy = json.loads(session.store.read(head, f"analysis/hypotheses/{revision:04d}/policy.json"))
        assert policy["prior_generations"] == "exclude"
    first, last = (
        json.loads(session.store.read(head, f"analysis/hypotheses/{revision:04d}/hypotheses.json"))
        for revision in (2, rounds)
    )
    assert [item["title"] for item in first["hypotheses"]] == [item["title"] for item in last["hypotheses"]]
