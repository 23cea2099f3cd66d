"""The published documents of a diagnosis, and their canonical bytes.

`diagnosis` is the strict payload; everything beside it is derived by the controller from stored facts.
No part of `diagnosis` or `localisation` holds a time, UUID, generation number or call id: "the same
diagnosis" means the same bytes of these two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.canonical import canonical_json
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.package.model import Head
from viano_assets.phases.calls import SavedCall
from viano_assets.phases.common import Binding, FrozenContext
from viano_assets.phases.diagnosis.contract import CONTRACT, DiagnosisAnswer
from viano_assets.phases.diagnosis.derive import (
    deciding_question,
    not_examined,
    review_order,
    robustness,
)
from viano_assets.phases.diagnosis.inputs import Inputs, hypothesis_section
from viano_assets.phases.diagnosis.localisation import cited_order, localise, place_order
from viano_assets.phases.diagnosis.rules import effective_confidence

MAX_ADDED = 3
"""How many uncited records are shown when nothing cited stands at a place."""

SCHEMA = "diagnosis-result-v1"
FAILURE_SCHEMA = "failure-report-v1"
CONTROLLER = "diagnosis-controller-4"
"""Version of everything that is derived. A change of what a result derives needs the next number."""

EARLIER_CONTROLLERS: Mapping[str, str | None] = {
    "diagnosis-controller-1": "en",
    "diagnosis-controller-2": None,
    "diagnosis-controller-3": None,
}
"""Versions whose results are held by their hashes and not derived anew.

The value is the language they spoke whatever the report's was; None for the report's.
"""


def payload_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the canonical bytes of the strict payload of a result document."""
    return canonical_json(document["diagnosis"])


def localisation_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the canonical bytes of the ranked places of a result document."""
    return canonical_json(document["localisation"])


def result_document(
    head: Head,
    context: FrozenContext,
    inputs: Inputs,
    answer: DiagnosisAnswer,
    *,
    call: SavedCall | None,
    rejections: Sequence[Binding],
    analyst_disagreement: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the content of `diagnosis_result.json`."""
    evaluations = {e.hypothesis_id: e.model_dump(mode="json") for e in answer.evaluations}
    extra = [] if place_order(answer, inputs.standings()) else review_order(inputs, answer)
    return {
        "schema": SCHEMA,
        "controller": CONTROLLER,
        "contract": CONTRACT,
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "title": inputs.interpretation.case.title,
        "language": inputs.interpretation.case.language,
        "context": context.binding.as_json(),
        "call": None if call is None else call.as_json(),
        "rejected_answers": [binding.as_json() for binding in rejections],
        "diagnosis": answer.model_dump(mode="json"),
        "requested_confidence": answer.confidence.value,
        "effective_confidence": effective_confidence(answer).value,
        "shown_evidence": _shown(answer, inputs, extra),
        "cited_kinds": _cited_kinds(answer, inputs, extra),
        "localisation": localise(answer, inputs.standings(), inputs.records, extra),
        "hypotheses": [
            {**hypothesis_section(end), "evaluation": evaluations.get(end.hypothesis_id)}
            for end in inputs.investigation.hypotheses
        ],
        "not_examined": not_examined(inputs, answer),
        "deciding_question": deciding_question(inputs, answer),
        "calibration": context.data["calibration"],
        "robustness": robustness(answer, inputs.ground()),
        "analyst_disagreement": None if analyst_disagreement is None else dict(analyst_disagreement),
    }


def _shown(answer: DiagnosisAnswer, inputs: Inputs, extra: Sequence[str]) -> list[str]:
    """Return the records a report shows with their excerpts: the cited, or those the loop cited.

    Without any record that stands at a place, the first ones that do are added: a result without a
    place to look at helps nobody.
    """
    ids = list(dict.fromkeys([*cited_order(answer, inputs.standings()), *extra]))
    placed = [name for name, record in inputs.records.items() if _has_place(record)]
    if not set(placed) & set(ids):
        ids = [*placed[:MAX_ADDED], *ids]
    if extra:
        ids.sort(key=lambda name: name not in placed)
    return ids


def _has_place(record: EvidenceRecord) -> bool:
    location = record.provenance.location
    return location.path is not None or location.table is not None


def _cited_kinds(answer: DiagnosisAnswer, inputs: Inputs, extra: Sequence[str]) -> list[str]:
    """Return, in cited order, which kinds of place the cited evidence stands for."""
    kinds: list[str] = []
    for name in [*place_order(answer, inputs.standings()), *extra]:
        location = inputs.records[name].provenance.location
        if location.table is not None:
            kinds.append("rows")
        elif location.path is not None and inputs.records[name].provenance.kind not in {"case", "log"}:
            kinds.append("symbols")
    return list(dict.fromkeys(kinds))


def failure_document(document: Mapping[str, Any], result_sha256: str, result_path: str) -> dict[str, Any]:
    """Return the content of `failure_report.json` of an inconclusive result."""
    diagnosis = document["diagnosis"]
    return {
        "schema": FAILURE_SCHEMA,
        "case_id": document["case_id"],
        "package_id": document["package_id"],
        "analysis_revision": document["analysis_revision"],
        "result": Binding(result_path, result_sha256).as_json(),
        "routing": "review",
        "inconclusive_kind": diagnosis["inconclusive_kind"],
        "reason": diagnosis["final_reason"],
        "review_actions": diagnosis["review_actions"],
        "remaining_uncertainty": diagnosis["remaining_uncertainty"],
        "deciding_question": document["deciding_question"],
        "not_examined": document["not_examined"],
        "rejected_answers": document["rejected_answers"],
        "hypotheses": [
            {
                "id": item["id"],
                "title": item["title"],
                "status": item["status"],
                "terminal_reason": item["terminal_reason"],
                "effective_confidence": item["effective_confidence"],
                "open_questions": [*item.get("open_questions", ()), *item["questions"]],
            }
            for item in document["hypotheses"]
        ],
    }


def cited_ids(document: Mapping[str, Any]) -> list[str]:
    """Return every evidence id a result document cites, claim first, each once."""
    diagnosis = document["diagnosis"]
    cause = diagnosis["root_cause"]
    ids: list[str] = [*(cause["evidence_ids"] if cause else ()), *diagnosis["inconclusive_evidence_ids"]]
    selected = diagnosis["selected_hypothesis"]
    for evaluation in sorted(diagnosis["evaluations"], key=lambda e: e["hypothesis_id"] != selected):
        ids += [*evaluation["support"], *evaluation["against"], *evaluation["countercheck"]["evidence_ids"]]
        ids += [contradiction["evidence_id"] for contradiction in evaluation["contradictions"]]
    return list(dict.fromkeys(ids))
