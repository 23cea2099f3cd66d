"""What a tool is: a name, arguments as a strict model, a cost; and how its results are put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from viano_assets.evidence.model import Completeness, Draft, Location, Provenance, ToolResult
from viano_assets.phases.protocols import ToolSpec


class Arguments(BaseModel):
    """Arguments of one tool: unknown names and coerced types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def spec(name: str, purpose: str, model: type[Arguments], cost: int) -> ToolSpec:
    """Describe a tool; the JSON schema of the arguments comes from their model."""
    return ToolSpec(name=name, purpose=purpose, arguments=_plain_schema(model), cost=cost)


def _plain_schema(model: type[Arguments]) -> dict[str, Any]:
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return walk(definitions[node["$ref"].rsplit("/", 1)[-1]])
            return {
                key: walk(child)
                for key, child in node.items()
                if key not in {"title", "description"} or not isinstance(child, str)
            }
        return [walk(child) for child in node] if isinstance(node, list) else node

    plain = walk(schema)
    if not isinstance(plain, dict):
        raise TypeError(model)
    return plain


def refusal(model: type[Arguments], arguments: Mapping[str, Any]) -> str | None:
    """Return why the arguments are outside the model, or None."""
    try:
        model.model_validate(dict(arguments))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "arguments"
        return f"{place}: {first['msg']}"
    return None


def compact(value: Any) -> str:
    """Return JSON on one line, in the order given, as the content of evidence."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def unavailable(tool: str, arguments: Mapping[str, Any], cause: str, sentence: str) -> ToolResult:
    """Return the recorded outcome of a look that could not be taken; it supports and contradicts nothing."""
    return nothing(tool, arguments, {}, Completeness.UNAVAILABLE, sentence, cause=cause)


def nothing(
    tool: str,
    arguments: Mapping[str, Any],
    scope: Mapping[str, Any],
    completeness: Completeness,
    sentence: str,
    *,
    cause: str | None = None,
    location: Location | None = None,
    origin: tuple[str, str] | None = None,
    notes: Sequence[str] = (),
) -> ToolResult:
    """Return a typed absence: what was looked for and where stands in its content.

    Args:
        tool: name of the tool.
        arguments: as asked.
        scope: what was searched.
        completeness: only `complete` makes the absence usable.
        sentence: what was not found, in words.
        cause: why the scope is not complete.
        location: the table, file or key that was looked at.
        origin: raw input path and its hash, when there is exactly one.
        notes: remarks.
    """
    content = compact(
        {"found": 0, "statement": sentence, "looked_for": dict(arguments), "scope": dict(scope)}
    )
    path, digest = origin or (None, None)
    provenance = Provenance(
        kind="absence", input_path=path, input_sha256=digest, location=location or Location()
    )
    return ToolResult(
        tool=tool,
        arguments=dict(arguments),
        scope=dict(scope),
        completeness=completeness,
        drafts=(Draft(content=content, provenance=provenance, completeness=completeness),),
        empty=True,
        cause=cause,
        notes=tuple(notes),
    )
