"""`CaseInterpreter`: one dispatch of the interpretation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viano_assets.canonical import canonical_json
from viano_assets.case.freshness import check_fresh
from viano_assets.case.model import CaseDocument
from viano_assets.errors import ContractError, DefectError
from viano_assets.package.model import Change, Head
from viano_assets.phases.calls import SavedCall, accepted_call
from viano_assets.phases.common import (
    FrozenContext,
    artifact_path,
    check_attempt_id,
    check_binding,
    events,
    exhausted,
    frozen_context,
    place,
    read_json,
    record_rejection,
    rejection_of,
    standing_block,
    waiting,
)
from viano_assets.phases.hypotheses.policy import revision_policy
from viano_assets.phases.interpretation.accepted import (
    SUMMARY,
    interpretation_document,
    load_interpretation,
    renderers,
)
from viano_assets.phases.interpretation.attempts import Attempts
from viano_assets.phases.interpretation.config import DEFAULT_MODE, InterpretationConfig
from viano_assets.phases.interpretation.context import base_request, check_size, context_document, load_case
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.outcomes import (
    already_rejected,
    changed_keys,
    policy_changed,
    reject_unreadable,
    rejected,
    start_change,
)
from viano_assets.phases.planning.start import joint_start
from viano_assets.phases.protocols import (
    DispatchStatus,
    ModelGateway,
    Operation,
    Phase,
    PhaseResult,
    RequestLimits,
    Store,
)
from viano_assets.phases.rendering import FIELD, as_json, rendered

_PHASE = Phase.INTERPRETATION


class CaseInterpreter:
    """Reads the canonical case into an accepted interpretation.

    Args:
        store: the case store.
        gateway: the model.
        config: settings; None takes the defaults at the start and whatever is frozen afterwards.
    """

    def __init__(
        self, store: Store, gateway: ModelGateway, config: InterpretationConfig | None = None
    ) -> None:
        self._store = store
        self._gateway = gateway
        self._explicit = config
        self._config = config or InterpretationConfig()

    async def build(
        self,
        case_id: str,
        package_id: str | None = None,
        *,
        attempt_id: str | None = None,
        retry_id: str | None = None,
    ) -> PhaseResult:
        """Carry out one dispatch: at most one provider round, then publication or a recorded rejection.

        Raises:
            VianoError: a refusal that no answer can cure (phases/common.py says which).
        """
        attempt = check_attempt_id(attempt_id)
        with self._store.lock(case_id):
            head = self._store.latest(case_id, package_id)
            if events(head, _PHASE, "published"):
                load_interpretation(self._store, head, _PHASE)
                return PhaseResult(_PHASE, DispatchStatus.COMPLETED, head, replayed=True)
            halted = standing_block(head, _PHASE)
            if halted is not None:
                return halted
            case, binding = load_case(self._store, head)
            context = frozen_context(self._store, head, _PHASE)
            if context is None:
                head = self._start(head, case)
                context = frozen_context(self._store, head, _PHASE)
            if context is None:
                raise DefectError("context_lost", "the context just frozen is not there", where=place(head))
            self._check_frozen(head, context)
            if check_binding(head, context.data["case"]) != binding:
                raise ContractError("case_changed", "the case pointer moved", where=place(head))
            return await self._attempt(head, context, case, attempt, retry_id)

    def _start(self, head: Head, case: CaseDocument) -> Head:
        config = self._config
        _, binding = load_case(self._store, head)
        limits = RequestLimits(max_output_tokens=config.max_output_tokens, deadline_s=config.deadline_s)
        path = artifact_path(_PHASE, head.revision, "context.json")
        pointers = {"interpretation_context": path}
        put: dict[str, bytes] = {}
        joint: dict[str, Any] | None = None
        policy: dict[str, Any] = {
            "planning_mode": config.planning.mode or DEFAULT_MODE,
            "max_invalid_responses": config.max_invalid_responses,
        }
        if policy["planning_mode"] == "joint":
            start = joint_start(self._store, head, case, config.hypotheses, config.joint_limits())
            request, joint, put = start.request, start.generation, start.put
            pointers["hypothesis_policy"] = next(iter(put))
            policy.update(config.planning.bounds())
        else:
            request = base_request(case, limits)
        put[path] = context_document(head, binding, request, policy, joint)
        check_size(head, put[path], config.limits.context_bytes, "context")
        return self._store.commit(head, start_change(_PHASE, path, put, pointers, "INTERPRETING"))

    def _check_frozen(self, head: Head, context: FrozenContext) -> None:
        check_fresh(head, context.data["raw_inputs"])
        if self._explicit is None:
            return
        frozen = context.data["policy"]
        wanted: dict[str, object] = {"max_invalid_responses": self._explicit.max_invalid_responses}
        if self._explicit.planning.mode is not None:
            wanted["planning_mode"] = self._explicit.planning.mode
        if "max_repairs" in frozen:
            wanted.update(self._explicit.planning.bounds())
        changed = changed_keys(frozen, wanted)
        joint = context.data["joint_generation"]
        if joint is not None:
            pinned = read_json(self._store, head, check_binding(head, joint["hypothesis_policy"]).path)
            changed += changed_keys(pinned, revision_policy(head, self._explicit.hypotheses.policy()))
        if changed:
            raise policy_changed(head, changed)

    async def _attempt(
        self, head: Head, context: FrozenContext, case: CaseDocument, attempt: str, retry_id: str | None
    ) -> PhaseResult:
        limit = context.data["policy"]["max_invalid_responses"]
        spent = exhausted(self._store, head, _PHASE, limit)
        if spent is not None:
            return spent
        if rejection_of(self._store, head, _PHASE, attempt) is not None:
            return already_rejected(_PHASE, head, attempt)
        attempts = Attempts(self._store, head, context, case)
        current = attempts.at()
        request = current.request
        operation = Operation(
            head.case_id, head.manifest.package_id, head.revision, _PHASE, attempt, request, retry_id
        )
        outcome = await self._gateway.dispatch(self._store, operation, head)
        if outcome.status == "invalid":
            return reject_unreadable(self._store, _PHASE, outcome, attempt, attempts.unreadable(current))
        if outcome.status != "answered":
            return waiting(self._store, _PHASE, outcome)
        call = accepted_call(self._store, _PHASE, outcome, request, attempt)
        judgement = Attempts(self._store, outcome.head, context, case).judge(current, call)
        if judgement.answer is None:
            head = record_rejection(
                self._store,
                outcome.head,
                _PHASE,
                attempt,
                judgement.issues,
                call=call.binding,
                extra=judgement.extra,
            )
            return rejected(_PHASE, head, "invalid_answer", judgement.issues)
        return self._publish(outcome.head, context, case, judgement.answer, judgement.calls)

    def _publish(
        self,
        head: Head,
        context: FrozenContext,
        case: CaseDocument,
        answer: InterpretationAnswer,
        calls: Sequence[SavedCall],
    ) -> PhaseResult:
        document = interpretation_document(head, context, answer, calls)
        texts = rendered(renderers(document, case))
        data = canonical_json({**document, FIELD: as_json(texts.bindings)})
        summary = texts.contents[SUMMARY]
        check_size(head, data, self._config.limits.output_bytes, "interpretation")
        check_size(head, summary, self._config.limits.summary_bytes, "summary")
        json_path = artifact_path(_PHASE, head.revision, "interpretation.json")
        text_path = artifact_path(_PHASE, head.revision, SUMMARY)
        change = Change(
            event="interpretation_published",
            phase=_PHASE.value,
            put={json_path: data, text_path: summary},
            pointers={"interpretation": json_path, "interpretation_summary": text_path},
            overlay=None,
            detail={
                "context_sha256": context.binding.sha256,
                "case_sha256": context.data["case"]["sha256"],
                "calls": [call.as_json() for call in calls],
            },
        )
        return PhaseResult(_PHASE, DispatchStatus.COMPLETED, self._store.commit(head, change))
