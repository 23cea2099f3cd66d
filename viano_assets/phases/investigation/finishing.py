"""The end of the loop: outstanding looks settled, accounts closed, the result published whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from viano_assets.budget.manager import POINTER, BudgetManager
from viano_assets.budget.model import Binding
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.evidence.model import Completeness, EvidenceRecord
from viano_assets.evidence.store import piece_path
from viano_assets.package.model import Change, Head
from viano_assets.phases.common import artifact_path
from viano_assets.phases.investigation.artifacts import (
    PHASE,
    ActionEnd,
    EvidenceIndex,
    EvidenceIndexEntry,
    HypothesisEnd,
    InvestigationDocument,
    LoopEnd,
    NotExamined,
    Pieces,
    numbered,
)
from viano_assets.phases.investigation.deciding import settle_pending
from viano_assets.phases.investigation.inputs import binding
from viano_assets.phases.investigation.record import Loop
from viano_assets.phases.investigation.summary import VERSION, render
from viano_assets.phases.protocols import sections_of
from viano_assets.phases.rendering import Renderer, rendered
from viano_assets.phases.wire import Confidence

SUMMARY = "investigation.md"
NAMED = 10
"""Files that one entry of what was not examined names."""


def renderers(document: InvestigationDocument, records: Sequence[EvidenceRecord]) -> tuple[Renderer, ...]:
    """Return how a completed investigation is rendered."""
    return (Renderer(SUMMARY, VERSION, lambda: render(document, records).encode()),)


def close_loop(loop: Loop) -> None:
    """Settle what is outstanding with reward 0 and close every open account, its balance kept."""
    dispatch = loop.state.dispatches + 1
    for hypothesis in loop.state.open:
        settle_pending(loop.state, loop.ledger, hypothesis, 0, dispatch)
        hypothesis.pending = []
        loop.ledger.close(hypothesis.hypothesis_id, "loop_finished", dispatch=dispatch)
        loop.state.end(hypothesis.hypothesis_id, "loop_finished")


def publication(head: Head, loop: Loop, reason: LoopEnd) -> Change:
    """Return the change that completes the investigation.

    Args:
        head: the head with every dispatch published.
        loop: the loop as stored; its accounts are closed here.
        reason: why the loop ended.
    """
    close_loop(loop)
    put: dict[str, bytes] = {}
    pointers: dict[str, str | None] = {}
    piece = BudgetManager.stage(head, loop.ledger)
    if piece is not None:
        put[piece.path] = piece.content
        pointers[POINTER] = piece.path
    added = None if piece is None else Binding(path=piece.path, sha256=sha256_hex(piece.content))
    document = result_document(head, loop, reason, added)
    summary = rendered(renderers(document, loop.evidence.records))
    document = document.model_copy(update={"renderings": summary.bindings})
    texts = {
        "investigation": (
            "investigation.json",
            canonical_json(document.model_dump(mode="json", by_alias=True)),
        ),
        "evidence": ("evidence.json", evidence_index(head, loop)),
        "investigation_summary": (SUMMARY, summary.contents[SUMMARY]),
    }
    for pointer, (name, content) in texts.items():
        path = artifact_path(PHASE, head.revision, name)
        put[path] = content
        pointers[pointer] = path
    return Change(
        event="investigation_published",
        phase=PHASE.value,
        put=put,
        pointers=pointers,
        overlay=None,
        detail={"reason": reason, "dispatches": len(loop.records), "evidence": len(loop.evidence)},
    )


def result_document(
    head: Head, loop: Loop, reason: LoopEnd, closing: Binding | None
) -> InvestigationDocument:
    """Return `investigation.json` for a closed loop, its renderings not yet bound.

    `closing` is the ledger piece not yet in the head.
    """
    ledger = sorted(
        path
        for path in head.files
        if path.startswith(artifact_path(PHASE, head.revision, "ledger-"))
        and (closing is None or path != closing.path)
    )
    numbers = range(1, len(loop.records) + 1)
    evidence = [piece_path(head.revision, number) for number in numbers]
    return InvestigationDocument(
        case_id=head.case_id,
        package_id=head.manifest.package_id,
        analysis_revision=head.revision,
        contract=loop.policy.contract,
        reason=reason,
        dispatches=len(loop.records),
        context=loop.start_binding,
        policy=loop.start.policy,
        hypotheses=tuple(_hypotheses(loop)),
        actions=tuple(_actions(loop)),
        evidence_count=len(loop.evidence),
        budget=loop.ledger.snapshot(),
        not_examined=tuple(not_examined(loop)),
        pieces=Pieces(
            contexts=tuple(binding(head, numbered(head.revision, "context", n)) for n in numbers),
            decisions=tuple(binding(head, numbered(head.revision, "decision", n)) for n in numbers),
            dispatches=tuple(binding(head, numbered(head.revision, "dispatch", n)) for n in numbers),
            evidence=tuple(binding(head, path) for path in evidence if path in head.files),
            ledger=(*(binding(head, path) for path in ledger), *((closing,) if closing else ())),
        ),
    )


def evidence_index(head: Head, loop: Loop) -> bytes:
    """Return the bytes of `evidence.json`."""
    minted = {
        evidence_id: piece_path(head.revision, record.dispatch)
        for record in loop.records
        for result in record.results
        for evidence_id in result.new_ids
    }
    index = EvidenceIndex(
        records=tuple(
            EvidenceIndexEntry(
                evidence_id=record.evidence_id,
                path=minted[record.evidence_id],
                content_sha256=record.content_sha256,
            )
            for record in loop.evidence.records
        )
    )
    return canonical_json(index.model_dump(mode="json", by_alias=True))


def _hypotheses(loop: Loop) -> Iterator[HypothesisEnd]:
    for hypothesis in loop.state.hypotheses.values():
        yield HypothesisEnd(
            hypothesis_id=hypothesis.hypothesis_id,
            entry=dict(hypothesis.entry),
            status=hypothesis.status,
            terminal_reason=hypothesis.terminal or "loop_finished",
            requested_confidence=hypothesis.requested,
            effective_confidence=hypothesis.effective,
            last_review=hypothesis.review,
            turns=hypothesis.turns,
            questions=tuple(hypothesis.questions),
            notes=tuple(hypothesis.notes),
            balance=loop.ledger.balance(hypothesis.hypothesis_id),
        )


def _actions(loop: Loop) -> Iterator[ActionEnd]:
    for action in loop.state.actions.values():
        if action.result is not None:
            yield ActionEnd(
                action=action.plan,
                dispatch=action.dispatch,
                result=action.result,
                reward=action.reward,
                assessed=action.assessed,
            )


def not_examined(loop: Loop) -> Iterator[NotExamined]:
    """Yield what was not looked at or not fully, derived from the record alone."""
    for action in loop.state.actions.values():
        result, plan = action.result, action.plan
        if result is not None and result.completeness is not Completeness.COMPLETE:
            cause = f" ({result.cause})" if result.cause else ""
            yield NotExamined(
                kind="look_limited",
                subject=plan.action_id,
                text=f"{plan.tool} was {result.completeness.value}{cause}: {plan.purpose}",
            )
        if not action.assessed:
            yield NotExamined(
                kind="look_unassessed",
                subject=plan.action_id,
                text=f"the results of {plan.tool} were never judged for {plan.hypothesis_id}",
            )
    for hypothesis in loop.state.hypotheses.values():
        if hypothesis.effective is Confidence.UNASSESSED:
            yield NotExamined(
                kind="hypothesis_unassessed",
                subject=hypothesis.hypothesis_id,
                text=f"{hypothesis.hypothesis_id} was never judged by evidence",
            )
    yield from _unread(loop)


def _unread(loop: Loop) -> Iterator[NotExamined]:
    read = {record.provenance.input_path for record in loop.evidence.records}
    for path in sorted(loop.start.raw_inputs):
        if path not in read and not path.startswith("inputs/report/"):
            yield NotExamined(kind="input_unread", subject=path, text=f"nothing was taken from {path}")
    if loop.policy.is_strict:
        yield from _unread_inside(loop)
    asked = {action.plan.tool for action in loop.state.actions.values()}
    for tool in sorted(loop.policy.tool_costs):
        if tool not in asked:
            yield NotExamined(kind="tool_unused", subject=tool, text=f"{tool} was never asked")


def _unread_inside(loop: Loop) -> Iterator[NotExamined]:
    """Yield what the tools said at the start that they cannot read: files, and statements of dumps."""
    for tools in sections_of(loop.start.messages, "tools"):
        overview = tools.get("overview") or {}
        database = overview.get("database") or {}
        paths = [str(entry["path"]) for entry in (*overview.get("other", ()), *database.get("unread", ()))]
        if paths:
            more = f" (+{len(paths) - NAMED})" if len(paths) > NAMED else ""
            names = ", ".join(paths[:NAMED]) + more
            yield NotExamined(
                kind="files_unread", subject=names, text=f"read neither as text nor as tables: {names}"
            )
        if skipped := int(database.get("not_applied") or 0):
            yield NotExamined(
                kind="statements_skipped",
                subject=str(skipped),
                text=f"statements of the dumps that were not applied: {skipped}",
            )
