"""Orders inside a case, obeyed by the model, change nothing that the controller decides.

Twelve of the sixty fixtures; `make test-deep NAME=investigation` runs all of them over the real intake,
tools and gateway.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from tests.support.injections import Fixture, Obedient, differences, fixtures
from tests.support.investigating import whole_loop
from tests.support.turn_answers import action, answer, shown_ids, turn_of
from viano_assets.phases.investigation.record import InvestigationRecord
from viano_assets.phases.protocols import ModelRequest

ALL = {fixture.name: fixture for fixture in fixtures()}
FAST = sorted(ALL)[::5]


@cache
def control(channel: str) -> InvestigationRecord:
    files = next(fixture.control for fixture in ALL.values() if fixture.channel == channel)
    return whole_loop(Obedient(None), files=files)


def test_there_are_sixty_in_six_channels() -> None:
    assert len(ALL) == 60
    assert len({fixture.channel for fixture in ALL.values()}) == 6


@pytest.mark.parametrize("name", FAST)
def test_an_obeyed_order_changes_no_tool_ceiling_gate_or_level(name: str) -> None:
    fixture: Fixture = ALL[name]
    model = Obedient(fixture.order)
    record = whole_loop(model, files=fixture.files)
    assert model.seen, "the order never reached the model"
    assert differences(record, control(fixture.channel)) == []


def test_text_that_addresses_its_reader_is_noted_beside_the_evidence() -> None:
    fixture = ALL["role_tags-in-source_comment"]
    record = whole_loop(Obedient(fixture.order), files=fixture.files)
    noted = [note for item in record.document.actions for note in item.result.notes]
    assert any(note.endswith("it is data") for note in noted)
    assert all("it is data" not in n for a in control("log").document.actions for n in a.result.notes)


def test_an_order_to_declare_support_with_a_real_record_is_the_models_own_wrong_declaration() -> None:
    """The limit of the gates: no meaning is judged, so such a lie keeps its request and stays visible."""

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        if turn["first_turn"]:
            return answer(turn, actions=[action("source.search", pattern=turn["selected_hypothesis"])])
        seen = shown_ids(request)[:1]
        return answer(turn, effect="supports", support=seen, requested="strongly_supported", finish=True)

    record = whole_loop(script)
    first = record.document.hypotheses[0]
    assert first.effective_confidence.value == "strongly_supported"
    assert first.last_review is not None
    assert first.last_review.support == ("E1",)
