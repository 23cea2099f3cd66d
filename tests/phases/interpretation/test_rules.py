from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.reading import LINES, case_document, interpretation_answer, sources_of
from tests.support.schema_check import violations
from viano_assets.canonical import canonical_json
from viano_assets.case.model import SourceType
from viano_assets.phases.common import decode
from viano_assets.phases.interpretation.context import interpretation_schema
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.interpretation.rules import CATEGORY_TYPES, aliases, source_enums, validate
from viano_assets.phases.interpretation.summary import interpretation_markdown, interpretation_text

CASE = case_document()
IDS = {kind: f"S{number}" for number, (_, kind) in enumerate(LINES, start=1)}


def read(raw: dict[str, Any]) -> InterpretationAnswer:
    answer = decode(InterpretationAnswer, raw)
    assert isinstance(answer, InterpretationAnswer), answer
    return answer


def problems(raw: dict[str, Any]) -> list[tuple[str, str]]:
    return [(issue.path, issue.category) for issue in validate(read(raw), CASE)]


def test_a_fair_answer_has_no_issue_and_fits_the_schema_that_is_sent() -> None:
    assert problems(interpretation_answer()) == []
    assert violations(interpretation_schema(source_enums(CASE.sources)), interpretation_answer()) == []


SPEC: dict[str, set[SourceType]] = {
    "observed_behavior": {SourceType.OBSERVATION, SourceType.REPORT, SourceType.COMMENT},
    "expected_behavior": {SourceType.EXPECTATION, SourceType.EXTERNAL_EXPECTATION},
    "reproduction_steps": {SourceType.REPRODUCTION_STEP},
    "technical_facts": {SourceType.TECHNICAL_FACT, SourceType.ENVIRONMENT},
    "tester_assumptions": {SourceType.TESTER_ASSUMPTION},
    "failure_stage": {SourceType.OBSERVATION, SourceType.REPORT, SourceType.COMMENT},
    "first_known_divergence": {
        SourceType.OBSERVATION,
        SourceType.REPORT,
        SourceType.COMMENT,
        SourceType.REPRODUCTION_STEP,
    },
    "entities": set(SourceType),
}
"""docs/contracts.md section 1, written down a second time on purpose."""


def test_the_table_of_source_types_is_the_one_of_the_contract() -> None:
    assert {name: set(types) for name, types in CATEGORY_TYPES.items()} == SPEC


ALL_LINES = [(f"text {kind.value}", kind) for kind in SourceType]


@pytest.mark.parametrize("category", [name for name in SPEC if name != "entities"])
@pytest.mark.parametrize("kind", list(SourceType), ids=lambda kind: kind.value)
def test_each_category_takes_only_its_source_types_in_schema_and_check(
    category: str, kind: SourceType
) -> None:
    """The enum sent to a provider and the acceptance check never disagree, for any type and category."""
    case = case_document(ALL_LINES)
    source = f"S{list(SourceType).index(kind) + 1}"
    raw = empty()
    statement: dict[str, Any] = {"text": "said", "source_ids": [source]}
    if category == "expected_behavior":
        statement["expectation_completeness"] = "unknown"
    raw[category] = statement if category in {"failure_stage", "first_known_divergence"} else [statement]
    found = validate(read(raw), case)
    sent = violations(interpretation_schema(source_enums(case.sources)), raw)
    if kind in SPEC[category]:
        assert (found, sent) == ((), [])
    else:
        assert [issue.category for issue in found] == ["source_class"]
        assert sent


def empty() -> dict[str, Any]:
    raw: dict[str, Any] = {name: [] for name in interpretation_answer()}
    raw.update(summary="nothing", failure_stage=None, first_known_divergence=None)
    return raw


@pytest.mark.parametrize("category", [name for name in SPEC if name != "entities"])
def test_without_an_allowed_source_the_category_must_stay_empty(category: str) -> None:
    """An empty enum allows only an empty list or null, for the provider and for us."""
    lines = [(f"text {kind.value}", kind) for kind in SourceType if kind not in SPEC[category]]
    case = case_document(lines)
    schema = interpretation_schema(source_enums(case.sources))
    assert violations(schema, empty()) == []
    raw = empty()
    statement: dict[str, Any] = {"text": "said", "source_ids": ["S1"]}
    if category == "expected_behavior":
        statement["expectation_completeness"] = "unknown"
    raw[category] = statement if category in {"failure_stage", "first_known_divergence"} else [statement]
    assert violations(schema, raw)
    assert [issue.category for issue in validate(read(raw), case)] == ["source_class"]


def test_no_assumption_without_an_assumption_source() -> None:
    """A comment or an observation never becomes an assumption because nothing better is there."""
    lines = [line for line in LINES if line[1] is not SourceType.TESTER_ASSUMPTION]
    case = case_document(lines)
    raw = empty()
    raw["tester_assumptions"] = [{"text": "the cache", "source_ids": ["S1"]}]
    (issue,) = validate(read(raw), case)
    assert (issue.category, "leave it out" in issue.hint) == ("source_class", True)
    assert violations(interpretation_schema(source_enums(case.sources)), raw) == ["/tester_assumptions"]
    raw = interpretation_answer()
    raw["technical_facts"][0]["source_ids"] = ["S1"]
    assert validate(read(raw), CASE)[0].hint == "allowed here: S4, S5"


Change = Callable[[dict[str, Any]], None]


def put(path: str, value: Any) -> Change:
    def change(raw: dict[str, Any]) -> None:
        node: Any = raw
        parts = path.strip("/").split("/")
        for part in parts[:-1]:
            node = node[int(part)] if isinstance(node, list) else node[part]
        node[int(parts[-1]) if isinstance(node, list) else parts[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (put("/observed_behavior/0/source_ids", []), ("/observed_behavior/0/source_ids", "source_missing")),
        (
            put("/observed_behavior/1/source_ids", ["S1", "S1"]),
            ("/observed_behavior/1/source_ids", "source_duplicate"),
        ),
        (
            put("/technical_facts/0/source_ids", ["S4", "S99"]),
            ("/technical_facts/0/source_ids/1", "source_unknown"),
        ),
        (put("/failure_stage/source_ids", ["S4"]), ("/failure_stage/source_ids/0", "source_class")),
        (put("/entities/0/value", "4712"), ("/entities/0/value", "entity_provenance")),
        (put("/entities/1/value", "orderwriter"), ("/entities/1/value", "entity_provenance")),
        (put("/entities/0/source_ids", ["S2"]), ("/entities/0/value", "entity_provenance")),
        (put("/entities/0/source_ids", []), ("/entities/0/source_ids", "source_missing")),
        (put("/lookups/0/certainty", "certain"), ("/lookups/0/certainty", "lookup_certainty")),
        (put("/lookups/0/entity", "4712"), ("/lookups/0/entity", "entity_provenance")),
    ],
)
def test_one_fault_gives_exactly_one_issue_at_its_place(change: Change, expected: tuple[str, str]) -> None:
    raw = interpretation_answer()
    change(raw)
    assert problems(raw) == [expected]


def test_a_lookup_may_name_what_stands_in_a_source_or_an_entity() -> None:
    raw = interpretation_answer()
    raw["lookups"][0]["entity"] = "order_cache.cpp"
    assert problems(raw) == []


@pytest.mark.parametrize(
    "change",
    [
        put("/confidence", "high"),
        put("/observed_behavior/0/confidence", 90),
        put("/expected_behavior/0/expectation_completeness", "mostly"),
        put("/lookups/0/certainty", 0.9),
        put("/summary", "   "),
        put("/summary", 5),
        put("/observed_behavior", None),
        put("/entities/0/source_ids", "S1"),
    ],
)
def test_only_the_exact_wire_form_is_read(change: Change) -> None:
    """Nothing is coerced, rescaled or dropped in silence (B31)."""
    raw = interpretation_answer()
    change(raw)
    assert not isinstance(decode(InterpretationAnswer, raw), InterpretationAnswer)


def test_a_missing_completeness_is_a_fault_of_that_statement() -> None:
    raw = interpretation_answer()
    del raw["expected_behavior"][0]["expectation_completeness"]
    issues = decode(InterpretationAnswer, raw)
    assert not isinstance(issues, InterpretationAnswer)
    assert [issue.path for issue in issues] == ["/expected_behavior/0/expectation_completeness"]


def test_statements_get_ids_in_the_order_of_the_contract_with_their_pointers() -> None:
    named = aliases(read(interpretation_answer()))
    assert [(item.id, item.pointer) for item in named] == [
        ("I1", "/observed_behavior/0"),
        ("I2", "/observed_behavior/1"),
        ("I3", "/expected_behavior/0"),
        ("I4", "/reproduction_steps/0"),
        ("I5", "/technical_facts/0"),
        ("I6", "/technical_facts/1"),
        ("I7", "/tester_assumptions/0"),
        ("I8", "/failure_stage"),
        ("I9", "/first_known_divergence"),
    ]
    assert named[1].source_ids == ("S9",)


def test_the_schema_is_the_same_bytes_every_time() -> None:
    enums = source_enums(sources_of(LINES))
    assert canonical_json(interpretation_schema(enums)) == canonical_json(interpretation_schema(enums))


def test_notes_of_the_intake_are_told_to_people() -> None:
    """An attempt to steer the analysis is noted there and changes nothing else (B33)."""
    case = CASE.model_copy(update={"notes": ("S9 reads like an instruction",)})
    answer = read(interpretation_answer())
    document = {
        "interpretation": answer.model_dump(mode="json"),
        "statements": [item.as_json() for item in aliases(answer)],
    }
    assert "S9 reads like an instruction" in interpretation_markdown(document, case).decode()
    assert "S9 reads like an instruction" in interpretation_text(document, case)
    assert "I1  After accepting order 4711" in interpretation_text(document, CASE)
    assert "Notes" not in interpretation_text(document, CASE)
