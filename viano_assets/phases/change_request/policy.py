"""The deterministic bugfix policy: a confirmed diagnosis becomes a change request without any model.

Only what the diagnosis confirmed is used: the root cause, the support of the selected hypothesis, and
the counterchecks that an alternative did not survive. Required behaviour and acceptance checks are the
report's accepted expectations and steps; an assumption of the tester is never a requirement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from viano_assets.evidence.model import EvidenceRecord, Location
from viano_assets.package.model import Head
from viano_assets.phases.change_request.contract import (
    AffectedPlace,
    BoundArtifact,
    ChangeRequest,
    CitedEvidence,
    Claim,
    Defect,
)
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer, FinalEvaluation, RootCause, Verdict
from viano_assets.phases.diagnosis.ground import locations
from viano_assets.phases.diagnosis.localisation import localise
from viano_assets.phases.diagnosis.published import AcceptedDiagnosis
from viano_assets.phases.diagnosis.rules import effective_confidence
from viano_assets.phases.diagnosis.summary import location_text
from viano_assets.phases.diagnosis.wording import Wording
from viano_assets.phases.interpretation.rules import AliasedStatement

POLICY = "bugfix-policy-2"
"""Version of everything a request derives. A change of it needs the next number."""

LANGUAGES: Mapping[str, str | None] = {"bugfix-policy-1": "en", POLICY: None}
"""The language a version speaks whatever the report's is; None for the report's."""


def wording(policy: str, diagnosis: AcceptedDiagnosis) -> Wording:
    """Return the words a version of the policy uses for a case."""
    return Wording(LANGUAGES[policy] or diagnosis.inputs.interpretation.case.language)


def refuted(answer: DiagnosisAnswer) -> list[FinalEvaluation]:
    """Return the alternatives that were adequately tested and found wanting, in registry order."""
    return [
        e
        for e in answer.evaluations
        if e.hypothesis_id != answer.selected_hypothesis
        and e.countercheck.adequate
        and e.verdict in {Verdict.WEAKENED, Verdict.REJECTED}
    ]


def confirmed_ids(answer: DiagnosisAnswer) -> list[str]:
    """Return the evidence of everything the diagnosis confirmed, each id once; no other may be cited."""
    ids: list[str] = list(answer.root_cause.evidence_ids) if answer.root_cause is not None else []
    for evaluation in answer.evaluations:
        if evaluation.hypothesis_id == answer.selected_hypothesis:
            ids += evaluation.support
    for evaluation in refuted(answer):
        ids += evaluation.countercheck.evidence_ids
    return list(dict.fromkeys(ids))


def build_request(
    head: Head, diagnosis: AcceptedDiagnosis, cause: RootCause, policy: str = POLICY
) -> ChangeRequest:
    """Return the change request of a confirmed diagnosis.

    Args:
        head: the package it belongs to.
        diagnosis: the verified diagnosis.
        cause: its root cause.
        policy: the version that built it, a key of `LANGUAGES`.
    """
    t = wording(policy, diagnosis)
    answer, records = diagnosis.answer, diagnosis.inputs.records
    statements = diagnosis.inputs.interpretation.statements
    return ChangeRequest(
        case_id=head.case_id,
        package_id=head.manifest.package_id,
        analysis_revision=head.revision,
        policy=policy,
        title=diagnosis.inputs.interpretation.case.title,
        diagnosis=BoundArtifact(path=diagnosis.binding.path, sha256=diagnosis.binding.sha256),
        defect=Defect(
            summary=cause.summary,
            description=cause.technical_description,
            hypothesis_id=str(answer.selected_hypothesis),
            confidence=effective_confidence(answer),
            evidence_ids=cause.evidence_ids,
        ),
        affected=tuple(_affected(diagnosis, cause)),
        required_behaviour=tuple(_required(t, statements)),
        acceptance_checks=tuple(_checks(t, statements, cause, records[cause.evidence_ids[0]])),
        regressions_to_guard=tuple(_regressions(t, diagnosis)),
        must_not_change=tuple(_unchanged(t, diagnosis, cause, statements)),
        remaining_uncertainty=answer.remaining_uncertainty,
        evidence=tuple(_cited(records[name]) for name in confirmed_ids(answer)),
    )


def _cited(record: EvidenceRecord) -> CitedEvidence:
    return CitedEvidence(
        evidence_id=record.evidence_id,
        location=record.provenance.location,
        completeness=record.completeness,
        content_sha256=record.content_sha256,
    )


def _affected(diagnosis: AcceptedDiagnosis, cause: RootCause) -> Iterator[AffectedPlace]:
    """Yield the places of the root cause's own records, and of no other evidence."""
    carrying = {name: diagnosis.inputs.records[name] for name in cause.evidence_ids}
    alone = diagnosis.answer.model_copy(update={"evaluations": ()})
    ranked = localise(alone, diagnosis.inputs.standings(), carrying)
    for place in ranked["files"]:
        yield AffectedPlace(
            kind="file", location=Location(path=place["path"]), evidence_ids=tuple(place["evidence_ids"])
        )
    for place in ranked["symbols"]:
        location = Location(
            path=place["path"],
            symbol=place["symbol"],
            line_start=place["line_start"],
            line_end=place["line_end"],
        )
        yield AffectedPlace(kind="symbol", location=location, evidence_ids=_of_path(carrying, place["path"]))
    for place in ranked["rows"]:
        location = Location(table=place["table"], key=place["key"], column=place["column"])
        ids = tuple(n for n, r in carrying.items() if any(p.table == place["table"] for p in locations(r)))
        yield AffectedPlace(kind="table", location=location, evidence_ids=ids)


def _of_path(records: dict[str, EvidenceRecord], path: str) -> tuple[str, ...]:
    return tuple(n for n, r in records.items() if any(place.path == path for place in locations(r)))


def _of(statements: Sequence[AliasedStatement], category: str) -> list[AliasedStatement]:
    return [statement for statement in statements if statement.category == category]


def _required(t: Wording, statements: Sequence[AliasedStatement]) -> Iterator[Claim]:
    expected = _of(statements, "expected_behavior")
    for statement in expected:
        yield Claim(text=statement.text, statement_ids=(statement.id,))
    if not expected:
        for statement in _of(statements, "observed_behavior"):
            yield Claim(
                text=t("This no longer happens: {text}", text=statement.text), statement_ids=(statement.id,)
            )


def _checks(
    t: Wording, statements: Sequence[AliasedStatement], cause: RootCause, first: EvidenceRecord
) -> Iterator[Claim]:
    steps = _of(statements, "reproduction_steps")
    observed = _of(statements, "observed_behavior")
    gone = (
        "Carry out the reported steps: this is no longer seen: {text}"
        if steps
        else "Bring about the reported situation: this is no longer seen: {text}"
    )
    seen = (
        "Carry out the reported steps: this is seen: {text}"
        if steps
        else "Bring about the reported situation: this is seen: {text}"
    )
    for statement in observed:
        yield Claim(
            text=t(gone, text=statement.text),
            statement_ids=(*(step.id for step in steps), statement.id),
        )
    for statement in _of(statements, "expected_behavior"):
        yield Claim(
            text=t(seen, text=statement.text),
            statement_ids=(*(step.id for step in steps), statement.id),
        )
    place = location_text(first.provenance.location.model_dump()) or first.tool
    yield Claim(
        text=t("The cause is gone at {place}: {summary}", place=place, summary=cause.summary),
        evidence_ids=(first.evidence_id,),
    )


def _regressions(t: Wording, diagnosis: AcceptedDiagnosis) -> Iterator[Claim]:
    titles = {end.hypothesis_id: str(end.entry["title"]) for end in diagnosis.inputs.investigation.hypotheses}
    for evaluation in refuted(diagnosis.answer):
        title = titles[evaluation.hypothesis_id].rstrip(".")
        yield Claim(
            text=t("This was tested and is not the cause; it must not become one: {title}.", title=title),
            evidence_ids=evaluation.countercheck.evidence_ids,
        )


def _unchanged(
    t: Wording, diagnosis: AcceptedDiagnosis, cause: RootCause, statements: Sequence[AliasedStatement]
) -> Iterator[Claim]:
    carrying = set(cause.evidence_ids)
    for evaluation in refuted(diagnosis.answer):
        for name in evaluation.countercheck.evidence_ids:
            place = location_text(diagnosis.inputs.records[name].provenance.location.model_dump())
            if place and name not in carrying:
                yield Claim(
                    text=t("What was read at {place} is no part of the cause.", place=place),
                    evidence_ids=(name,),
                )
    for statement in _of(statements, "tester_assumptions"):
        yield Claim(
            text=t("Nothing is changed for this unconfirmed assumption alone: {text}", text=statement.text),
            statement_ids=(statement.id,),
        )
