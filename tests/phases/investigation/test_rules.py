"""Every gate by the smallest answer that it rejects, next to the answer that passes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.turn_answers import action, answer
from viano_assets.evidence.model import Completeness, Draft, Provenance, ToolResult
from viano_assets.evidence.store import EvidenceStore
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.investigation.answers import TurnAnswer, read_answer
from viano_assets.phases.investigation.config import V11
from viano_assets.phases.investigation.contract import CONTRACT
from viano_assets.phases.investigation.rules import Turn, check_answer
from viano_assets.phases.investigation.scheduling import TurnLimits
from viano_assets.phases.wire import ValidationIssue

COSTS = {"source.read": 2, "db.rows": 4}
TURN = {"selected_hypothesis": "H1", "first_turn": False, "pending_actions": ["A1"]}
FIRST = {"selected_hypothesis": "H1", "first_turn": True, "pending_actions": []}
READ = action("source.read", path="a.py")


def evidence() -> EvidenceStore:
    """E1 and E2 found, E3 an empty look with partial scope, E4 an empty look with complete scope."""
    store = EvidenceStore()
    for text, kind, whole in (
        ("x = 1", "source", Completeness.COMPLETE),
        ("y = 2", "source", Completeness.TRUNCATED),
        ("none in the extract", "absence", Completeness.PARTIAL),
        ("none at all", "absence", Completeness.COMPLETE),
    ):
        draft = Draft(content=text, provenance=Provenance.model_validate({"kind": kind}), completeness=whole)
        store.add(ToolResult(tool="t", arguments={}, scope={}, completeness=whole, drafts=(draft,)))
    return store


def candidate_check(candidate: Candidate) -> list[ValidationIssue]:
    bad = candidate.title == "bad"
    return [ValidationIssue(path="/create", category="candidate_invalid", message="bad")] if bad else []


def turn(**changes: Any) -> Turn:
    values: dict[str, Any] = {
        "selected": "H1",
        "first_turn": False,
        "pending": ("A1",),
        "limits": TurnLimits(2, 8, 2, 5, 3),
        "hypotheses": ("H1", "H2"),
        "remaining_slots": 1,
        "tool_costs": COSTS,
        "evidence": evidence(),
        "projected": lambda score: 6 + score // 50,
        "check_tool": lambda _tool, arguments: None if arguments.get("path") != "bad" else "bad path",
        "check_candidate": candidate_check,
    }
    return Turn(**{**values, **changes})


def issues(raw: dict[str, Any], against: Turn | None = None, contract: str = CONTRACT) -> list[str]:
    read = read_answer(contract, raw)
    if not isinstance(read, TurnAnswer):
        return sorted({issue.category for issue in read})
    return sorted({issue.category for issue in check_answer(read, against or turn())})


def supported(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "effect": "supports",
        "support": ["E1"],
        "requested": "supported",
        "actions": [READ],
    }
    return answer(TURN, **{**values, **changes})


def patched(raw: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    changed = copy.deepcopy(raw)
    node: Any = changed
    *parents, last = path.split("/")
    for name in parents:
        node = node[name]
    node[last] = value
    return changed


PROPOSAL = {
    "title": "good",
    "mechanism": "m",
    "rationale": "r",
    "distinction": "d",
    "source_ids": ["S1"],
    "interpretation_ids": ["I1"],
    "expected_evidence": ["e"],
    "falsifying_evidence": ["f"],
    "open_questions": [],
}

ACCEPTED = {
    "supports": supported(),
    "contradicts": supported(effect="contradicts", support=[], against=["E2"]),
    "mixed": supported(effect="mixed", against=["E2"]),
    "neutral_with_refs": supported(effect="neutral", support=[], refs=["E1"]),
    "neutral_without_refs": supported(effect="neutral", support=[], requested="unassessed"),
    "weakened_without_refs": supported(effect="neutral", support=[], requested="weakened"),
    "complete_absence_supports": supported(support=["E4"]),
    "void_absence_merely_cited": supported(refs=["E1", "E3"]),
    "truncated_finding_supports": supported(support=["E2"]),
    "finish": supported(actions=[], finish=True),
    "rejected": supported(effect="contradicts", support=[], against=["E1"], status="rejected", actions=[]),
    "countercheck": supported(actions=[action("source.read", countercheck_of="H2", path="a")]),
    "countercheck_of_itself": supported(actions=[action("source.read", countercheck_of="H1", path="a")]),
    "two_actions": supported(actions=[READ, action("db.rows")]),
    "reward_makes_room": supported(actions=[action("db.rows"), action("db.rows", n=1)], score=100),
    "question": supported(question="Which build was it?"),
    "create": supported(create=PROPOSAL),
}


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_an_answer_within_the_rules_passes(name: str) -> None:
    assert issues(ACCEPTED[name]) == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "extra_field": ({**supported(), "budget": 5}, "schema"),
    "percent": (patched(supported(), "update/requested_confidence", 90), "schema"),
    "fraction": (patched(supported(), "update/requested_confidence", 0.9), "schema"),
    "out_of_ten": (patched(supported(), "update/requested_confidence", "9/10"), "schema"),
    "other_word": (patched(supported(), "update/requested_confidence", "high"), "schema"),
    "score_as_text": (patched(supported(), "assessment/semantic_score", "85"), "schema"),
    "score_as_boolean": (patched(supported(), "assessment/semantic_score", bool(1)), "schema"),
    "score_above_hundred": (patched(supported(), "assessment/semantic_score", 101), "schema"),
    "nine_supports": (supported(support=[f"E{n}" for n in range(1, 10)]), "schema"),
    "long_reason": (patched(supported(), "update/causal_review/reason", "x" * 601), "schema"),
    "blank_reason": (patched(supported(), "update/causal_review/reason", "  "), "schema"),
    "five_actions": (supported(actions=[READ] * 5), "schema"),
    "no_review": (
        patched(supported(), "update", {"hypothesis_id": "H1", "evidence_refs": []}),
        "schema",
    ),
    "other_hypothesis": (patched(supported(), "update/hypothesis_id", "H2"), "wrong_hypothesis"),
    "unknown_ref": (supported(refs=["E1", "E9"]), "unknown_evidence"),
    "unknown_support": (supported(support=["E9"]), "unknown_evidence"),
    "invented_id": (supported(refs=["E1", "E0"]), "unknown_evidence"),
    "doubled_ref": (supported(refs=["E1", "E1"]), "duplicate_reference"),
    "doubled_support": (supported(support=["E1", "E1"]), "duplicate_reference"),
    "support_outside_refs": (supported(support=["E1"], refs=["E2"]), "uncited_review_evidence"),
    "against_outside_refs": (supported(against=["E2"], refs=["E1"]), "uncited_review_evidence"),
    "supports_without_support": (supported(support=[], refs=["E1"]), "review_direction"),
    "contradicts_without_against": (
        supported(effect="contradicts", support=[], refs=["E1"]),
        "review_direction",
    ),
    "mixed_without_against": (supported(effect="mixed"), "review_direction"),
    "mixed_without_support": (
        supported(effect="mixed", support=[], against=["E1"]),
        "review_direction",
    ),
    "partial_absence_supports": (supported(support=["E3"]), "void_absence"),
    "partial_absence_contradicts": (supported(against=["E3"]), "void_absence"),
    "confidence_from_nothing": (
        supported(effect="neutral", support=[], refs=[], requested="plausible"),
        "confidence_without_evidence",
    ),
    "rejected_while_supported": (supported(status="rejected", actions=[]), "rejection_unfounded"),
    "rejected_without_against": (
        supported(effect="neutral", support=[], refs=["E1"], status="rejected", actions=[]),
        "rejection_unfounded",
    ),
    "rejected_with_actions": (
        supported(effect="contradicts", support=[], against=["E1"], status="rejected"),
        "actions_after_end",
    ),
    "finish_with_actions": (supported(finish=True), "actions_after_end"),
    "nothing_next": (supported(actions=[]), "no_next_step"),
    "too_many": (supported(actions=[READ, READ, READ]), "too_many_actions"),
    "foreign_tool": (supported(actions=[action("shell.run", command="ls")]), "unknown_tool"),
    "bad_arguments": (supported(actions=[action("source.read", path="bad")]), "tool_arguments"),
    "unknown_alternative": (
        supported(actions=[action("source.read", countercheck_of="H7", path="a")]),
        "unknown_countercheck",
    ),
    "too_expensive": (
        supported(actions=[action("db.rows"), action("db.rows", n=1)], score=0),
        "budget_exceeded",
    ),
    "bad_candidate": (supported(create={**PROPOSAL, "title": "bad"}), "candidate_invalid"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_an_answer_outside_the_rules_is_refused_for_exactly_that(name: str) -> None:
    raw, category = REFUSED[name]
    assert issues(raw) == [category]


FIRST_REFUSED = {
    "cites": patched(answer(FIRST, actions=[READ]), "update/evidence_refs", ["E1"]),
    "asks": patched(answer(FIRST, actions=[READ]), "update/requested_confidence", "plausible"),
    "weakens": patched(answer(FIRST, actions=[READ]), "update/requested_confidence", "weakened"),
    "judges": patched(
        patched(answer(FIRST, actions=[READ]), "update/causal_review/effect", "supports"),
        "update/causal_review/support",
        ["E1"],
    ),
}


@pytest.mark.parametrize("name", sorted(FIRST_REFUSED))
def test_a_first_turn_judges_nothing(name: str) -> None:
    first = turn(first_turn=True, pending=())
    assert issues(answer(FIRST, actions=[READ]), first) == []
    assert "first_turn" in issues(FIRST_REFUSED[name], first)


def test_a_score_needs_something_to_assess() -> None:
    raw = patched(answer({**TURN, "pending_actions": []}, actions=[READ]), "assessment/semantic_score", 1)
    assert issues(raw, turn(pending=())) == ["nothing_to_assess"]


def test_without_room_no_look_is_expected() -> None:
    raw = supported(actions=[])
    assert issues(raw, turn(limits=TurnLimits(0, 8, 2, 0, 3))) == []
    assert issues(raw, turn(projected=lambda _score: 1)) == []
    assert issues(supported(), turn(limits=TurnLimits(0, 8, 2, 0, 3))) == ["too_many_actions"]


def test_creation_stops_at_the_cap() -> None:
    assert issues(supported(create=PROPOSAL), turn(remaining_slots=0)) == ["no_slot"]


def test_the_old_contract_knows_no_review_and_keeps_its_rules() -> None:
    old = supported()
    del old["update"]["causal_review"]
    assert issues(old, contract=V11) == []
    assert issues(supported(), contract=V11) == ["schema"]
    rejected = {**copy.deepcopy(old), "next": {"actions": [], "finish": False, "reason": "r"}}
    rejected["update"]["status"] = "rejected"
    assert issues(rejected, contract=V11) == []
    rejected["update"]["evidence_refs"] = []
    assert "rejection_unfounded" in issues(rejected, contract=V11)
