"""The final output validation: every claim, artifact and pointer, before anything is called ready."""

from __future__ import annotations

from collections.abc import Iterator

from viano_assets.package.model import Head
from viano_assets.phases.change_request.contract import ChangeRequest
from viano_assets.phases.change_request.policy import confirmed_ids
from viano_assets.phases.diagnosis.published import AcceptedDiagnosis
from viano_assets.phases.diagnosis.text_rules import proposes_change
from viano_assets.phases.protocols import Store
from viano_assets.phases.wire import ValidationIssue


def _issue(path: str, category: str, message: str) -> ValidationIssue:
    return ValidationIssue(path=path, category=category, message=message, hint="a person has to look at it")


def check_request(request: ChangeRequest, diagnosis: AcceptedDiagnosis) -> tuple[ValidationIssue, ...]:
    """Return every reason why a change request may not go out; empty when it may."""
    return (*_claims(request, diagnosis), *_evidence(request, diagnosis), *_texts(request))


def _claims(request: ChangeRequest, diagnosis: AcceptedDiagnosis) -> Iterator[ValidationIssue]:
    allowed = set(confirmed_ids(diagnosis.answer))
    statements = {statement.id for statement in diagnosis.inputs.interpretation.statements}
    cause = diagnosis.answer.root_cause
    carrying = set(cause.evidence_ids) if cause is not None else set()
    if not request.affected:
        yield _issue("/affected", "nothing_affected", "no place is named")
    if not request.required_behaviour:
        yield _issue("/required_behaviour", "nothing_required", "no behaviour is required")
    if not request.defect.evidence_ids or not set(request.defect.evidence_ids) <= carrying:
        yield _issue("/defect", "unconfirmed_claim", "the defect does not cite the root cause's evidence")
    for position, place in enumerate(request.affected):
        if not place.evidence_ids or not set(place.evidence_ids) <= carrying:
            yield _issue(f"/affected/{position}", "unconfirmed_claim", "the root cause does not name it")
    for position, claim in enumerate(request.claims()):
        if not claim.evidence_ids and not claim.statement_ids:
            yield _issue(f"/claims/{position}", "unfounded_claim", "it stands on nothing")
        if not set(claim.evidence_ids) <= allowed or not set(claim.statement_ids) <= statements:
            yield _issue(f"/claims/{position}", "unconfirmed_claim", "the diagnosis did not confirm it")


def _evidence(request: ChangeRequest, diagnosis: AcceptedDiagnosis) -> Iterator[ValidationIssue]:
    listed = {item.evidence_id: item for item in request.evidence}
    cited = {name for claim in request.claims() for name in claim.evidence_ids}
    cited |= {name for place in request.affected for name in place.evidence_ids}
    for name in sorted(cited | set(request.defect.evidence_ids)):
        if name not in listed:
            yield _issue("/evidence", "evidence_unlisted", f"{name} is cited and not listed")
    for name, item in sorted(listed.items()):
        record = diagnosis.inputs.records.get(name)
        if record is None or record.content_sha256 != item.content_sha256:
            yield _issue("/evidence", "evidence_changed", f"{name} is not the stored record")


def _texts(request: ChangeRequest) -> Iterator[ValidationIssue]:
    texts = [request.title, request.defect.summary, request.defect.description]
    texts += [claim.text for claim in request.claims()]
    for text in texts:
        if proposes_change(text) or "```" in text:
            yield _issue("/", "change_in_text", f"a patch, data change or code block: {text[:80]}")


def check_output(store: Store, head: Head) -> tuple[ValidationIssue, ...]:
    """Check every pointer of the head and read every artifact of its revision, hashed at the read."""
    declared = {path: digest for c in head.checkpoints for path, digest in c.declares.items()}
    issues: list[ValidationIssue] = []
    for name, path in sorted(head.manifest.pointers.items()):
        entry = head.files.get(path)
        if entry is None or declared.get(path) != entry.sha256:
            issues.append(_issue(f"/{name}", "pointer_mismatch", f"{path} is not what was published"))
    for path in sorted(declared):
        entry = head.files.get(path)
        if entry is None or entry.sha256 != declared[path] or len(store.read(head, path)) != entry.size:
            issues.append(_issue(f"/{path}", "artifact_missing", "a declared artifact does not read"))
    return tuple(issues)
