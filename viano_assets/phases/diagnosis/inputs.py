"""Reads what the final evaluation stands on, and refuses everything that is not finished and unchanged.

Nothing of an earlier phase is executed here: a missing stage is named, a changed input is stale, an open
account or an unsettled action is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viano_assets.budget.model import BudgetSnapshot
from viano_assets.case.freshness import check_fresh
from viano_assets.errors import ContractError
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.package.model import Head
from viano_assets.phases.common import Binding, bind, place, require_published
from viano_assets.phases.diagnosis.ground import Ground
from viano_assets.phases.diagnosis.localisation import Standing
from viano_assets.phases.hypotheses.accepted import load_hypotheses
from viano_assets.phases.interpretation.accepted import AcceptedInterpretation
from viano_assets.phases.investigation.artifacts import HypothesisEnd, InvestigationDocument
from viano_assets.phases.investigation.record import POINTERS, InvestigationRecord
from viano_assets.phases.protocols import Phase, Store


@dataclass(frozen=True, slots=True)
class Inputs:
    """The completed earlier phases of the current revision, verified."""

    interpretation: AcceptedInterpretation
    investigation: InvestigationDocument
    budget: BudgetSnapshot
    records: Mapping[str, EvidenceRecord]
    bindings: Mapping[str, Binding]
    raw_inputs: Mapping[str, str]

    def ground(self) -> Ground:
        """Return the facts the gates judge against."""
        statuses = {end.hypothesis_id: end.status for end in self.investigation.hypotheses}
        texts = tuple(source.text for source in self.interpretation.case.sources)
        return Ground(statuses, self.records, texts)

    def standings(self) -> tuple[Standing, ...]:
        """Return the end states in registry order."""
        return tuple(
            Standing(end.hypothesis_id, end.status, end.effective_confidence)
            for end in self.investigation.hypotheses
        )


def load_inputs(store: Store, head: Head) -> Inputs:
    """Return the verified inputs of the current revision's diagnosis.

    Raises:
        BlockedError: `phase_missing` when an earlier phase has not completed.
        InputError: `stale_input` when a raw input changed since this revision read it.
        ContractError: `investigation_unfinished`, `budget_unsettled`, or what else no longer holds.
    """
    waiting = Phase.DIAGNOSIS
    accepted = load_hypotheses(store, head, waiting)
    require_published(head, Phase.INVESTIGATION, POINTERS, waiting)
    stored = InvestigationRecord.load(store, head)
    check_fresh(head, stored.loop.start.raw_inputs)
    document = stored.document
    _check_identity(head, document)
    _check_budget(head, document, stored.budget)
    return Inputs(
        accepted.interpretation,
        document,
        stored.budget,
        {record.evidence_id: record for record in stored.evidence},
        _bindings(head, document),
        dict(sorted(head.raw_inputs().items())),
    )


def _check_identity(head: Head, document: InvestigationDocument) -> None:
    named = (document.case_id, document.package_id, document.analysis_revision)
    if named != (head.case_id, head.manifest.package_id, head.revision):
        raise ContractError(
            "investigation_unfinished",
            "the investigation that was published belongs to another case or revision",
            where=place(head),
            hint=f"run `viano run {head.case_id} --until investigation`",
        )


def _check_budget(head: Head, document: InvestigationDocument, budget: BudgetSnapshot) -> None:
    wanted = {end.hypothesis_id for end in document.hypotheses}
    if budget != document.budget or set(budget.accounts) != wanted or not budget.settled:
        raise ContractError(
            "budget_unsettled",
            "an account is open, an action is unsettled, or the ledger is not the published one",
            where=place(head),
            hint="run `viano case verify`; the investigation has to end first",
        )


def _bindings(head: Head, document: InvestigationDocument) -> dict[str, Binding]:
    names = ("case", "interpretation", "hypotheses", "hypothesis_registry", *POINTERS)
    found = {name: bind(head, head.pointer(name) or "") for name in names}
    for number, piece in enumerate(document.pieces.evidence):
        found[f"evidence-{number:04d}"] = Binding(piece.path, piece.sha256)
    return dict(sorted(found.items()))


def hypothesis_section(end: HypothesisEnd) -> dict[str, Any]:
    """Return one hypothesis as the model is shown it: registry entry and end state."""
    review = None if end.last_review is None else end.last_review.model_dump(mode="json")
    return {
        **end.entry,
        "status": end.status,
        "terminal_reason": end.terminal_reason,
        "requested_confidence": end.requested_confidence.value,
        "effective_confidence": end.effective_confidence.value,
        "last_review": review,
        "questions": list(end.questions),
    }
