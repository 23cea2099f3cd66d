from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.reading import case_document, interpretation_answer
from tests.support.schema_check import violations
from viano_assets.case.model import SourceType
from viano_assets.phases.planning.contract import Patch
from viano_assets.phases.planning.places import (
    Place,
    apply,
    check_patches,
    inspect,
    locate,
    value_schema,
)
from viano_assets.phases.wire import ValidationIssue

CASE = case_document()


def places(raw: Any, limit: int = 12) -> list[str] | None:
    answer, issues = inspect(raw, CASE)
    assert answer is None
    found = locate(raw, issues, limit)
    return None if found is None else [place.path for place in found]


def changed(**values: Any) -> dict[str, Any]:
    raw = interpretation_answer()
    raw.update(values)
    return raw


def test_a_fair_interpretation_has_nothing_to_repair() -> None:
    answer, issues = inspect(interpretation_answer(), CASE)
    assert answer is not None
    assert issues == ()
    assert locate(interpretation_answer(), issues, 12) is None


def fault(path: str, value: Any) -> dict[str, Any]:
    raw = interpretation_answer()
    node: Any = raw
    parts = path.strip("/").split("/")
    for part in parts[:-1]:
        node = node[int(part)] if isinstance(node, list) else node[part]
    node[int(parts[-1]) if isinstance(node, list) else parts[-1]] = value
    return raw


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("/technical_facts/0/source_ids", ["S1"], "/technical_facts/0"),
        ("/technical_facts/1/source_ids", ["S99"], "/technical_facts/1"),
        ("/observed_behavior/1/source_ids", [], "/observed_behavior/1"),
        ("/observed_behavior/1/text", "", "/observed_behavior/1"),
        ("/observed_behavior/0", "not a statement", "/observed_behavior/0"),
        ("/entities/1/value", "orderwriter", "/entities/1"),
        ("/lookups/0/certainty", "certain", "/lookups/0"),
        ("/expected_behavior/0", {"text": "x", "source_ids": ["S2"]}, "/expected_behavior/0"),
        ("/missing_information/0", "", "/missing_information/0"),
        ("/failure_stage/source_ids", ["S4"], "/failure_stage"),
        ("/failure_stage", "a word", "/failure_stage"),
        ("/first_known_divergence/text", "", "/first_known_divergence"),
        ("/summary", "", "/summary"),
        ("/entities", "none", "/entities"),
        ("/lookups", None, "/lookups"),
    ],
)
def test_a_local_fault_has_the_place_of_its_statement_or_field(path: str, value: Any, place: str) -> None:
    assert places(fault(path, value)) == [place]


@pytest.mark.parametrize("field", ["summary", "entities", "failure_stage", "observed_behavior"])
def test_a_missing_field_is_that_field(field: str) -> None:
    raw = interpretation_answer()
    del raw[field]
    assert places(raw) == [f"/{field}"]


def test_faults_of_schema_and_of_rules_are_found_together() -> None:
    """A malformed entry does not hide what is wrong with the ones behind it."""
    raw = interpretation_answer()
    raw["technical_facts"] = [
        {"text": "", "source_ids": ["S4"]},
        {"text": "fine", "source_ids": ["S5"]},
        {"text": "wrong type", "source_ids": ["S1"]},
    ]
    raw["summary"] = 5
    raw["failure_stage"] = {"text": "", "source_ids": ["S4"]}
    assert places(raw) == ["/summary", "/technical_facts/0", "/technical_facts/2", "/failure_stage"]
    _, issues = inspect(raw, CASE)
    wrong = [issue for issue in issues if issue.category == "source_class"]
    assert [issue.path for issue in wrong] == ["/technical_facts/2/source_ids/0"]


@pytest.mark.parametrize(
    "raw",
    [
        changed(verdict="confirmed"),
        "a text",
        None,
        [],
        {**changed(confidence=90), "summary": ""},
    ],
)
def test_a_fault_without_a_place_gets_no_free_patch_range(raw: Any) -> None:
    assert places(raw) is None


def test_too_many_places_are_not_patched() -> None:
    raw = changed(observed_behavior=[{"text": "x", "source_ids": ["S4"]}] * 13)
    assert places(raw, 12) is None
    assert len(places(raw, 13) or ()) == 13


@pytest.mark.parametrize(
    "issue",
    [
        ValidationIssue(path="/observed_behavior/0/text", category="mystery", message="?"),
        ValidationIssue(path="", category="schema", message="?"),
        ValidationIssue(path="/observed_behavior/9/text", category="schema", message="?"),
        ValidationIssue(path="/observed_behavior/x", category="schema", message="?"),
        ValidationIssue(path="/elsewhere", category="schema", message="?"),
    ],
)
def test_one_unlocatable_issue_makes_localisation_unsafe(issue: ValidationIssue) -> None:
    known = ValidationIssue(path="/summary", category="schema", message="?")
    assert locate(interpretation_answer(), [known, issue], 12) is None


def two_faults() -> tuple[dict[str, Any], tuple[Place, ...]]:
    raw = interpretation_answer()
    raw["technical_facts"] += [{"text": "third", "source_ids": ["S5"]}]
    raw["technical_facts"][0]["source_ids"] = ["S1"]
    raw["technical_facts"][1]["source_ids"] = ["S2"]
    raw["failure_stage"]["source_ids"] = ["S4"]
    _, issues = inspect(raw, CASE)
    found = locate(raw, issues, 12)
    assert found is not None
    return raw, found


def patches(**values: Any) -> list[Patch]:
    return [Patch(path="/" + name.replace("__", "/"), value=value) for name, value in values.items()]


GOOD = {"text": "OrderWriter reports it.", "source_ids": ["S4"]}


def test_patches_cover_exactly_the_disputed_places() -> None:
    _, found = two_faults()
    assert [place.path for place in found] == ["/technical_facts/0", "/technical_facts/1", "/failure_stage"]
    good = patches(technical_facts__0=GOOD, technical_facts__1=None, failure_stage=None)
    assert check_patches(good, found) == []
    assert check_patches(good[::-1], found) == []


@pytest.mark.parametrize(
    ("given", "categories"),
    [
        (patches(technical_facts__0=GOOD, failure_stage=None), ["patch_missing"]),
        ([], ["patch_missing"] * 3),
        (
            [*patches(technical_facts__0=GOOD, technical_facts__1=None, failure_stage=None, summary="x")],
            ["patch_foreign"],
        ),
        (
            [
                *patches(technical_facts__0=GOOD, technical_facts__1=None, failure_stage=None),
                *patches(failure_stage=None),
            ],
            ["patch_duplicate"],
        ),
        (
            patches(technical_facts__0=GOOD, technical_facts__2=GOOD, failure_stage=None),
            ["patch_foreign", "patch_missing"],
        ),
        (
            patches(technical_facts__0__text="x", technical_facts__1=None, failure_stage=None),
            ["patch_foreign", "patch_missing"],
        ),
    ],
)
def test_a_foreign_missing_or_doubled_path_is_refused(given: list[Patch], categories: list[str]) -> None:
    _, found = two_faults()
    assert [issue.category for issue in check_patches(given, found)] == categories


@pytest.mark.parametrize("field", ["summary", "entities"])
def test_a_field_that_must_be_there_cannot_be_removed(field: str) -> None:
    raw = changed(**{field: 5})
    _, issues = inspect(raw, CASE)
    found = locate(raw, issues, 12)
    assert found is not None
    refused = check_patches([Patch(path=f"/{field}", value=None)], found)
    assert [issue.category for issue in refused] == ["patch_null"]


def test_deletions_run_from_the_highest_index_down() -> None:
    """Removing entry 0 first would shift entry 1 and delete the innocent third."""
    raw, found = two_faults()
    before = copy.deepcopy(raw)
    result = apply(raw, patches(technical_facts__0=None, technical_facts__1=None, failure_stage=None), found)
    assert result["technical_facts"] == [{"text": "third", "source_ids": ["S5"]}]
    assert result["failure_stage"] is None
    assert raw == before
    untouched = set(raw) - {"technical_facts", "failure_stage"}
    assert {name: result[name] for name in untouched} == {name: raw[name] for name in untouched}


def test_a_patch_replaces_the_whole_statement() -> None:
    raw, found = two_faults()
    result = apply(
        raw,
        patches(
            technical_facts__0=GOOD,
            technical_facts__1=None,
            failure_stage={"text": "After acceptance.", "source_ids": ["S1"]},
        ),
        found,
    )
    assert result["technical_facts"] == [GOOD, {"text": "third", "source_ids": ["S5"]}]
    answer, issues = inspect(result, CASE)
    assert answer is not None
    assert issues == ()


def place(path: str, field: str, index: int | None) -> Place:
    return Place(path, field, index, ())


def test_the_patch_schema_offers_the_sources_of_the_category() -> None:
    schema = value_schema(place("/technical_facts/0", "technical_facts", 0), CASE)
    assert violations(schema, GOOD) == []
    assert violations(schema, None) == []
    assert violations(schema, {"text": "x", "source_ids": ["S1"]})
    stage = value_schema(place("/failure_stage", "failure_stage", None), CASE)
    assert violations(stage, None) == []
    assert violations(stage, {"text": "x", "source_ids": ["S4"]})
    assert violations(value_schema(place("/summary", "summary", None), CASE), None)


def test_without_any_allowed_source_a_statement_can_only_be_removed() -> None:
    case = case_document([("It stays empty.", SourceType.OBSERVATION)])
    schema = value_schema(place("/tester_assumptions/0", "tester_assumptions", 0), case)
    assert schema == {"type": "null"}
