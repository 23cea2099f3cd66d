"""Every gate of the final evaluation rejects what it is there for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.diagnosis_answers import Json, changed, confirmed, evaluation, inconclusive
from tests.support.memory_store import MemoryStore
from viano_assets.evidence.model import Location
from viano_assets.phases.common import decode
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.diagnosis.derive import robustness
from viano_assets.phases.diagnosis.ground import Ground
from viano_assets.phases.diagnosis.inputs import Inputs
from viano_assets.phases.diagnosis.rules import check, effective_confidence
from viano_assets.phases.wire import Confidence

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]
Edit = Callable[[Json, dict[str, str]], Json]


def answer_of(data: Json) -> DiagnosisAnswer:
    decoded = decode(DiagnosisAnswer, data)
    assert isinstance(decoded, DiagnosisAnswer), decoded
    return decoded


def categories(data: Json, ground: Ground) -> set[str]:
    return {issue.category for issue in check(answer_of(data), ground)}


def put(path: str, value: Any) -> Edit:
    return lambda data, names: changed(data, path, value(names) if callable(value) else value)


def test_right_answers_pass(prepared: Prepared) -> None:
    _, inputs, names = prepared
    assert check(answer_of(confirmed(names)), inputs.ground()) == ()
    assert check(answer_of(inconclusive(names)), inputs.ground()) == ()


CONFIRMED: list[tuple[str, Edit, set[str]]] = [
    (
        "unknown hypothesis",
        put("evaluations.2.hypothesis_id", "H9"),
        {"unknown_hypothesis", "missing_hypothesis"},
    ),
    ("twice", put("evaluations.2.hypothesis_id", "H2"), {"duplicate_hypothesis", "missing_hypothesis"}),
    ("missing", lambda d, _: changed(d, "evaluations", d["evaluations"][:2]), {"missing_hypothesis"}),
    ("invented evidence", put("evaluations.1.against.0", "E99"), {"unknown_evidence"}),
    ("invented support", put("evaluations.1.support", ["E97"]), {"unknown_evidence"}),
    (
        "invented evidence of the cause",
        put("root_cause.evidence_ids", ["E99"]),
        {"unknown_evidence", "root_cause_not_in_support", "quote_not_in_evidence", "mechanism_unread"},
    ),
    (
        "invented contradiction",
        put("evaluations.2.contradictions", [{"evidence_id": "E0", "explanation": "x"}]),
        {"unknown_evidence"},
    ),
    ("invented countercheck", put("evaluations.1.countercheck.evidence_ids.0", "E98"), {"unknown_evidence"}),
    ("id of another form", put("evaluations.1.against.0", "e2"), {"unknown_evidence"}),
    ("cited twice", put("evaluations.1.against.1", lambda n: n["stage 1"]), {"duplicate_evidence"}),
    (
        "on both sides",
        put("evaluations.0.against", lambda n: [n["Berth::release"]]),
        {"evidence_on_both_sides", "unexplained_contradiction"},
    ),
    ("support missing", put("evaluations.2.verdict", "supported"), {"support_missing"}),
    (
        "against missing",
        lambda d, _: changed(changed(d, "evaluations.2.verdict", "rejected"), "evaluations.2.against", []),
        {"against_missing"},
    ),
    (
        "countercheck without findings",
        put("evaluations.2.countercheck.adequate", value=True),
        {"countercheck_unfounded"},
    ),
    ("nothing selected", put("selected_hypothesis", None), {"selection_missing"}),
    ("foreign selection", put("selected_hypothesis", "H7"), {"selection_missing"}),
    (
        "unsupported selection",
        put("selected_hypothesis", "H3"),
        {"selected_not_supported", "root_cause_not_in_support", "unexplained_contradiction"},
    ),
    (
        "contradiction not explained",
        put("evaluations.0.against", lambda n: [n["Berth::isFree"]]),
        {"unexplained_contradiction"},
    ),
    ("plausible", put("confidence", "plausible"), {"confidence_below_supported"}),
    ("weakened", put("confidence", "weakened"), {"confidence_below_supported"}),
    ("no root cause", put("root_cause", None), {"root_cause_missing"}),
    (
        "root cause without evidence",
        lambda d, _: changed(
            changed(d, "root_cause.evidence_ids", []), "root_cause.technical_description", "It forgets."
        ),
        {"root_cause_unsupported"},
    ),
    (
        "root cause not in support",
        put("evaluations.0.support", lambda n: [n["log 3"]]),
        {"root_cause_not_in_support"},
    ),
    (
        "no countercheck",
        lambda d, _: changed(
            changed(d, "evaluations.1.countercheck.adequate", value=False),
            "evaluations.1.countercheck.evidence_ids",
            [],
        ),
        {"countercheck_missing"},
    ),
    (
        "only the selected is counterchecked",
        lambda d, n: changed(
            changed(d, "evaluations.1.countercheck.adequate", value=False),
            "evaluations.0.countercheck",
            {"adequate": True, "reason": "x", "evidence_ids": [n["log 3"]]},
        ),
        {"countercheck_missing"},
    ),
    (
        "the tested alternative stands",
        lambda d, n: changed(
            d, "evaluations.1", {**evaluation("H2", "supported", [n["stage 2"]], [n["stage 1"]], tested=True)}
        ),
        {"countercheck_missing"},
    ),
    ("kind given", put("inconclusive_kind", "undecided"), {"kind_on_confirmed"}),
    (
        "inconclusive evidence given",
        put("inconclusive_evidence_ids", lambda n: [n["log 3"]]),
        {"kind_evidence_unexpected"},
    ),
    ("quote invented", put("root_cause.summary", "It sets `moored_ = true;`"), {"quote_not_in_evidence"}),
    (
        "quote of another record",
        put("root_cause.summary", "It tests `tide >= minTide_` first"),
        {"quote_not_in_evidence"},
    ),
    ("quote in a reason invented", put("evaluations.2.reason", "`min_tide = 5`"), {"quote_not_in_evidence"}),
    ("quote in an action invented", put("review_actions", ["See `min_tide = 5`"]), {"quote_not_in_evidence"}),
    (
        "quote in a limit invented",
        put("evaluations.2.scope_limits", ["See `min_tide = 5`"]),
        {"quote_not_in_evidence"},
    ),
    (
        "quote in a countercheck invented",
        put("evaluations.2.countercheck.reason", "`min_tide = 5`"),
        {"quote_not_in_evidence"},
    ),
    (
        "quote in an explanation invented",
        put(
            "evaluations.2.contradictions",
            lambda n: [{"evidence_id": n["log 3"], "explanation": "`min_tide = 5`"}],
        ),
        {"quote_not_in_evidence"},
    ),
    (
        "quote in the uncertainty invented",
        put("remaining_uncertainty", ["`min_tide = 5`"]),
        {"quote_not_in_evidence"},
    ),
    ("quote in the reason invented", put("final_reason", "`min_tide = 5`"), {"quote_not_in_evidence"}),
    ("lone backtick", put("final_reason", "`moored_ = false;"), {"unbalanced_quote"}),
    ("place never read", put("final_reason", "see src/crane.cpp:3"), {"place_not_in_evidence"}),
    ("lines never read", put("final_reason", "see src/berth.cpp:900"), {"line_range_unseen"}),
    ("lines partly read", put("final_reason", "see src/berth.cpp:11-40"), {"line_range_unseen"}),
    ("bare lines never read", put("final_reason", "see line 900"), {"line_range_unseen"}),
    ("place as quote never read", put("final_reason", "see `src/berth.cpp:900`"), {"line_range_unseen"}),
    (
        "true quote of another file does not anchor",
        put("final_reason", "`moored_ = false;` see src/queue.cpp:900"),
        {"line_range_unseen"},
    ),
    (
        "invented quote behind a place",
        put("final_reason", "`src/berth.cpp:12` and `min_tide = 5`"),
        {"quote_not_in_evidence"},
    ),
    ("invented id in the text", put("final_reason", "E77 shows it"), {"unknown_evidence"}),
    (
        "invented row in the text",
        put("final_reason", "the row with stage = 9 shows it"),
        {"row_not_in_evidence"},
    ),
    (
        "neighbouring row as quote",
        put("final_reason", '`{"action":"signal","berth":"3","stage":"2"}`'),
        {"quote_not_in_evidence"},
    ),
    ("patch", put("review_actions", ["diff --git a/x b/x"]), {"change_in_text"}),
    ("data change", put("review_actions", ["UPDATE berth_step SET stage = 2 for it"]), {"change_in_text"}),
    ("insert", put("review_actions", ["then INSERT INTO berth_step the row"]), {"change_in_text"}),
]


@pytest.mark.parametrize(("edit", "expected"), [pytest.param(e, c, id=i) for i, e, c in CONFIRMED])
def test_confirmed_gate(prepared: Prepared, edit: Edit, expected: set[str]) -> None:
    _, inputs, names = prepared
    assert categories(edit(confirmed(names), names), inputs.ground()) == expected


INCONCLUSIVE: list[tuple[str, Edit, set[str]]] = [
    ("something selected", put("selected_hypothesis", "H1"), {"selection_on_inconclusive"}),
    (
        "a root cause",
        lambda d, n: changed(d, "root_cause", confirmed(n)["root_cause"]),
        {"root_cause_on_inconclusive"},
    ),
    ("no action", put("review_actions", []), {"review_actions_missing"}),
    ("no kind", put("inconclusive_kind", None), {"kind_missing"}),
    ("reserved kind", put("inconclusive_kind", "invalid_answers"), {"kind_reserved"}),
    ("intended without evidence", put("inconclusive_kind", "intended_behaviour"), {"kind_evidence_missing"}),
    ("premise without evidence", put("inconclusive_kind", "premise_contradicted"), {"kind_evidence_missing"}),
    (
        "evidence for another kind",
        put("inconclusive_evidence_ids", lambda n: [n["log 3"]]),
        {"kind_evidence_unexpected"},
    ),
    (
        "invented evidence",
        lambda d, _: changed(
            changed(d, "inconclusive_kind", "intended_behaviour"), "inconclusive_evidence_ids", ["E99"]
        ),
        {"unknown_evidence"},
    ),
]


@pytest.mark.parametrize(("edit", "expected"), [pytest.param(e, c, id=i) for i, e, c in INCONCLUSIVE])
def test_inconclusive_gate(prepared: Prepared, edit: Edit, expected: set[str]) -> None:
    _, inputs, names = prepared
    assert categories(edit(inconclusive(names), names), inputs.ground()) == expected


@pytest.mark.parametrize("kind", ["intended_behaviour", "premise_contradicted"])
def test_evidenced_kinds_pass_with_evidence(prepared: Prepared, kind: str) -> None:
    _, inputs, names = prepared
    data = changed(inconclusive(names), "inconclusive_kind", kind)
    data = changed(data, "inconclusive_evidence_ids", [names["conf/harbour.ini"]])
    assert categories(data, inputs.ground()) == set()


ALLOWED: list[tuple[str, Edit]] = [
    ("drifted line with a true quote", put("root_cause.summary", "`moored_ = false;` (src/berth.cpp:999)")),
    ("drifted bare line with a true quote", put("final_reason", "`moored_ = false;` in line 4711")),
    ("lines within what was read", put("final_reason", "see berth.cpp:12-14 and lines 4-9")),
    ("lines a ranking names", put("final_reason", "see src/berth.cpp:18-22")),
    (
        "names in backticks",
        put("final_reason", "`Berth::release`, `release()`, `src/berth.cpp`, `berth_step`, `stage`"),
    ),
    ("a path outside the cause", put("root_cause.summary", "`src/queue.cpp` is never called")),
    ("an id in backticks", put("final_reason", "`E6` and `H1`")),
    ("a row read, by its key", put("final_reason", "the row with stage = 2; `stage=2`; `action = moor`")),
    ("compact cells quoted with spaces", put("final_reason", '`"action": "moor"`')),
    ("the case quoted", put("final_reason", "The log says `berth 3 not assigned, queue has 2 ships`.")),
    ("an error code is no evidence id", put("final_reason", "server.log has no E, see line 3 of it")),
    ("select recommended", put("review_actions", ["Run SELECT on the table of the live system."])),
    (
        "explained contradiction",
        lambda d, n: changed(
            changed(d, "evaluations.0.against", [n["Berth::isFree"]]),
            "evaluations.0.contradictions",
            [{"evidence_id": n["Berth::isFree"], "explanation": "It only reads."}],
        ),
    ),
    (
        "evidence found for another hypothesis",
        put("evaluations.0.support", lambda n: [n["Berth::release"], n["stage 2"]]),
    ),
    (
        "a complete empty query as support",
        put("evaluations.0.support", lambda n: [n["Berth::release"], n["absence"]]),
    ),
]


@pytest.mark.parametrize("edit", [pytest.param(e, id=i) for i, e in ALLOWED])
def test_allowed(prepared: Prepared, edit: Edit) -> None:
    _, inputs, names = prepared
    data = edit(confirmed(names), names)
    assert [i.message for i in check(answer_of(data), inputs.ground())] == []


def caused_by(data: Json, *ids: str, text: str = "It is so.") -> Json:
    data = changed(
        data, "root_cause", {"summary": text, "technical_description": text, "evidence_ids": list(ids)}
    )
    return changed(data, "evaluations.0.support", list(ids))


@pytest.mark.parametrize("name", ["log 3", "ranking"])
def test_mechanism_has_to_be_read(prepared: Prepared, name: str) -> None:
    """A log line or a ranking says where to look; neither shows how it works."""
    _, inputs, names = prepared
    data = changed(caused_by(confirmed(names), names[name]), "final_reason", "So.")
    issues = check(answer_of(data), inputs.ground())
    assert [issue.category for issue in issues] == ["mechanism_unread"]


def test_mechanism_unread_names_the_look(prepared: Prepared) -> None:
    _, inputs, names = prepared
    data = changed(caused_by(confirmed(names), names["search"]), "final_reason", "So.")
    (issue,) = check(answer_of(data), inputs.ground())
    assert "source.read of src/queue.cpp" in issue.hint


@pytest.mark.parametrize("name", ["conf/harbour.ini", "stage 2", "absence", "Queue::step"])
def test_mechanism_kinds(prepared: Prepared, name: str) -> None:
    _, inputs, names = prepared
    data = caused_by(confirmed(names), names[name])
    if name.startswith("stage"):
        data = changed(
            data, "evaluations.1", evaluation("H2", "weakened", [], [names["stage 1"]], tested=True)
        )
    assert categories(data, inputs.ground()) == set()


def test_schema_alone_carries_only_a_quoted_definition(prepared: Prepared) -> None:
    _, inputs, names = prepared
    for text, expected in (
        ("The third step is missing.", {"schema_for_contents"}),
        ("`berth_step` has no third row", {"schema_for_contents"}),
        ("`stage TINYINT UNSIGNED` cannot hold a negative stage.", set()),
    ):
        data = caused_by(confirmed(names), names["schema"], text=text)
        assert categories(data, inputs.ground()) == expected, text


@pytest.mark.parametrize(
    ("tool", "table", "expected"),
    [
        ("source.search", None, {"mechanism_unread"}),
        ("source.search", "berth_step", set()),
        ("db.query", None, set()),
    ],
)
def test_only_a_database_look_proves_data_missing(
    prepared: Prepared, tool: str, table: str | None, expected: set[str]
) -> None:
    _, inputs, names = prepared
    ground = inputs.ground()
    absence = ground.records[names["absence"]]
    provenance = absence.provenance.model_copy(update={"location": Location(table=table)})
    moved = absence.model_copy(update={"tool": tool, "provenance": provenance})
    records = {**ground.records, names["absence"]: moved}
    data = caused_by(confirmed(names), names["absence"])
    assert categories(data, Ground(ground.hypotheses, records, ground.case_texts)) == expected


def test_names_of_stored_places_are_no_quotes(prepared: Prepared) -> None:
    """A table, column, symbol or path may be named although the content itself does not hold it."""
    _, inputs, names = prepared
    ground = inputs.ground()
    place = Location(
        path="db/quay.sql", table="quay_plan", column="wave", symbol="Quay::open", key={"surge": "9"}
    )
    row = ground.records[names["stage 1"]]
    named = row.model_copy(update={"provenance": row.provenance.model_copy(update={"location": place})})
    richer = Ground(ground.hypotheses, {**ground.records, names["stage 1"]: named}, ground.case_texts)
    for name in (
        "quay_plan",
        "wave",
        "quay_plan.wave",
        "Quay::open",
        "open",
        "db/quay.sql",
        "quay.sql",
        "surge",
        "surge=9",
    ):
        data = changed(confirmed(names), "final_reason", f"See `{name}`.")
        assert categories(data, richer) == set(), name
        assert categories(data, ground) == {"quote_not_in_evidence"}, name


def test_an_empty_look_in_an_extract_proves_nothing(prepared_extract: Prepared) -> None:
    _, inputs, names = prepared_extract
    data = changed(caused_by(confirmed(names), names["absence"]), "final_reason", "So.")
    found = categories(data, inputs.ground())
    assert {"incomplete_absence", "mechanism_unread"} <= found


def test_an_unavailable_look_is_never_cited(prepared_extract: Prepared) -> None:
    _, inputs, names = prepared_extract
    gone = next(n for n, r in inputs.records.items() if r.completeness == "unavailable")
    data = changed(confirmed(names), "evaluations.2.against", [gone])
    assert categories(data, inputs.ground()) == {"unavailable_evidence"}


def test_rows_of_an_extract_are_ordinary_evidence(prepared_extract: Prepared) -> None:
    _, inputs, names = prepared_extract
    assert inputs.records[names["stage 1"]].completeness == "partial"
    assert categories(confirmed(names), inputs.ground()) == set()


def test_a_rejected_hypothesis_cannot_be_selected(prepared: Prepared) -> None:
    _, inputs, names = prepared
    ground = inputs.ground()
    rejected = Ground({**ground.hypotheses, "H1": "rejected"}, ground.records, ground.case_texts)
    assert categories(confirmed(names), rejected) == {"rejected_hypothesis_selected"}


def test_long_records_carry_no_cause(prepared: Prepared) -> None:
    _, inputs, names = prepared
    ground = inputs.ground()
    name = names["Berth::release"]
    for lines, expected in ((60, set()), (61, {"evidence_too_long"})):
        body = ground.records[name].content + "\n//" * (lines - 6)
        records = {**ground.records, name: ground.records[name].model_copy(update={"content": body})}
        assert categories(confirmed(names), Ground(ground.hypotheses, records, ground.case_texts)) == expected


def test_issues_name_the_place_and_a_remedy(prepared: Prepared) -> None:
    _, inputs, names = prepared
    data = changed(confirmed(names), "evaluations.1.against.1", "E99")
    (issue,) = check(answer_of(data), inputs.ground())
    assert (issue.path, issue.category) == ("/evaluations/1/against/1", "unknown_evidence")
    assert "E99" in issue.message
    assert issue.hint


@pytest.mark.parametrize("value", [90, 0.9, "9/10", "high", "Supported", None])
def test_only_the_levels_are_confidence(prepared: Prepared, value: object) -> None:
    """B31: nothing is rescaled in silence."""
    _, _, names = prepared
    assert isinstance(decode(DiagnosisAnswer, changed(confirmed(names), "confidence", value)), tuple)


@pytest.mark.parametrize("path", ["root_cause.evidence_ids", "evaluations"])
def test_six_records_or_foreign_fields_are_no_answer(prepared: Prepared, path: str) -> None:
    _, _, names = prepared
    wrong = [names["Berth::release"]] * 6 if path != "evaluations" else [{"hypothesis_id": "H1"}]
    assert isinstance(decode(DiagnosisAnswer, changed(confirmed(names), path, wrong)), tuple)


def test_effective_confidence(prepared: Prepared) -> None:
    _, _, names = prepared
    strong = changed(confirmed(names), "confidence", "strongly_supported")
    assert effective_confidence(answer_of(strong)) is Confidence.STRONGLY_SUPPORTED
    contradicted = changed(strong, "evaluations.0.against", [names["Berth::isFree"]])
    assert effective_confidence(answer_of(contradicted)) is Confidence.SUPPORTED
    unsure = changed(inconclusive(names), "confidence", "strongly_supported")
    assert effective_confidence(answer_of(unsure)) is Confidence.PLAUSIBLE
    assert effective_confidence(answer_of(changed(unsure, "confidence", "weakened"))) is Confidence.WEAKENED


def test_robustness_says_on_which_record_the_result_hangs(prepared: Prepared) -> None:
    _, inputs, names = prepared
    entries = {e["evidence_id"]: e for e in robustness(answer_of(confirmed(names)), inputs.ground())}
    assert not entries[names["Berth::release"]]["stands"]
    assert "root_cause_unsupported" in entries[names["Berth::release"]]["lost"]
    assert entries[names["log 3"]] == {"evidence_id": names["log 3"], "stands": True, "lost": []}
