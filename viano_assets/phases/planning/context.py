"""The requests of joint planning: the plan itself and the repair of disputed statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viano_assets.case.model import CaseDocument
from viano_assets.data_files import prompt
from viano_assets.phases.calls import SavedCall
from viano_assets.phases.interpretation.context import case_section, interpretation_schema
from viano_assets.phases.interpretation.rules import CATEGORY_TYPES, source_enums
from viano_assets.phases.planning.compression import compress
from viano_assets.phases.planning.contract import (
    CONTRACT_V1,
    CONTRACT_V2,
    REPAIR_CONTRACT,
    PlannedCandidate,
    PlannedCandidateV1,
    Review,
)
from viano_assets.phases.planning.places import Place, value_schema
from viano_assets.phases.planning.rules import at_pointer, exists
from viano_assets.phases.protocols import Message, ModelRequest, Phase, RequestLimits, section
from viano_assets.phases.schema import Schema, close_ids, wire_schema

PLAN_PROMPTS: Mapping[int, str] = {1: CONTRACT_V1, 2: CONTRACT_V2}
"""Prompt and contract name of each version of the joint plan."""

REPAIR_PROMPT = REPAIR_CONTRACT


def planned_schema(sources: Sequence[str], version: int) -> Schema:
    """Return the schema of one joint candidate with its source ids as an enum."""
    schema = wire_schema(PlannedCandidate if version == 2 else PlannedCandidateV1)
    close_ids(schema, "source_ids", sources, minimum=1)
    if version == 2:
        close_ids(schema["properties"]["premises"]["items"], "source_ids", sources)
    for name in ("expected_evidence", "falsifying_evidence"):
        schema["properties"][name]["minItems"] = 1
    return schema


def plan_request(
    case: CaseDocument,
    policy: Mapping[str, Any],
    prior: Sequence[Mapping[str, Any]],
    limits: RequestLimits,
    version: int = 2,
) -> ModelRequest:
    """Return the request that reads the case and proposes candidates in one answer."""
    enums = source_enums(case.sources)
    shown = {name: policy[name] for name in ("min_hypotheses", "max_hypotheses", "initial_budget")}
    item = planned_schema([source.id for source in case.sources], version)
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["interpretation", "hypotheses"],
        "properties": {
            "interpretation": interpretation_schema(enums),
            "hypotheses": {
                "type": "array",
                "items": item,
                "minItems": 0,
                "maxItems": policy["max_hypotheses"],
            },
        },
    }
    name = PLAN_PROMPTS[version]
    return ModelRequest(
        phase=Phase.INTERPRETATION.value,
        contract=name,
        prompt_version=name,
        messages=(
            Message(role="system", content=prompt(name)),
            section("case", case_section(case)),
            section("source_enums", enums),
            section("policy", shown),
            section("prior_proposals", list(prior)),
        ),
        json_schema=schema,
        limits=limits,
        stable_messages=4,
    )


def repair_request(
    case: CaseDocument,
    base: ModelRequest,
    prompt_text: str,
    source: SavedCall,
    raw: Mapping[str, Any],
    places: Sequence[Place],
    positions: Sequence[tuple[str, Any]] | None,
    issues: Sequence[Mapping[str, Any]],
) -> ModelRequest:
    """Return the request that corrects exactly `places`.

    It carries the disputed statements, the sources they may cite, the existing candidates with their
    premises and the statements those declare; no further complete case. `source` binds the unchanged
    answer outside the compressed part. `positions` holds status and wire form of each candidate.
    """
    messages = [
        Message(role="system", content=prompt_text),
        section("binding", {"source_call": source.as_json()}),
        section("repair", compress(_repair_data(case, raw, places, positions))),
    ]
    if issues:
        messages.append(section("validation_issues", list(issues)))
    return ModelRequest(
        phase=Phase.INTERPRETATION.value,
        contract=REPAIR_CONTRACT,
        prompt_version=REPAIR_PROMPT,
        messages=tuple(messages),
        json_schema=repair_schema(case, places, positions),
        limits=base.limits,
        stable_messages=1,
    )


def _repair_data(
    case: CaseDocument,
    raw: Mapping[str, Any],
    places: Sequence[Place],
    positions: Sequence[tuple[str, Any]] | None,
) -> dict[str, Any]:
    enums = source_enums(case.sources)
    allowed = {
        place.path: enums[place.field]
        if place.field in CATEGORY_TYPES
        else [source.id for source in case.sources]
        for place in places
    }
    needed = {source_id for ids in allowed.values() for source_id in ids}
    disputed = [
        {
            "path": place.path,
            "current": at_pointer(raw, place.path) if exists(raw, place.path) else None,
            "may_be_null": place.may_be_null,
            "allowed_source_ids": allowed[place.path],
            "issues": [issue.model_dump(mode="json") for issue in place.issues],
        }
        for place in places
    ]
    hypotheses = [
        {"position": number, "status": status, "proposal": wire, "declared": _declared(raw, wire)}
        for number, (status, wire) in enumerate(positions or (), start=1)
    ]
    catalogue = [item for item in case_section(case)["sources"] if item["id"] in needed]
    return {"places": disputed, "sources": catalogue, "hypotheses": hypotheses}


def _declared(raw: Mapping[str, Any], wire: Any) -> list[dict[str, Any]]:
    paths = wire.get("interpretation_paths") if isinstance(wire, dict) else None
    if not isinstance(paths, list):
        return []
    found = [path for path in paths if isinstance(path, str) and exists(raw, path)]
    return [{"path": path, "statement": at_pointer(raw, path)} for path in found]


def repair_schema(
    case: CaseDocument, places: Sequence[Place], positions: Sequence[tuple[str, Any]] | None
) -> Schema:
    """Return the schema of a repair answer: one patch per place and one review per candidate, in order."""
    patches = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["path", "value"],
            "properties": {"path": {"const": place.path}, "value": value_schema(place, case)},
        }
        for place in places
    ]
    reviews: list[Schema] = []
    replacement = planned_schema([source.id for source in case.sources], 2)
    for number in range(1, len(positions or ()) + 1):
        review = wire_schema(Review)
        review["properties"]["position"] = {"const": number}
        review["properties"]["replacement"] = {"anyOf": [replacement, {"type": "null"}]}
        reviews.append(review)
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["patches", "reviews"],
        "properties": {"patches": _exactly(patches), "reviews": _exactly(reviews)},
    }


def _exactly(items: Sequence[Schema]) -> Schema:
    if not items:
        return {"type": "array", "maxItems": 0}
    return {"type": "array", "prefixItems": list(items), "minItems": len(items), "maxItems": len(items)}
