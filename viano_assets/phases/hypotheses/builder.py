"""`HypothesisBuilder`: one dispatch of the hypotheses (seed 001)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.freshness import check_fresh
from viano_assets.errors import ContractError, DefectError
from viano_assets.package.model import Change, Head
from viano_assets.phases.calls import SavedCall, accepted_call
from viano_assets.phases.common import (
    Binding,
    FrozenContext,
    artifact_path,
    blocked,
    check_attempt_id,
    check_binding,
    decode,
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
from viano_assets.phases.hypotheses.accepted import (
    SUMMARY,
    adoption_of,
    check_creation_history,
    hypotheses_document,
    judge_batch,
    load_hypotheses,
    registry_document,
    renderers,
    request_for,
    retained_of,
)
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.hypotheses.context import (
    Retained,
    base_request,
    context_document,
)
from viano_assets.phases.hypotheses.contract import Candidate, HypothesesAnswer
from viano_assets.phases.hypotheses.policy import (
    policy_document,
    policy_path,
    prior_proposals,
    revision_policy,
)
from viano_assets.phases.hypotheses.rules import missing_observation
from viano_assets.phases.interpretation.accepted import AcceptedInterpretation, load_interpretation
from viano_assets.phases.interpretation.context import check_size
from viano_assets.phases.outcomes import (
    already_rejected,
    changed_keys,
    policy_changed,
    reject_unreadable,
    rejected,
    start_change,
)
from viano_assets.phases.protocols import (
    DispatchStatus,
    ModelGateway,
    ModelRequest,
    Operation,
    Phase,
    PhaseResult,
    RequestLimits,
    Store,
)
from viano_assets.phases.rendering import FIELD, as_json, rendered
from viano_assets.phases.wire import ValidationIssue

_PHASE = Phase.HYPOTHESES


class HypothesisBuilder:
    """Turns an accepted interpretation into the registered initial batch of untested candidates.

    Args:
        store: the case store.
        gateway: the model.
        config: policy and limits; None takes the defaults at the start and the pinned policy afterwards.
    """

    def __init__(self, store: Store, gateway: ModelGateway, config: HypothesisConfig | None = None) -> None:
        self._store = store
        self._gateway = gateway
        self._explicit = config
        self._config = config or HypothesisConfig()

    async def build(
        self,
        case_id: str,
        package_id: str | None = None,
        *,
        attempt_id: str | None = None,
        retry_id: str | None = None,
    ) -> PhaseResult:
        """Carry out one dispatch: at most one provider round, then publication or a recorded rejection.

        A completed batch is verified and reused whatever the configuration or attempt id.

        Raises:
            VianoError: a refusal that no answer can cure (phases/common.py says which).
        """
        attempt = check_attempt_id(attempt_id)
        with self._store.lock(case_id):
            head = self._store.latest(case_id, package_id)
            if events(head, _PHASE, "published"):
                load_hypotheses(self._store, head, _PHASE)
                return PhaseResult(_PHASE, DispatchStatus.COMPLETED, head, replayed=True)
            check_creation_history(head)
            interpretation = load_interpretation(self._store, head, _PHASE)
            halted = standing_block(head, _PHASE)
            if halted is not None:
                return halted
            if missing_observation(interpretation.statements):
                return blocked(
                    self._store,
                    head,
                    _PHASE,
                    "observation_missing",
                    "the report holds no observed behaviour, so there is nothing to explain",
                    hint="reopen the case with what was seen: viano case reopen",
                    routing="review",
                )
            context = frozen_context(self._store, head, _PHASE)
            if context is None:
                head = self._start(head, interpretation)
                context = frozen_context(self._store, head, _PHASE)
            if context is None:
                raise DefectError("context_lost", "the context just frozen is not there", where=place(head))
            policy = self._pinned(head, context, interpretation)
            return await self._attempt(head, context, interpretation, policy, attempt, retry_id)

    def _start(self, head: Head, interpretation: AcceptedInterpretation) -> Head:
        config = self._config
        policy, pinned, put = self._policy(head, interpretation)
        adoption = adoption_of(interpretation, policy)
        prior: tuple[list[dict[str, Any]], list[dict[str, str]]] = ([], [])
        request: ModelRequest | None = None
        retained: Retained | None = None
        if adoption is None or adoption.candidates is None:
            if policy["prior_generations"] == "include":
                prior = prior_proposals(self._store, head, config.limits.prior_documents)
            limits = RequestLimits(max_output_tokens=config.max_output_tokens, deadline_s=config.deadline_s)
            retained = retained_of(adoption)
            request = base_request(interpretation, policy, prior[0], retained, limits)
        path = artifact_path(_PHASE, head.revision, "context.json")
        data = context_document(head, interpretation, pinned, prior[1], retained, request)
        check_size(head, data, config.limits.context_bytes, "context")
        pointers = {"hypothesis_policy": pinned.path, "hypothesis_context": path}
        change = start_change(_PHASE, path, {**put, path: data}, pointers, "GENERATING_HYPOTHESES")
        return self._store.commit(head, change)

    def _policy(
        self, head: Head, interpretation: AcceptedInterpretation
    ) -> tuple[dict[str, Any], Binding, dict[str, bytes]]:
        """Return the policy of a new start: its values, its binding and what has to be written.

        A joint revision has pinned it before its call; another explicit one is refused here.
        """
        joint = interpretation.context.data["joint_generation"]
        if joint is not None:
            pinned = check_binding(head, joint["hypothesis_policy"])
            policy = read_json(self._store, head, pinned.path)
            self._check_policy(head, policy)
            return policy, pinned, {}
        path = policy_path(head.revision)
        policy = revision_policy(head, self._config.policy())
        data = policy_document(head, policy)
        return policy, Binding(path, sha256_hex(data)), {path: data}

    def _check_policy(self, head: Head, policy: Mapping[str, Any]) -> None:
        if self._explicit is not None:
            changed = changed_keys(policy, revision_policy(head, self._explicit.policy()))
            if changed:
                raise policy_changed(head, changed)

    def _pinned(
        self, head: Head, context: FrozenContext, interpretation: AcceptedInterpretation
    ) -> dict[str, Any]:
        check_fresh(head, context.data["raw_inputs"])
        if check_binding(head, context.data["interpretation"]) != interpretation.binding:
            raise ContractError(
                "context_unbound", "the context was frozen for another interpretation", where=place(head)
            )
        policy = read_json(self._store, head, check_binding(head, context.data["policy"]).path)
        self._check_policy(head, policy)
        return policy

    async def _attempt(
        self,
        head: Head,
        context: FrozenContext,
        interpretation: AcceptedInterpretation,
        policy: Mapping[str, Any],
        attempt: str,
        retry_id: str | None,
    ) -> PhaseResult:
        if context.data["joint_adopted"]:
            return self._publish_joint(head, context, interpretation, policy)
        spent = exhausted(self._store, head, _PHASE, policy["max_invalid_responses"])
        if spent is not None:
            return spent
        if rejection_of(self._store, head, _PHASE, attempt) is not None:
            return already_rejected(_PHASE, head, attempt)
        request = request_for(self._store, head, context.data)
        operation = Operation(
            head.case_id, head.manifest.package_id, head.revision, _PHASE, attempt, request, retry_id
        )
        outcome = await self._gateway.dispatch(self._store, operation, head)
        if outcome.status == "invalid":
            return reject_unreadable(self._store, _PHASE, outcome, attempt)
        if outcome.status != "answered":
            return waiting(self._store, _PHASE, outcome)
        call = accepted_call(self._store, _PHASE, outcome, request, attempt)
        return self._settle(outcome.head, context, interpretation, policy, call)

    def _publish_joint(
        self,
        head: Head,
        context: FrozenContext,
        interpretation: AcceptedInterpretation,
        policy: Mapping[str, Any],
    ) -> PhaseResult:
        adoption = adoption_of(interpretation, policy)
        if adoption is None or adoption.candidates is None:
            raise ContractError("context_unbound", "the joint candidates are gone", where=place(head))
        calls = interpretation.calls
        return self._publish(head, context, interpretation, policy, adoption.candidates, calls)

    def _settle(
        self,
        head: Head,
        context: FrozenContext,
        interpretation: AcceptedInterpretation,
        policy: Mapping[str, Any],
        call: SavedCall,
    ) -> PhaseResult:
        decoded = decode(HypothesesAnswer, call.answer)
        issues: Sequence[ValidationIssue]
        if isinstance(decoded, HypothesesAnswer):
            issues = judge_batch(decoded.candidates, interpretation, policy, context.data, head)
            if not issues:
                return self._publish(head, context, interpretation, policy, decoded.candidates, (call,))
        else:
            issues = decoded
        head = record_rejection(self._store, head, _PHASE, call.attempt_id, issues, call=call.binding)
        return rejected(_PHASE, head, "invalid_answer", issues)

    def _publish(
        self,
        head: Head,
        context: FrozenContext,
        interpretation: AcceptedInterpretation,
        policy: Mapping[str, Any],
        candidates: Sequence[Candidate],
        calls: Sequence[SavedCall],
    ) -> PhaseResult:
        document = hypotheses_document(head, context, policy, candidates, calls)
        texts = rendered(renderers(document, interpretation))
        document[FIELD] = as_json(texts.bindings)
        path = artifact_path(_PHASE, head.revision, "hypotheses.json")
        registry = artifact_path(_PHASE, head.revision, "registry.json")
        text = artifact_path(_PHASE, head.revision, SUMMARY)
        put = {
            path: canonical_json(document),
            registry: canonical_json(registry_document(head, policy, path, document)),
            text: texts.contents[SUMMARY],
        }
        check_size(head, put[path], self._config.limits.output_bytes, "hypotheses")
        check_size(head, put[text], self._config.limits.summary_bytes, "summary")
        change = Change(
            event="hypotheses_published",
            phase=_PHASE.value,
            put=dict(put),
            pointers={"hypotheses": path, "hypothesis_registry": registry, "hypotheses_summary": text},
            overlay=None,
            detail={
                "context_sha256": context.binding.sha256,
                "interpretation_sha256": interpretation.binding.sha256,
                "policy_sha256": context.data["policy"]["sha256"],
                "calls": [call.as_json() for call in calls],
                "created": len(candidates),
            },
        )
        return PhaseResult(_PHASE, DispatchStatus.COMPLETED, self._store.commit(head, change))
