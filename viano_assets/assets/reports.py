"""What Dagster is told about a published phase: data version, metadata for people, evaluated checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from resources.session import Session
from viano_assets.assets.plots import balance_plot
from viano_assets.assets.run_types import CheckReport, PhaseReport
from viano_assets.budget.manager import BudgetManager
from viano_assets.case.assembler import case_path, load_case
from viano_assets.errors import VianoError
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.evidence.verify import verify_records
from viano_assets.package.model import Head
from viano_assets.phases.common import artifact_path, read_json
from viano_assets.phases.diagnosis.places import heading, view_places
from viano_assets.phases.diagnosis.summary import limits_shown, location_text
from viano_assets.phases.diagnosis.view import case_view, evidence_records
from viano_assets.phases.investigation.summary import balance_series, evidence_rows
from viano_assets.phases.markdown import code
from viano_assets.phases.protocols import Phase

MAIN = {
    Phase.INTERPRETATION: ("interpretation.json", "interpretation.md"),
    Phase.HYPOTHESES: ("registry.json", "hypotheses.md"),
    Phase.INVESTIGATION: ("investigation.json", "investigation.md"),
    Phase.DIAGNOSIS: ("diagnosis_result.json", "diagnosis_result.md"),
    Phase.CHANGE_REQUEST: ("change_request.json", "change_request.md"),
}
"""Per phase the artifact whose hash is the data version, and its summary for people."""


def case_report(session: Session, head: Head, key: str, revision: int) -> PhaseReport:
    """Report the asset `case` of a partition."""
    document = load_case(session.store, head, revision)
    raw = head.raw_inputs()
    changed = [item.path for item in document.inputs if raw.get(item.path) != item.sha256]
    types = Counter(source.type.value for source in document.sources)
    metadata = {
        "title": document.title,
        "language": document.language,
        "sources": len(document.sources),
        "sources by type": dict(sorted(types.items())),
        "inputs": [item.model_dump() for item in document.inputs],
        "notes": list(document.notes),
        "generation": head.generation,
    }
    check = CheckReport(
        "inputs_unchanged",
        not changed,
        "Every raw input has the bytes it was imported with." if not changed else "Raw inputs changed.",
        {"changed": changed, "inputs": len(document.inputs)},
    )
    version = head.files[case_path(revision)].sha256
    return PhaseReport(key, None, published=True, data_version=version, metadata=metadata, checks=[check])


def phase_report(session: Session, head: Head, key: str, revision: int, phase: Phase) -> PhaseReport:
    """Report a published phase of a partition; an unpublished one is reported as failed."""
    main, summary = (artifact_path(phase, revision, name) for name in MAIN[phase])
    if main not in head.files:
        return PhaseReport(
            key,
            phase,
            published=False,
            failed=True,
            code="not_published",
            message="this revision ended before the phase and is no longer current",
            hint="materialise the newest revision of the case",
        )
    own = _OF_PHASE[phase](session, head, revision)
    metadata: dict[str, Any] = {}
    if summary in head.files:
        metadata["summary"] = "# " + session.store.read(head, summary).decode("utf-8").lstrip("# ")
    metadata |= {**own.metadata, "artifact": main, "generation": head.generation}
    return PhaseReport(
        key,
        phase,
        published=True,
        data_version=head.files[main].sha256,
        metadata=metadata,
        checks=own.checks,
    )


def _standing(item: Mapping[str, Any]) -> str:
    level = item["effective_confidence"] or "unassessed"
    asked = item["requested_confidence"]
    capped = f" (asked for {asked})" if asked and asked != level else ""
    return f"{item['id']}  {item['title']}: {level}{capped}, {item['status']}"


def _verdict(diagnosis: Mapping[str, Any]) -> str:
    if diagnosis["status"] == "confirmed":
        return f"confirmed, {diagnosis['confidence']}: {diagnosis['root_cause']['summary']}"
    return f"inconclusive, {diagnosis['inconclusive_kind']}: {diagnosis['final_reason']}"


def _where(view: Mapping[str, Any]) -> str | None:
    """Return the places as Markdown, one a line, in the order of the report; None when there is none."""
    places = view_places(view)
    first = f"##### {heading(confirmed=view['diagnosis']['status'] == 'confirmed')}"
    lines = [f"- {kind} {code(location_text(item))} ({item['basis']})" for kind, item in places]
    return "\n".join([first, "", *lines]) if lines else None


class _Own:
    """A phase's own metadata and checks."""

    def __init__(self, metadata: Mapping[str, Any], checks: Sequence[CheckReport] = ()) -> None:
        self.metadata = metadata
        self.checks = checks


def _interpretation(session: Session, head: Head, revision: int) -> _Own:
    document = read_json(
        session.store, head, artifact_path(Phase.INTERPRETATION, revision, "interpretation.json")
    )
    statements = document["statements"]
    known = {source.id for source in load_case(session.store, head, revision).sources}
    uncited = [s["id"] for s in statements if not s["source_ids"] or not set(s["source_ids"]) <= known]
    counts = Counter(s["category"] for s in statements)
    check = CheckReport(
        "cites_sources",
        not uncited,
        "Every statement cites sources of this case." if not uncited else "Statements without a source.",
        {"statements": len(statements), "uncited": uncited},
    )
    return _Own({"statements": len(statements), "by category": dict(sorted(counts.items()))}, [check])


def _hypotheses(session: Session, head: Head, revision: int) -> _Own:
    registry = read_json(session.store, head, artifact_path(Phase.HYPOTHESES, revision, "registry.json"))
    policy = read_json(session.store, head, artifact_path(Phase.HYPOTHESES, revision, "policy.json"))
    count, lowest, highest = registry["created_count"], policy["min_hypotheses"], policy["max_hypotheses"]
    within = lowest <= count <= highest
    check = CheckReport(
        "registry_bounds",
        within,
        f"{count} hypotheses, the policy allows {lowest} to {highest}.",
        {"created": count, "minimum": lowest, "maximum": highest},
    )
    return _Own({"hypotheses": count, "remaining slots": registry["remaining_slots"]}, [check])


def _investigation(session: Session, head: Head, revision: int) -> _Own:
    ledger = BudgetManager(session.store).ledger(head, revision)
    records = evidence_records(session.store, head, revision)
    view = case_view(session.store, head, revision)
    series = balance_series(ledger.entries)
    metadata = {
        "budget per hypothesis": balance_plot(series),
        "evidence records": len(records),
        "hypotheses": "\n".join(map(_standing, view["hypotheses"])),
        "not examined": limits_shown(view["not_examined"], view["hypotheses"]),
        "spend": view["spend"],
        "evidence": [row._asdict() for row in evidence_rows(records)][:200],
    }
    return _Own(metadata, [_settled(session, head, revision), _resolves(session, head, records)])


def _settled(session: Session, head: Head, revision: int) -> CheckReport:
    try:
        snapshot = BudgetManager(session.store).ledger(head, revision).snapshot()
    except VianoError as error:
        return CheckReport("budget_settled", passed=False, description=str(error))
    return CheckReport(
        "budget_settled",
        passed=True,
        description="Every reservation is settled or released; no balance is negative.",
        metadata={"net spent": snapshot.net_spent},
    )


def _resolves(session: Session, head: Head, records: Sequence[EvidenceRecord]) -> CheckReport:
    broken = verify_records(records, head, session.tools.open(session.store, head))
    return CheckReport(
        "evidence_resolves",
        not broken,
        "Every record still stands in the inputs." if not broken else "Records no longer hold.",
        {"records": len(records), "broken": [item._asdict() for item in broken]},
    )


def _diagnosis(session: Session, head: Head, revision: int) -> _Own:
    view = case_view(session.store, head, revision)
    diagnosis = view["diagnosis"]
    stored = {record["evidence_id"] for record in view["evidence"]}
    cited = {i for h in view["hypotheses"] for i in [*h["support"], *h["against"]]}
    cited |= set((diagnosis["root_cause"] or {}).get("evidence_ids", []))
    foreign = sorted(cited - stored)
    confirmed = diagnosis["status"] == "confirmed"
    tested = [h["id"] for h in view["hypotheses"] if (h["countercheck"] or {}).get("adequate")]
    metadata = {
        "verdict": _verdict(diagnosis),
        "where": _where(view),
        "deciding question": view["deciding_question"],
        "spend": view["spend"],
    }
    checks = [
        CheckReport(
            "cites_stored_evidence",
            not foreign,
            "Every cited id is stored evidence." if not foreign else "Ids that nobody stored.",
            {"cited": len(cited), "foreign": foreign},
        ),
        CheckReport(
            "countercheck_present",
            bool(tested) or not confirmed,
            f"Tested alternatives: {', '.join(tested) or 'none'}.",
            {"tested": tested},
        ),
        CheckReport(
            "conclusive",
            confirmed,
            "Confirmed."
            if confirmed
            else f"Inconclusive: {diagnosis['inconclusive_kind']}; a person decides.",
            {"status": diagnosis["status"]},
            warn_only=True,
        ),
    ]
    return _Own(metadata, checks)


def _change_request(session: Session, head: Head, revision: int) -> _Own:
    document = read_json(
        session.store, head, artifact_path(Phase.CHANGE_REQUEST, revision, "change_request.json")
    )
    return _Own({"change request": document})


_OF_PHASE: dict[Phase, Callable[[Session, Head, int], _Own]] = {
    Phase.INTERPRETATION: _interpretation,
    Phase.HYPOTHESES: _hypotheses,
    Phase.INVESTIGATION: _investigation,
    Phase.DIAGNOSIS: _diagnosis,
    Phase.CHANGE_REQUEST: _change_request,
}
