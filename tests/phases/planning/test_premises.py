from __future__ import annotations

from typing import Any

import pytest

from tests.support.reading import case_document, interpretation_answer, planned, review
from viano_assets.errors import ContractError
from viano_assets.phases.common import decode
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.interpretation.rules import aliases
from viano_assets.phases.planning.compression import MINIMUM, compress, expand
from viano_assets.phases.planning.contract import PlannedCandidate
from viano_assets.phases.planning.reviews import Position, Standing, first_positions, fold
from viano_assets.phases.planning.rules import at_pointer, check_premises, exists, inputs_unchanged, resolve

CASE = case_document()
SOURCES = {source.id: source for source in CASE.sources}


def wire(**changes: Any) -> PlannedCandidate:
    found = decode(PlannedCandidate, {**planned(1), **changes})
    assert isinstance(found, PlannedCandidate), found
    return found


def premise(
    kind: str = "grounded", ids: list[str] | None = None, paths: list[str] | None = None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "text": "It holds.",
        "source_ids": ids or [],
        "interpretation_paths": paths or [],
    }


def problems(candidate: PlannedCandidate) -> list[tuple[str, str]]:
    return [(issue.path, issue.category) for issue in check_premises(candidate, SOURCES, "/h")]


def test_a_fair_candidate_has_sound_premises() -> None:
    assert problems(wire()) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (premise(), [("/h/premises/0", "premise_ungrounded")]),
        (premise("unverified"), []),
        (premise(ids=["S1"]), []),
        (premise(paths=["/observed_behavior/0"]), []),
        (premise(ids=["S4"]), [("/h/premises/0/source_ids/0", "premise_undeclared")]),
        (premise("unverified", ids=["S4"]), [("/h/premises/0/source_ids/0", "premise_undeclared")]),
        (
            premise(paths=["/failure_stage"]),
            [("/h/premises/0/interpretation_paths/0", "premise_undeclared")],
        ),
    ],
)
def test_a_grounded_premise_cites_what_the_proposal_declares(
    given: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert problems(wire(premises=[given])) == expected


def test_an_unread_reference_is_no_read_proof() -> None:
    declared = ["S1", "S7"]
    grounded = wire(source_ids=declared, premises=[premise(ids=["S1", "S7"])])
    assert problems(grounded) == [("/h/premises/0/source_ids/1", "premise_unread")]
    assert problems(wire(source_ids=declared, premises=[premise("unverified", ids=["S7"])])) == []


@pytest.mark.parametrize(
    "change", [{"premises": []}, {"premises": [{**premise(), "kind": "proven"}]}, {"confidence": "high"}]
)
def test_premises_are_part_of_the_wire_contract(change: dict[str, Any]) -> None:
    assert not isinstance(decode(PlannedCandidate, {**planned(1), **change}), PlannedCandidate)
    missing = planned(1)
    del missing["premises"]
    assert not isinstance(decode(PlannedCandidate, missing), PlannedCandidate)


def statements() -> Any:
    answer = decode(InterpretationAnswer, interpretation_answer())
    assert isinstance(answer, InterpretationAnswer)
    return aliases(answer)


def test_paths_are_resolved_to_ids_and_premises_stay_behind() -> None:
    paths = ["/technical_facts/1", "/failure_stage", "/observed_behavior/0"]
    candidate, issues = resolve(
        wire(interpretation_paths=paths, premises=[premise("unverified")]), statements(), "/h"
    )
    assert candidate is not None
    assert candidate.interpretation_ids == ("I6", "I8", "I1")
    assert issues == []
    assert "premises" not in candidate.model_dump()


@pytest.mark.parametrize(
    "path", ["/observed_behavior/7", "/summary", "observed_behavior/0", "", "/entities/0", "I1"]
)
def test_a_path_to_no_statement_is_refused(path: str) -> None:
    candidate, issues = resolve(wire(interpretation_paths=[path]), statements(), "/h")
    assert candidate is None
    assert [(issue.path, issue.category) for issue in issues] == [
        ("/h/interpretation_paths/0", "path_unknown")
    ]


BEFORE = interpretation_answer()


def after(**values: Any) -> dict[str, Any]:
    return {**interpretation_answer(), **values}


def test_inputs_are_unchanged_when_their_content_is() -> None:
    assert inputs_unchanged(planned(1), BEFORE, after(summary="new", technical_facts=[]))


@pytest.mark.parametrize(
    "change",
    [
        {"observed_behavior": []},
        {"observed_behavior": BEFORE["observed_behavior"][1:]},
        {"observed_behavior": [{"text": "other", "source_ids": ["S1"]}, BEFORE["observed_behavior"][1]]},
        {
            "observed_behavior": [
                {**BEFORE["observed_behavior"][0], "source_ids": ["S9"]},
                BEFORE["observed_behavior"][1],
            ]
        },
    ],
    ids=["gone", "moved up by a deletion", "other words", "other sources"],
)
def test_content_at_the_pointer_counts_not_its_existence(change: dict[str, Any]) -> None:
    assert not inputs_unchanged(planned(1), BEFORE, after(**change))


@pytest.mark.parametrize("paths", [["/nowhere"], [5], "/observed_behavior/0", None])
def test_unreadable_inputs_are_never_unchanged(paths: Any) -> None:
    assert not inputs_unchanged({**planned(1), "interpretation_paths": paths}, BEFORE, BEFORE)


def test_a_null_statement_is_there_and_a_missing_one_is_not() -> None:
    value = {"a": None, "b": [1, {"c": 2}]}
    assert exists(value, "/a")
    assert at_pointer(value, "/b/1/c") == 2
    for pointer in ("/b/2", "/b/x", "/d", "/a/x", "/b/-1"):
        assert not exists(value, pointer)


def standing(position: Position, *reviews: Any, change: dict[str, Any] | None = None) -> Position:
    (result,) = fold([position], list(reviews), BEFORE, after(**(change or {"summary": "new"})))
    return result


def test_retain_keeps_an_independent_candidate() -> None:
    (original,) = first_positions([planned(1)]) or ()
    assert standing(original, review(1)) == Position(planned(1), Standing.RETAINED)


def test_retain_counts_only_while_every_declared_input_is_unchanged() -> None:
    """The review may say independent; the controller compares contents all the same."""
    position = Position(planned(1), Standing.ORIGINAL)
    changed = standing(position, review(1), change={"observed_behavior": []})
    assert changed.status is Standing.UNCLEAR


def test_replace_takes_the_new_proposal_whole() -> None:
    position = Position(planned(1), Standing.ORIGINAL)
    result = standing(position, review(1, "replace", planned(2)), change={"observed_behavior": []})
    assert result == Position(planned(2), Standing.REPLACED)
    assert standing(Position("broken", Standing.UNCLEAR), review(1, "replace", planned(2))).wire == planned(2)


@pytest.mark.parametrize(
    "reviews",
    [
        [],
        [review(1, "uncertain")],
        [review(1, "replace")],
        [review(1, "retain", planned(2))],
        [review(2)],
        [review(1), review(1)],
        [{**review(1), "decision": "keep"}],
        [{**review(1), "reason": ""}],
        [{**review(1), "extra": 1}],
        [{"position": "1"}],
        ["retain"],
        [None],
    ],
    ids=str,
)
def test_anything_but_a_clear_review_leaves_the_position_unclear(reviews: list[Any]) -> None:
    """A missing reference or review is never taken as proof of independence."""
    assert standing(Position(planned(1), Standing.ORIGINAL), *reviews).status is Standing.UNCLEAR


@pytest.mark.parametrize("block", [None, "retain all", {}, 5, {"1": "retain"}])
def test_a_malformed_block_leaves_every_position_unclear(block: Any) -> None:
    positions = [Position(planned(n), Standing.ORIGINAL) for n in range(3)]
    assert {p.status for p in fold(positions, block, BEFORE, BEFORE)} == {Standing.UNCLEAR}


def test_one_malformed_review_does_not_touch_the_others() -> None:
    positions = [Position(planned(n), Standing.ORIGINAL) for n in range(3)]
    result = fold(positions, [review(1), {"position": 2}, review(3)], BEFORE, BEFORE)
    assert [p.status for p in result] == [Standing.RETAINED, Standing.UNCLEAR, Standing.RETAINED]


def test_unclear_once_is_not_retained_later() -> None:
    assert standing(Position(planned(1), Standing.UNCLEAR), review(1)).status is Standing.UNCLEAR
    assert standing(Position("broken", Standing.ORIGINAL), review(1)).status is Standing.UNCLEAR


def test_a_replacement_stays_a_replacement_when_it_is_retained() -> None:
    assert standing(Position(planned(1), Standing.REPLACED), review(1)).status is Standing.REPLACED


@pytest.mark.parametrize("value", [None, "x", {}, 5])
def test_no_list_of_candidates_gives_no_positions(value: Any) -> None:
    assert first_positions(value) is None


LONG = "a long text that is told more than once in the same request " * 3


def test_compression_says_long_texts_once_and_loses_nothing() -> None:
    value = {"a": LONG, "b": [LONG, {"c": LONG, "d": "short", "e": "short"}], "n": [1, None, True, 2.5]}
    compressed = compress(value)
    assert compressed["shared"] == [LONG]
    assert compressed["value"]["b"][0] == {"$shared": 0}
    assert compressed["value"]["b"][1]["e"] == "short"
    assert expand(compressed) == value


@pytest.mark.parametrize(("size", "shared"), [(MINIMUM - 1, 0), (MINIMUM, 1)])
def test_only_long_repeated_texts_are_shared(size: int, shared: int) -> None:
    assert len(compress(["x" * size, "x" * size])["shared"]) == shared
    assert compress(["x" * 500])["shared"] == []


@pytest.mark.parametrize("broken", [{"$shared": 1}, {"$shared": -1}, {"$shared": "0"}])
def test_a_reference_to_nothing_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ContractError, match="compression_broken"):
        expand({"shared": ["x"], "value": broken})


def test_a_value_that_looks_like_a_reference_survives_as_it_is() -> None:
    """Text of a model cannot smuggle a reference into the compressed form."""
    value = [LONG, LONG, {"proposal": {"$shared": 0}}]
    assert compress(value)["shared"] == []
    assert expand(compress(value)) == value
