"""From an accepted answer to the decision: settlement, calibration, ends and reservations.

Everything here is arithmetic on what is stored; it runs after the gates and before any tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from viano_assets.budget.ledger import Ledger
from viano_assets.budget.model import Binding
from viano_assets.phases.investigation.answers import TurnAnswer
from viano_assets.phases.investigation.artifacts import (
    AssessmentRecord,
    CallRef,
    Decision,
    PlannedAction,
    ReviewRecord,
    Settlement,
    TerminalReason,
)
from viano_assets.phases.investigation.calibration import Calibrated, calibrate
from viano_assets.phases.investigation.scheduling import loop_end
from viano_assets.phases.investigation.state import (
    ActionState,
    HypothesisState,
    InvestigationState,
    look_identity,
)
from viano_assets.phases.wire import Confidence


class Origin(NamedTuple):
    """What a decision stands on."""

    dispatch: int
    context: Binding
    call: CallRef


def projected_balance(state: InvestigationState, ledger: Ledger, hypothesis_id: str, score: int) -> int:
    """Return the units a hypothesis can reserve once its pending actions are settled with `score`."""
    hypothesis = state.hypotheses[hypothesis_id]
    total = ledger.balance(hypothesis_id)
    for action_id in hypothesis.pending:
        action = state.actions[action_id]
        if _failed(action):
            total += action.plan.cost
        elif _rewardable(action):
            total += state.policy.budget.reward(action.plan.cost, score)
    return total


def decide(
    state: InvestigationState,
    ledger: Ledger,
    answer: TurnAnswer,
    origin: Origin,
    created: Mapping[str, Any] | None,
) -> Decision:
    """Settle, calibrate, end and reserve; appends to `ledger`, changes nothing in `state`.

    Args:
        state: the loop before this answer.
        ledger: the ledger before this answer.
        answer: an answer that passed every gate.
        origin: dispatch number, frozen context and recorded call.
        created: the registry entry of a new hypothesis, or None.
    """
    selected = state.hypotheses[answer.hypothesis_id]
    settled = settle_pending(state, ledger, selected, answer.score, origin.dispatch)
    calibrated = calibrate(answer.requested, answer.effect)
    score = _effective_score(state, selected, answer.score)
    notes = list(_calibration_notes(answer, calibrated))
    if created is not None:
        ledger.open(str(created["id"]), state.policy.initial_budget, dispatch=origin.dispatch)
    ended = _end_before_looks(state, selected, answer, calibrated.effective, score)
    actions: tuple[PlannedAction, ...] = ()
    if ended is None:
        actions = _reserve(state, ledger, answer, origin.dispatch)
        if not actions and ledger.balance(selected.hypothesis_id) < state.policy.cheapest:
            ended = "budget_exhausted"
    elif answer.actions:
        notes.append(f"{len(answer.actions)} looks dropped: the hypothesis ended as {ended}")
    if ended is not None:
        ledger.close(selected.hypothesis_id, ended, dispatch=origin.dispatch)
        notes.extend(_end_notes(state, selected, ended, calibrated.effective))
    return Decision(
        dispatch=origin.dispatch,
        selected=selected.hypothesis_id,
        context=origin.context,
        call=origin.call,
        review=ReviewRecord(
            requested_confidence=calibrated.requested,
            effective_confidence=calibrated.effective,
            effect=answer.effect,
            support=answer.support,
            against=answer.against,
            evidence_refs=answer.evidence_refs,
            reason=answer.reason,
            rejected=answer.rejected,
        ),
        assessment=AssessmentRecord(
            semantic_score=answer.score, effective_score=score, novelty_reason=answer.novelty_reason
        ),
        settled=settled,
        actions=actions,
        dropped=0 if ended is None else len(answer.actions),
        finish=answer.finish,
        next_reason=answer.next_reason,
        question=answer.question,
        created=None if created is None else dict(created),
        ended={} if ended is None else {selected.hypothesis_id: ended},
        loop_end=None,
        notes=tuple(notes),
    )


def with_loop_end(state: InvestigationState, decision: Decision) -> Decision:
    """Return the decision with the loop's end, given the state after it was applied."""
    return decision.model_copy(update={"loop_end": loop_end(state, decision.dispatch)})


def settle_pending(
    state: InvestigationState, ledger: Ledger, hypothesis: HypothesisState, score: int, dispatch: int
) -> tuple[Settlement, ...]:
    """Settle the pending actions of one hypothesis; a look that never took place is released."""
    settled: list[Settlement] = []
    for action_id in hypothesis.pending:
        action = state.actions[action_id]
        if _failed(action):
            ledger.release(action_id, dispatch=dispatch)
            settled.append(
                Settlement(action_id=action_id, cost=action.plan.cost, reward=0, outcome="released")
            )
            continue
        repeat = not _rewardable(action)
        reward = ledger.settle(action_id, state.policy.budget, score, dispatch=dispatch, repeat=repeat)
        settled.append(
            Settlement(action_id=action_id, cost=action.plan.cost, reward=reward, outcome="settled")
        )
    return tuple(settled)


def _failed(action: ActionState) -> bool:
    return action.result is None or action.result.status == "failed"


def _rewardable(action: ActionState) -> bool:
    brought = action.result is not None and bool(action.result.new_ids)
    return brought and action.plan.duplicate_of is None


def _effective_score(state: InvestigationState, hypothesis: HypothesisState, score: int) -> int:
    brought = any(_rewardable(state.actions[action_id]) for action_id in hypothesis.pending)
    return score if brought else 0


def _calibration_notes(answer: TurnAnswer, calibrated: Calibrated) -> list[str]:
    if not calibrated.capped or answer.effect is None:
        return []
    levels = f"requested {calibrated.requested.value}, effective {calibrated.effective.value}"
    return [f"{levels}: the declared effect is {answer.effect.value}"]


def _end_before_looks(
    state: InvestigationState,
    selected: HypothesisState,
    answer: TurnAnswer,
    effective: Confidence,
    score: int,
) -> TerminalReason | None:
    if answer.rejected:
        return "rejected"
    if answer.finish:
        return "finished" if effective.rank >= Confidence.PLAUSIBLE.rank else "abandoned"
    budget = state.policy.budget
    low = bool(selected.pending) and score < budget.low_information_floor
    if low and selected.low_streak + 1 >= budget.low_information_streak:
        return "low_information"
    return None


def _end_notes(
    state: InvestigationState, selected: HypothesisState, ended: TerminalReason, effective: Confidence
) -> list[str]:
    strong = ended == "finished" and effective is Confidence.STRONGLY_SUPPORTED
    if strong and not state.counterchecked(selected.hypothesis_id):
        return ["no early end of the loop: no look has tested an alternative yet"]
    return []


def _reserve(
    state: InvestigationState, ledger: Ledger, answer: TurnAnswer, dispatch: int
) -> tuple[PlannedAction, ...]:
    planned: list[PlannedAction] = []
    looks = dict(state.looks)
    for number, action in enumerate(answer.actions, start=state.next_action):
        identity = look_identity(action.tool, action.arguments)
        plan = PlannedAction(
            action_id=f"A{number}",
            hypothesis_id=answer.hypothesis_id,
            tool=action.tool,
            arguments=action.arguments,
            purpose=action.purpose,
            countercheck_of=action.countercheck_of,
            cost=state.policy.tool_costs[action.tool],
            duplicate_of=looks.get(identity),
        )
        looks.setdefault(identity, plan.action_id)
        ledger.reserve(
            answer.hypothesis_id,
            plan.action_id,
            plan.cost,
            dispatch=dispatch,
            duplicate=plan.duplicate_of is not None,
        )
        planned.append(plan)
    return tuple(planned)
