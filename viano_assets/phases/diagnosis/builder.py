"""`DiagnosisBuilder`: one dispatch of the final evaluation (seed 000)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from viano_assets.errors import ContractError, DefectError
from viano_assets.evidence.verify import verify_records
from viano_assets.package.model import Change, Head
from viano_assets.phases.calls import SavedCall, accepted_call
from viano_assets.phases.common import (
    FrozenContext,
    artifact_path,
    call_binding,
    check_attempt_id,
    decode,
    events,
    frozen_context,
    invalid_attempts,
    place,
    read_json,
    record_rejection,
    rejection_of,
    standing_block,
    waiting,
)
from viano_assets.phases.diagnosis.config import DiagnosisConfig
from viano_assets.phases.diagnosis.context import NOT_MEASURED, check_context, context_document
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.diagnosis.derive import disagreement, invalid_answers
from viano_assets.phases.diagnosis.inputs import Inputs, load_inputs
from viano_assets.phases.diagnosis.localisation import cited_order
from viano_assets.phases.diagnosis.published import PHASE, load_diagnosis, publication, request_at
from viano_assets.phases.diagnosis.rules import check
from viano_assets.phases.outcomes import policy_changed, start_change
from viano_assets.phases.protocols import (
    CallOutcome,
    DispatchStatus,
    ModelGateway,
    ModelRequest,
    Operation,
    Phase,
    PhaseResult,
    Store,
    ToolFactory,
)
from viano_assets.phases.wire import ValidationIssue

Analyst = Callable[[ModelRequest], Mapping[str, Any]]
"""The offline analyst: the wire answer to a request, deterministic, without cost."""


class Router(Protocol):
    """Hands a finished diagnosis on. Called until it returned once, so it must be idempotent."""

    def route(self, head: Head, phase: Phase, destination: str) -> None:
        """Hand on: `destination` is `review` or `change_request`."""
        ...


class DiagnosisBuilder:
    """Evaluates a completed investigation as a whole.

    Args:
        store: the case store.
        gateway: the model.
        config: settings; see `DiagnosisConfig`.
        router: told once where a published result goes; None when nobody listens.
        tools: re-resolves the cited evidence before publication; None skips that look.
        analyst: the offline analyst, for the recorded disagreement; None records none.
        calibration: the calibration snapshot that a new revision freezes; None is "not measured".
    """

    def __init__(
        self,
        store: Store,
        gateway: ModelGateway,
        config: DiagnosisConfig | None = None,
        router: Router | None = None,
        tools: ToolFactory | None = None,
        *,
        analyst: Analyst | None = None,
        calibration: Mapping[str, Any] | None = None,
    ) -> None:
        self._store = store
        self._gateway = gateway
        self._config = config or DiagnosisConfig()
        self._router = router
        self._tools = tools
        self._analyst = analyst
        self._calibration = NOT_MEASURED if calibration is None else calibration

    async def build(
        self,
        case_id: str,
        package_id: str | None = None,
        *,
        attempt_id: str | None = None,
        retry_id: str | None = None,
    ) -> PhaseResult:
        """Carry out one dispatch: at most one provider round, then publication or a recorded rejection.

        An attempt whose answer was rejected is followed by a numbered one, so that an invalid answer is
        never taken up twice. After the last tolerated invalid answer the deterministic inconclusive
        result is published.

        Raises:
            VianoError: a refusal that no answer can cure; nothing of an earlier phase is executed.
        """
        attempt = check_attempt_id(attempt_id)
        with self._store.lock(case_id):
            head = self._store.latest(case_id, package_id)
            if events(head, PHASE, "published"):
                load_diagnosis(self._store, head)
                return self._finished(head, replayed=True)
            halted = standing_block(head, PHASE)
            if halted is not None:
                return halted
            inputs = load_inputs(self._store, head)
            context = frozen_context(self._store, head, PHASE)
            if context is None:
                head = self._start(head, inputs)
                context = frozen_context(self._store, head, PHASE)
            if context is None:
                raise DefectError("context_lost", "the context just frozen is not there", where=place(head))
            check_context(head, context, inputs)
            changed = self._config.changed(context.data["policy"])
            if changed:
                raise policy_changed(head, changed)
            return await self._attempt(head, context, inputs, attempt, retry_id)

    def _start(self, head: Head, inputs: Inputs) -> Head:
        path = artifact_path(PHASE, head.revision, "context.json")
        limit = self._config.limits.context_bytes
        data = context_document(head, inputs, self._config.policy(), self._calibration, limit)
        pointers = {"diagnosis_context": path}
        return self._store.commit(
            head, start_change(PHASE, path, {path: data}, pointers, "BUILDING_DIAGNOSIS")
        )

    async def _attempt(
        self, head: Head, context: FrozenContext, inputs: Inputs, wanted: str, retry_id: str | None
    ) -> PhaseResult:
        limit = context.data["policy"]["max_invalid_responses"]
        if invalid_attempts(head, PHASE) >= limit:
            return self._publish(head, context, inputs, invalid_answers(inputs, limit), None)
        attempt = self._free_attempt(head, wanted)
        request = request_at(self._store, head, context)
        operation = Operation(
            head.case_id, head.manifest.package_id, head.revision, PHASE, attempt, request, retry_id
        )
        outcome = await self._gateway.dispatch(self._store, operation, head)
        if outcome.status == "invalid":
            code = outcome.code or "invalid_answer"
            message = outcome.message or "the reply is not one complete JSON object"
            issue = ValidationIssue(
                path="", category=code, message=message, hint="answer with exactly one complete JSON object"
            )
            return self._reject(outcome, context, inputs, attempt, (issue,), code)
        if outcome.status != "answered":
            return waiting(self._store, PHASE, outcome)
        call = accepted_call(self._store, PHASE, outcome, request, attempt)
        answer = decode(DiagnosisAnswer, call.answer)
        issues = answer if isinstance(answer, tuple) else check(answer, inputs.ground())
        if isinstance(answer, tuple) or issues:
            return self._reject(outcome, context, inputs, attempt, issues, "invalid_answer")
        return self._publish(outcome.head, context, inputs, answer, call, request)

    def _free_attempt(self, head: Head, wanted: str) -> str:
        name, number = wanted, invalid_attempts(head, PHASE)
        stem = wanted.rsplit("-", 1)[0] if wanted.startswith("attempt-") else wanted
        while rejection_of(self._store, head, PHASE, name) is not None:
            number += 1
            name = f"{stem}-{number}"
        return name

    def _reject(
        self,
        outcome: CallOutcome,
        context: FrozenContext,
        inputs: Inputs,
        attempt: str,
        issues: tuple[ValidationIssue, ...],
        code: str,
    ) -> PhaseResult:
        head = record_rejection(
            self._store, outcome.head, PHASE, attempt, issues, code=code, call=call_binding(outcome)
        )
        limit = context.data["policy"]["max_invalid_responses"]
        if invalid_attempts(head, PHASE) >= limit:
            return self._publish(head, context, inputs, invalid_answers(inputs, limit), None)
        first = issues[0]
        where = first.path or "/"
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        return PhaseResult(
            PHASE,
            DispatchStatus.REJECTED,
            head,
            code=code,
            message=f"the answer was rejected: {first.category} at {where}{more}: {first.message}",
            hint="dispatch again: the issues are part of the next request",
        )

    def _publish(
        self,
        head: Head,
        context: FrozenContext,
        inputs: Inputs,
        answer: DiagnosisAnswer,
        call: SavedCall | None,
        request: ModelRequest | None = None,
    ) -> PhaseResult:
        self._check_evidence(head, inputs, answer)
        change = publication(
            head,
            context,
            inputs,
            answer,
            call=call,
            analyst_disagreement=self._compared(head, inputs, answer, call, request),
            limits=self._config.limits,
        )
        return self._finished(self._store.commit(head, change), replayed=False)

    def _check_evidence(self, head: Head, inputs: Inputs, answer: DiagnosisAnswer) -> None:
        cited = [inputs.records[name] for name in cited_order(answer, inputs.standings())]
        if self._tools is None or not cited:
            return
        broken = verify_records(cited, head, self._tools.open(self._store, head))
        if broken:
            raise ContractError(
                "evidence_does_not_hold",
                f"{broken[0].evidence_id}: {broken[0].reason}",
                where=place(head),
                hint="run `viano case verify`; the inputs no longer say what was stored",
            )

    def _compared(
        self,
        head: Head,
        inputs: Inputs,
        answer: DiagnosisAnswer,
        call: SavedCall | None,
        request: ModelRequest | None,
    ) -> dict[str, Any] | None:
        if self._analyst is None or call is None or request is None:
            return None
        decided_by = _provider_of(read_json(self._store, head, call.binding.path))
        if decided_by == "offline":
            return None
        return disagreement(answer, self._analyst(request), decided_by, inputs)

    def _finished(self, head: Head, *, replayed: bool) -> PhaseResult:
        confirmed = head.manifest.lifecycle != "FAILED_TO_ANALYZE"
        head = self._route(head, "change_request" if confirmed else "review")
        message = "" if confirmed else "no cause is confirmed; the case is routed to review"
        return PhaseResult(PHASE, DispatchStatus.COMPLETED, head, message=message, replayed=replayed)

    def _route(self, head: Head, destination: str) -> Head:
        """Tell the router; a router that failed is told again by the next dispatch, never skipped."""
        if self._router is None or events(head, PHASE, "routed"):
            return head
        self._router.route(head, PHASE, destination)
        change = Change(event="diagnosis_routed", phase=PHASE.value, detail={"destination": destination})
        return self._store.commit(head, change)


def _provider_of(record: Mapping[str, Any]) -> str:
    """Return the name of the provider that gave a recorded answer; `unknown` when the record says none."""
    served = record.get("provider")
    attempts = record.get("attempts")
    if served is None and isinstance(attempts, list) and attempts:
        served = attempts[-1].get("provider")
    return str(served) if served else "unknown"
