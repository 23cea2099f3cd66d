"""What the model is shown to propose candidates, and the frozen policy and context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.data_files import prompt
from viano_assets.errors import ContractError
from viano_assets.package.model import Head
from viano_assets.phases.common import Binding, place
from viano_assets.phases.hypotheses.contract import CONTRACT, Candidate, HypothesesAnswer
from viano_assets.phases.interpretation.accepted import AcceptedInterpretation
from viano_assets.phases.interpretation.context import case_section
from viano_assets.phases.protocols import Message, ModelRequest, Phase, RequestLimits, section
from viano_assets.phases.schema import Schema, close_ids, constant, wire_schema

PROMPT = "hypotheses_v1"
SCHEMA = "hypothesis-context-v1"
_PHASE = Phase.HYPOTHESES


@dataclass(frozen=True, slots=True)
class Retained:
    """Positions a joint answer leaves settled: `kept` maps a position (from 1) to its candidate.

    `positions` is the fixed number of candidates, None when nothing is locked; `issues` say why the
    joint candidates were not taken over as they were.
    """

    positions: int | None
    kept: Mapping[int, Candidate]
    issues: Sequence[Mapping[str, Any]]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the `joint_retained` list of the frozen context."""
        return [
            {"position": position, "candidate": candidate.model_dump(mode="json")}
            for position, candidate in sorted(self.kept.items())
        ]


def candidate_schema(sources: Sequence[str], statements: Sequence[str]) -> Schema:
    """Return the schema of one candidate with its references as enums."""
    schema = wire_schema(Candidate)
    close_ids(schema, "source_ids", sources, minimum=1)
    close_ids(schema, "interpretation_ids", statements)
    for name in ("expected_evidence", "falsifying_evidence"):
        schema["properties"][name]["minItems"] = 1
    return schema


def hypotheses_schema(
    interpretation: AcceptedInterpretation, policy: Mapping[str, Any], retained: Retained | None
) -> Schema:
    """Return the answer's schema; retained positions are constants, their number is fixed."""
    item = candidate_schema(
        [source.id for source in interpretation.case.sources],
        [statement.id for statement in interpretation.statements],
    )
    schema = wire_schema(HypothesesAnswer)
    array: Schema = {"type": "array", "items": item}
    if retained is None or retained.positions is None:
        array["minItems"], array["maxItems"] = policy["min_hypotheses"], policy["max_hypotheses"]
    else:
        array["minItems"] = array["maxItems"] = retained.positions
        array["prefixItems"] = [
            constant(retained.kept[position].model_dump(mode="json")) if position in retained.kept else item
            for position in range(1, retained.positions + 1)
        ]
    schema["properties"]["candidates"] = array
    return schema


def base_request(
    interpretation: AcceptedInterpretation,
    policy: Mapping[str, Any],
    prior: Sequence[Mapping[str, Any]],
    retained: Retained | None,
    limits: RequestLimits,
) -> ModelRequest:
    """Return the request of a first attempt."""
    shown = {name: policy[name] for name in ("min_hypotheses", "max_hypotheses", "initial_budget")}
    messages = [
        Message(role="system", content=prompt(PROMPT)),
        section("case", case_section(interpretation.case)),
        section("interpretation", interpretation.section()),
        section("policy", shown),
        section("prior_proposals", list(prior)),
    ]
    if retained is not None:
        messages.append(
            section(
                "joint_retained",
                {
                    "positions": retained.positions,
                    "retained": retained.as_json(),
                    "issues": list(retained.issues),
                },
            )
        )
    return ModelRequest(
        phase=_PHASE.value,
        contract=CONTRACT,
        prompt_version=PROMPT,
        messages=tuple(messages),
        json_schema=hypotheses_schema(interpretation, policy, retained),
        limits=limits,
        stable_messages=3,
    )


def context_document(
    head: Head,
    interpretation: AcceptedInterpretation,
    policy: Binding,
    prior: Sequence[Mapping[str, str]],
    retained: Retained | None,
    request: ModelRequest | None,
) -> bytes:
    """Return the bytes of `context.json`; without a request the joint candidates are taken over."""
    return canonical_json(
        {
            "schema": SCHEMA,
            "case_id": head.case_id,
            "package_id": head.manifest.package_id,
            "analysis_revision": head.revision,
            "case": interpretation.case_binding.as_json(),
            "interpretation": interpretation.binding.as_json(),
            "policy": policy.as_json(),
            "raw_inputs": dict(sorted(head.raw_inputs().items())),
            "prior_generations": list(prior),
            "joint_adopted": request is None,
            "joint_positions": None if retained is None else retained.positions,
            "joint_retained": [] if retained is None else retained.as_json(),
            "prompt_sha256": None if request is None else sha256_hex(request.messages[0].content.encode()),
            "request": None if request is None else request.model_dump(mode="json"),
        }
    )


def locked(context: Mapping[str, Any], head: Head) -> tuple[int | None, dict[int, Candidate]]:
    """Return the number of positions and the retained candidates a frozen context locks.

    Raises:
        ContractError: `context_unbound` when the stored candidates break their contract.
    """
    kept: dict[int, Candidate] = {}
    for item in context["joint_retained"]:
        try:
            kept[item["position"]] = Candidate.model_validate_json(canonical_json(item["candidate"]))
        except ValueError as error:
            raise ContractError(
                "context_unbound", "a retained candidate is damaged", where=place(head)
            ) from error
    return context["joint_positions"], kept
