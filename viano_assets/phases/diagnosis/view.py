"""The one view of a case that people and programs are shown (`viano case show`, `viano run --json`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from viano_assets.budget.manager import BudgetManager
from viano_assets.case.lifecycle import stage_of
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.evidence.store import EvidenceStore
from viano_assets.package.model import Head
from viano_assets.partitions import CaseRevision
from viano_assets.phases.common import artifact_path, read_json
from viano_assets.phases.diagnosis.published import FAILURE, REPORT, RESULT
from viano_assets.phases.diagnosis.result import cited_ids
from viano_assets.phases.investigation.artifacts import InvestigationDocument
from viano_assets.phases.protocols import Phase, Store
from viano_assets.phases.rounds import model_rounds

_STATES = (
    (Phase.CHANGE_REQUEST, "change_request.json", "OUTPUT_READY"),
    (Phase.DIAGNOSIS, FAILURE, "FAILED_TO_ANALYZE"),
    (Phase.DIAGNOSIS, "context.json", "BUILDING_DIAGNOSIS"),
    (Phase.INVESTIGATION, "context.json", "INVESTIGATING_HYPOTHESES"),
    (Phase.HYPOTHESES, "context.json", "GENERATING_HYPOTHESES"),
    (Phase.INTERPRETATION, "context.json", "INTERPRETING"),
)


def evidence_records(store: Store, head: Head, revision: int) -> tuple[EvidenceRecord, ...]:
    """Return the stored evidence of one analysis revision in order of its ids."""
    return tuple(EvidenceStore.load(store, _at(head, revision)).records)


def case_view(store: Store, head: Head, revision: int) -> dict[str, Any]:
    """Return what is known of one analysis revision; null or empty where a phase is missing.

    `stage` is the lifecycle `state`, or the name of what is done once the phase of that state has ended.
    Evidence is listed with the cited records first. `spend.units` are investigation units net of rewards,
    `cost` is null when a price is unknown, `seconds` are those of model calls.
    """
    document = _optional(store, head, artifact_path(Phase.DIAGNOSIS, revision, RESULT))
    records = evidence_records(store, head, revision)
    overlay = head.manifest.overlay if revision == head.revision else None
    report = artifact_path(Phase.DIAGNOSIS, revision, REPORT)
    state = _state(head, revision)
    empty: dict[str, Any] = {"files": [], "symbols": [], "rows": []}
    return {
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": revision,
        "partition_key": CaseRevision(head.case_id, revision).key,
        "generation": head.generation,
        "state": state,
        "stage": stage_of(state, head.checkpoints, revision),
        "overlay": None if overlay is None else dataclasses.asdict(overlay),
        "routing": head.manifest.routing if revision == head.revision else None,
        "diagnosis": None if document is None else _diagnosis(document),
        "localisation": empty if document is None else document["localisation"],
        "hypotheses": _hypotheses(store, head, revision, document),
        "evidence": _evidence(records, document),
        "spend": _spend(store, head, revision),
        "not_examined": _not_examined(store, head, revision, document),
        "deciding_question": None if document is None else document["deciding_question"],
        "calibration": None if document is None else document["calibration"],
        "robustness": [] if document is None else document["robustness"],
        "analyst_disagreement": None if document is None else document["analyst_disagreement"],
        "report_artifact": report if report in head.files else None,
    }


def _at(head: Head, revision: int) -> Head:
    if revision == head.revision:
        return head
    return dataclasses.replace(head, manifest=dataclasses.replace(head.manifest, analysis_revision=revision))


def _optional(store: Store, head: Head, path: str) -> dict[str, Any] | None:
    return read_json(store, head, path) if path in head.files else None


def _state(head: Head, revision: int) -> str:
    if revision == head.revision:
        return head.manifest.lifecycle
    for phase, name, state in _STATES:
        if artifact_path(phase, revision, name) in head.files:
            return state
    return "ASSEMBLED"


def _diagnosis(document: Mapping[str, Any]) -> dict[str, Any]:
    payload = document["diagnosis"]
    return {
        "status": payload["status"],
        "inconclusive_kind": payload["inconclusive_kind"],
        "selected_hypothesis": payload["selected_hypothesis"],
        "confidence": document["effective_confidence"],
        "requested_confidence": document["requested_confidence"],
        "root_cause": payload["root_cause"],
        "remaining_uncertainty": payload["remaining_uncertainty"],
        "review_actions": payload["review_actions"],
        "final_reason": payload["final_reason"],
    }


def _investigation(store: Store, head: Head, revision: int) -> InvestigationDocument | None:
    path = artifact_path(Phase.INVESTIGATION, revision, "investigation.json")
    if path not in head.files:
        return None
    return InvestigationDocument.model_validate_json(store.read(head, path))


def _hypotheses(
    store: Store, head: Head, revision: int, document: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    if document is not None:
        return [_hypothesis(item, item["evaluation"]) for item in document["hypotheses"]]
    finished = _investigation(store, head, revision)
    if finished is not None:
        from viano_assets.phases.diagnosis.inputs import hypothesis_section  # noqa: PLC0415

        return [_hypothesis(hypothesis_section(end), None) for end in finished.hypotheses]
    registry = _optional(store, head, artifact_path(Phase.HYPOTHESES, revision, "registry.json"))
    proposals = _optional(store, head, artifact_path(Phase.HYPOTHESES, revision, "hypotheses.json"))
    if registry is None or proposals is None:
        return []
    return [_hypothesis(item, None) for item in proposals.get("hypotheses", [])]


def _hypothesis(item: Mapping[str, Any], evaluation: Mapping[str, Any] | None) -> dict[str, Any]:
    review = item.get("last_review") or {}
    return {
        "id": item["id"],
        "title": item["title"],
        "mechanism": item.get("mechanism"),
        "status": item.get("status", "new"),
        "terminal_reason": item.get("terminal_reason"),
        "requested_confidence": item.get("requested_confidence"),
        "effective_confidence": item.get("effective_confidence") or item.get("confidence"),
        "verdict": None if evaluation is None else evaluation["verdict"],
        "reason": review.get("reason") if evaluation is None else evaluation["reason"],
        "support": list(review.get("support", ()) if evaluation is None else evaluation["support"]),
        "against": list(review.get("against", ()) if evaluation is None else evaluation["against"]),
        "countercheck": None if evaluation is None else evaluation["countercheck"],
        "scope_limits": [] if evaluation is None else evaluation["scope_limits"],
        "questions": [*item.get("open_questions", ()), *item.get("questions", ())],
    }


def _evidence(
    records: tuple[EvidenceRecord, ...], document: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    cited = cited_ids(document) if document is not None else []
    first = document["shown_evidence"] if document is not None else []
    order = {name: number for number, name in enumerate(first)}
    ranked = sorted(records, key=lambda record: order.get(record.evidence_id, len(order)))
    return [_record(record, record.evidence_id in cited) for record in ranked]


def _record(record: EvidenceRecord, cited: bool) -> dict[str, Any]:
    location = record.provenance.location
    return {
        "evidence_id": record.evidence_id,
        "tool": record.tool,
        "kind": record.provenance.kind,
        "path": location.path,
        "line_start": location.line_start,
        "line_end": location.line_end,
        "symbol": location.symbol,
        "table": location.table,
        "key": location.key,
        "column": location.column,
        "excerpt": record.content,
        "completeness": record.completeness.value,
        "cited": cited,
    }


def _not_examined(store: Store, head: Head, revision: int, document: Mapping[str, Any] | None) -> list[str]:
    if document is not None:
        return list(document["not_examined"])
    finished = _investigation(store, head, revision)
    return [] if finished is None else [item.text for item in finished.not_examined]


def _spend(store: Store, head: Head, revision: int) -> dict[str, Any]:
    units = BudgetManager(store).ledger(head, revision).snapshot().net_spent
    details = [checkpoint.detail for checkpoint in model_rounds(head, revision)]
    rounds = [detail["spend"] for detail in details if "spend" in detail]
    priced = not any(spend["unpriced"] for spend in rounds)
    cost = sum((Decimal(spend["cost"]) for spend in rounds), Decimal(0))
    return {
        "units": units,
        "tokens_in": sum(spend["tokens_in"] for spend in rounds),
        "tokens_out": sum(spend["tokens_out"] for spend in rounds),
        "cost": float(cost) if priced else None,
        "seconds": sum(spend["milliseconds"] for spend in rounds) / 1_000,
    }
