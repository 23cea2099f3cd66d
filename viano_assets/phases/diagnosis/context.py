"""What the final evaluation is shown, frozen once per revision and bound by hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.freshness import check_fresh
from viano_assets.data_files import prompt
from viano_assets.errors import ContractError, InputError
from viano_assets.package.model import Head
from viano_assets.phases.common import FrozenContext, check_binding, place, request_in
from viano_assets.phases.diagnosis.contract import CONTRACT, DiagnosisAnswer, InconclusiveKind
from viano_assets.phases.diagnosis.ground import ROOT_CAUSE_LINES
from viano_assets.phases.diagnosis.inputs import Inputs, hypothesis_section
from viano_assets.phases.interpretation.context import case_section
from viano_assets.phases.protocols import Message, ModelRequest, Phase, RequestLimits, section
from viano_assets.phases.schema import Schema, id_list, wire_schema

PROMPT = "diagnosis_v1"
SCHEMA = "diagnosis-context-v1"
NOT_MEASURED: Mapping[str, Any] = {"schema": "calibration-v1", "status": "not measured"}
"""The calibration that applies before a corpus has been measured."""


def answer_schema(inputs: Inputs) -> Schema:
    """Return the answer's JSON schema with this case's hypothesis and evidence ids as enums."""
    schema = wire_schema(DiagnosisAnswer)
    hypotheses = [end.hypothesis_id for end in inputs.investigation.hypotheses]
    evidence = id_list(list(inputs.records))
    fields = schema["properties"]
    fields["inconclusive_evidence_ids"] = evidence
    fields["selected_hypothesis"] = {"anyOf": [{"type": "string", "enum": hypotheses}, {"type": "null"}]}
    kinds = [kind.value for kind in InconclusiveKind if kind is not InconclusiveKind.INVALID_ANSWERS]
    fields["inconclusive_kind"] = {"anyOf": [{"type": "string", "enum": kinds}, {"type": "null"}]}
    for option in fields["root_cause"]["anyOf"]:
        if option.get("type") == "object":
            option["properties"]["evidence_ids"] = {**evidence, "maxItems": 5 if inputs.records else 0}
    fields["evaluations"].update(minItems=len(hypotheses), maxItems=len(hypotheses))
    evaluation = fields["evaluations"]["items"]["properties"]
    evaluation["hypothesis_id"] = {"type": "string", "enum": hypotheses}
    evaluation["support"] = evidence
    evaluation["against"] = evidence
    evaluation["countercheck"]["properties"]["evidence_ids"] = evidence
    if inputs.records:
        contradiction = evaluation["contradictions"]["items"]["properties"]
        contradiction["evidence_id"] = {"type": "string", "enum": list(inputs.records)}
    else:
        evaluation["contradictions"]["maxItems"] = 0
    return schema


def base_request(inputs: Inputs, policy: Mapping[str, int]) -> ModelRequest:
    """Return the request of a first attempt."""
    document = inputs.investigation
    actions = [
        {
            "action_id": end.action.action_id,
            "hypothesis_id": end.action.hypothesis_id,
            "tool": end.action.tool,
            "arguments": end.action.arguments,
            "purpose": end.action.purpose,
            "countercheck_of": end.action.countercheck_of,
            "completeness": end.result.completeness.value,
            "empty": end.result.empty,
            "evidence_ids": list(end.result.evidence_ids),
        }
        for end in document.actions
    ]
    evidence = [record.model_dump(mode="json", by_alias=True) for record in inputs.records.values()]
    shown = {
        "max_invalid_responses": policy["max_invalid_responses"],
        "root_cause_max_records": 5,
        "root_cause_max_lines": ROOT_CAUSE_LINES,
    }
    messages = (
        Message(role="system", content=prompt(PROMPT)),
        section("case", case_section(inputs.interpretation.case)),
        section("interpretation", inputs.interpretation.section()),
        section("hypotheses", [hypothesis_section(end) for end in document.hypotheses]),
        section("budget", inputs.budget.model_dump(mode="json", by_alias=True)),
        section("evidence", evidence),
        section("actions", actions),
        section("policy", shown),
    )
    return ModelRequest(
        phase=Phase.DIAGNOSIS.value,
        contract=CONTRACT,
        prompt_version=PROMPT,
        messages=messages,
        json_schema=answer_schema(inputs),
        limits=RequestLimits(max_output_tokens=policy["max_output_tokens"], deadline_s=policy["deadline_s"]),
        stable_messages=len(messages),
    )


def with_feedback(request: ModelRequest, issues: Sequence[Mapping[str, Any]]) -> ModelRequest:
    """Return the request with the issues of the last rejected answer as its last message."""
    if not issues:
        return request
    messages = (*request.messages, section("validation_issues", list(issues)))
    return request.model_copy(update={"messages": messages})


def context_document(
    head: Head, inputs: Inputs, policy: Mapping[str, int], calibration: Mapping[str, Any], limit: int
) -> bytes:
    """Return the bytes of `context.json`.

    Raises:
        InputError: `context_too_large`; a context is never silently shortened.
    """
    request = base_request(inputs, policy)
    document = {
        "schema": SCHEMA,
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "bindings": {name: binding.as_json() for name, binding in inputs.bindings.items()},
        "raw_inputs": dict(inputs.raw_inputs),
        "policy": dict(policy),
        "calibration": dict(calibration),
        "calibration_sha256": sha256_hex(canonical_json(calibration)),
        "prompt_sha256": sha256_hex(request.messages[0].content.encode()),
        "request": request.model_dump(mode="json"),
    }
    data = canonical_json(document)
    if len(data) > limit:
        raise InputError(
            "context_too_large",
            f"the diagnosis context has {len(data)} bytes, the limit is {limit}",
            where=place(head),
            hint="raise limits.context_bytes in config/diagnosis.local.toml",
        )
    return data


def check_context(head: Head, context: FrozenContext, inputs: Inputs) -> None:
    """Verify that the frozen context stands on exactly the artifacts that are live now.

    Raises:
        ContractError: `binding_broken`, `context_unbound`.
        InputError: `stale_input`.
    """
    data = context.data
    check_fresh(head, data["raw_inputs"])
    bound = {name: check_binding(head, binding) for name, binding in data["bindings"].items()}
    calibrated = sha256_hex(canonical_json(data["calibration"])) == data["calibration_sha256"]
    if data.get("schema") != SCHEMA or bound != dict(inputs.bindings) or not calibrated:
        raise ContractError(
            "context_unbound",
            "the frozen context stands on other artifacts than those of this revision",
            where=place(head, context.binding.path),
            hint="run `viano case verify`; restore the package or reopen the case",
        )


def frozen_request(context: FrozenContext) -> ModelRequest:
    """Return the base request a frozen context carries."""
    return request_in(context.data)
