"""Ranked places come from stored provenance, in the contract's order, each once."""

from __future__ import annotations

from typing import Any

from tests.support.diagnosis_answers import Json, changed, confirmed, inconclusive
from tests.support.memory_store import MemoryStore
from viano_assets.evidence.model import Completeness, EvidenceRecord, Location, Provenance
from viano_assets.phases.common import decode
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.diagnosis.derive import (
    deciding_question,
    invalid_answers,
    not_examined,
    review_order,
)
from viano_assets.phases.diagnosis.inputs import Inputs
from viano_assets.phases.diagnosis.localisation import MAX_PLACES, Standing, localise
from viano_assets.phases.wire import Confidence

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]


def answer_of(data: Json) -> DiagnosisAnswer:
    decoded = decode(DiagnosisAnswer, data)
    assert isinstance(decoded, DiagnosisAnswer), decoded
    return decoded


def record(
    name: str, kind: Any, location: Location, *, content: str = "x", places: tuple[Location, ...] = ()
) -> EvidenceRecord:
    return EvidenceRecord(
        evidence_id=name,
        tool="source.read",
        arguments={},
        scope={},
        completeness=Completeness.COMPLETE,
        content=content,
        content_sha256="0" * 64,
        provenance=Provenance(kind=kind, location=location),
        places=places,
        bytes=1,
    )


def places(ranked: dict[str, Any], kind: str) -> list[tuple[Any, ...]]:
    names = {"files": ("path",), "symbols": ("symbol",), "rows": ("table", "key")}[kind]
    return [(*(place[name] for name in names), place["basis"]) for place in ranked[kind]]


def test_cited_before_retrieved_and_the_cause_first(prepared: Prepared) -> None:
    _, inputs, names = prepared
    ranked = localise(answer_of(confirmed(names)), inputs.standings(), inputs.records)
    assert places(ranked, "files") == [
        ("src/berth.cpp", "cited"),
        ("src/queue.cpp", "retrieved"),
        ("conf/harbour.ini", "retrieved"),
    ]
    assert places(ranked, "symbols")[:2] == [("Berth::release", "cited"), ("Berth::isFree", "retrieved")]
    assert ("Queue::step", "retrieved") in places(ranked, "symbols")
    assert ranked["files"][0]["evidence_ids"][0] == names["Berth::release"]


def test_evidence_against_a_hypothesis_is_no_place_of_the_fault(prepared: Prepared) -> None:
    """What refutes an alternative was read somewhere; the fault is not there for that reason."""
    _, inputs, names = prepared
    ranked = localise(answer_of(confirmed(names)), inputs.standings(), inputs.records)
    assert {place["basis"] for place in ranked["rows"]} == {"retrieved"}
    data = changed(confirmed(names), "evaluations.1.support", [names["stage 1"]])
    data = changed(data, "evaluations.1.against", [names["stage 2"]])
    ranked = localise(answer_of(data), inputs.standings(), inputs.records)
    assert [place["key"]["stage"] for place in ranked["rows"] if place["basis"] == "cited"] == ["1"]


def test_a_symbol_has_its_whole_span() -> None:
    whole = Location(path="a.py", symbol="work", line_start=10, line_end=60)
    line = Location(path="a.py", symbol="work", line_start=12, line_end=12)
    records = {"E1": record("E1", "ranking", Location(), places=(whole,)), "E2": record("E2", "source", line)}
    (symbol,) = localise(_citing("E2"), (), records)["symbols"]
    assert (symbol["line_start"], symbol["line_end"], symbol["basis"]) == (10, 60, "cited")


def test_log_and_case_are_no_fault_places(prepared: Prepared) -> None:
    _, inputs, names = prepared
    ranked = localise(answer_of(confirmed(names)), inputs.standings(), inputs.records)
    assert "server.log" not in {place["path"] for place in ranked["files"]}


def test_order_of_an_inconclusive_result_follows_the_effective_confidence(prepared: Prepared) -> None:
    _, inputs, names = prepared
    answer = answer_of(inconclusive(names))
    standings = (
        Standing("H1", "closed", Confidence.WEAKENED),
        Standing("H2", "closed", Confidence.WEAKENED),
        Standing("H3", "closed", Confidence.PLAUSIBLE),
    )
    ranked = localise(answer, standings, inputs.records)
    assert places(ranked, "files")[:2] == [("src/berth.cpp", "cited"), ("src/queue.cpp", "retrieved")]
    first = changed(inconclusive(names), "evaluations.2.support", [names["Queue::step"]])
    ranked = localise(answer_of(first), standings, inputs.records)
    assert ranked["files"][0]["path"] == "src/queue.cpp"
    rejected = (*standings[:2], Standing("H3", "rejected", Confidence.PLAUSIBLE))
    assert localise(answer_of(first), rejected, inputs.records)["files"][0]["path"] == "src/berth.cpp"


def test_what_shows_why_nothing_is_concluded_comes_after_what_supports_a_hypothesis(
    prepared: Prepared,
) -> None:
    """A passage that calls the behaviour intended is no place of a fault; it stays cited."""
    _, inputs, names = prepared
    data = changed(inconclusive(names), "inconclusive_evidence_ids", [names["conf/harbour.ini"]])
    ranked = localise(answer_of(data), inputs.standings(), inputs.records)
    assert places(ranked, "files")[:2] == [("src/berth.cpp", "cited"), ("conf/harbour.ini", "cited")]


def test_lines_get_the_symbol_that_encloses_them() -> None:
    records = {
        "E1": record(
            "E1",
            "ranking",
            Location(),
            places=(
                Location(path="a.py", symbol="Outer", line_start=1, line_end=90),
                Location(path="a.py", symbol="Outer.inner", line_start=10, line_end=20),
                Location(path="b.py", symbol="other", line_start=1, line_end=90),
            ),
        ),
        "E2": record("E2", "source", Location(path="a.py", line_start=12, line_end=14)),
    }
    ranked = localise(_citing("E2"), (), records)
    assert ranked["symbols"][0] == {
        "path": "a.py",
        "symbol": "Outer.inner",
        "line_start": 10,
        "line_end": 20,
        "basis": "cited",
    }


def test_a_quote_narrows_a_long_read_to_the_function_it_stands_in() -> None:
    content = "\n".join(f"line {number}" for number in range(1, 41))
    places_ = (
        Location(path="a.py", symbol="first", line_start=1, line_end=20),
        Location(path="a.py", symbol="second", line_start=21, line_end=40),
    )
    records = {
        "E1": record("E1", "ranking", Location(), places=places_),
        "E2": record("E2", "source", Location(path="a.py", line_start=1, line_end=40), content=content),
    }
    assert localise(_citing("E2"), (), records)["symbols"][0]["symbol"] == "first"
    quoting = _citing("E2", text="It stops at `line 33`.")
    assert localise(quoting, (), records)["symbols"][0]["symbol"] == "second"


def test_rows_keep_their_key_and_an_absent_row_is_a_place(prepared: Prepared) -> None:
    _, inputs, names = prepared
    ranked = localise(_citing(names["absence"]), inputs.standings(), inputs.records)
    assert ranked["rows"][0] == {
        "table": "berth_step",
        "key": {"berth": "3", "stage": "3"},
        "column": None,
        "basis": "cited",
    }


def test_a_cited_search_cites_its_few_hits_and_none_of_many() -> None:
    hits = tuple(Location(path=f"f{n}.py", line_start=1, line_end=1) for n in range(6))
    few = {"E1": record("E1", "search", Location(), places=hits[:5])}
    many = {"E1": record("E1", "search", Location(), places=hits)}
    assert {p["basis"] for p in localise(_citing("E1"), (), few)["files"]} == {"cited"}
    assert {p["basis"] for p in localise(_citing("E1"), (), many)["files"]} == {"retrieved"}


def test_the_dump_of_a_row_is_no_fault_place() -> None:
    row = Location(path="world.sql", table="berth_step", key={"berth": "3"})
    ranked = localise(_citing("E1"), (), {"E1": record("E1", "row", row)})
    assert ranked["files"] == []
    assert [place["table"] for place in ranked["rows"]] == ["berth_step"]


def test_lists_are_capped() -> None:
    hits = tuple(Location(path=f"f{n}.py") for n in range(80))
    ranked = localise(_citing(), (), {"E1": record("E1", "ranking", Location(), places=hits)})
    assert [p["path"] for p in ranked["files"]] == [f"f{n}.py" for n in range(MAX_PLACES)]


def _citing(*ids: str, text: str = "So.") -> DiagnosisAnswer:
    cause = {"summary": text, "technical_description": text, "evidence_ids": list(ids)}
    data: Json = {
        "status": "confirmed",
        "inconclusive_kind": None,
        "selected_hypothesis": None,
        "root_cause": cause,
        "confidence": "supported",
        "evaluations": [],
        "inconclusive_evidence_ids": [],
        "remaining_uncertainty": [],
        "final_reason": "So.",
        "review_actions": [],
    }
    return answer_of(data)


def test_without_accepted_answer_the_last_reviews_rank(prepared: Prepared) -> None:
    _, inputs, _ = prepared
    answer = invalid_answers(inputs, 3)
    order = review_order(inputs, answer)
    ranked = localise(answer, inputs.standings(), inputs.records, order)
    assert ranked["files"][0]["basis"] == "cited"
    assert order
    assert answer.root_cause is None
    assert {evaluation.verdict.value for evaluation in answer.evaluations} == {"undetermined"}


def test_the_deciding_question_separates_the_top_two(prepared: Prepared) -> None:
    _, inputs, names = prepared
    question = deciding_question(inputs, answer_of(inconclusive(names)))
    assert question is not None
    assert "H1" in question
    assert "The opposite of: release() frees the berth" in question
    assert deciding_question(inputs, answer_of(confirmed(names))) is None


def test_not_examined_joins_the_limits_of_loop_answer_and_report(prepared: Prepared) -> None:
    _, inputs, names = prepared
    data = changed(confirmed(names), "evaluations.1.scope_limits", ["The other tables."])
    found = not_examined(inputs, answer_of(data))
    assert "H2: The other tables." in found
    assert "Not in the report: The tide at the time of the failure." in found
    assert len(found) == len(set(found))
