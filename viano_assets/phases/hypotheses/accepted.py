"""The published hypotheses and their registry: how they are written, and verified whenever they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.freshness import check_fresh
from viano_assets.errors import ContractError
from viano_assets.package.model import Head
from viano_assets.phases.calls import SavedCall, check_request, read_call
from viano_assets.phases.common import (
    Binding,
    FrozenContext,
    artifact_path,
    check_binding,
    check_targets,
    declared_by,
    events,
    feedback,
    frozen_context,
    place,
    read_json,
    request_in,
    require_published,
)
from viano_assets.phases.hypotheses.context import Retained, locked
from viano_assets.phases.hypotheses.contract import Candidate, HypothesesAnswer
from viano_assets.phases.hypotheses.rules import scope_of, validate
from viano_assets.phases.hypotheses.summary import VERSION, hypotheses_markdown
from viano_assets.phases.interpretation.accepted import AcceptedInterpretation, load_interpretation
from viano_assets.phases.interpretation.context import correction
from viano_assets.phases.planning.adoption import Adoption, adopt
from viano_assets.phases.protocols import ModelRequest, Phase, Store
from viano_assets.phases.rendering import FIELD, Renderer, as_json, verified
from viano_assets.phases.wire import ValidationIssue

SCHEMA = "hypotheses-v1"
REGISTRY_SCHEMA = "hypothesis-registry-v1"
SUMMARY = "hypotheses.md"
UNIT = "investigation_units"
_TARGETS = {
    "hypothesis_policy": "policy.json",
    "hypothesis_context": "context.json",
    "hypotheses_summary": SUMMARY,
}
POINTERS = (
    "hypothesis_policy",
    "hypothesis_context",
    "hypotheses",
    "hypothesis_registry",
    "hypotheses_summary",
)
_PHASE = Phase.HYPOTHESES


@dataclass(frozen=True, slots=True)
class AcceptedHypotheses:
    """A verified initial batch with everything later phases bind to."""

    document: dict[str, Any]
    registry: dict[str, Any]
    policy: dict[str, Any]
    binding: Binding
    registry_binding: Binding
    interpretation: AcceptedInterpretation

    def section(self) -> dict[str, Any]:
        """Return the `registry` section of later requests as it stood after the initial batch."""
        shown = ("id", "position", "role", *Candidate.model_fields)
        return {
            "hypotheses": [{name: item[name] for name in shown} for item in self.document["hypotheses"]],
            "max_hypotheses": self.registry["max_hypotheses"],
            "remaining_slots": self.registry["remaining_slots"],
        }


def request_for(
    store: Store, head: Head, context: Mapping[str, Any], before: int | None = None
) -> ModelRequest:
    """Return the request of the next attempt, or of the one recorded in generation `before`."""
    return correction(request_in(context), feedback(store, head, _PHASE, before))


def judge_batch(
    candidates: Sequence[Candidate],
    interpretation: AcceptedInterpretation,
    policy: Mapping[str, Any],
    context: Mapping[str, Any],
    head: Head,
) -> list[ValidationIssue]:
    """Return why a batch cannot be accepted: the rules, and equality with what the context has retained."""
    scope = scope_of(interpretation.case.sources, interpretation.statements, policy)
    issues = validate(candidates, scope)
    positions, kept = locked(context, head)
    if positions is not None and len(candidates) != positions:
        issues.append(_locked("/candidates", f"the number of candidates is fixed at {positions}"))
    for position, candidate in sorted(kept.items()):
        if position > len(candidates) or candidates[position - 1] != candidate:
            issues.append(_locked(f"/candidates/{position - 1}", "a retained candidate was changed"))
    return issues


def adoption_of(interpretation: AcceptedInterpretation, policy: Mapping[str, Any]) -> Adoption | None:
    """Return what the joint plan behind an interpretation offers; None in separate mode."""
    if interpretation.plan is None:
        return None
    version = interpretation.context.data["joint_generation"]["version"]
    statements, sources = interpretation.statements, interpretation.case.sources
    return adopt(interpretation.plan, version, statements, sources, policy)


def retained_of(adoption: Adoption | None) -> Retained | None:
    """Return what an incomplete adoption locks for the calls that follow; None in separate mode."""
    if adoption is None or adoption.candidates is not None:
        return None
    issues = [issue.model_dump(mode="json") for issue in adoption.issues]
    return Retained(adoption.positions, adoption.kept, issues)


def _locked(path: str, message: str) -> ValidationIssue:
    return ValidationIssue(
        path=path, category="retained_changed", message=message, hint="repeat retained candidates exactly"
    )


def hypotheses_document(
    head: Head,
    context: FrozenContext,
    policy: Mapping[str, Any],
    candidates: Sequence[Candidate],
    calls: Sequence[SavedCall],
) -> dict[str, Any]:
    """Return the content of `hypotheses.json`: ids, roles, states and allocations are the controller's.

    The bindings of its renderings are not in it yet.
    """
    allocation = {"initial": policy["initial_budget"], "unit": UNIT}
    return {
        "schema": SCHEMA,
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "case": context.data["case"],
        "interpretation": context.data["interpretation"],
        "policy": context.data["policy"],
        "context": context.binding.as_json(),
        "calls": [call.as_json() for call in calls],
        "budget_accounting": "not_started",
        "hypotheses": [
            {
                "id": f"H{position}",
                "position": position,
                "role": "tester_primary" if position == 1 else "alternative",
                "status": "new",
                "confidence": "unassessed",
                "budget_allocation": dict(allocation),
                **candidate.model_dump(mode="json"),
            }
            for position, candidate in enumerate(candidates, start=1)
        ],
    }


def registry_document(
    head: Head, policy: Mapping[str, Any], path: str, document: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the content of `registry.json`: the durable creation history under the pinned cap."""
    digest = sha256_hex(canonical_json(document))
    created = document["hypotheses"]
    return {
        "schema": REGISTRY_SCHEMA,
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "max_hypotheses": policy["max_hypotheses"],
        "created_count": len(created),
        "remaining_slots": policy["max_hypotheses"] - len(created),
        "next_id": f"H{len(created) + 1}",
        "creations": [
            {
                "id": item["id"],
                "origin": {"path": path, "sha256": digest, "pointer": f"/hypotheses/{index}"},
                "budget_allocation": dict(item["budget_allocation"]),
            }
            for index, item in enumerate(created)
        ],
    }


def renderers(document: Mapping[str, Any], interpretation: AcceptedInterpretation) -> tuple[Renderer, ...]:
    """Return how a document of hypotheses is rendered."""

    def markdown() -> bytes:
        texts = {statement.id: statement.text for statement in interpretation.statements}
        return hypotheses_markdown(document, texts, interpretation.case)

    return (Renderer(SUMMARY, VERSION, markdown),)


def check_creation_history(head: Head) -> None:
    """Refuse declared hypotheses or registries of this revision that no publication created.

    Raises:
        ContractError: `creation_history_missing`; never silently forgotten, never allocated afresh.
    """
    if events(head, _PHASE, "published"):
        return
    folder = artifact_path(_PHASE, head.revision, "")
    paths = [folder + name for name in ("hypotheses.json", "registry.json", SUMMARY)]
    pointed = [
        head.pointer(name) or "" for name in ("hypotheses", "hypothesis_registry", "hypotheses_summary")
    ]
    found = [path for path in paths if path in head.files or declared_by(head, path)]
    found += [path for path in pointed if path.startswith(folder)]
    if found:
        raise ContractError(
            "creation_history_missing",
            "hypotheses are declared for this revision without the history of their creation",
            where=place(head, min(found)),
            hint="run `viano case verify`; restore the package or reopen the case",
        )


def load_hypotheses(store: Store, head: Head, waiting: Phase) -> AcceptedHypotheses:
    """Return the initial batch of the current revision after verifying all it is made of.

    Raises:
        BlockedError: `phase_missing`.
        InputError: `stale_input`.
        ContractError: what no longer holds.
    """
    check_creation_history(head)
    require_published(head, _PHASE, POINTERS, waiting)
    interpretation = load_interpretation(store, head, waiting)
    context = frozen_context(store, head, _PHASE)
    if context is None:
        raise _broken(head, "published without a start")
    check_fresh(head, context.data["raw_inputs"])
    if check_binding(head, context.data["interpretation"]) != interpretation.binding:
        raise _broken(head, "made from another interpretation")
    policy = read_json(store, head, check_binding(head, context.data["policy"]).path)
    path = artifact_path(_PHASE, head.revision, "hypotheses.json")
    if head.pointer("hypotheses") != path:
        raise _broken(head, "the pointer names another document")
    check_targets(head, _PHASE, _TARGETS)
    _check_registry_pointer(head)
    stored = read_json(store, head, path)
    candidates, calls = _origin(store, head, context, interpretation, policy, stored)
    issues = judge_batch(candidates, interpretation, policy, context.data, head)
    if issues:
        raise _broken(head, f"the recorded answer is not acceptable: {issues[0].message}")
    document = hypotheses_document(head, context, policy, candidates, calls)
    texts = verified(
        store,
        head,
        path,
        stored.get(FIELD),
        renderers(document, interpretation),
        lambda why: _broken(head, why),
    )
    document[FIELD] = as_json(texts)
    registry = registry_document(head, policy, path, document)
    registry_path = artifact_path(_PHASE, head.revision, "registry.json")
    for name, expected in ((path, canonical_json(document)), (registry_path, canonical_json(registry))):
        if name not in head.files or store.read(head, name) != expected:
            raise _broken(head, f"{name} is not what the recorded call leads to")
    return AcceptedHypotheses(
        document,
        registry,
        policy,
        Binding(path, head.files[path].sha256),
        Binding(registry_path, head.files[registry_path].sha256),
        interpretation,
    )


def _check_registry_pointer(head: Head) -> None:
    """The registry is that of the initial batch, or one that a creation of the investigation extended."""
    path = head.pointer("hypothesis_registry") or ""
    extended = artifact_path(Phase.INVESTIGATION, head.revision, "registry-")
    if path != artifact_path(_PHASE, head.revision, "registry.json") and not path.startswith(extended):
        raise _broken(head, "the registry pointer names another artifact")


def _origin(
    store: Store,
    head: Head,
    context: FrozenContext,
    interpretation: AcceptedInterpretation,
    policy: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> tuple[Sequence[Candidate], Sequence[SavedCall]]:
    adoption = adoption_of(interpretation, policy)
    if context.data["joint_adopted"]:
        if adoption is None or adoption.candidates is None:
            raise _broken(head, "the joint plan does not lead to these candidates")
        return adoption.candidates, interpretation.calls
    retained = retained_of(adoption)
    expected = (None, []) if retained is None else (retained.positions, retained.as_json())
    if (context.data["joint_positions"], context.data["joint_retained"]) != expected:
        raise _broken(head, "the retained candidates are not those the reviews left")
    calls = stored.get("calls")
    if not isinstance(calls, list) or len(calls) != 1:
        raise _broken(head, "no call is named")
    call = read_call(store, head, calls[0], _PHASE)
    recorded = declared_by(head, call.binding.path)[0].generation
    check_request(head, call, request_for(store, head, context.data, before=recorded))
    try:
        answer = HypothesesAnswer.model_validate_json(canonical_json(call.answer))
    except ValueError as error:
        raise _broken(head, "the recorded answer breaks its contract") from error
    return answer.candidates, (call,)


def _broken(head: Head, why: str) -> ContractError:
    return ContractError(
        "hypotheses_broken",
        f"the published hypotheses cannot be trusted: {why}",
        where=place(head, artifact_path(_PHASE, head.revision, "hypotheses.json")),
        hint="run `viano case verify`; restore the package or reopen the case",
    )
