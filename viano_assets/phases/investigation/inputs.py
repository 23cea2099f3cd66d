"""What earlier phases left for the investigation: the case, the interpretation and the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.budget.model import Binding
from viano_assets.canonical import canonical_json
from viano_assets.package.model import Head
from viano_assets.phases import common
from viano_assets.phases.hypotheses.accepted import UNIT, load_hypotheses
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.hypotheses.rules import Scope, check_candidate, duplicates, scope_of
from viano_assets.phases.interpretation.context import case_section
from viano_assets.phases.protocols import Phase, Store
from viano_assets.phases.wire import ValidationIssue


@dataclass(frozen=True, slots=True)
class Inputs:
    """Verified results of the predecessors, in the forms a model is shown.

    `entries` are the initial hypotheses in order, `initial_budget` the units of each creation (also of a
    later one), `bindings` the artifacts by pointer name, `registry` the creation history as published,
    `scope` what a new hypothesis may refer to.
    """

    case: dict[str, Any]
    interpretation: dict[str, Any]
    entries: tuple[dict[str, Any], ...]
    max_hypotheses: int
    initial_budget: int
    bindings: Mapping[str, Binding]
    registry: Mapping[str, Any]
    scope: Scope

    def registry_section(self) -> dict[str, Any]:
        """Return the `registry` section as it stands at the start."""
        return {
            "hypotheses": list(self.entries),
            "max_hypotheses": self.max_hypotheses,
            "remaining_slots": max(0, self.max_hypotheses - len(self.entries)),
        }

    def judge_new(self, candidate: Candidate, entries: Sequence[Mapping[str, Any]]) -> list[ValidationIssue]:
        """Return why a new hypothesis cannot join the given entries: the rules of the first batch."""
        known = [_candidate(entry) for entry in entries]
        repeated = duplicates([*known, candidate], "/create")
        found = [
            *check_candidate(candidate, len(known), self.scope, "/create"),
            *(
                issue.model_copy(update={"path": f"/create/{issue.path.rsplit('/', 1)[-1]}"})
                for index, issue in repeated
                if index == len(known)
            ),
        ]
        return [issue.model_copy(update={"category": "candidate_invalid"}) for issue in found]


def _candidate(entry: Mapping[str, Any]) -> Candidate:
    return Candidate.model_validate_json(
        canonical_json({name: entry[name] for name in Candidate.model_fields})
    )


def extended_registry(
    registry: Mapping[str, Any], entry: Mapping[str, Any], units: int, origin: Binding, previous: Binding
) -> dict[str, Any]:
    """Return the creation history with one more creation; earlier ones stay as they are.

    Args:
        registry: the newest creation history.
        entry: the new registry entry.
        units: its creation allocation.
        origin: the decision that created it.
        previous: the artifact that holds `registry`.
    """
    creation = {
        "id": entry["id"],
        "origin": {"path": origin.path, "sha256": origin.sha256, "pointer": "/created"},
        "budget_allocation": {"initial": units, "unit": UNIT},
    }
    created = registry["created_count"] + 1
    return {
        **registry,
        "created_count": created,
        "remaining_slots": registry["max_hypotheses"] - created,
        "next_id": f"H{created + 1}",
        "creations": [*registry["creations"], creation],
        "previous": previous.model_dump(mode="json"),
    }


def created_entry(candidate: Candidate, position: int) -> dict[str, Any]:
    """Return the registry entry of a hypothesis created during the investigation; position from 1."""
    return {
        "id": f"H{position}",
        "position": position,
        "role": "alternative",
        **candidate.model_dump(mode="json"),
    }


def binding(head: Head, path: str) -> Binding:
    """Return the stored form of the binding of a live artifact.

    Raises:
        ContractError: `artifact_missing`.
    """
    found = common.bind(head, path)
    return Binding(path=found.path, sha256=found.sha256)


def load_inputs(store: Store, head: Head) -> Inputs:
    """Return the verified results of the predecessors in the current revision.

    Raises:
        BlockedError: `phase_missing` when a predecessor has not completed.
        InputError: `stale_input`.
        ContractError: what no longer holds of them.
    """
    accepted = load_hypotheses(store, head, Phase.INVESTIGATION)
    interpretation = accepted.interpretation
    registry = accepted.section()
    scope = scope_of(interpretation.case.sources, interpretation.statements, accepted.policy)
    bindings = {
        "case": interpretation.case_binding,
        "interpretation": interpretation.binding,
        "hypotheses": accepted.binding,
        "hypothesis_registry": accepted.registry_binding,
    }
    return Inputs(
        case=case_section(interpretation.case),
        interpretation=interpretation.section(),
        entries=tuple(registry["hypotheses"]),
        max_hypotheses=int(registry["max_hypotheses"]),
        initial_budget=int(accepted.policy["initial_budget"]),
        bindings={name: Binding(path=b.path, sha256=b.sha256) for name, b in bindings.items()},
        registry=accepted.registry,
        scope=scope,
    )
