"""`change_request.md`: the change request for people, deterministic and escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from viano_assets.phases.change_request.contract import ChangeRequest, Claim
from viano_assets.phases.diagnosis.summary import location_text, words
from viano_assets.phases.markdown import escape

VERSION = 1
"""Version of the Markdown (docs/reading.md says when it changes)."""


def request_markdown(request: ChangeRequest) -> bytes:
    """Return the summary of a change request."""
    return ("\n".join(_lines(request)).rstrip() + "\n").encode()


def _lines(request: ChangeRequest) -> Iterator[str]:
    defect = request.defect
    yield from (f"# Change request: {escape(request.title)}", "", "## Defect", "")
    yield from (escape(defect.summary), "", escape(defect.description), "")
    yield f"Confidence: {words(defect.confidence.value)}. Evidence: {', '.join(defect.evidence_ids)}."
    yield from ("", "## Affected", "")
    for place in request.affected:
        where = escape(location_text(place.location.model_dump()))
        yield f"- {place.kind}: {where} ({', '.join(place.evidence_ids)})"
    yield ""
    yield from _claims("Required behaviour", request.required_behaviour)
    yield from _claims("Acceptance checks", request.acceptance_checks)
    yield from _claims("Regressions to guard", request.regressions_to_guard)
    yield from _claims("What must not change", request.must_not_change)
    if request.remaining_uncertainty:
        yield from ("## Remaining uncertainty", "")
        yield from (f"- {escape(text)}" for text in request.remaining_uncertainty)
        yield ""
    yield from ("## Evidence", "")
    for item in request.evidence:
        where = escape(location_text(item.location.model_dump()) or "no single place")
        yield f"- {item.evidence_id}: {where}, {item.completeness.value}, sha256 {item.content_sha256[:16]}"


def _claims(title: str, claims: Sequence[Claim]) -> Iterator[str]:
    if not claims:
        return
    yield from (f"## {title}", "")
    for claim in claims:
        yield f"- {escape(claim.text)} ({', '.join((*claim.statement_ids, *claim.evidence_ids))})"
    yield ""
