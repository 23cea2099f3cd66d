"""What the model is shown of the case, and the frozen context it is bound by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.model import CaseDocument
from viano_assets.data_files import prompt
from viano_assets.errors import BlockedError, ContractError, InputError
from viano_assets.package.model import Head
from viano_assets.phases.common import Binding, place, read_model
from viano_assets.phases.common import bind as bind_artifact
from viano_assets.phases.interpretation.contract import CONTRACT, InterpretationAnswer
from viano_assets.phases.interpretation.rules import ARRAYS, SINGLES, source_enums
from viano_assets.phases.protocols import Message, ModelRequest, Phase, RequestLimits, Store, section
from viano_assets.phases.schema import Schema, close_array, close_optional, wire_schema

PROMPT = "interpretation_v1"
SCHEMA = "interpretation-context-v1"


def load_case(store: Store, head: Head) -> tuple[CaseDocument, Binding]:
    """Return the canonical case of the current revision.

    Raises:
        BlockedError: `phase_missing` when the case has not been assembled.
        ContractError: the stored case breaks its contract, or is of another case, package or revision.
    """
    path = head.pointer("case")
    if path is None:
        raise BlockedError(
            "phase_missing",
            f"analysis revision {head.revision} has no assembled case",
            where=place(head),
            hint="import or reopen the case first",
        )
    document = read_model(store, head, path, CaseDocument)
    identity = (document.case_id, document.package_id, document.analysis_revision)
    if identity != (head.case_id, head.manifest.package_id, head.revision):
        raise ContractError(
            "binding_broken",
            "the canonical case is of another case, package or revision",
            where=place(head, path),
            hint="run `viano case verify` on the case",
        )
    return document, bind_artifact(head, path)


def case_section(case: CaseDocument) -> dict[str, Any]:
    """Return the `case` section: the catalogue of typed sources and the names of the inputs."""
    return {
        "title": case.title,
        "language": case.language,
        "sources": [
            {
                "id": source.id,
                "type": source.type.value,
                "kind": source.kind,
                "text": source.text,
                "attributes": dict(sorted(source.attributes.items())),
            }
            for source in case.sources
        ],
        "inputs": [{"path": item.path, "role": item.role, "bytes": item.bytes} for item in case.inputs],
    }


def interpretation_schema(enums: Mapping[str, Sequence[str]]) -> Schema:
    """Return the answer's JSON schema with the source ids of each category as an enum."""
    schema = wire_schema(InterpretationAnswer)
    for name in (*ARRAYS, "entities"):
        close_array(schema["properties"][name], enums[name])
    for name in SINGLES:
        close_optional(schema, name, enums[name])
    schema["properties"]["lookups"]["items"]["properties"]["certainty"] = {"const": "uncertain"}
    return schema


def base_request(case: CaseDocument, limits: RequestLimits) -> ModelRequest:
    """Return the request of a first attempt in separate mode."""
    enums = source_enums(case.sources)
    return ModelRequest(
        phase=Phase.INTERPRETATION.value,
        contract=CONTRACT,
        prompt_version=PROMPT,
        messages=(
            Message(role="system", content=prompt(PROMPT)),
            section("case", case_section(case)),
            section("source_enums", enums),
        ),
        json_schema=interpretation_schema(enums),
        limits=limits,
        stable_messages=3,
    )


def correction(request: ModelRequest, issues: Sequence[Mapping[str, Any]]) -> ModelRequest:
    """Return the request with the issues of the last rejected answer as its last message."""
    if not issues:
        return request
    return request.model_copy(
        update={"messages": (*request.messages, section("validation_issues", list(issues)))}
    )


def context_document(
    head: Head,
    case: Binding,
    request: ModelRequest,
    policy: Mapping[str, Any],
    joint: Mapping[str, Any] | None,
) -> bytes:
    """Return the bytes of `context.json`; `joint` is the `joint_generation` of a joint revision."""
    document = {
        "schema": SCHEMA,
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "case": case.as_json(),
        "raw_inputs": dict(sorted(head.raw_inputs().items())),
        "policy": dict(policy),
        "joint_generation": joint,
        "prompt_sha256": sha256_hex(request.messages[0].content.encode()),
        "request": request.model_dump(mode="json"),
    }
    return canonical_json(document)


def check_size(head: Head, data: bytes, limit: int, what: str) -> None:
    """Refuse an artifact over its operational limit.

    Raises:
        InputError: `<what>_too_large` with both sizes.
    """
    if len(data) > limit:
        raise InputError(
            f"{what}_too_large",
            f"the {what} has {len(data)} bytes, the limit is {limit}",
            where=place(head),
            hint="raise the limit in config/analysis.local.toml or shorten the report",
        )
