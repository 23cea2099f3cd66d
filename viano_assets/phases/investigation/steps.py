"""The steps of one dispatch after the loop has been read: accept, run the looks, publish, finish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.budget.manager import POINTER, BudgetManager
from viano_assets.budget.model import Binding
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import DefectError
from viano_assets.evidence.store import piece_path
from viano_assets.package.model import Change, Head
from viano_assets.phases.calls import SavedCall
from viano_assets.phases.common import blocked, declared_by, events, place, read_json, record_rejection
from viano_assets.phases.investigation import telling
from viano_assets.phases.investigation.answers import TurnAnswer, read_answer
from viano_assets.phases.investigation.artifacts import (
    PHASE,
    CallRef,
    Decision,
    DispatchContext,
    DispatchRecord,
    LoopEnd,
    numbered,
)
from viano_assets.phases.investigation.deciding import Origin, decide, with_loop_end
from viano_assets.phases.investigation.finishing import publication
from viano_assets.phases.investigation.inputs import Inputs, binding, created_entry, extended_registry
from viano_assets.phases.investigation.looks import history_data, run_looks
from viano_assets.phases.investigation.record import Loop, load_loop
from viano_assets.phases.investigation.rules import check_answer
from viano_assets.phases.investigation.turns import turn_of
from viano_assets.phases.outcomes import rejected
from viano_assets.phases.protocols import (
    CaseTools,
    DispatchStatus,
    PhaseResult,
    Progress,
    ProgressSink,
    Store,
)
from viano_assets.phases.wire import ValidationIssue


def rejections(head: Head, dispatch: int) -> int:
    """Count the rejected answers of the dispatch under way."""
    started = declared_by(head, numbered(head.revision, "context", dispatch))[0].generation
    return sum(1 for c in events(head, PHASE, "answer_rejected") if c.generation > started)


class DispatchSteps:
    """The steps of one dispatch after the loop has been read; `head` moves with every commit."""

    def __init__(
        self,
        store: Store,
        head: Head,
        loop: Loop,
        inputs: Inputs,
        tools: CaseTools,
        *,
        context_bytes: int,
        progress: ProgressSink | None,
    ) -> None:
        self.store = store
        self.head = head
        self.loop = loop
        self.inputs = inputs
        self.tools = tools
        self.context_bytes = context_bytes
        self.progress = progress

    def tell(self, text: str, detail: Mapping[str, Any]) -> None:
        """Report progress within this dispatch."""
        if self.progress is not None:
            facts = {"dispatch": self.loop.state.dispatches + 1, **detail}
            self.progress(Progress(self.head.case_id, PHASE.value, text, facts))

    def too_large(self, context: DispatchContext) -> PhaseResult | None:
        """End the loop, or block the case, when the next request would exceed the ceiling."""
        size = len(self.loop.request(context).canonical())
        if size <= self.context_bytes:
            return None
        if self.loop.records:
            return self.finish("context_limit")
        return blocked(
            self.store,
            self.head,
            PHASE,
            "context_too_large",
            f"the first request has {size} bytes, the limit is {self.context_bytes}",
            hint="raise limits.context_bytes or shorten the report",
        )

    def take(self, context: DispatchContext, call: SavedCall, attempt: str) -> PhaseResult:
        """Check an answer; accept it and run its looks, or record why it is rejected."""
        answer = read_answer(self.loop.policy.contract, call.answer)
        issues: Sequence[ValidationIssue]
        if isinstance(answer, TurnAnswer):
            issues = check_answer(answer, turn_of(self.loop, context, self.inputs, self.tools.check))
            if not issues:
                return self.publish(self.accept(context, call, answer))
        else:
            issues = answer
        self.head = record_rejection(self.store, self.head, PHASE, attempt, issues, call=call.binding)
        return rejected(PHASE, self.head, "invalid_answer", issues)

    def accept(self, context: DispatchContext, call: SavedCall, answer: TurnAnswer) -> Decision:
        """Commit the decision with its settlements and reservations; no tool has run yet."""
        loop = self.loop
        created = None
        if answer.create is not None:
            created = created_entry(answer.create, len(loop.state.hypotheses) + 1)
        origin = Origin(
            context.dispatch,
            binding(self.head, numbered(self.head.revision, "context", context.dispatch)),
            CallRef(**call.as_json()),
        )
        decision = decide(loop.state, loop.ledger, answer, origin, created)
        loop.state.apply_decision(decision)
        decision = with_loop_end(loop.state, decision)
        self.head = self.store.commit(self.head, self._decided(decision))
        self.tell(
            telling.decided(decision, loop.ledger.balance(decision.selected)),
            {"hypothesis": decision.selected, "looks": len(decision.actions)},
        )
        return decision

    def _decided(self, decision: Decision) -> Change:
        revision = self.head.revision
        path = numbered(revision, "decision", decision.dispatch)
        content = canonical_json(decision.model_dump(mode="json", by_alias=True))
        put: dict[str, bytes] = {path: content}
        pointers: dict[str, str | None] = {}
        piece = BudgetManager.stage(self.head, self.loop.ledger)
        if piece is not None:
            put[piece.path] = piece.content
            pointers[POINTER] = piece.path
        if decision.created is not None:
            origin = Binding(path=path, sha256=sha256_hex(content))
            registry = numbered(revision, "registry", decision.dispatch)
            put[registry] = self._registry(decision.created, origin)
            pointers["hypothesis_registry"] = registry
        return Change(
            event="investigation_decided",
            phase=PHASE.value,
            put=put,
            pointers=pointers,
            overlay=None,
            detail={
                "dispatch": decision.dispatch,
                "hypothesis": decision.selected,
                "settled": len(decision.settled),
                "reserved": len(decision.actions),
            },
        )

    def _registry(self, entry: Mapping[str, Any], origin: Binding) -> bytes:
        path = self.head.pointer("hypothesis_registry") or ""
        newest = read_json(self.store, self.head, path)
        document = extended_registry(
            newest, entry, self.loop.policy.initial_budget, origin, binding(self.head, path)
        )
        return canonical_json(document)

    def publish(self, decision: Decision) -> PhaseResult:
        """Run the reserved looks and publish results, evidence and history in one generation."""
        loop, revision = self.loop, self.head.revision
        shown = loop.shown
        results = run_looks(self.tools, loop.state, loop.evidence, decision.actions)
        put: dict[str, bytes] = {}
        evidence: Binding | None = None
        if loop.evidence.fresh:
            content = loop.evidence.piece()
            path = piece_path(revision, decision.dispatch)
            put[path] = content
            evidence = Binding(path=path, sha256=sha256_hex(content))
        record = DispatchRecord(
            dispatch=decision.dispatch,
            decision=binding(self.head, numbered(revision, "decision", decision.dispatch)),
            evidence=evidence,
            results=results,
            history=history_data(decision, results, loop.evidence, shown),
        )
        put[numbered(revision, "dispatch", decision.dispatch)] = canonical_json(
            record.model_dump(mode="json", by_alias=True)
        )
        self.head = self.store.commit(
            self.head,
            Change(
                event="investigation_dispatched",
                phase=PHASE.value,
                put=put,
                overlay=None,
                detail={"dispatch": decision.dispatch, "evidence": len(loop.evidence.fresh)},
            ),
        )
        for plan, result in zip(decision.actions, results, strict=True):
            self.tell(
                telling.looked(plan, result, loop.evidence),
                {"action": plan.action_id, "evidence": list(result.evidence_ids)},
            )
        if decision.loop_end is None:
            looks = "1 look" if len(results) == 1 else f"{len(results)} looks"
            text = f"dispatch {decision.dispatch}: {decision.selected}, {looks}"
            return PhaseResult(PHASE, DispatchStatus.PROGRESSED, self.head, message=text)
        return self.finish(decision.loop_end)

    def finish(self, reason: LoopEnd) -> PhaseResult:
        """Close the accounts and publish the completed investigation."""
        loop = load_loop(self.store, self.head)
        if loop is None:
            raise DefectError("context_lost", "the loop is not there", where=place(self.head))
        self.head = self.store.commit(self.head, publication(self.head, loop, reason))
        text = f"ended as {reason} after {len(loop.records)} dispatches"
        return PhaseResult(PHASE, DispatchStatus.COMPLETED, self.head, message=text)
