"""`change_request.md`: the change request for people, deterministic and escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from viano_assets.phases.change_request.contract import ChangeRequest, Claim
from viano_assets.phases.diagnosis.summary import location_text
from viano_assets.phases.diagnosis.wording import Wording
from viano_assets.phases.markdown import escape, inline

VERSION = 3
"""Version of the Markdown (docs/reading.md says when it changes)."""


def request_markdown(request: ChangeRequest, t: Wording) -> bytes:
    """Return the summary of a change request in the words it is written in."""
    return ("\n".join(_lines(request, t)).rstrip() + "\n").encode()


def _lines(request: ChangeRequest, t: Wording) -> Iterator[str]:
    defect = request.defect
    yield from ("# " + t("Change request: {title}", title=escape(request.title)), "")
    yield from (f"## {t('Defect')}", "")
    yield from (inline(defect.summary), "", inline(defect.description), "")
    level, names = t.words(defect.confidence.value), ", ".join(defect.evidence_ids)
    yield t("Confidence: {level}. Evidence: {names}.", level=level, names=names)
    yield from ("", f"## {t('Affected')}", "")
    for place in request.affected:
        where = escape(location_text(place.location.model_dump()))
        yield f"- {t.words(place.kind)}: {where} ({', '.join(place.evidence_ids)})"
    yield ""
    yield from _claims(t("Required behaviour"), request.required_behaviour)
    yield from _claims(t("Acceptance checks"), request.acceptance_checks)
    yield from _claims(t("Regressions to guard"), request.regressions_to_guard)
    yield from _claims(t("What must not change"), request.must_not_change)
    if request.remaining_uncertainty:
        yield from (f"## {t('Remaining uncertainty')}", "")
        yield from (f"- {inline(text)}" for text in request.remaining_uncertainty)
        yield ""
    yield from (f"## {t('Evidence')}", "")
    for item in request.evidence:
        where = escape(location_text(item.location.model_dump()) or t("no single place"))
        completeness, digest = t.words(item.completeness.value), item.content_sha256[:16]
        yield f"- {item.evidence_id}: {where}, {completeness}, sha256 {digest}"


def _claims(title: str, claims: Sequence[Claim]) -> Iterator[str]:
    if not claims:
        return
    yield from (f"## {title}", "")
    for claim in claims:
        yield f"- {inline(claim.text)} ({', '.join((*claim.statement_ids, *claim.evidence_ids))})"
    yield ""
