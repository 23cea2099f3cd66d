"""Verifies a completed investigation by deriving it again from the recorded answers and results.

No model and no tool is asked: contexts, gates, decisions, ledger, end states, result and summary must all
come out as they were published, byte for byte; a summary of an older renderer is held by its hash.
"""

from __future__ import annotations

from typing import Any

from viano_assets.budget.ledger import Ledger
from viano_assets.budget.model import LedgerEntry
from viano_assets.canonical import canonical_json
from viano_assets.case.freshness import check_fresh
from viano_assets.errors import ContractError
from viano_assets.package.model import Head
from viano_assets.phases.calls import read_call
from viano_assets.phases.common import artifact_path, declared_by, events, feedback, place
from viano_assets.phases.investigation.answers import TurnAnswer, read_answer
from viano_assets.phases.investigation.artifacts import (
    PHASE,
    Decision,
    DispatchContext,
    DispatchRecord,
    numbered,
)
from viano_assets.phases.investigation.config import InvestigationLimits
from viano_assets.phases.investigation.deciding import Origin, decide, with_loop_end
from viano_assets.phases.investigation.finishing import (
    close_loop,
    evidence_index,
    renderers,
    result_document,
)
from viano_assets.phases.investigation.inputs import load_inputs
from viano_assets.phases.investigation.looks import history_data
from viano_assets.phases.investigation.record import InvestigationRecord, Loop, registry_entries
from viano_assets.phases.investigation.state import InvestigationState
from viano_assets.phases.investigation.turns import next_context
from viano_assets.phases.protocols import Store
from viano_assets.phases.rendering import verified


def verify_replay(store: Store, head: Head) -> InvestigationRecord:
    """Return the completed investigation after deriving it again.

    Raises:
        ContractError: `investigation_replay` naming the first step that does not come out again, or any
            code of `InvestigationRecord.load` and of what it was made from.
        InputError: `stale_input`.
    """
    stored = InvestigationRecord.load(store, head)
    check_fresh(head, stored.loop.start.raw_inputs)
    _same(head, "bindings", stored.loop.start.bindings, load_inputs(store, head).bindings)
    replayed = _replay_loop(store, head, stored.loop)
    close_loop(replayed)
    _same(head, "ledger", tuple(stored.loop.ledger.entries), tuple(replayed.ledger.entries))
    document = result_document(head, replayed, stored.document.reason, None)
    summary = verified(
        store,
        head,
        stored.binding.path,
        stored.document.renderings,
        renderers(document, stored.evidence),
        lambda why: _differs(head, f"investigation.json ({why})"),
    )
    document = document.model_copy(update={"renderings": summary})
    _same(head, "investigation.json", stored.document, document)
    texts = {
        "evidence.json": evidence_index(head, replayed),
        "investigation.json": canonical_json(document.model_dump(mode="json", by_alias=True)),
    }
    for name, expected in texts.items():
        _same(head, name, store.read(head, artifact_path(PHASE, head.revision, name)), expected)
    return stored


def _replay_loop(store: Store, head: Head, stored: Loop) -> Loop:
    """Fold a fresh loop out of the recorded answers and results."""
    opened: list[LedgerEntry] = [entry for entry in stored.ledger.entries if entry.dispatch == 0]
    loop = Loop(
        start=stored.start,
        start_binding=stored.start_binding,
        policy=stored.policy,
        state=InvestigationState(stored.policy, registry_entries(stored.start)),
        ledger=Ledger(stored.ledger.key, opened),
        evidence=stored.evidence,
    )
    for context, decision, record in zip(stored.contexts, stored.decisions, stored.records, strict=True):
        limits = InvestigationLimits(
            output_tokens=context.limits.max_output_tokens, deadline_s=context.limits.deadline_s
        )
        _same(head, f"context {context.dispatch}", context, next_context(head, loop, limits))
        answer = _recorded_answer(store, head, loop, context, decision)
        again = decide(
            loop.state,
            loop.ledger,
            answer,
            Origin(decision.dispatch, decision.context, decision.call),
            decision.created,
        )
        loop.state.apply_decision(again)
        again = with_loop_end(loop.state, again)
        _same(head, f"decision {decision.dispatch}", decision, again)
        _same(head, f"history {decision.dispatch}", record.history, _told(head, loop, again, record))
        loop.state.apply_dispatch(record)
        loop.contexts.append(context)
        loop.decisions.append(decision)
        loop.records.append(record)
    return loop


def _told(head: Head, loop: Loop, decision: Decision, record: DispatchRecord) -> dict[str, Any]:
    try:
        return history_data(decision, record.results, loop.evidence, loop.shown)
    except KeyError as error:
        raise _differs(head, f"evidence {error}") from error


def _recorded_answer(
    store: Store, head: Head, loop: Loop, context: DispatchContext, decision: Decision
) -> TurnAnswer:
    call = read_call(store, head, decision.call.model_dump(), PHASE)
    recorded = declared_by(head, call.binding.path)[0].generation
    started = declared_by(head, numbered(head.revision, "context", context.dispatch))[0].generation
    refused = [c for c in events(head, PHASE, "answer_rejected") if started < c.generation < recorded]
    issues = feedback(store, head, PHASE, recorded) if refused else []
    _same(head, f"request {context.dispatch}", call.request_sha256, loop.request(context, issues).sha256)
    answer = read_answer(loop.policy.contract, call.answer)
    if not isinstance(answer, TurnAnswer):
        raise _differs(head, f"answer {context.dispatch}")
    return answer


def _same(head: Head, what: str, stored: object, again: object) -> None:
    if stored != again:
        raise _differs(head, what)


def _differs(head: Head, what: str) -> ContractError:
    return ContractError(
        "investigation_replay",
        f"{what} does not come out again from the recorded answers and results",
        where=place(head, what),
        hint="run `viano case verify`; restore the package from an export",
    )
