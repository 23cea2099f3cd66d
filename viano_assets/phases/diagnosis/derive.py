"""What the controller adds to an evaluation: limits, the deciding question, robustness, disagreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.phases.common import decode
from viano_assets.phases.diagnosis.contract import (
    Countercheck,
    DiagnosisAnswer,
    FinalEvaluation,
    InconclusiveKind,
    Verdict,
)
from viano_assets.phases.diagnosis.ground import Ground
from viano_assets.phases.diagnosis.inputs import Inputs
from viano_assets.phases.diagnosis.localisation import cited_order, strength_order
from viano_assets.phases.diagnosis.rules import check
from viano_assets.phases.diagnosis.wording import Wording
from viano_assets.phases.investigation.artifacts import ActionEnd, HypothesisEnd, NotExamined
from viano_assets.phases.wire import Confidence


def invalid_answers(inputs: Inputs, count: int, language: str | None = None) -> DiagnosisAnswer:
    """Return the deterministic evaluation after the last invalid answer; it alleges no cause.

    `language` is that of the case unless an earlier controller spoke another.
    """
    t = Wording(inputs.interpretation.case.language if language is None else language)
    reason = t("None of {count} final answers passed the checks, so no answer was accepted.", count=count)
    untested = Countercheck(adequate=False, reason=t("No accepted answer evaluates it."), evidence_ids=())
    evaluations = tuple(
        FinalEvaluation(
            hypothesis_id=end.hypothesis_id,
            verdict=Verdict.UNDETERMINED,
            reason=t("No accepted answer evaluates it; its end state in the investigation stands."),
            support=(),
            against=(),
            scope_limits=(),
            contradictions=(),
            countercheck=untested,
        )
        for end in inputs.investigation.hypotheses
    )
    return DiagnosisAnswer(
        status="inconclusive",
        inconclusive_kind=InconclusiveKind.INVALID_ANSWERS,
        selected_hypothesis=None,
        root_cause=None,
        confidence=Confidence.UNASSESSED,
        evaluations=evaluations,
        inconclusive_evidence_ids=(),
        remaining_uncertainty=(t("The stored evidence has not been evaluated as a whole."),),
        final_reason=reason,
        review_actions=(
            t("Read the stored evidence and the end states of the hypotheses."),
            t("Read the rejected answers and their issues, then reopen the case with another model."),
        ),
    )


def review_order(inputs: Inputs, answer: DiagnosisAnswer) -> list[str]:
    """Return the support that the last reviews of the investigation cite, strongest hypothesis first."""
    ends = {end.hypothesis_id: end for end in inputs.investigation.hypotheses}
    ids: list[str] = []
    for evaluation in strength_order(answer, inputs.standings()):
        review = ends[evaluation.hypothesis_id].last_review
        if review is not None:
            ids += review.support
    return list(dict.fromkeys(ids))


def not_examined(inputs: Inputs, answer: DiagnosisAnswer) -> list[str]:
    """Return what was not looked at or not fully: the investigation's limits, then those of the answer."""
    t = Wording(inputs.interpretation.case.language)
    actions = {end.action.action_id: end for end in inputs.investigation.actions}
    found = [limit_text(t, item, actions.get(item.subject)) for item in inputs.investigation.not_examined]
    for evaluation in answer.evaluations:
        found += [f"{evaluation.hypothesis_id}: {limit}" for limit in evaluation.scope_limits]
    missing = inputs.interpretation.answer.missing_information
    found += [t("Not in the report: {text}", text=text) for text in missing]
    return list(dict.fromkeys(found))


_LIMITS = {
    "input_unread": "nothing was taken from {path}",
    "files_unread": "read neither as text nor as tables: {path}",
    "statements_skipped": "statements of the dumps that were not applied: {path}",
    "tool_unused": "{tool} was never asked",
    "hypothesis_unassessed": "{hypothesis} was never judged by evidence",
    "look_unassessed": "the results of {tool} were never judged for {hypothesis}",
    "look_limited": "{tool} was {state}: {purpose}",
}


def limit_text(t: Wording, item: NotExamined, action: ActionEnd | None) -> str:
    """Say one limit of the investigation in the language of the report; `action` is the look it is about."""
    fields = {"path": item.subject, "tool": item.subject, "hypothesis": item.subject}
    template = _LIMITS[item.kind]
    if action is not None:
        fields |= {"tool": action.action.tool, "hypothesis": action.action.hypothesis_id}
        fields |= {"state": t.words(action.result.completeness.value), "purpose": action.action.purpose}
        if item.kind == "look_limited" and action.result.cause:
            template = "{tool} was {state} ({cause}): {purpose}"
            fields["cause"] = action.result.cause
    elif item.kind.startswith("look_"):
        return item.text
    return t(template, **fields)


def deciding_question(inputs: Inputs, answer: DiagnosisAnswer) -> str | None:
    """Return the one observation that would separate the top two hypotheses; None when confirmed."""
    if answer.status == "confirmed":
        return None
    t = Wording(inputs.interpretation.case.language)
    ends = {end.hypothesis_id: end for end in inputs.investigation.hypotheses}
    order = [ends[e.hypothesis_id] for e in strength_order(answer, inputs.standings())]
    open_ends = [end for end in order if end.status != "rejected"]
    if len(open_ends) >= 2:
        return _between(t, open_ends[0], open_ends[1])
    if open_ends and (refuting := _first(t, open_ends[0], "falsifying_evidence")):
        return t(
            "Is this to be seen: {finding}? If so, {one} falls, the last that stands.",
            finding=refuting,
            one=open_ends[0].hypothesis_id,
        )
    missing = inputs.interpretation.answer.missing_information
    return missing[0] if missing else answer.review_actions[0]


def _first(t: Wording, end: HypothesisEnd, field: str) -> str | None:
    texts = end.entry.get(field) or []
    return t("“{text}”", text=str(texts[0]).strip().rstrip(".?!")) if texts else None


def _between(t: Wording, first: HypothesisEnd, second: HypothesisEnd) -> str:
    """Prefer what would refute the stronger and is expected of the weaker one."""
    one, two = first.hypothesis_id, second.hypothesis_id
    refuting = _first(t, first, "falsifying_evidence")
    if refuting is not None:
        return t(
            "Can this be seen: {finding}? If so, it speaks against {one} and leaves {two}; "
            "if not, {one} stands.",
            finding=refuting,
            one=one,
            two=two,
        )
    expected = _first(t, second, "expected_evidence")
    if expected is not None:
        return t(
            "Can this be seen: {finding}? If so, it speaks for {two}; if not, {one} stands.",
            finding=expected,
            one=one,
            two=two,
        )
    return t("Which observation is expected of {one} and excluded by {two}?", one=one, two=two)


def robustness(answer: DiagnosisAnswer, ground: Ground) -> list[dict[str, Any]]:
    """Return for each cited record whether the gates would still pass had it never been found.

    `lost` names the gates that fail without it; a claim that stands without each single record does not
    hang on one look.
    """
    standings_free = tuple(dict.fromkeys(_cited(answer)))
    found: list[dict[str, Any]] = []
    for name in standings_free:
        if name in ground.records:
            issues = check(_without(answer, name), ground.without(name))
            lost = sorted({issue.category for issue in issues})
            found.append({"evidence_id": name, "stands": not lost, "lost": lost})
    return found


def _cited(answer: DiagnosisAnswer) -> list[str]:
    ids = list(answer.root_cause.evidence_ids) if answer.root_cause is not None else []
    ids += answer.inconclusive_evidence_ids
    for e in answer.evaluations:
        ids += [
            *e.support,
            *e.against,
            *e.countercheck.evidence_ids,
            *(c.evidence_id for c in e.contradictions),
        ]
    return ids


def _without(answer: DiagnosisAnswer, name: str) -> DiagnosisAnswer:
    def kept(ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(i for i in ids if i != name)

    evaluations = tuple(
        e.model_copy(
            update={
                "support": kept(e.support),
                "against": kept(e.against),
                "contradictions": tuple(c for c in e.contradictions if c.evidence_id != name),
                "countercheck": e.countercheck.model_copy(
                    update={"evidence_ids": kept(e.countercheck.evidence_ids)}
                ),
            }
        )
        for e in answer.evaluations
    )
    cause = answer.root_cause
    if cause is not None:
        cause = cause.model_copy(update={"evidence_ids": kept(cause.evidence_ids)})
    return answer.model_copy(
        update={
            "root_cause": cause,
            "evaluations": evaluations,
            "inconclusive_evidence_ids": kept(answer.inconclusive_evidence_ids),
        }
    )


def disagreement(
    answer: DiagnosisAnswer, other: Mapping[str, Any], decided_by: str, inputs: Inputs
) -> dict[str, Any]:
    """Compare the accepted evaluation with the offline analyst's answer to the same request.

    It changes neither status nor confidence. `differences` names what differs; an answer of the analyst
    that the gates would reject is `analyst_valid` false and compared by its status alone.
    """
    decoded = decode(DiagnosisAnswer, other)
    result: dict[str, Any] = {"decided_by": decided_by, "analyst_valid": False, "agrees": False}
    if not isinstance(decoded, DiagnosisAnswer) or check(decoded, inputs.ground()):
        return {**result, "differences": ["analyst_invalid"]}
    differences = []
    if decoded.status != answer.status:
        differences.append("status")
    elif decoded.inconclusive_kind is not answer.inconclusive_kind:
        differences.append("inconclusive_kind")
    if decoded.selected_hypothesis != answer.selected_hypothesis:
        differences.append("selected_hypothesis")
    if not _shares_place(answer, decoded, inputs):
        differences.append("place")
    return {
        **result,
        "analyst_valid": True,
        "agrees": not differences,
        "differences": differences,
        "analyst_status": decoded.status,
        "analyst_inconclusive_kind": None
        if decoded.inconclusive_kind is None
        else decoded.inconclusive_kind.value,
        "analyst_selected_hypothesis": decoded.selected_hypothesis,
        "analyst_evidence_ids": cited_order(decoded, inputs.standings())[:5],
    }


def _shares_place(one: DiagnosisAnswer, other: DiagnosisAnswer, inputs: Inputs) -> bool:
    def places(answer: DiagnosisAnswer) -> set[str]:
        ids = answer.root_cause.evidence_ids if answer.root_cause is not None else ()
        records = [inputs.records[name] for name in ids if name in inputs.records]
        found = {r.provenance.location.path or r.provenance.location.table or "" for r in records}
        return found - {""}

    first, second = places(one), places(other)
    return bool(first & second) or not first or not second
