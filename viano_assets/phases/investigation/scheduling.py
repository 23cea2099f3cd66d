"""Whose turn it is, what the turn allows, and when the loop is over."""

from __future__ import annotations

from typing import Any, NamedTuple

from viano_assets.budget.ledger import Ledger
from viano_assets.phases.investigation.artifacts import LoopEnd, Schedule
from viano_assets.phases.investigation.state import HypothesisState, InvestigationState
from viano_assets.phases.wire import Confidence


class Selection(NamedTuple):
    """The hypothesis whose turn it is and the rule that chose it."""

    hypothesis_id: str
    schedule: Schedule


class TurnLimits(NamedTuple):
    """What one turn allows; `units` is the balance without any reward."""

    max_actions: int
    units: int
    cheapest_action: int
    dispatches_left: int
    low_information_left: int


def select(state: InvestigationState, ledger: Ledger) -> Selection | None:
    """Return the next turn, or None when every hypothesis has ended.

    Bootstrap first: each hypothesis without a turn, in registry order. Then the highest effective
    confidence, ties by larger balance, then by position.
    """
    candidates = state.open
    if not candidates:
        return None
    for hypothesis in candidates:
        if hypothesis.turns == 0:
            return Selection(hypothesis.hypothesis_id, "bootstrap")
    best = max(candidates, key=lambda h: (h.effective.rank, ledger.balance(h.hypothesis_id)))
    return Selection(best.hypothesis_id, "confidence")


def turn_limits(state: InvestigationState, ledger: Ledger, hypothesis: HypothesisState) -> TurnLimits:
    """Return what the next dispatch allows this hypothesis; the last dispatch allows no new look."""
    policy = state.policy
    left = policy.dispatch_limit - state.dispatches - 1
    actions = policy.bootstrap_actions if hypothesis.turns == 0 else policy.max_actions
    return TurnLimits(
        max_actions=actions if left > 0 else 0,
        units=ledger.balance(hypothesis.hypothesis_id),
        cheapest_action=policy.cheapest,
        dispatches_left=left,
        low_information_left=policy.budget.low_information_streak - hypothesis.low_streak,
    )


def turn_data(
    state: InvestigationState, ledger: Ledger, selection: Selection, limits: TurnLimits
) -> dict[str, Any]:
    """Return the data of the `turn` section."""
    selected = state.hypotheses[selection.hypothesis_id]
    return {
        "dispatch": state.dispatches + 1,
        "selected_hypothesis": selection.hypothesis_id,
        "schedule": selection.schedule,
        "first_turn": selected.first_turn,
        "hypotheses": [
            {
                "id": hypothesis.hypothesis_id,
                "status": hypothesis.status,
                "requested_confidence": hypothesis.requested.value,
                "effective_confidence": hypothesis.effective.value,
                "balance": ledger.balance(hypothesis.hypothesis_id),
            }
            for hypothesis in state.hypotheses.values()
        ],
        "pending_actions": list(selected.pending),
        "tool_costs": dict(sorted(state.policy.tool_costs.items())),
        "remaining_slots": state.remaining_slots,
        "limits": limits._asdict(),
    }


def loop_end(state: InvestigationState, dispatch: int) -> LoopEnd | None:
    """Return why the loop is over after the decision of `dispatch`, or None.

    `confident`: a hypothesis has finished at effective strongly_supported and a published look tested one
    of its alternatives.
    """
    for hypothesis in state.hypotheses.values():
        strong = hypothesis.effective is Confidence.STRONGLY_SUPPORTED and hypothesis.terminal == "finished"
        if strong and state.counterchecked(hypothesis.hypothesis_id):
            return "confident"
    if not state.open:
        return "all_terminal"
    return "dispatch_limit" if dispatch >= state.policy.dispatch_limit else None
