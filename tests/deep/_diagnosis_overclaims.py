"""Models that always overclaim, driven through the builder until the case is closed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from tests.support.diagnosis_answers import Json, changed, confirmed, evaluation, inputs_of
from tests.support.harbour_case import CASE, Investigator, World, investigated
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.canonical import strict_loads
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.protocols import DispatchStatus

Names = dict[str, str]


def _cause(data: Json, ids: list[str], text: str) -> Json:
    cause = {"summary": text, "technical_description": text, "evidence_ids": ids}
    data = changed(changed(data, "root_cause", cause), "final_reason", "So it is.")
    return changed(data, "evaluations.0.support", ids)


def _no_support(data: Json, names: Names) -> Json:
    del names
    return changed(_cause(data, [], "The queue is forgotten."), "evaluations.0.support", [])


def _foreign(data: Json, names: Names) -> Json:
    del names
    return _cause(data, ["E9001"], "The queue is forgotten.")


def _incomplete_absence(data: Json, names: Names) -> Json:
    return _cause(data, [names["absence"]], "The third stage has no row.")


def _unread(data: Json, names: Names) -> Json:
    return _cause(data, [names["log 3"]], "The queue is forgotten.")


def _untested(data: Json, names: Names) -> Json:
    return changed(data, "evaluations.1", evaluation("H2", "weakened", [], [names["stage 1"]]))


def _unavailable(data: Json, names: Names) -> Json:
    return _cause(data, [names["absence source.search"]], "No one calls it.")


def _schema(data: Json, names: Names) -> Json:
    return _cause(data, [names["schema"]], "The table `berth_step` has no row of stage 3.")


def _quote(data: Json, names: Names) -> Json:
    del names
    return changed(data, "root_cause.summary", "It runs `queue_->clear(shipId);`.")


def _rejected(data: Json, names: Names) -> Json:
    data = changed(data, "selected_hypothesis", "H3")
    data = changed(data, "evaluations.2", evaluation("H3", "supported", [names["conf/harbour.ini"]], []))
    cause = {
        "summary": "The limit is too high.",
        "technical_description": "`min_tide = 4`",
        "evidence_ids": [names["conf/harbour.ini"]],
    }
    return changed(data, "root_cause", cause)


def _below(data: Json, names: Names) -> Json:
    del names
    return changed(data, "confidence", "plausible")


def _both_sides(data: Json, names: Names) -> Json:
    return changed(data, "evaluations.0.against", [names["Berth::release"]])


PATTERNS: dict[str, Callable[[Json, Names], Json]] = {
    "no support ids": _no_support,
    "foreign ids": _foreign,
    "absence from an incomplete scope": _incomplete_absence,
    "mechanism unread": _unread,
    "no countercheck": _untested,
    "unavailable evidence": _unavailable,
    "schema cited for contents": _schema,
    "quote not in the evidence": _quote,
    "rejected hypothesis selected": _rejected,
    "confidence below supported": _below,
}
"""The structurally decidable ones."""


def _correlation(data: Json, names: Names) -> Json:
    text = "Whenever `queue_` runs after `nextCheck_ = now + 15;` the berth is late."
    return _cause(data, [names["Queue::step"]], text.replace("`queue_`", "the queue"))


def _working_code(data: Json, names: Names) -> Json:
    return _cause(data, [names["Berth::isFree"]], "`if (!moored_ && tide >= minTide_)` never lets a ship in.")


UNDECIDABLE: dict[str, Callable[[Json, Names], Json]] = {
    "correlation only": _correlation,
    "working code cited as support": _working_code,
}
"""Well-formed and unfounded: no gate that judges no meaning can see it. Measured, not counted."""


def _case() -> tuple[MemoryStore, Names]:
    store = MemoryStore()
    world = World(filtered=True, unavailable=frozenset({"source.search"}))
    investigator = Investigator(rejected=frozenset({"H3"}))
    head = asyncio.run(investigated(store, world=world, investigator=investigator))
    return store, inputs_of(store, head)[1]


def _drive(edit: Callable[[Json, Names], Json]) -> tuple[list[str], dict[str, Any]]:
    store, names = _case()
    data = edit(confirmed(names), names)
    gateway = ScriptedGateway(lambda _: data)
    builder = DiagnosisBuilder(store, gateway)
    statuses: list[str] = []
    while not statuses or statuses[-1] == DispatchStatus.REJECTED.value:
        statuses.append(asyncio.run(builder.build(CASE)).status.value)
    head = store.latest(CASE)
    document = strict_loads(store.read(head, "analysis/diagnosis/0001/diagnosis_result.json"))
    if not isinstance(document, dict):
        raise TypeError("the result is no object")
    return statuses, document


def overclaims() -> dict[str, int]:
    """Return how many overclaim patterns there are and how many were not rejected to the end."""
    wrong = 0
    for name, edit in PATTERNS.items():
        statuses, document = _drive(edit)
        diagnosis: Any = document["diagnosis"]
        right = (
            statuses == ["REJECTED", "REJECTED", "COMPLETED"]
            and diagnosis["inconclusive_kind"] == "invalid_answers"
            and diagnosis["root_cause"] is None
        )
        wrong += not right
        if not right:
            sys.stderr.write(f"overclaim passed: {name}: {statuses} {diagnosis['status']}\n")
    for name, edit in UNDECIDABLE.items():
        diagnosis = _drive(edit)[1]["diagnosis"]
        sys.stderr.write(f"undecidable by structure: {name}: ends {diagnosis['status']}\n")
    return {"overclaims": len(PATTERNS), "overclaims_accepted": wrong}
