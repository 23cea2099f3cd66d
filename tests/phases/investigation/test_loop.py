"""One whole investigation with a scripted model and real looks."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_case import SmallToolFactory, prepared
from tests.support.turn_answers import action, answer, shown_ids, turn_of
from viano_assets.phases.drive import drive
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.investigation.record import InvestigationRecord
from viano_assets.phases.protocols import DispatchStatus, ModelRequest, Phase

FIRST = {
    "H1": action("source.search", pattern="register_hook"),
    "H2": action("db.rows", table="stage", column="contract", value="41"),
    "H3": action("log.search", pattern="max_stage"),
}


def sensible(request: ModelRequest) -> dict[str, Any]:
    """H1 is contradicted by the hook that exists; H2 is shown by the missing row and counterchecked."""
    turn = turn_of(request)
    selected = turn["selected_hypothesis"]
    if turn["first_turn"]:
        return answer(turn, actions=[FIRST[selected]])
    seen = shown_ids(request)
    if selected == "H1":
        return answer(turn, effect="contradicts", against=seen[:1], finish=True, score=80)
    if selected == "H2":
        looks = [
            action("db.rows", table="stage", column="step", value="drop", countercheck_of="H3"),
        ]
        done = any(item["countercheck_of"] for h in request.sections("history") for item in h["actions"])
        return answer(
            turn,
            effect="supports",
            support=seen[1:3],
            requested="strongly_supported",
            actions=() if done else looks,
            finish=done,
            score=90,
        )
    return answer(turn, effect="neutral", refs=seen[:1], requested="plausible", finish=True, score=30)


def test_a_whole_loop_ends_confident_and_publishes_everything() -> None:
    store = MemoryStore()
    prepared(store)
    gateway = ScriptedGateway(sensible)
    builder = InvestigationBuilder(store, gateway, InvestigationConfig(), SmallToolFactory())
    result = asyncio.run(drive(store, builder, Phase.INVESTIGATION, "CASE-1"))
    assert result.status is DispatchStatus.COMPLETED, result.message
    record = InvestigationRecord.load(store, result.head)
    ends = {
        h.hypothesis_id: (h.terminal_reason, h.effective_confidence.value) for h in record.document.hypotheses
    }
    assert record.document.reason == "confident"
    assert ends["H1"] == ("abandoned", "weakened")
    assert ends["H2"] == ("finished", "strongly_supported")
    assert ends["H3"] == ("finished", "plausible")
    assert record.budget.settled
    text = store.read(result.head, "analysis/investigation/0001/investigation.md").decode()
    assert "confident" in text
    again = asyncio.run(builder.build("CASE-1"))
    assert again.replayed
    assert again.head.generation == result.head.generation
