"""Reads an investigation back, every artifact verified against the one it follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from viano_assets.budget.ledger import Ledger
from viano_assets.budget.manager import BudgetManager
from viano_assets.budget.model import Binding, BudgetSnapshot
from viano_assets.errors import BlockedError, ContractError
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.evidence.store import EvidenceStore, piece_path
from viano_assets.package.model import Head
from viano_assets.phases import common
from viano_assets.phases.common import artifact_path, place, read_model
from viano_assets.phases.investigation.artifacts import (
    PHASE,
    Decision,
    DispatchContext,
    DispatchRecord,
    InvestigationDocument,
    StartContext,
    numbered,
)
from viano_assets.phases.investigation.config import InvestigationPolicy
from viano_assets.phases.investigation.state import InvestigationState
from viano_assets.phases.protocols import ModelRequest, Store, section

M = TypeVar("M", bound=BaseModel)


@dataclass(slots=True)
class Loop:
    """The loop as stored: its frozen start, the dispatches so far, and the state they fold to.

    `context` and `decision` belong to the dispatch that is under way, if one is.
    """

    start: StartContext
    start_binding: Binding
    policy: InvestigationPolicy
    state: InvestigationState
    ledger: Ledger
    evidence: EvidenceStore
    contexts: list[DispatchContext] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    records: list[DispatchRecord] = field(default_factory=list)
    context: DispatchContext | None = None
    decision: Decision | None = None

    @property
    def shown(self) -> frozenset[str]:
        """The evidence ids that the history shows."""
        return frozenset(
            evidence_id
            for record in self.records
            for result in record.results
            for evidence_id in result.evidence_ids
        )

    def request(self, context: DispatchContext, issues: Sequence[Mapping[str, object]] = ()) -> ModelRequest:
        """Build the exact request of a dispatch; `issues` of a rejected answer come last."""
        history = [section("history", record.history) for record in self.records]
        stable = (*self.start.messages, *history)
        corrections = (section("validation_issues", list(issues)),) if issues else ()
        return ModelRequest(
            phase=PHASE.value,
            contract=self.policy.contract,
            prompt_version=self.policy.prompt_version,
            messages=(*stable, section("turn", context.turn), *corrections),
            json_schema=self.start.json_schema,
            limits=context.limits,
            stable_messages=len(stable),
        )


def load_loop(store: Store, head: Head) -> Loop | None:
    """Return the current revision's loop, or None when it has not started.

    Raises:
        ContractError: `investigation_chain`, `binding_broken`, `context_unbound`, `ledger_*`,
            `evidence_broken` when anything stored does not fit together.
    """
    frozen = common.frozen_context(store, head, PHASE)
    if frozen is None:
        return None
    start = read_model(store, head, frozen.binding.path, StartContext)
    bound(head, start.policy)
    policy = read_model(store, head, start.policy.path, InvestigationPolicy)
    loop = Loop(
        start=start,
        start_binding=Binding(path=frozen.binding.path, sha256=frozen.binding.sha256),
        policy=policy,
        state=InvestigationState(policy, registry_entries(start)),
        ledger=BudgetManager(store).ledger(head),
        evidence=EvidenceStore.load(store, head),
    )
    dispatch = 1
    while _read_dispatch(store, head, loop, dispatch):
        dispatch += 1
    return loop


def registry_entries(start: StartContext) -> list[dict[str, object]]:
    """Return the hypotheses of the frozen `registry` section."""
    request = ModelRequest(
        phase=PHASE.value, contract="", prompt_version="", messages=start.messages, json_schema={}
    )
    (registry,) = request.sections("registry")
    return list(registry["hypotheses"])


def _read_dispatch(store: Store, head: Head, loop: Loop, dispatch: int) -> bool:
    """Read one dispatch into the loop; False when it does not exist or is not finished."""
    context = _read(store, head, "context", dispatch, DispatchContext)
    if context is None:
        return False
    previous = _binding(head, "dispatch", dispatch - 1) if dispatch > 1 else None
    _follows(
        head,
        dispatch,
        (context.dispatch, context.start, context.previous) == (dispatch, loop.start_binding, previous),
    )
    loop.context, loop.decision = context, None
    decision = _read(store, head, "decision", dispatch, Decision)
    if decision is None:
        return False
    _follows(
        head,
        dispatch,
        (decision.dispatch, decision.selected, decision.context)
        == (dispatch, context.selected, _binding(head, "context", dispatch)),
    )
    _taken(head, dispatch, lambda: loop.state.apply_decision(decision))
    loop.decision = decision
    record = _read(store, head, "dispatch", dispatch, DispatchRecord)
    if record is None:
        return False
    evidence = piece_path(head.revision, dispatch)
    expected = _stored(head, evidence) if evidence in head.files else None
    _follows(
        head,
        dispatch,
        (record.dispatch, record.decision, record.evidence)
        == (dispatch, _binding(head, "decision", dispatch), expected),
    )
    _follows(
        head,
        dispatch,
        [result.action_id for result in record.results] == [plan.action_id for plan in decision.actions],
    )
    _taken(head, dispatch, lambda: loop.state.apply_dispatch(record))
    loop.contexts.append(context)
    loop.decisions.append(decision)
    loop.records.append(record)
    loop.context = loop.decision = None
    return True


def _read(store: Store, head: Head, name: str, dispatch: int, model: type[M]) -> M | None:
    path = numbered(head.revision, name, dispatch)
    if path not in head.files:
        return None
    if len(common.declared_by(head, path)) != 1:
        raise _broken(head, path, "no step of the loop declared it")
    return read_model(store, head, path, model)


def _binding(head: Head, name: str, dispatch: int) -> Binding:
    return _stored(head, numbered(head.revision, name, dispatch))


def _stored(head: Head, path: str) -> Binding:
    found = common.bind(head, path)
    return Binding(path=found.path, sha256=found.sha256)


def bound(head: Head, stored: Binding) -> None:
    """Verify a stored binding.

    Raises:
        ContractError: `binding_broken`.
    """
    common.check_binding(head, {"path": stored.path, "sha256": stored.sha256})


def _taken(head: Head, dispatch: int, apply: Callable[[], None]) -> None:
    try:
        apply()
    except KeyError as error:
        raise _broken(
            head, f"dispatch {dispatch}", f"it names {error}, which the loop does not have"
        ) from error


def _follows(head: Head, dispatch: int, holds: bool) -> None:
    if not holds:
        raise _broken(head, f"dispatch {dispatch}", "an artifact does not follow the one before it")


def _broken(head: Head, what: str, why: str) -> ContractError:
    return ContractError(
        "investigation_chain",
        why,
        where=place(head, what),
        hint="run `viano case verify`; restore the package from an export",
    )


@dataclass(frozen=True, slots=True)
class InvestigationRecord:
    """A completed investigation, read back and verified."""

    document: InvestigationDocument
    binding: Binding
    evidence: tuple[EvidenceRecord, ...]
    loop: Loop

    @property
    def budget(self) -> BudgetSnapshot:
        """The closed accounts."""
        return self.loop.ledger.snapshot()

    def record(self, evidence_id: str) -> EvidenceRecord | None:
        """Return one evidence record; None for an id that was never minted."""
        return self.loop.evidence.get(evidence_id)

    @classmethod
    def load(cls, store: Store, head: Head) -> InvestigationRecord:
        """Read the completed investigation of the head's current revision.

        Raises:
            BlockedError: `phase_missing` when it is not completed.
            ContractError: when anything stored does not fit together.
        """
        common.require_published(head, PHASE, POINTERS, PHASE)
        loop = load_loop(store, head)
        path = artifact_path(PHASE, head.revision, "investigation.json")
        if loop is None or head.pointer("investigation") != path:
            raise BlockedError("phase_missing", "the investigation is not completed", where=place(head))
        common.check_targets(
            head, PHASE, {"evidence": "evidence.json", "investigation_summary": "investigation.md"}
        )
        document = read_model(store, head, path, InvestigationDocument)
        for piece in (
            document.context,
            document.policy,
            *document.pieces.contexts,
            *document.pieces.decisions,
            *document.pieces.dispatches,
            *document.pieces.evidence,
            *document.pieces.ledger,
        ):
            bound(head, piece)
        if document.budget != loop.ledger.snapshot() or document.evidence_count != len(loop.evidence):
            raise _broken(head, path, "the result does not match the ledger or the evidence")
        return cls(document, _stored(head, path), tuple(loop.evidence.records), loop)


POINTERS = ("investigation", "evidence", "budget_ledger", "investigation_summary")
"""Pointers a completed investigation sets."""
