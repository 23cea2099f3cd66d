"""From a confirmed diagnosis to an output that is announced exactly once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.crashing_store import Crash, CrashingStore
from tests.support.diagnosis_answers import Json, changed, confirmed, evaluation, inconclusive, inputs_of
from tests.support.harbour_case import CASE, World, copy_of, finished_store, investigated
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.case.outbox import acknowledge, entries, pending_entries
from viano_assets.errors import BlockedError, ContractError, InputError, NewerFormatError
from viano_assets.package.model import Change, Overlay
from viano_assets.phases.change_request.builder import ChangeRequestBuilder
from viano_assets.phases.change_request.contract import ChangeRequest
from viano_assets.phases.change_request.policy import confirmed_ids
from viano_assets.phases.change_request.rules import check_output, check_request
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.published import AcceptedDiagnosis, load_diagnosis
from viano_assets.phases.protocols import DispatchStatus, PhaseResult

FOLDER = "analysis/change_request/0001"
Case = tuple[MemoryStore, dict[str, str]]


@pytest.fixture
def case() -> Case:
    store = copy_of(finished_store())
    return store, inputs_of(store, store.latest(CASE))[1]


def diagnosed(case: Case, answer: Json | None = None) -> MemoryStore:
    store, names = case
    reply = confirmed(names) if answer is None else answer
    result = asyncio.run(DiagnosisBuilder(store, ScriptedGateway([reply])).build(CASE))
    assert result.status is DispatchStatus.COMPLETED, result
    return store


def build(store: Any) -> PhaseResult:
    return asyncio.run(ChangeRequestBuilder(store).build(CASE))


def request_of(store: MemoryStore) -> tuple[ChangeRequest, AcceptedDiagnosis]:
    head = store.latest(CASE)
    data = store.read(head, f"{FOLDER}/change_request.json")
    return ChangeRequest.model_validate_json(data), load_diagnosis(store, head)


def test_ready_and_announced(case: Case) -> None:
    store = diagnosed(case)
    result = build(store)
    assert (result.status, result.replayed) == (DispatchStatus.COMPLETED, False)
    head = result.head
    assert head.manifest.lifecycle == "OUTPUT_READY"
    assert head.pointer("change_request") == f"{FOLDER}/change_request.json"
    assert head.pointer("change_request_summary") == f"{FOLDER}/change_request.md"
    (entry,) = pending_entries(store)
    assert (entry["case_id"], entry["kind"], entry["analysis_revision"]) == (CASE, "change_request", 1)
    assert entry["artifact"]["sha256"] == head.files[f"{FOLDER}/change_request.json"].sha256
    again = build(store)
    assert again.replayed
    assert again.head.generation == head.generation
    assert len(pending_entries(store)) == 1


def test_content_follows_the_diagnosis_and_the_report(case: Case) -> None:
    store = diagnosed(case)
    build(store)
    _, names = case
    request, diagnosis = request_of(store)
    release = names["Berth::release"]
    assert request.defect.summary == "Releasing a berth never wakes the queue."
    assert request.defect.evidence_ids == (release,)
    assert [(p.kind, p.location.path, p.location.symbol) for p in request.affected] == [
        ("file", "src/berth.cpp", None),
        ("symbol", "src/berth.cpp", "Berth::release"),
    ]
    assert [claim.text for claim in request.required_behaviour] == ["The next ship moors."]
    assert any("no longer seen: The berth stays empty." in c.text for c in request.acceptance_checks)
    assert [c.evidence_ids for c in request.regressions_to_guard] == [(names["stage 1"], names["stage 2"])]
    assert any("assumption" in claim.text for claim in request.must_not_change)
    assert not any("pilot" in claim.text.lower() for claim in request.required_behaviour)
    assert {item.evidence_id for item in request.evidence} == set(confirmed_ids(diagnosis.answer))
    assert names["Berth::isFree"] not in {item.evidence_id for item in request.evidence}
    summary = store.read(store.latest(CASE), f"{FOLDER}/change_request.md").decode()
    assert "# Change request: Berth 3 stays empty" in summary
    assert "INSERT" not in summary


def test_a_german_case_has_a_german_request() -> None:
    store = MemoryStore()
    head = asyncio.run(investigated(store, world=World(language="de")))
    diagnosed((store, inputs_of(store, head)[1]))
    build(store)
    request, _ = request_of(store)
    summary = store.read(store.latest(CASE), f"{FOLDER}/change_request.md").decode()
    assert summary.startswith("# Änderungsauftrag: ")
    for said in ("## Fehler", "## Abnahmeprüfungen", "Die Ursache ist behoben", "vollständig"):
        assert said in summary
    controller = [claim.text for claim in request.claims()]
    assert any(text.startswith("Nach den gemeldeten Schritten") for text in controller)
    assert not any(word in text for text in controller for word in ("This ", "What was", "The cause"))
    assert build(store).replayed


def test_a_request_of_an_unknown_policy_is_left_alone(case: Case) -> None:
    store = diagnosed(case)
    build(store)
    path, head = f"{FOLDER}/change_request.json", store.latest(CASE)
    other = store.read(head, path).replace(b"bugfix-policy-2", b"bugfix-policy-99")
    store.commit(head, Change("edited", put={path: other}))
    with pytest.raises(NewerFormatError) as caught:
        build(store)
    assert caught.value.code == "newer_format"
    assert "bugfix-policy-99" in str(caught.value)


def test_rows_become_affected_tables(case: Case) -> None:
    _, names = case
    answer = changed(confirmed(names), "selected_hypothesis", "H2")
    cause = {
        "summary": "The third stage has no row.",
        "technical_description": "A complete query finds none.",
        "evidence_ids": [names["absence"]],
    }
    answer = changed(answer, "root_cause", cause)
    answer = changed(answer, "evaluations.1", evaluation("H2", "supported", [names["absence"]], []))
    answer = changed(
        answer, "evaluations.2", evaluation("H3", "weakened", [], [names["conf/harbour.ini"]], tested=True)
    )
    store = diagnosed(case, answer)
    build(store)
    request, _ = request_of(store)
    assert [(p.kind, p.location.table, p.location.key) for p in request.affected] == [
        ("table", "berth_step", {"berth": "3", "stage": "3"})
    ]


def test_without_diagnosis_or_after_an_inconclusive_one_it_refuses(case: Case) -> None:
    store, names = case
    with pytest.raises(BlockedError) as caught:
        build(store)
    assert caught.value.code == "phase_missing"
    diagnosed(case, inconclusive(names))
    generation = store.latest(CASE).generation
    with pytest.raises(BlockedError) as caught:
        build(store)
    assert caught.value.code == "diagnosis_not_confirmed"
    assert store.latest(CASE).generation == generation
    assert pending_entries(store) == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2])
def test_crash_at_every_write_announces_once(case: Case, at: int, when: Any) -> None:
    whole = build(diagnosed((copy_of(case[0]), case[1]))).head
    store = diagnosed(case)
    with pytest.raises(Crash):
        build(CrashingStore(store, at, when))
    if at == 1 or when == "before":
        assert pending_entries(store) == []
    assert build(store).status is DispatchStatus.COMPLETED
    head = store.latest(CASE)
    assert len(entries(store, CASE)) == 1
    assert [c.event for c in head.checkpoints].count("change_request_published") == 1
    assert {p: e.sha256 for p, e in head.files.items()} == {p: e.sha256 for p, e in whole.files.items()}


def test_acknowledging_twice_changes_nothing(case: Case) -> None:
    store = diagnosed(case)
    with pytest.raises(InputError) as caught:
        acknowledge(store, CASE)
    assert caught.value.code == "outbox_empty"
    build(store)
    entry = acknowledge(store, CASE)
    generation = store.latest(CASE).generation
    assert acknowledge(store, CASE, entry["entry_id"])["acknowledged"]
    assert store.latest(CASE).generation == generation
    assert pending_entries(store) == []
    assert entries(store, CASE)[0]["acknowledged"]
    assert build(store).replayed, "an acknowledged output replays and is not announced again"
    assert pending_entries(store) == []
    with pytest.raises(InputError):
        acknowledge(store, CASE, "0000000000000000")


def test_the_entry_id_is_the_same_for_the_same_output(case: Case) -> None:
    first, second = diagnosed((copy_of(case[0]), case[1])), diagnosed(case)
    build(first)
    build(second)
    assert pending_entries(first) == pending_entries(second)


@pytest.mark.parametrize("name", ["change_request.json", "change_request.md"])
def test_replaced_output_is_refused(case: Case, name: str) -> None:
    store = diagnosed(case)
    head = build(store).head
    data = store.read(head, f"{FOLDER}/{name}").replace(b"berth", b"barth")
    store.commit(head, Change(event="other", put={f"{FOLDER}/{name}": data}))
    with pytest.raises(ContractError) as caught:
        build(store)
    assert caught.value.code == "change_request_broken"


@pytest.mark.parametrize("name", ["change_request", "change_request_summary", "outbox", "diagnosis"])
def test_lost_pointers_never_rebuild(case: Case, name: str) -> None:
    store = diagnosed(case)
    head = build(store).head
    store.commit(head, Change(event="other", pointers={name: None}))
    with pytest.raises(ContractError):
        build(store)
    assert len(entries(store, CASE)) == 1


def test_an_entry_that_names_no_live_output_is_an_error(case: Case) -> None:
    store = diagnosed(case)
    head = build(store).head
    entry = json.loads(store.read(head, "outbox/0001/entry.json"))
    entry["artifact"]["sha256"] = "0" * 64
    store.commit(head, Change(event="other", put={"outbox/0001/entry.json": json.dumps(entry).encode()}))
    with pytest.raises(ContractError) as caught:
        pending_entries(store)
    assert caught.value.code == "outbox_entry_invalid"


def test_a_blocked_case_is_left_alone(case: Case) -> None:
    store = diagnosed(case)
    overlay = Overlay("blocked", "change_request", "cancelled", "a person cancelled it")
    store.commit(store.latest(CASE), Change(event="case_cancelled", overlay=overlay))
    assert (build(store).status, build(store).code) == (DispatchStatus.BLOCKED, "cancelled")
    assert pending_entries(store) == []


EDITS: list[tuple[str, dict[str, Any], str]] = [
    ("foreign evidence", {"acceptance_checks": [{"text": "x", "evidence_ids": ["E1"]}]}, "unconfirmed_claim"),
    ("foreign source", {"must_not_change": [{"text": "x", "statement_ids": ["I99"]}]}, "unconfirmed_claim"),
    ("unfounded", {"acceptance_checks": [{"text": "x"}]}, "unfounded_claim"),
    ("nothing affected", {"affected": []}, "nothing_affected"),
    ("nothing required", {"required_behaviour": []}, "nothing_required"),
    ("evidence unlisted", {"evidence": []}, "evidence_unlisted"),
    ("code", {"acceptance_checks": [{"text": "```x```", "statement_ids": ["I1"]}]}, "change_in_text"),
    ("data change", {"title": "UPDATE berth_step SET stage = 3"}, "change_in_text"),
    ("patch", {"title": "diff --git a/x b/x"}, "change_in_text"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "category"), [pytest.param(e, c, id=i) for i, e, c in EDITS])
def test_output_validation(case: Case, edit: dict[str, Any], category: str) -> None:
    store = diagnosed(case)
    build(store)
    request, diagnosis = request_of(store)
    assert check_request(request, diagnosis) == ()
    data = {**request.model_dump(mode="json", by_alias=True), **edit}
    issues = check_request(ChangeRequest.model_validate(data), diagnosis)
    assert category in {issue.category for issue in issues}


def test_output_validation_of_defect_places_and_records(case: Case) -> None:
    store = diagnosed(case)
    build(store)
    request, diagnosis = request_of(store)
    _, names = case
    other = (names["stage 1"],)
    wrong = request.model_copy(update={"defect": request.defect.model_copy(update={"evidence_ids": other})})
    assert {i.path for i in check_request(wrong, diagnosis)} == {"/defect"}
    place = request.affected[0].model_copy(update={"evidence_ids": other})
    wrong = request.model_copy(update={"affected": (place,)})
    assert {i.path for i in check_request(wrong, diagnosis)} == {"/affected/0"}
    item = request.evidence[0].model_copy(update={"content_sha256": "0" * 64})
    wrong = request.model_copy(update={"evidence": (item, *request.evidence[1:])})
    assert [i.category for i in check_request(wrong, diagnosis)] == ["evidence_changed"]


def test_a_broken_pointer_anywhere_blocks_the_output(case: Case) -> None:
    """The output is validated against everything the package says, not only against its own files."""
    store = diagnosed(case)
    head = store.latest(CASE)
    assert check_output(store, head) == ()
    store.commit(
        head,
        Change(
            event="other",
            pointers={"interpretation_summary": "outbox/none.json"},
            put={"outbox/none.json": b"{}"},
            raw=frozenset(),
        ),
    )
    head = store.latest(CASE)
    store.commit(
        head,
        Change(
            event="other", put={"analysis/interpretation/0001/interpretation.md": b"other"}, raw=frozenset()
        ),
    )
    with pytest.raises(ContractError):
        build(store)
    assert pending_entries(store) == []
