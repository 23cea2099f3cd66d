"""Correctness by code: ranked places, cited evidence and verdicts against the gold."""

from __future__ import annotations

import re
from typing import Any

import pytest

from viano_assets.errors import InputError
from viano_assets.evaluation.correctness import row_matches, score
from viano_assets.evaluation.gold import Gold, GoldLocation, GoldVerdict, read_gold
from viano_assets.evaluation.scoring import bm25_files, paired, words


def view(
    *, status: str = "confirmed", kind: str | None = None, cited: tuple[str, ...] = ("E1",), **places: Any
) -> dict[str, Any]:
    evidence = [
        {
            "evidence_id": "E1",
            "path": "a.py",
            "symbol": None,
            "line_start": 10,
            "line_end": 12,
            "table": None,
        },
        {
            "evidence_id": "E2",
            "path": "b.py",
            "symbol": "B.go",
            "line_start": 1,
            "line_end": 2,
            "table": None,
        },
        {"evidence_id": "E3", "path": None, "table": "stage", "key": {"id": "7"}, "column": None},
    ]
    return {
        "diagnosis": {
            "status": status,
            "inconclusive_kind": kind,
            "root_cause": {"evidence_ids": list(cited)},
        },
        "localisation": {"files": [], "symbols": [], "rows": [], **places},
        "evidence": evidence,
    }


def gold(*places: dict[str, Any], verdict: str = "defect") -> Gold:
    return Gold(GoldVerdict(verdict), tuple(GoldLocation(**place) for place in places))


def test_any_and_all_count_gold_places_within_k() -> None:
    files = [{"path": path} for path in ("x.py", "a.py", "y.py", "b.py")]
    scores = score(view(files=files), gold({"path": "a.py"}, {"path": "b.py"}))
    assert scores.file_hits == {1: (False, False), 3: (True, False), 5: (True, True), 10: (True, True)}
    assert scores.symbol_hits == {}
    assert scores.row_hits == {}


@pytest.mark.parametrize(
    ("cited", "place", "right"),
    [
        (("E1",), {"path": "a.py"}, True),
        (("E1",), {"path": "a.py", "symbol": "f", "lines": (12, 20)}, True),
        (("E1",), {"path": "a.py", "symbol": "f", "lines": (13, 20)}, False),
        (("E1",), {"path": "a.py", "symbol": "f"}, False),
        (("E2",), {"path": "b.py", "symbol": "B.go"}, True),
        (("E2",), {"path": "a.py"}, False),
        (("E3",), {"table": "stage", "key": {"id": "7"}}, True),
        (("E3",), {"table": "stage", "key": {"id": "8"}}, False),
        (("E3",), {"table": "other"}, False),
        ((), {"path": "a.py"}, False),
    ],
)
def test_the_root_cause_is_right_when_its_evidence_overlaps_the_gold(
    cited: tuple[str, ...], place: dict[str, Any], right: bool
) -> None:
    assert score(view(cited=cited), gold(place)).root_cause_correct is right


def test_a_symbol_is_met_through_the_lines_the_answer_gives_it() -> None:
    symbols = [{"path": "a.py", "symbol": "f", "line_start": 5, "line_end": 11}]
    assert score(view(symbols=symbols), gold({"path": "a.py", "symbol": "f"})).root_cause_correct


def test_a_symbol_that_the_answer_gives_other_lines_is_not_widened_to_the_gold_file() -> None:
    symbols = [{"path": "a.py", "symbol": "f", "line_start": 50, "line_end": 60}]
    assert not score(view(symbols=symbols), gold({"path": "a.py", "symbol": "f"})).root_cause_correct


def test_a_place_without_a_common_key_column_matches_no_row() -> None:
    place = GoldLocation(table="stage", key={"id": "7", "step": "2"})
    assert row_matches({"table": "stage", "key": {"id": 7}}, place)
    assert not row_matches({"table": "stage", "key": {"name": "x"}}, place)
    assert not row_matches({"table": "stage", "key": None}, place)
    assert not row_matches({"table": "stage", "key": {"id": "7", "step": "3"}}, place)


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        ("intended_behaviour", "intended_behaviour"),
        ("insufficient_information", "insufficient_information"),
        ("wrong_premise", "premise_contradicted"),
    ],
)
def test_a_control_is_right_with_its_own_kind_and_an_overclaim_when_confirmed(
    verdict: str, kind: str
) -> None:
    control = gold(verdict=verdict)
    right = score(view(status="inconclusive", kind=kind), control)
    other = score(view(status="inconclusive", kind="undecided"), control)
    claimed = score(view(), control)
    assert (right.verdict_correct, right.overclaim) == (True, False)
    assert (other.verdict_correct, other.overclaim) == (False, False)
    assert (claimed.verdict_correct, claimed.overclaim, claimed.root_cause_correct) == (False, True, None)


def test_an_inconclusive_defect_is_no_root_cause_at_all() -> None:
    scores = score(view(status="inconclusive", kind="undecided"), gold({"path": "a.py"}))
    assert (scores.root_cause_correct, scores.verdict_correct, scores.overclaim) == (None, False, False)


def test_gold_of_a_recipe_names_a_file_only_where_no_function_does() -> None:
    found = read_gold({"verdict": "defect", "files": ["a.py", "b.py"], "functions": ["a.py:A.f"]}, "x")
    assert found.symbols() == {("a.py", "A.f")}
    assert found.files() == {"a.py", "b.py"}
    assert len(found.locations) == 2


DEFECT = {"verdict": "defect"}
PLACE = {"path": "src/a.cpp", "symbol": "f"}


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({}, "verdict is none of"),
        ([], "it is no object"),
        ({"verdict": "maybe"}, "verdict is none of"),
        ({"verdict": ["defect"]}, "verdict is none of"),
        ({**DEFECT, "locations": [{"file": 1}]}, r"locations\[0\].file"),
        ({**DEFECT, "location": [PLACE]}, "unknown key 'location'"),
        ({**DEFECT, "locations": [PLACE], "files": []}, "unknown key 'files'"),
        ({**DEFECT, "locations": PLACE}, "locations is no list"),
        (DEFECT, "a defect needs at least one location"),
        ({**DEFECT, "locations": []}, "a defect needs at least one location"),
        ({**DEFECT, "files": [], "functions": []}, "a defect needs at least one location"),
        ({"verdict": "wrong_premise", "locations": [PLACE]}, "a control has no locations"),
        ({**DEFECT, "locations": [PLACE, {"symbol": "f"}]}, r"locations\[1\]: it has neither path nor table"),
        ({**DEFECT, "locations": [{}]}, "neither path nor table"),
        ({**DEFECT, "locations": [{**PLACE, "table": "t"}]}, "both path and table"),
        ({**DEFECT, "locations": [{"path": "./src/a.cpp"}]}, "is not the plain relative path"),
        ({**DEFECT, "locations": [{"path": "src//a.cpp"}]}, "is not the plain relative path"),
        ({**DEFECT, "locations": [{"path": "../a.cpp"}]}, "is not the plain relative path"),
        ({**DEFECT, "locations": [{"path": "/src/a.cpp"}]}, "is not the plain relative path"),
        ({**DEFECT, "locations": [{"path": "src\\a.cpp"}]}, "is not the plain relative path"),
        ({**DEFECT, "locations": [{"path": "a.cpp "}]}, "is not the plain relative path"),
        ({**DEFECT, "locations": [{"path": ""}]}, "path is empty"),
        ({**DEFECT, "locations": [{**PLACE, "lines": [9, 3]}]}, r"lines \[9, 3\]"),
        ({**DEFECT, "locations": [{**PLACE, "lines": [0, 3]}]}, r"lines \[0, 3\]"),
        ({**DEFECT, "locations": [{**PLACE, "key": {"id": "1"}}]}, "key does not go with path"),
        ({**DEFECT, "locations": [{"table": "t", "lines": [1, 2]}]}, "lines does not go with table"),
        ({**DEFECT, "locations": [{"table": "t", "key": {}}]}, "key is empty"),
        ({**DEFECT, "files": ["./a.py"]}, r"files\[0\]: path './a.py'"),
        ({**DEFECT, "functions": ["a.py"]}, r"functions\[0\] is not 'path:symbol'"),
    ],
)
def test_gold_with_a_slip_is_refused_with_its_place_and_what_is_wrong(document: Any, what: str) -> None:
    """Each was accepted once and silently made a right answer wrong, or a wrong one uncounted."""
    with pytest.raises(InputError, match="gold_invalid") as caught:
        read_gold(document, "corpus/x/gold.json")
    assert caught.value.where == "corpus/x/gold.json"
    assert re.search(what, caught.value.message), caught.value.message


def test_notes_for_people_may_stand_beside_a_gold() -> None:
    found = read_gold({**DEFECT, "locations": [{**PLACE, "lines": [3, 3]}], "why": "an off by one"}, "x")
    assert found.files() == {"src/a.cpp"}


def test_bm25_ranks_the_file_that_shares_rare_words() -> None:
    files = [
        ("src/lift.cpp", "void lift_container(int n) { if (n > limit) refuse(); }"),
        ("src/main.cpp", "int main() { return 0; }"),
        ("src/crane.cpp", "void crane() { move(); container(); }"),
    ]
    assert bm25_files("The lift is refused: liftContainer stops", files)[0] == "src/lift.cpp"
    assert words("liftContainer") == ["liftcontainer", "lift", "container"]


def test_two_runs_are_compared_case_by_case() -> None:
    before = [{"bug_id": f"b{n}", "hit": True} for n in range(8)] + [{"bug_id": "gone", "hit": True}]
    now = [{"bug_id": f"b{n}", "hit": n == 0} for n in range(8)] + [{"bug_id": "new", "hit": None}]
    test = paired(before, now, "hit")
    assert (test.better, test.worse, test.both) == (0, 7, 8)
    assert test.p == pytest.approx(2 * 0.5**7)
    assert test.is_worse
    assert not paired(now, before, "hit").is_worse
    assert paired(now, now, "hit").p == 1.0
