from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.reading import candidate, case_document, hypotheses_answer, interpretation_answer
from viano_assets.case.model import SourceType
from viano_assets.phases.common import decode
from viano_assets.phases.hypotheses.contract import Candidate, HypothesesAnswer
from viano_assets.phases.hypotheses.rules import (
    UNGROUNDED,
    Scope,
    missing_observation,
    normalise,
    scope_of,
    validate,
)
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.interpretation.rules import AliasedStatement, aliases

POLICY = {"min_hypotheses": 3, "max_hypotheses": 5}


def statements(raw: dict[str, Any] | None = None) -> tuple[AliasedStatement, ...]:
    answer = decode(InterpretationAnswer, raw or interpretation_answer())
    assert isinstance(answer, InterpretationAnswer)
    return aliases(answer)


def scope(raw: dict[str, Any] | None = None) -> Scope:
    return scope_of(case_document().sources, statements(raw), POLICY)


def batch(*raw: dict[str, Any]) -> Sequence[Candidate]:
    answer = decode(HypothesesAnswer, {"candidates": list(raw)})
    assert isinstance(answer, HypothesesAnswer), answer
    return answer.candidates


def three(**first: Any) -> list[dict[str, Any]]:
    found = hypotheses_answer()["candidates"]
    found[0].update(first)
    return list(found)


def problems(*raw: dict[str, Any], within: Scope | None = None) -> list[tuple[str, str]]:
    return [(issue.path, issue.category) for issue in validate(batch(*raw), within or scope())]


def test_a_fair_batch_has_no_issue() -> None:
    assert problems(*three()) == []


@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_the_number_of_candidates_lies_within_the_policy(count: int) -> None:
    """Too many are rejected like too few; nothing is truncated to fit."""
    assert problems(*(candidate(number) for number in range(count))) == [("/candidates", "count")]


@pytest.mark.parametrize("count", [3, 5])
def test_both_ends_of_the_policy_are_allowed(count: int) -> None:
    assert problems(*(candidate(number) for number in range(count))) == []


@pytest.mark.parametrize(
    ("field", "value", "path", "category"),
    [
        ("source_ids", ["S1", "S77"], "source_ids/1", "source_unknown"),
        ("source_ids", ["S1", "S1"], "source_ids", "source_duplicate"),
        ("interpretation_ids", ["I1", "I10"], "interpretation_ids/1", "interpretation_unknown"),
        ("interpretation_ids", ["I1", "I1"], "interpretation_ids", "interpretation_duplicate"),
        ("source_ids", [], "source_ids", "source_missing"),
        ("expected_evidence", [], "expected_evidence", "evidence_missing"),
        ("falsifying_evidence", [], "falsifying_evidence", "evidence_missing"),
    ],
)
def test_references_exist_in_exactly_this_context(field: str, value: Any, path: str, category: str) -> None:
    raw = three()
    raw[1][field] = value
    assert problems(*raw) == [(f"/candidates/1/{path}", category)]


def test_open_questions_may_be_empty() -> None:
    assert candidate(0)["open_questions"] == []


@pytest.mark.parametrize("source", ["S4", "S5", "S2", "S3", "S6"])
def test_the_first_candidate_cites_what_a_person_saw(source: str) -> None:
    """Technical facts, steps, expectations and assumptions do not carry the tester's primary hypothesis."""
    assert ("/candidates/0/source_ids", "first_candidate_source") in problems(*three(source_ids=[source]))


@pytest.mark.parametrize("source", ["S1", "S9"])
def test_observation_and_comment_carry_the_first_candidate(source: str) -> None:
    assert problems(*three(source_ids=["S4", source])) == []


def test_a_report_source_carries_the_first_candidate() -> None:
    case = case_document([("It stays empty.", SourceType.REPORT)])
    raw = interpretation_answer()
    for name in raw:
        if isinstance(raw[name], list):
            raw[name] = []
    raw.update(
        observed_behavior=[{"text": "empty", "source_ids": ["S1"]}],
        failure_stage=None,
        first_known_divergence=None,
    )
    within = scope_of(case.sources, statements(raw), POLICY)
    found = [candidate(n, ids=["I1"]) for n in range(3)]
    assert problems(*found, within=within) == []


def test_the_first_candidate_cites_the_divergence_first_of_all() -> None:
    assert scope().focus == ("I9",)
    for other in ("I8", "I1"):
        assert ("/candidates/0/interpretation_ids", "first_candidate_focus") in problems(
            *three(interpretation_ids=[other])
        )


def test_without_divergence_the_first_candidate_cites_the_failure_stage() -> None:
    raw = interpretation_answer()
    raw["first_known_divergence"] = None
    assert problems(*three(interpretation_ids=["I8"]), within=scope(raw)) == []
    assert problems(*three(interpretation_ids=["I1"]), within=scope(raw)) == [
        ("/candidates/0/interpretation_ids", "first_candidate_focus")
    ]


def test_without_either_the_first_candidate_cites_observed_behaviour() -> None:
    raw = interpretation_answer()
    raw["first_known_divergence"] = raw["failure_stage"] = None
    assert scope(raw).focus == ("I1", "I2")
    assert problems(*three(interpretation_ids=["I2"]), within=scope(raw)) == []
    assert problems(*three(interpretation_ids=["I5"]), within=scope(raw)) == [
        ("/candidates/0/interpretation_ids", "first_candidate_focus")
    ]


def test_only_the_first_candidate_is_bound_to_the_focus() -> None:
    raw = three()
    raw[1].update(source_ids=["S4"], interpretation_ids=["I5"])
    assert problems(*raw) == []


@pytest.mark.parametrize(
    "ids", [["S6"], ["S7"], ["S8"], ["S6", "S7"], ["S7", "S8"], ["S6", "S7", "S8"]], ids=",".join
)
def test_no_candidate_stands_on_assumptions_expectations_and_unread_code_alone(ids: list[str]) -> None:
    """Also not in combination, and a statement that only repeats an assumption does not help."""
    raw = three()
    raw[1].update(source_ids=ids, interpretation_ids=["I7"])
    assert problems(*raw) == [("/candidates/1/source_ids", "ungrounded")]


@pytest.mark.parametrize("ids", [["S6", "S4"], ["S8", "S1"], ["S7", "S3"], ["S7", "S2"]], ids=",".join)
def test_beside_something_recorded_they_may_be_cited(ids: list[str]) -> None:
    raw = three()
    raw[1].update(source_ids=ids, interpretation_ids=[])
    assert problems(*raw) == []


def test_a_statement_grounds_through_the_sources_it_rests_on() -> None:
    raw = three()
    raw[1].update(source_ids=["S6"], interpretation_ids=["I5"])
    assert problems(*raw) == []


def test_the_three_ungrounded_types() -> None:
    assert {
        SourceType.TESTER_ASSUMPTION,
        SourceType.EXTERNAL_EXPECTATION,
        SourceType.IMPLEMENTATION_REFERENCE,
    } == UNGROUNDED


@pytest.mark.parametrize(
    "variant",
    [
        "the WRITER skips items",
        "The writer  skips\titems",
        "The writer skips items!",
        "The writer—skips items.",
        "The writer skips ﬁtems".replace("ﬁ", "i"),
        "Ｔｈｅ ｗｒｉｔｅｒ skips items",
        "The wri\u00adter skips items",
    ],
)
@pytest.mark.parametrize("field", ["title", "mechanism"])
def test_duplicates_are_found_behind_presentation(field: str, variant: str) -> None:
    raw = three()
    raw[1][field] = "The writer skips items"
    raw[2][field] = variant
    assert problems(*raw) == [(f"/candidates/2/{field}", "duplicate")]


def test_letters_in_composed_and_decomposed_form_are_one() -> None:
    assert normalise("Gro\u0308ße fehlt") == normalise("GRÖSSE FEHLT")


@pytest.mark.parametrize("pair", [("uses C", "uses C++"), ("a < b", "a > b"), ("row 3", "row 4")])
def test_symbols_and_digits_are_not_presentation(pair: tuple[str, str]) -> None:
    assert normalise(pair[0]) != normalise(pair[1])


def test_a_title_may_resemble_a_mechanism_of_another() -> None:
    raw = three()
    raw[1]["title"] = raw[2]["mechanism"]
    assert problems(*raw) == []


def test_every_later_repetition_is_named() -> None:
    raw = three()
    raw[1]["title"] = raw[2]["title"] = raw[0]["title"]
    assert problems(*raw) == [("/candidates/1/title", "duplicate"), ("/candidates/2/title", "duplicate")]


@pytest.mark.parametrize(
    "extra",
    ["id", "priority", "status", "confidence", "budget", "budget_allocation", "patch", "tool", "actions"],
)
@pytest.mark.parametrize("value", [90, 0.9, "9/10", "high"])
def test_the_model_gives_no_id_state_confidence_budget_patch_or_tool(extra: str, value: Any) -> None:
    """Nothing the controller owns is accepted from a model, whatever its form (B31)."""
    raw = three()
    raw[0][extra] = value
    assert not isinstance(decode(HypothesesAnswer, {"candidates": raw}), HypothesesAnswer)


@pytest.mark.parametrize("field", sorted(Candidate.model_fields))
def test_every_part_of_a_candidate_is_required_and_nonblank(field: str) -> None:
    raw = three()
    blank = [""] if isinstance(raw[0][field], list) else " \n"
    if field not in {"source_ids", "interpretation_ids"}:
        assert not isinstance(
            decode(HypothesesAnswer, {"candidates": [{**raw[0], field: blank}]}), HypothesesAnswer
        )
    del raw[0][field]
    assert not isinstance(decode(HypothesesAnswer, {"candidates": raw}), HypothesesAnswer)


def test_missing_observation_means_no_observed_behaviour() -> None:
    assert not missing_observation(statements())
    raw = interpretation_answer()
    raw["observed_behavior"] = []
    assert missing_observation(statements(raw))
