"""The frozen context of one dispatch, and what its answer is checked against."""

from __future__ import annotations

from viano_assets.budget.model import Binding
from viano_assets.canonical import canonical_json
from viano_assets.errors import ContractError, DefectError
from viano_assets.package.model import Change, Head
from viano_assets.phases.common import place
from viano_assets.phases.investigation.artifacts import PHASE, DispatchContext, numbered
from viano_assets.phases.investigation.config import InvestigationLimits
from viano_assets.phases.investigation.deciding import projected_balance
from viano_assets.phases.investigation.inputs import Inputs, binding
from viano_assets.phases.investigation.record import Loop
from viano_assets.phases.investigation.rules import ToolCheck, Turn
from viano_assets.phases.investigation.scheduling import TurnLimits, select, turn_data, turn_limits
from viano_assets.phases.protocols import RequestLimits


def next_context(head: Head, loop: Loop, limits: InvestigationLimits) -> DispatchContext:
    """Return the context of the next dispatch, its request frozen by hash."""
    selection = select(loop.state, loop.ledger)
    if selection is None:
        raise DefectError("nothing_to_select", "every hypothesis has ended, the loop has not")
    dispatch = loop.state.dispatches + 1
    selected = loop.state.hypotheses[selection.hypothesis_id]
    previous: Binding | None = None
    if dispatch > 1:
        previous = binding(head, numbered(head.revision, "dispatch", dispatch - 1))
    context = DispatchContext(
        dispatch=dispatch,
        selected=selection.hypothesis_id,
        schedule=selection.schedule,
        start=loop.start_binding,
        previous=previous,
        turn=turn_data(loop.state, loop.ledger, selection, turn_limits(loop.state, loop.ledger, selected)),
        limits=RequestLimits(max_output_tokens=limits.output_tokens, deadline_s=limits.deadline_s),
        request_sha256="",
    )
    return context.model_copy(update={"request_sha256": loop.request(context).sha256})


def context_change(head: Head, context: DispatchContext) -> Change:
    """Return the generation that freezes a dispatch before anything is sent."""
    path = numbered(head.revision, "context", context.dispatch)
    return Change(
        event="investigation_dispatch_started",
        phase=PHASE.value,
        put={path: canonical_json(context.model_dump(mode="json", by_alias=True))},
        detail={
            "dispatch": context.dispatch,
            "hypothesis": context.selected,
            "request_sha256": context.request_sha256,
        },
    )


def check_frozen(head: Head, loop: Loop, context: DispatchContext) -> None:
    """Verify that the stored parts still give the frozen request.

    Raises:
        ContractError: `request_drift`.
    """
    if loop.request(context).sha256 != context.request_sha256:
        raise ContractError(
            "request_drift",
            "the stored parts no longer give the request that was frozen",
            where=place(head, numbered(head.revision, "context", context.dispatch)),
            hint="finish the revision with the release that started it, or reopen the case",
        )


def turn_of(loop: Loop, context: DispatchContext, inputs: Inputs, check_tool: ToolCheck) -> Turn:
    """Return what the answer of a dispatch is checked against."""
    selected = loop.state.hypotheses[context.selected]
    entries = [hypothesis.entry for hypothesis in loop.state.hypotheses.values()]
    return Turn(
        selected=context.selected,
        first_turn=selected.first_turn,
        pending=tuple(selected.pending),
        limits=TurnLimits(**context.turn["limits"]),
        hypotheses=tuple(loop.state.hypotheses),
        remaining_slots=loop.state.remaining_slots,
        tool_costs=loop.policy.tool_costs,
        evidence=loop.evidence,
        projected=lambda score: projected_balance(loop.state, loop.ledger, context.selected, score),
        check_tool=check_tool,
        check_candidate=lambda candidate: inputs.judge_new(candidate, entries),
    )
