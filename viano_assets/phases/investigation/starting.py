"""The start of the loop: pinned policy, frozen context with the stable messages, opened accounts."""

from __future__ import annotations

from typing import Any

from viano_assets.budget.ledger import Ledger
from viano_assets.budget.manager import POINTER, BudgetManager
from viano_assets.budget.model import Binding, LedgerKey
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.data_files import prompt
from viano_assets.errors import DefectError
from viano_assets.package.model import Change, Head
from viano_assets.phases.common import artifact_path
from viano_assets.phases.investigation.answers import answer_schema
from viano_assets.phases.investigation.artifacts import PHASE, StartContext
from viano_assets.phases.investigation.config import (
    PROMPTS,
    InvestigationConfig,
    InvestigationPolicy,
)
from viano_assets.phases.investigation.contract import CONTRACT
from viano_assets.phases.investigation.inputs import Inputs
from viano_assets.phases.protocols import CaseTools, Message, section


def pin_policy(config: InvestigationConfig, inputs: Inputs, tools: CaseTools) -> InvestigationPolicy:
    """Return the policy of a new revision; only the current contract is ever started."""
    name = PROMPTS[CONTRACT]
    return InvestigationPolicy(
        contract=CONTRACT,
        prompt_version=name,
        prompt_sha256=sha256_hex(prompt(name).encode()),
        dispatch_limit=config.dispatch_limit,
        max_actions=config.max_actions,
        bootstrap_actions=config.bootstrap_actions,
        max_invalid_responses=config.max_invalid_responses,
        max_hypotheses=inputs.max_hypotheses,
        initial_budget=inputs.initial_budget,
        tool_costs={spec.name: config.tool_costs.get(spec.name, spec.cost) for spec in tools.specs()},
        budget=config.budget,
        controller="investigation-controller-2",
    )


def tools_section(policy: InvestigationPolicy, tools: CaseTools) -> dict[str, Any]:
    """Return the `tools` section with the pinned costs."""
    specs = [
        {
            "name": spec.name,
            "purpose": spec.purpose,
            "arguments": dict(spec.arguments),
            "cost": policy.tool_costs[spec.name],
        }
        for spec in tools.specs()
    ]
    return {"specs": specs, "overview": tools.overview()}


def stable_messages(policy: InvestigationPolicy, inputs: Inputs, tools: CaseTools) -> tuple[Message, ...]:
    """Return the messages that every request of the revision starts with."""
    return (
        Message(role="system", content=prompt(policy.prompt_version)),
        section("case", inputs.case),
        section("interpretation", inputs.interpretation),
        section("registry", inputs.registry_section()),
        section("tools", tools_section(policy, tools)),
    )


def start_change(head: Head, policy: InvestigationPolicy, inputs: Inputs, tools: CaseTools) -> Change:
    """Return the change that starts the loop."""
    revision = head.revision
    policy_path = artifact_path(PHASE, revision, "policy.json")
    policy_bytes = canonical_json(policy.model_dump(mode="json", by_alias=True))
    messages = stable_messages(policy, inputs, tools)
    context = StartContext(
        case_id=head.case_id,
        package_id=head.manifest.package_id,
        analysis_revision=revision,
        policy=Binding(path=policy_path, sha256=sha256_hex(policy_bytes)),
        bindings=dict(sorted(inputs.bindings.items())),
        raw_inputs=dict(sorted(head.raw_inputs().items())),
        messages=messages,
        json_schema=answer_schema(policy.contract, tools_section(policy, tools)["specs"]),
    )
    context_path = artifact_path(PHASE, revision, "context.json")
    context_bytes = canonical_json(context.model_dump(mode="json", by_alias=True))
    ledger = Ledger(LedgerKey(head.case_id, head.manifest.package_id, revision))
    for entry in inputs.entries:
        ledger.open(str(entry["id"]), policy.initial_budget, dispatch=0)
    piece = BudgetManager.stage(head, ledger)
    if piece is None:
        raise DefectError("ledger_refused", "an investigation without hypotheses was started")
    return Change(
        event="investigation_started",
        phase=PHASE.value,
        put={policy_path: policy_bytes, context_path: context_bytes, piece.path: piece.content},
        pointers={POINTER: piece.path},
        lifecycle=Lifecycle.INVESTIGATING_HYPOTHESES.value,
        overlay=None,
        detail={"context_sha256": sha256_hex(context_bytes), "hypotheses": len(inputs.entries)},
    )
