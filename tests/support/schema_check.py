"""A small evaluator for the JSON schema keywords our requests use; unknown keywords are an error."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "enum",
    "const",
    "anyOf",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
}


def violations(schema: dict[str, Any], value: Any, path: str = "") -> list[str]:
    """Return the pointers at which `value` breaks `schema`."""
    unknown = set(schema) - _KNOWN
    assert not unknown, f"unknown keywords {unknown} at {path}"
    fixed = ("const" in schema and value != schema["const"]) or value not in schema.get("enum", [value])
    unmet = "anyOf" in schema and all(violations(option, value, path) for option in schema["anyOf"])
    if fixed or unmet or not _fits(schema, value):
        return [path]
    if isinstance(value, dict):
        return _object(schema, value, path)
    return _array(schema, value, path) if isinstance(value, list) else []


def _fits(schema: dict[str, Any], value: Any) -> bool:
    kind = schema.get("type")
    if kind is None:
        return True
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return False
    if isinstance(value, str):
        size = len(value.strip())
        return bool(schema.get("minLength", 0) <= size <= schema.get("maxLength", size))
    if isinstance(value, (int, float)):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def _object(schema: dict[str, Any], value: dict[str, Any], path: str) -> list[str]:
    properties = schema.get("properties", {})
    found = [f"{path}/{name}" for name in schema.get("required", ()) if name not in value]
    if schema.get("additionalProperties") is False:
        found += [f"{path}/{name}" for name in value if name not in properties]
    for name, item in value.items():
        if name in properties:
            found += violations(properties[name], item, f"{path}/{name}")
    return found


def _array(schema: dict[str, Any], value: list[Any], path: str) -> list[str]:
    found = []
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        found.append(path)
    prefix = schema.get("prefixItems", [])
    for number, item in enumerate(value):
        if number < len(prefix):
            found += violations(prefix[number], item, f"{path}/{number}")
        elif "items" in schema:
            found += violations(schema["items"], item, f"{path}/{number}")
    return found
