"""Lines of live progress: what was decided about a hypothesis, and what a look brought."""

from __future__ import annotations

from viano_assets.evidence.model import Location
from viano_assets.evidence.store import EvidenceStore
from viano_assets.phases.investigation.artifacts import ActionResult, Decision, PlannedAction, ReviewRecord
from viano_assets.phases.markdown import words

REASON_CHARS = 90


def decided(decision: Decision, balance: int) -> str:
    """Say the level of the judged hypothesis, what was asked for and declared, and the units it has left."""
    review = decision.review
    said = f"{decision.selected} {words(review.effective_confidence.value)}"
    if review.capped:
        said += f" ({words(review.requested_confidence.value)} was asked for)"
    ended = decision.ended.get(decision.selected)
    end = f", ended: {words(ended)}" if ended else ""
    return f"{said}, {_units(balance)} left{end}{_review(review)}"


def _review(review: ReviewRecord) -> str:
    if not review.evidence_refs or not review.reason:
        return ""
    reason = " ".join(review.reason.split())
    return f": {reason if len(reason) <= REASON_CHARS else reason[: REASON_CHARS - 1] + '…'}"


def looked(plan: PlannedAction, result: ActionResult, evidence: EvidenceStore) -> str:
    """Say what a look covered, what it found first and what it cost."""
    said = f"{plan.action_id} {plan.tool}: {result.completeness.value}"
    if result.cause:
        said += f" ({result.cause})"
    record = evidence.get(result.evidence_ids[0]) if result.evidence_ids and not result.empty else None
    if record is None:
        return f"{said}, nothing found, {_units(plan.cost)}"
    more = f" +{len(result.evidence_ids) - 1}" if len(result.evidence_ids) > 1 else ""
    place = _place(record.provenance.location) or _place(next(iter(record.places), Location()))
    shown = f"{record.evidence_id}{more} {place}".rstrip()
    return f"{said}, {shown}, {_units(plan.cost)}"


def _units(count: int) -> str:
    return "1 unit" if count == 1 else f"{count} units"


def _place(location: Location) -> str:
    if location.table:
        return location.table
    if location.path is None:
        return ""
    return location.path if location.line_start is None else f"{location.path}:{location.line_start}"
