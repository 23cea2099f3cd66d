"""Where the loop stands: a fold of the accepted decisions and published results, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.evidence.model import Completeness
from viano_assets.phases.investigation.artifacts import (
    ActionResult,
    Decision,
    DispatchRecord,
    HypothesisStatus,
    LoopEnd,
    PlannedAction,
    ReviewRecord,
    TerminalReason,
)
from viano_assets.phases.investigation.config import InvestigationPolicy
from viano_assets.phases.wire import Confidence


def look_identity(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what makes two looks the same: the tool and its exact arguments."""
    return sha256_hex(canonical_json([tool, arguments]))


@dataclass(slots=True)
class ActionState:
    """One action: planned and reserved, then run, then settled or released."""

    plan: PlannedAction
    dispatch: int
    result: ActionResult | None = None
    reward: int = 0
    assessed: bool = False


@dataclass(slots=True)
class HypothesisState:
    """One hypothesis in the loop; `low_streak` counts assessments below the floor in a row."""

    hypothesis_id: str
    entry: Mapping[str, Any]
    status: HypothesisStatus = "new"
    terminal: TerminalReason | None = None
    requested: Confidence = Confidence.UNASSESSED
    effective: Confidence = Confidence.UNASSESSED
    turns: int = 0
    low_streak: int = 0
    pending: list[str] = field(default_factory=list)
    review: ReviewRecord | None = None
    questions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def first_turn(self) -> bool:
        """True when nothing about it was ever accepted and no look of it is pending."""
        return self.turns == 0 and not self.pending


class InvestigationState:
    """All hypotheses and actions of one revision after the decisions and results applied so far.

    Args:
        policy: the pinned policy.
        entries: the registry's hypotheses in order, as the model sees them.
    """

    def __init__(self, policy: InvestigationPolicy, entries: Iterable[Mapping[str, Any]]) -> None:
        self.policy = policy
        self.hypotheses: dict[str, HypothesisState] = {}
        self.actions: dict[str, ActionState] = {}
        self.looks: dict[str, str] = {}
        self.dispatches = 0
        self.loop_end: LoopEnd | None = None
        for entry in entries:
            self._register(entry)

    def _register(self, entry: Mapping[str, Any]) -> None:
        hypothesis_id = str(entry["id"])
        self.hypotheses[hypothesis_id] = HypothesisState(hypothesis_id, entry)

    @property
    def remaining_slots(self) -> int:
        """How many hypotheses can still be created; every creation counts, whatever became of it."""
        return max(0, self.policy.max_hypotheses - len(self.hypotheses))

    @property
    def open(self) -> list[HypothesisState]:
        """The hypotheses that have not ended, in registry order."""
        return [hypothesis for hypothesis in self.hypotheses.values() if hypothesis.terminal is None]

    @property
    def next_action(self) -> int:
        """The number of the next action id."""
        return len(self.actions) + 1

    def counterchecked(self, hypothesis_id: str) -> bool:
        """True when a look that was published tested an alternative of this hypothesis."""
        return any(
            action.result is not None
            and self._tested(action.result)
            and action.plan.countercheck_of not in {None, hypothesis_id}
            for action in self.actions.values()
        )

    def _tested(self, result: ActionResult) -> bool:
        if result.status == "failed" or result.completeness is Completeness.UNAVAILABLE:
            return False
        void = result.empty and result.completeness is not Completeness.COMPLETE
        return not void or not self.policy.is_strict

    def apply_decision(self, decision: Decision) -> None:
        """Take over an accepted answer."""
        selected = self.hypotheses[decision.selected]
        selected.turns += 1
        selected.status = "rejected" if decision.review.rejected else "investigating"
        selected.requested = decision.review.requested_confidence
        selected.effective = decision.review.effective_confidence
        selected.review = decision.review
        selected.notes.extend(decision.notes)
        if selected.pending:
            low = decision.assessment.effective_score < self.policy.budget.low_information_floor
            selected.low_streak = selected.low_streak + 1 if low else 0
        if decision.question:
            selected.questions.append(decision.question)
        for settlement in decision.settled:
            action = self.actions[settlement.action_id]
            action.reward, action.assessed = settlement.reward, settlement.outcome == "settled"
        selected.pending = [plan.action_id for plan in decision.actions]
        for plan in decision.actions:
            self.actions[plan.action_id] = ActionState(plan, decision.dispatch)
            self.looks.setdefault(look_identity(plan.tool, plan.arguments), plan.action_id)
        if decision.created is not None:
            self._register(decision.created)
        for hypothesis_id, reason in decision.ended.items():
            self.end(hypothesis_id, reason)
        self.loop_end = decision.loop_end

    def apply_dispatch(self, record: DispatchRecord) -> None:
        """Take over published results."""
        self.dispatches = record.dispatch
        for result in record.results:
            action = self.actions[result.action_id]
            action.result = result
            identity = look_identity(action.plan.tool, action.plan.arguments)
            if result.status == "failed" and self.looks.get(identity) == result.action_id:
                del self.looks[identity]

    def end(self, hypothesis_id: str, reason: TerminalReason) -> None:
        """Mark a hypothesis as ended; a rejected one keeps that status."""
        hypothesis = self.hypotheses[hypothesis_id]
        hypothesis.terminal = reason
        if hypothesis.status != "rejected":
            hypothesis.status = "closed"
