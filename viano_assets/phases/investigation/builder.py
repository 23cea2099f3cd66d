"""`InvestigationBuilder`: one dispatch of the investigation (seed 004; docs/investigation.md)."""

from __future__ import annotations

from viano_assets.case.freshness import check_fresh
from viano_assets.errors import ContractError, DefectError
from viano_assets.package.model import Head
from viano_assets.phases.calls import accepted_call
from viano_assets.phases.common import (
    blocked,
    check_attempt_id,
    events,
    feedback,
    place,
    rejection_of,
    standing_block,
    waiting,
)
from viano_assets.phases.investigation.artifacts import PHASE, DispatchContext
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.investigation.inputs import Inputs, load_inputs
from viano_assets.phases.investigation.record import Loop, load_loop
from viano_assets.phases.investigation.replay import verify_replay
from viano_assets.phases.investigation.starting import pin_policy, start_change
from viano_assets.phases.investigation.steps import DispatchSteps, rejections
from viano_assets.phases.investigation.turns import check_frozen, context_change, next_context
from viano_assets.phases.outcomes import already_rejected, policy_changed, reject_unreadable
from viano_assets.phases.protocols import (
    CaseTools,
    DispatchStatus,
    ModelGateway,
    Operation,
    PhaseResult,
    ProgressSink,
    Store,
    ToolFactory,
)

COST_LIMITS = frozenset({"case_cost_ceiling", "case_token_ceiling"})
"""Codes of a gateway that stopped at the case's ceiling of money or tokens.

The loop ends with what is known; before its first dispatch nothing is, and the case is blocked instead.
"""


class InvestigationBuilder:
    """Tests the registered hypotheses with read-only looks, one bounded dispatch at a time.

    Args:
        store: the case store.
        gateway: the model.
        config: policy and limits; settings given explicitly must equal the pinned policy of a loop that
            has started.
        tools: opens the case's tools.
        progress: receives a line per turn and per look.
    """

    def __init__(
        self,
        store: Store,
        gateway: ModelGateway,
        config: InvestigationConfig | None,
        tools: ToolFactory,
        *,
        progress: ProgressSink | None = None,
    ) -> None:
        self._store = store
        self._gateway = gateway
        self._config = config or InvestigationConfig()
        self._tools = tools
        self._progress = progress

    async def build(
        self,
        case_id: str,
        package_id: str | None = None,
        *,
        attempt_id: str | None = None,
        retry_id: str | None = None,
    ) -> PhaseResult:
        """Carry out or continue one dispatch: at most one provider round and the looks it asked for.

        PROGRESSED until the loop has ended, then COMPLETED; a completed investigation is verified and
        reused whatever the configuration or attempt id.

        Raises:
            VianoError: a refusal that no answer can cure (docs/investigation.md lists the codes).
        """
        attempt = check_attempt_id(attempt_id)
        with self._store.lock(case_id):
            head = self._store.latest(case_id, package_id)
            if events(head, PHASE, "published"):
                verify_replay(self._store, head)
                return PhaseResult(PHASE, DispatchStatus.COMPLETED, head, replayed=True)
            halted = standing_block(head, PHASE)
            if halted is not None:
                return halted
            inputs = load_inputs(self._store, head)
            tools = self._tools.open(self._store, head)
            loop = load_loop(self._store, head)
            if loop is None:
                head, loop = self._start(head, inputs, tools)
            else:
                self._check_pinned(head, loop, inputs)
            return await self._dispatch(self._steps(head, loop, inputs, tools), attempt, retry_id)

    def _steps(self, head: Head, loop: Loop, inputs: Inputs, tools: CaseTools) -> DispatchSteps:
        return DispatchSteps(
            self._store,
            head,
            loop,
            inputs,
            tools,
            context_bytes=self._config.limits.context_bytes,
            progress=self._progress,
        )

    def _start(self, head: Head, inputs: Inputs, tools: CaseTools) -> tuple[Head, Loop]:
        policy = pin_policy(self._config, inputs, tools)
        head = self._store.commit(head, start_change(head, policy, inputs, tools))
        loop = load_loop(self._store, head)
        if loop is None:
            raise DefectError("context_lost", "the context just frozen is not there", where=place(head))
        return head, loop

    def _check_pinned(self, head: Head, loop: Loop, inputs: Inputs) -> None:
        check_fresh(head, loop.start.raw_inputs)
        if loop.start.bindings != dict(inputs.bindings):
            raise ContractError(
                "context_unbound", "the loop was started on other hypotheses", where=place(head)
            )
        changed = self._config.differing(loop.policy)
        if changed is not None:
            raise policy_changed(head, [changed])

    async def _dispatch(self, run: DispatchSteps, attempt: str, retry_id: str | None) -> PhaseResult:
        loop = run.loop
        if loop.decision is not None:
            return run.publish(loop.decision)
        if loop.state.loop_end is not None:
            return run.finish(loop.state.loop_end)
        if loop.context is None:
            context = next_context(run.head, loop, self._config.limits)
            too_large = run.too_large(context)
            if too_large is not None:
                return too_large
            run.head = self._store.commit(run.head, context_change(run.head, context))
            loop.context = context
        check_frozen(run.head, loop, loop.context)
        return await self._ask(run, loop.context, attempt, retry_id)

    async def _ask(
        self, run: DispatchSteps, context: DispatchContext, attempt: str, retry_id: str | None
    ) -> PhaseResult:
        head, policy = run.head, run.loop.policy
        refused = rejections(head, context.dispatch)
        if refused >= policy.max_invalid_responses:
            return blocked(
                self._store,
                head,
                PHASE,
                "invalid_answers_exhausted",
                f"{refused} answers of the model were rejected in dispatch {context.dispatch}",
                hint=f"read errors/ in the package, then `viano case reopen {head.case_id}`",
            )
        named = f"{attempt}.d{context.dispatch}"
        if rejection_of(self._store, head, PHASE, named) is not None:
            return already_rejected(PHASE, head, attempt)
        run.tell(f"asking about {context.selected}", {"hypothesis": context.selected})
        request = run.loop.request(context, feedback(self._store, head, PHASE) if refused else ())
        operation = Operation(
            head.case_id, head.manifest.package_id, head.revision, PHASE, named, request, retry_id
        )
        outcome = await self._gateway.dispatch(self._store, operation, head)
        run.head = outcome.head
        if outcome.status == "invalid":
            return reject_unreadable(self._store, PHASE, outcome, named)
        if outcome.status == "blocked" and outcome.code in COST_LIMITS and run.loop.records:
            return run.finish("cost_limit")
        if outcome.status != "answered":
            return waiting(self._store, PHASE, outcome)
        return run.take(context, accepted_call(self._store, PHASE, outcome, request, named), named)
