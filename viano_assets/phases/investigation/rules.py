"""The gates: every reason why an answer is rejected before a unit is spent or a tool runs.

docs/investigation.md lists the categories. The controller checks references, form and declared
directions; it never judges whether a review is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.evidence.store import EvidenceStore, usable_absence
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.investigation.answers import TurnAnswer
from viano_assets.phases.investigation.contract import Action, Effect
from viano_assets.phases.investigation.scheduling import TurnLimits
from viano_assets.phases.wire import Confidence, ValidationIssue

ToolCheck = Callable[[str, Mapping[str, Any]], str | None]
CandidateCheck = Callable[[Candidate], Sequence[ValidationIssue]]
Projection = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Turn:
    """What an answer is checked against.

    `projected` maps a semantic score to the selected account's balance after its settlement (units).
    """

    selected: str
    first_turn: bool
    pending: tuple[str, ...]
    limits: TurnLimits
    hypotheses: tuple[str, ...]
    remaining_slots: int
    tool_costs: Mapping[str, int]
    evidence: EvidenceStore
    projected: Projection
    check_tool: ToolCheck
    check_candidate: CandidateCheck


def check_answer(answer: TurnAnswer, turn: Turn) -> tuple[ValidationIssue, ...]:
    """Return every issue of an answer; empty when it is accepted."""
    return (
        *_subject(answer, turn),
        *_references(answer, turn),
        *_review(answer, turn),
        *_levels(answer, turn),
        *_next(answer, turn),
        *_actions(answer, turn),
        *_create(answer, turn),
    )


def _issue(path: str, category: str, message: str, hint: str = "") -> ValidationIssue:
    return ValidationIssue(path=path, category=category, message=message, hint=hint)


def _subject(answer: TurnAnswer, turn: Turn) -> Iterator[ValidationIssue]:
    if answer.hypothesis_id != turn.selected:
        yield _issue(
            "/update/hypothesis_id",
            "wrong_hypothesis",
            f"the turn belongs to {turn.selected}",
            "judge the hypothesis the controller selected",
        )
    if not turn.pending and answer.score:
        yield _issue(
            "/assessment/semantic_score",
            "nothing_to_assess",
            "no action of this hypothesis is pending",
            "give 0 when turn.pending_actions is empty",
        )


def _references(answer: TurnAnswer, turn: Turn) -> Iterator[ValidationIssue]:
    lists = {
        "/update/evidence_refs": answer.evidence_refs,
        "/update/causal_review/support": answer.support,
        "/update/causal_review/against": answer.against,
    }
    for path, ids in lists.items():
        for evidence_id, count in sorted(Counter(ids).items()):
            if evidence_id not in turn.evidence:
                yield _issue(
                    path,
                    "unknown_evidence",
                    f"{evidence_id} was never shown",
                    "cite only evidence ids that stand in the history",
                )
            if count > 1:
                yield _issue(path, "duplicate_reference", f"{evidence_id} stands twice in one list")
    for side in ("support", "against"):
        path = f"/update/causal_review/{side}"
        uncited = sorted(set(lists[path]) - set(answer.evidence_refs))
        for evidence_id in uncited:
            yield _issue(
                path,
                "uncited_review_evidence",
                f"{evidence_id} is not in update.evidence_refs",
                "add it there or take it out here",
            )


def _review(answer: TurnAnswer, turn: Turn) -> Iterator[ValidationIssue]:
    needed = {
        Effect.SUPPORTS: ("support",),
        Effect.CONTRADICTS: ("against",),
        Effect.MIXED: ("support", "against"),
    }
    sides = {"support": answer.support, "against": answer.against}
    for side in needed.get(answer.effect, ()) if answer.effect else ():
        if not sides[side]:
            yield _issue(
                f"/update/causal_review/{side}",
                "review_direction",
                f"effect {answer.effect} needs evidence in {side}",
                "name the records, or declare another effect",
            )
    for side, ids in sides.items():
        for evidence_id in sorted(set(ids)):
            record = turn.evidence.get(evidence_id)
            if record is not None and not usable_absence(record):
                yield _issue(
                    f"/update/causal_review/{side}",
                    "void_absence",
                    f"{evidence_id} is an empty result of a look that is {record.completeness.value}",
                    "an empty result counts only when its scope was searched completely",
                )


def _levels(answer: TurnAnswer, turn: Turn) -> Iterator[ValidationIssue]:
    if turn.first_turn:
        yield from _first_turn(answer)
    elif answer.requested.rank > Confidence.UNASSESSED.rank and not answer.evidence_refs:
        yield _issue(
            "/update/requested_confidence",
            "confidence_without_evidence",
            f"{answer.requested.value} without any evidence",
            "cite what it rests on, or ask for unassessed",
        )
    grounded = answer.effect is Effect.CONTRADICTS and answer.against
    if answer.effect is None:
        grounded = answer.evidence_refs
    if answer.rejected and not grounded:
        yield _issue(
            "/update/status",
            "rejection_unfounded",
            "a rejection needs contradicting evidence",
            "effect contradicts with a nonempty against, or status null",
        )


def _first_turn(answer: TurnAnswer) -> Iterator[ValidationIssue]:
    judged = (
        bool(answer.evidence_refs or answer.support or answer.against)
        or answer.effect not in {None, Effect.NEUTRAL}
        or answer.requested is not Confidence.UNASSESSED
        or answer.rejected
    )
    if judged:
        yield _issue(
            "/update",
            "first_turn",
            "nothing of this hypothesis has been looked at yet",
            "no evidence ids, effect neutral, requested unassessed, status null",
        )


def _next(answer: TurnAnswer, turn: Turn) -> Iterator[ValidationIssue]:
    if answer.actions and (answer.finish or answer.rejected):
        yield _issue(
            "/next/actions",
            "actions_after_end",
            "a hypothesis that ends asks for nothing",
            "give no actions, or do not end it",
        )
    blocked = turn.limits.max_actions == 0 or turn.projected(answer.score) < turn.limits.cheapest_action
    if not (answer.actions or answer.finish or answer.rejected or blocked):
        yield _issue(
            "/next",
            "no_next_step",
            "neither actions nor an end",
            "ask for a look, or set finish to true",
        )


def _actions(answer: TurnAnswer, turn: Turn) -> Iterator[ValidationIssue]:
    if len(answer.actions) > turn.limits.max_actions:
        yield _issue(
            "/next/actions",
            "too_many_actions",
            f"{len(answer.actions)} actions, this turn allows {turn.limits.max_actions}",
        )
    total = 0
    for position, action in enumerate(answer.actions):
        total += turn.tool_costs.get(action.tool, 0)
        yield from _action(action, f"/next/actions/{position}", turn)
    available = turn.projected(answer.score)
    if total > available:
        yield _issue(
            "/next/actions",
            "budget_exceeded",
            f"the actions cost {total} units, {available} are left",
            "ask for fewer or cheaper looks",
        )


def _action(action: Action, path: str, turn: Turn) -> Iterator[ValidationIssue]:
    if action.tool not in turn.tool_costs:
        known = ", ".join(sorted(turn.tool_costs))
        yield _issue(f"{path}/tool", "unknown_tool", f"there is no tool {action.tool!r}", f"tools: {known}")
    else:
        problem = turn.check_tool(action.tool, action.arguments)
        if problem is not None:
            yield _issue(f"{path}/arguments", "tool_arguments", problem, "follow the tool's argument schema")
    if action.countercheck_of is not None and action.countercheck_of not in turn.hypotheses:
        yield _issue(
            f"{path}/countercheck_of",
            "unknown_countercheck",
            f"{action.countercheck_of} is not registered",
        )


def _create(answer: TurnAnswer, turn: Turn) -> Iterator[ValidationIssue]:
    if answer.create is None:
        return
    if turn.remaining_slots < 1:
        yield _issue(
            "/create",
            "no_slot",
            "no further hypothesis can be created in this revision",
            "set create to null",
        )
    else:
        yield from turn.check_candidate(answer.create)
