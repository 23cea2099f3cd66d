"""JSON schemas of the wire contracts, with the dynamic enums of one case put in.

A schema is generated from the pydantic contract with every reference inlined, so that each category of
statement can carry its own enum of source ids. The acceptance check does not rely on it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]


def wire_schema(model: type[BaseModel]) -> Schema:
    """Return the JSON schema of a wire contract, without references, titles and descriptions."""
    raw = model.model_json_schema(mode="validation")
    definitions = raw.pop("$defs", {})
    schema: Schema = _inline(raw, definitions)
    return schema


def _inline(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rsplit("/", 1)[-1]
        return _inline(definitions[name], definitions)
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in {"title", "description"} and isinstance(value, str):
            continue
        if key == "properties":
            result[key] = {name: _inline(child, definitions) for name, child in value.items()}
        else:
            result[key] = _inline(value, definitions)
    return result


def close_ids(statement: Schema, name: str, ids: Sequence[str], *, minimum: int = 0) -> None:
    """Restrict the id list `name` of an object schema to an enum; an empty enum forces an empty list."""
    statement["properties"][name] = id_list(ids, minimum=minimum)


def id_list(ids: Sequence[str], *, minimum: int = 0) -> Schema:
    """Return the schema of a list of ids out of `ids`."""
    if not ids:
        return {"type": "array", "items": {"type": "string"}, "maxItems": 0}
    schema: Schema = {"type": "array", "items": {"type": "string", "enum": list(ids)}}
    if minimum:
        schema["minItems"] = minimum
    return schema


def close_array(array: Schema, ids: Sequence[str]) -> None:
    """Give every statement of an array its sources; without any the array must be empty."""
    if ids:
        close_ids(array["items"], "source_ids", ids, minimum=1)
    else:
        array["maxItems"] = 0


def close_optional(owner: Schema, name: str, ids: Sequence[str]) -> None:
    """Give an optional statement its sources; without any it must be null."""
    if not ids:
        owner["properties"][name] = {"type": "null"}
        return
    for option in owner["properties"][name]["anyOf"]:
        if option.get("type") == "object":
            close_ids(option, "source_ids", ids, minimum=1)


def constant(value: object) -> Schema:
    """Return the schema that only `value` satisfies."""
    return {"const": copy.deepcopy(value)}
