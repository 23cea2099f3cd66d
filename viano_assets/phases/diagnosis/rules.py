"""The deterministic gates of the final evaluation (seed 000; docs/contracts.md, section 9).

They prove provenance and structural support, never that a causal inference is right. An answer passes
whole or is rejected whole; every issue names the place in the answer, a stable category and a remedy.
The table of all categories is in docs/diagnosis.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from viano_assets.evidence.model import Completeness, EvidenceRecord
from viano_assets.phases.diagnosis.contract import (
    DiagnosisAnswer,
    FinalEvaluation,
    InconclusiveKind,
    Verdict,
)
from viano_assets.phases.diagnosis.ground import (
    ROOT_CAUSE_LINES,
    Ground,
    line_count,
    locations,
    reads_mechanism,
    void_absence,
)
from viano_assets.phases.diagnosis.text_rules import schema_is_quoted, text_issues
from viano_assets.phases.wire import Confidence, ValidationIssue

CONFIRMING = frozenset({Confidence.SUPPORTED, Confidence.STRONGLY_SUPPORTED})
"""The levels a confirmed result may have."""

_EVIDENCED_KINDS = frozenset({InconclusiveKind.INTENDED_BEHAVIOUR, InconclusiveKind.PREMISE_CONTRADICTED})


def check(answer: DiagnosisAnswer, ground: Ground) -> tuple[ValidationIssue, ...]:
    """Return every reason why `answer` cannot be published, in stable order; empty when it can."""
    rules: tuple[Callable[[DiagnosisAnswer, Ground], Iterable[ValidationIssue]], ...] = (
        _hypotheses,
        _references,
        _verdicts,
        _confirmed if answer.status == "confirmed" else _inconclusive,
        text_issues,
    )
    return tuple(dict.fromkeys(issue for rule in rules for issue in rule(answer, ground)))


def effective_confidence(answer: DiagnosisAnswer) -> Confidence:
    """Return the level that counts.

    Nothing is more than plausible while no cause is confirmed; a confirmed cause with evidence against
    it is at most supported. Otherwise the requested level stands.
    """
    ceiling = Confidence.STRONGLY_SUPPORTED
    if answer.status == "inconclusive":
        ceiling = Confidence.PLAUSIBLE
    elif any(e.against for e in answer.evaluations if e.hypothesis_id == answer.selected_hypothesis):
        ceiling = Confidence.SUPPORTED
    return min(answer.confidence, ceiling, key=lambda level: level.rank)


def _issue(path: str, category: str, message: str, hint: str) -> ValidationIssue:
    return ValidationIssue(path=path, category=category, message=message, hint=hint)


def _hypotheses(answer: DiagnosisAnswer, ground: Ground) -> Iterator[ValidationIssue]:
    known = ", ".join(ground.hypotheses)
    seen: set[str] = set()
    for position, evaluation in enumerate(answer.evaluations):
        path, name = f"/evaluations/{position}/hypothesis_id", evaluation.hypothesis_id
        if name not in ground.hypotheses:
            yield _issue(path, "unknown_hypothesis", f"{name} is not registered", f"registered: {known}")
        elif name in seen:
            yield _issue(path, "duplicate_hypothesis", f"{name} is evaluated twice", "evaluate each once")
        seen.add(name)
    for name in ground.hypotheses:
        if name not in seen:
            yield _issue(
                "/evaluations", "missing_hypothesis", f"{name} is not evaluated", "evaluate every hypothesis"
            )


def _references(answer: DiagnosisAnswer, ground: Ground) -> Iterator[ValidationIssue]:
    for path, ids in _cited_lists(answer):
        for position, name in enumerate(ids):
            yield from _reference(f"{path}/{position}", name, ids[:position], ground)
    for position, evaluation in enumerate(answer.evaluations):
        for name in evaluation.support:
            if name in evaluation.against:
                yield _issue(
                    f"/evaluations/{position}",
                    "evidence_on_both_sides",
                    f"{name} is cited for and against {evaluation.hypothesis_id}",
                    "cite it on the side it speaks for",
                )


def _cited_lists(answer: DiagnosisAnswer) -> Iterator[tuple[str, Sequence[str]]]:
    if answer.root_cause is not None:
        yield "/root_cause/evidence_ids", answer.root_cause.evidence_ids
    yield "/inconclusive_evidence_ids", answer.inconclusive_evidence_ids
    for position, evaluation in enumerate(answer.evaluations):
        path = f"/evaluations/{position}"
        yield f"{path}/support", evaluation.support
        yield f"{path}/against", evaluation.against
        yield f"{path}/countercheck/evidence_ids", evaluation.countercheck.evidence_ids
        yield f"{path}/contradictions", tuple(c.evidence_id for c in evaluation.contradictions)


def _reference(path: str, name: str, before: Sequence[str], ground: Ground) -> Iterator[ValidationIssue]:
    record = ground.records.get(name)
    if record is None:
        yield _issue(
            path,
            "unknown_evidence",
            f"{name} is not stored evidence of this revision",
            "cite only the evidence ids that were shown",
        )
        return
    if name in before:
        yield _issue(path, "duplicate_evidence", f"{name} is cited twice in one list", "cite it once")
    if record.completeness is Completeness.UNAVAILABLE:
        yield _issue(
            path,
            "unavailable_evidence",
            f"{name} came back unavailable: nothing was seen",
            "cite what was seen, or name the gap in scope_limits",
        )
    elif void_absence(record):
        yield _issue(
            path,
            "incomplete_absence",
            f"{name} found nothing in an incomplete scope, which proves nothing",
            "name it in scope_limits instead",
        )


def _verdicts(answer: DiagnosisAnswer, ground: Ground) -> Iterator[ValidationIssue]:
    del ground
    for position, evaluation in enumerate(answer.evaluations):
        path, name = f"/evaluations/{position}", evaluation.hypothesis_id
        if evaluation.verdict is Verdict.SUPPORTED and not evaluation.support:
            yield _issue(
                f"{path}/support",
                "support_missing",
                f"{name} is called supported without evidence",
                "cite the supporting evidence or lower the verdict",
            )
        if evaluation.verdict is Verdict.REJECTED and not evaluation.against:
            yield _issue(
                f"{path}/against",
                "against_missing",
                f"{name} is called rejected without evidence against it",
                "cite the refuting evidence or use undetermined",
            )
        if evaluation.countercheck.adequate and not evaluation.countercheck.evidence_ids:
            yield _issue(
                f"{path}/countercheck/evidence_ids",
                "countercheck_unfounded",
                f"the countercheck of {name} is called adequate without findings",
                "cite the findings or set adequate to false",
            )


def _confirmed(answer: DiagnosisAnswer, ground: Ground) -> Iterator[ValidationIssue]:
    if answer.inconclusive_kind is not None:
        yield _issue(
            "/inconclusive_kind", "kind_on_confirmed", "a confirmed result has no such kind", "set it to null"
        )
    if answer.inconclusive_evidence_ids:
        yield _issue(
            "/inconclusive_evidence_ids",
            "kind_evidence_unexpected",
            "a confirmed result has no inconclusive evidence",
            "leave it empty",
        )
    if answer.confidence not in CONFIRMING:
        yield _issue(
            "/confidence",
            "confidence_below_supported",
            f"{answer.confidence.value} confirms nothing",
            "answer inconclusive, or supported / strongly_supported when the evidence carries it",
        )
    selected = next((e for e in answer.evaluations if e.hypothesis_id == answer.selected_hypothesis), None)
    yield from _selection(answer, selected, ground)
    yield from _root_cause(answer, selected, ground)
    yield from _countercheck(answer)


def _selection(
    answer: DiagnosisAnswer, selected: FinalEvaluation | None, ground: Ground
) -> Iterator[ValidationIssue]:
    path, name = "/selected_hypothesis", answer.selected_hypothesis
    if name is None or selected is None or name not in ground.hypotheses:
        yield _issue(
            path,
            "selection_missing",
            "no evaluated hypothesis is selected",
            "select one registered hypothesis",
        )
        return
    if selected.verdict is not Verdict.SUPPORTED:
        yield _issue(
            path,
            "selected_not_supported",
            f"{name} is selected but its verdict is {selected.verdict.value}",
            "select a supported hypothesis or answer inconclusive",
        )
    if ground.hypotheses[name] == "rejected":
        yield _issue(
            path,
            "rejected_hypothesis_selected",
            f"{name} was rejected on evidence in the investigation",
            "select another hypothesis or answer inconclusive",
        )
    explained = {c.evidence_id for c in selected.contradictions}
    for evidence_id in selected.against:
        if evidence_id not in explained:
            yield _issue(
                path,
                "unexplained_contradiction",
                f"{evidence_id} speaks against {name} and no contradiction explains it",
                "explain it in contradictions or answer inconclusive",
            )


def _root_cause(
    answer: DiagnosisAnswer, selected: FinalEvaluation | None, ground: Ground
) -> Iterator[ValidationIssue]:
    path, cause = "/root_cause", answer.root_cause
    if cause is None:
        yield _issue(path, "root_cause_missing", "a confirmed result names a root cause", "describe it")
        return
    if not cause.evidence_ids:
        yield _issue(
            f"{path}/evidence_ids", "root_cause_unsupported", "no evidence carries the cause", "cite it"
        )
        return
    for position, name in enumerate(cause.evidence_ids):
        record = ground.records.get(name)
        if record is not None and line_count(record) > ROOT_CAUSE_LINES:
            yield _issue(
                f"{path}/evidence_ids/{position}",
                "evidence_too_long",
                f"{name} has {line_count(record)} lines; at most {ROOT_CAUSE_LINES} may carry a cause",
                "cite a narrower record that shows the decisive lines",
            )
        if selected is not None and name not in selected.support:
            yield _issue(
                f"{path}/evidence_ids/{position}",
                "root_cause_not_in_support",
                f"{name} carries the cause but does not support {selected.hypothesis_id}",
                "cite it in the support of the selected hypothesis too",
            )
    yield from _mechanism(answer, ground)


def _mechanism(answer: DiagnosisAnswer, ground: Ground) -> Iterator[ValidationIssue]:
    cause = answer.root_cause
    if cause is None:
        return
    cited = [ground.records[name] for name in cause.evidence_ids if name in ground.records]
    if any(reads_mechanism(record) for record in cited):
        return
    schemas = [record for record in cited if record.provenance.kind == "schema"]
    if not schemas:
        yield _issue(
            "/root_cause/evidence_ids",
            "mechanism_unread",
            "no cited record is source text, configuration, a table row or a complete empty query",
            f"cite a record that reads it: {_missing_look(cited)}; without one answer inconclusive",
        )
    elif not schema_is_quoted(cause, schemas):
        yield _issue(
            "/root_cause/evidence_ids",
            "schema_for_contents",
            "a schema alone shows no contents, and the cause quotes no definition that would be defective",
            "quote the defective column or key definition, or cite rows read from the table",
        )


def _missing_look(cited: Sequence[EvidenceRecord]) -> str:
    """Name the look that the cited records only point to."""
    for record in cited:
        for location in locations(record):
            if location.table is not None:
                return f"db.rows of {location.table}"
            if location.path is not None and record.provenance.kind not in {"case", "log"}:
                return f"source.read of {location.path}"
    return "source.read, db.rows or db.query"


def _countercheck(answer: DiagnosisAnswer) -> Iterator[ValidationIssue]:
    for evaluation in answer.evaluations:
        check_ = evaluation.countercheck
        alternative = evaluation.hypothesis_id != answer.selected_hypothesis
        if (
            alternative
            and check_.adequate
            and check_.evidence_ids
            and evaluation.verdict is not Verdict.SUPPORTED
        ):
            return
    yield _issue(
        "/evaluations",
        "countercheck_missing",
        "no alternative was adequately tested with stored findings and found wanting",
        "cite the findings that tested one alternative, or answer inconclusive",
    )


def _inconclusive(answer: DiagnosisAnswer, ground: Ground) -> Iterator[ValidationIssue]:
    del ground
    if answer.selected_hypothesis is not None:
        yield _issue(
            "/selected_hypothesis",
            "selection_on_inconclusive",
            "an inconclusive result selects nothing",
            "set it to null",
        )
    if answer.root_cause is not None:
        yield _issue(
            "/root_cause",
            "root_cause_on_inconclusive",
            "an inconclusive result names no root cause",
            "set it to null",
        )
    if not answer.review_actions:
        yield _issue(
            "/review_actions",
            "review_actions_missing",
            "a person is not told what to do next",
            "recommend at least one concrete look or question",
        )
    yield from _kind(answer)


def _kind(answer: DiagnosisAnswer) -> Iterator[ValidationIssue]:
    kind, path = answer.inconclusive_kind, "/inconclusive_kind"
    if kind is None:
        yield _issue(path, "kind_missing", "an inconclusive result says of which kind", "choose one")
    elif kind is InconclusiveKind.INVALID_ANSWERS:
        yield _issue(
            path, "kind_reserved", "only the controller reports invalid answers", "choose another kind"
        )
    elif kind in _EVIDENCED_KINDS and not answer.inconclusive_evidence_ids:
        yield _issue(
            "/inconclusive_evidence_ids",
            "kind_evidence_missing",
            f"{kind.value} needs evidence that shows it",
            "cite that evidence or choose another kind",
        )
    elif kind not in _EVIDENCED_KINDS and answer.inconclusive_evidence_ids:
        yield _issue(
            "/inconclusive_evidence_ids",
            "kind_evidence_unexpected",
            f"{kind.value} cites no evidence of its own",
            "leave it empty; evidence belongs into the evaluations",
        )
