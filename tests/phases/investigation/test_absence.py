"""Typed absence: an empty result from an incomplete look supports and contradicts nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.investigating import one_dispatch, whole_loop
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_case import SmallToolFactory, prepared
from tests.support.turn_answers import action, answer, shown_ids, turn_of
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.protocols import DispatchStatus

MISSING_ROW = action("db.rows", table="stage", column="contract", value="99")
MISSING_LINE = action("log.search", pattern="no such line")


def script_of(look: dict[str, Any], side: str) -> Any:
    def script(request: Any) -> Any:
        turn = turn_of(request)
        if turn["first_turn"]:
            return answer(turn, actions=[look])
        if turn["selected_hypothesis"] != "H1":
            return answer(turn, finish=True)
        effect = "supports" if side == "support" else "contradicts"
        cited: Any = {side: shown_ids(request)[:1]}
        return answer(turn, effect=effect, requested="supported", finish=True, **cited)

    return script


@pytest.mark.parametrize("side", ["support", "against"])
@pytest.mark.parametrize(
    ("look", "tools"),
    [
        (MISSING_ROW, SmallToolFactory(partial=frozenset({"stage"}))),
        (MISSING_LINE, SmallToolFactory(truncated=True)),
    ],
    ids=["filtered_extract", "truncated_log"],
)
def test_an_incomplete_absence_is_refused_on_either_side(
    look: dict[str, Any], tools: SmallToolFactory, side: str
) -> None:
    store = MemoryStore()
    prepared(store)
    for _ in range(3):
        assert one_dispatch(store, ScriptedGateway(script_of(look, side)), tools=tools).code == ""
    result = one_dispatch(store, ScriptedGateway(script_of(look, side)), tools=tools)
    assert result.status is DispatchStatus.ERROR
    assert "void_absence" in result.message


@pytest.mark.parametrize("look", [MISSING_ROW, MISSING_LINE], ids=["whole_table", "whole_log"])
def test_a_complete_absence_is_evidence(look: dict[str, Any]) -> None:
    record = whole_loop(script_of(look, "support"), InvestigationConfig())
    assert record.document.hypotheses[0].effective_confidence.value == "supported"


def test_an_unavailable_source_brings_nothing_to_cite() -> None:
    look = action("source.read", path="gone.cpp", line_start=1, line_end=2)
    store = MemoryStore()
    prepared(store)

    def script(request: Any) -> Any:
        turn = turn_of(request)
        assert shown_ids(request) == []
        return answer(turn, actions=[look] if turn["first_turn"] else [], finish=not turn["first_turn"])

    record = whole_loop(script)
    first = record.document.actions[0]
    assert (first.result.completeness.value, first.result.cause) == ("unavailable", "no_such_file")
    assert first.reward == 0
    assert "look_limited" in {item.kind for item in record.document.not_examined}
