"""`case_view`: the keys programs rely on, filled as far as the case has come."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.diagnosis_answers import confirmed, inconclusive
from tests.support.harbour_case import CASE, HYPOTHESES, INTERPRETATION, analyse, received, reopened
from tests.support.memory_store import MemoryStore
from tests.support.planning import SEPARATE
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.case.lifecycle import stage_of
from viano_assets.cli.render import state_words
from viano_assets.package.model import Change
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.inputs import Inputs
from viano_assets.phases.diagnosis.view import case_view, evidence_records
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]

KEYS = {
    "case_id", "package_id", "analysis_revision", "partition_key", "generation", "state", "diagnosis",
    "localisation", "hypotheses", "evidence", "spend", "not_examined", "deciding_question",
}  # fmt: skip


def test_before_any_phase_everything_is_empty() -> None:
    store = MemoryStore()
    head = received(store)
    view = case_view(store, head, 1)
    assert view.keys() >= KEYS
    assert (view["state"], view["partition_key"]) == ("ASSEMBLED", "BERTH-3@r1")
    assert view["diagnosis"] is None
    assert view["deciding_question"] is None
    assert view["localisation"] == {"files": [], "symbols": [], "rows": []}
    assert view["hypotheses"] == view["evidence"] == view["not_examined"] == []
    assert view["spend"] == {"units": 0, "tokens_in": 0, "tokens_out": 0, "cost": 0.0, "seconds": 0.0}
    json.dumps(view, allow_nan=False)


def test_a_confirmed_case_is_diagnosed_also_when_nobody_asked_for_a_change_request(
    prepared: Prepared,
) -> None:
    """The state stays that of the phase, so that a case that had its answer read "in diagnosis" for ever."""
    store, _, names = prepared
    head = asyncio.run(DiagnosisBuilder(store, ScriptedGateway([confirmed(names)])).build(CASE)).head
    view = case_view(store, head, 1)
    assert (view["state"], view["stage"]) == ("BUILDING_DIAGNOSIS", "DIAGNOSED")
    before = [checkpoint for checkpoint in head.checkpoints if checkpoint.event != "diagnosis_published"]
    assert stage_of("BUILDING_DIAGNOSIS", before, 1) == "BUILDING_DIAGNOSIS"
    assert stage_of("BUILDING_DIAGNOSIS", head.checkpoints, 2) == "BUILDING_DIAGNOSIS"
    assert state_words(view["stage"]) == "cause confirmed"


def test_hypotheses_before_the_investigation() -> None:
    store = MemoryStore()
    received(store)
    asyncio.run(CaseInterpreter(store, ScriptedGateway([INTERPRETATION]), SEPARATE).build(CASE))
    head = asyncio.run(HypothesisBuilder(store, ScriptedGateway([HYPOTHESES])).build(CASE)).head
    items = case_view(store, head, 1)["hypotheses"]
    assert [item["id"] for item in items] == ["H1", "H2", "H3"]
    assert items[0]["effective_confidence"] == "unassessed"
    assert items[0]["verdict"] is None


def test_after_the_investigation_the_reviews_stand_in(prepared: Prepared) -> None:
    store, inputs, _ = prepared
    view = case_view(store, store.latest(CASE), 1)
    assert (view["state"], view["stage"]) == ("INVESTIGATING_HYPOTHESES", "INVESTIGATED")
    assert view["hypotheses"][0]["support"]
    assert view["hypotheses"][0]["effective_confidence"] == "supported"
    assert [e["evidence_id"] for e in view["evidence"]] == list(inputs.records)
    assert view["spend"]["units"] == inputs.budget.net_spent > 0


def test_confirmed_view(prepared: Prepared) -> None:
    store, _, names = prepared
    head = asyncio.run(DiagnosisBuilder(store, ScriptedGateway([confirmed(names)])).build(CASE)).head
    view = case_view(store, head, 1)
    diagnosis = view["diagnosis"]
    assert diagnosis.keys() >= {
        "status", "inconclusive_kind", "selected_hypothesis", "confidence", "requested_confidence",
        "root_cause", "remaining_uncertainty", "review_actions",
    }  # fmt: skip
    assert diagnosis["root_cause"].keys() == {"summary", "technical_description", "evidence_ids"}
    first = view["evidence"][0]
    assert first["evidence_id"] == names["Berth::release"]
    assert first.keys() >= {
        "evidence_id", "tool", "path", "line_start", "line_end", "table", "excerpt", "completeness",
    }  # fmt: skip
    assert (first["path"], first["line_start"], first["cited"]) == ("src/berth.cpp", 11, True)
    assert "moored_ = false;" in first["excerpt"]
    assert [e["cited"] for e in view["evidence"]] == sorted(
        (e["cited"] for e in view["evidence"]), reverse=True
    )
    assert view["localisation"]["files"][0].keys() == {"path", "basis", "evidence_ids"}
    assert view["localisation"]["symbols"][0].keys() == {"path", "symbol", "line_start", "line_end", "basis"}
    assert view["localisation"]["rows"][0].keys() == {"table", "key", "column", "basis"}
    assert view["hypotheses"][0]["verdict"] == "supported"


@pytest.mark.parametrize("answers", [1, 3])
def test_inconclusive_view_still_has_places_evidence_and_a_question(prepared: Prepared, answers: int) -> None:
    store, _, names = prepared
    script = [inconclusive(names)] if answers == 1 else [{"no": "answer"}] * 3
    builder = DiagnosisBuilder(store, ScriptedGateway(script))
    for _ in range(answers):
        asyncio.run(builder.build(CASE))
    view = case_view(store, store.latest(CASE), 1)
    assert (view["state"], view["routing"]) == ("FAILED_TO_ANALYZE", "review")
    assert view["localisation"]["files"]
    assert view["evidence"][0]["excerpt"]
    assert view["evidence"][0]["path"] or view["evidence"][0]["table"]
    assert view["deciding_question"]


def test_an_earlier_revision_stays_readable(prepared: Prepared) -> None:
    store, inputs, names = prepared
    asyncio.run(DiagnosisBuilder(store, ScriptedGateway([inconclusive(names)])).build(CASE))
    reopened(store)
    asyncio.run(analyse(store, CASE))
    head = store.latest(CASE)
    old, new = case_view(store, head, 1), case_view(store, head, 2)
    assert (old["state"], new["state"]) == ("FAILED_TO_ANALYZE", "INVESTIGATING_HYPOTHESES")
    assert old["diagnosis"]["inconclusive_kind"] == "undecided"
    assert new["diagnosis"] is None
    assert old["partition_key"] == "BERTH-3@r1"
    assert len(evidence_records(store, head, 1)) == len(inputs.records)


def test_spend_sums_the_recorded_rounds(prepared: Prepared) -> None:
    store, _, _ = prepared
    spend = {
        "calls": 1,
        "tokens_in": 10,
        "tokens_cached": 0,
        "tokens_out": 3,
        "cost": "0.25",
        "unpriced": 0,
        "unknown": 0,
        "milliseconds": 1500,
    }
    views = []
    for unpriced in (0, 1):
        change = Change(event="model_round_recorded", detail={"spend": {**spend, "unpriced": unpriced}})
        store.commit(store.latest(CASE), change)
        views.append(case_view(store, store.latest(CASE), 1)["spend"])
    assert [view["cost"] for view in views] == [0.25, None], "an unknown price is never shown as nothing"
    assert (views[1]["tokens_in"], views[1]["tokens_out"], views[1]["seconds"]) == (20, 6, 3.0)
