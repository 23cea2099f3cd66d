"""Turns a contract's JSON schema into what a provider's dialect can carry.

What a dialect cannot express is left out of the transport schema and listed as `unenforced`, a JSON
pointer with the keyword; the contract itself still checks the whole answer. Only a shape that no
relaxation can carry (a root that is no object, a reference that leads nowhere or into recursion where the
dialect has none, a schema that allows nothing) fails before anything is sent.

Sources of the dialects: OpenAI "Structured outputs, supported schemas"; Anthropic "Structured outputs,
JSON Schema limitations"; Gemini "Structured output, JSON Schema support"; llama.cpp by measurement
(docs/models.md).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Schema = dict[str, Any]

_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$comment", "$schema", "$id", "deprecated"}
)
_RANGES = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_STRUCTURE = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref"}
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one wire format understands.

    `keywords` beyond the common structure are carried, all others are dropped; `closed` demands
    `additionalProperties: false` and every property required (optional ones become nullable) and is
    sent without its strictness when an object is open; `refuses_open` cannot carry an open object at all;
    `recursive` allows references into themselves; `one_of` as `anyOf`; `const` as a one-value enum.
    `ignores_number_range` marks a dialect that reads integer ranges but not those of floats.
    """

    name: str
    keywords: frozenset[str]
    closed: bool = False
    refuses_open: bool = False
    recursive: bool = True
    const_as_enum: bool = False
    ignores_number_range: bool = False
    min_items_at_most: int | None = None
    keeps_annotations: bool = False


OPENAI = Dialect(
    "openai",
    frozenset(
        {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
        | {"minItems", "maxItems", "$defs"}
    ),
    closed=True,
)
LLAMA = Dialect(
    "llama",
    frozenset(
        {"pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}
        | {"exclusiveMinimum", "exclusiveMaximum", "prefixItems", "oneOf", "$defs"}
    ),
    ignores_number_range=True,
)
ANTHROPIC = Dialect(
    "anthropic output format",
    frozenset({"format", "minItems", "$defs"}),
    refuses_open=True,
    recursive=False,
    min_items_at_most=1,
)
ANTHROPIC_TOOL = Dialect(
    "anthropic_tool",
    LLAMA.keywords | {"uniqueItems", "minProperties", "maxProperties", "allOf", "not", "multipleOf"},
    keeps_annotations=True,
)
GEMINI = Dialect(
    "gemini",
    frozenset({"format", "minItems", "maxItems", "minimum", "maximum", "prefixItems", "oneOf", "$defs"}),
    const_as_enum=True,
    keeps_annotations=True,
)


class InexpressibleSchema(Exception):  # noqa: N818  # becomes a ProviderFailure at the adapter
    """No relaxation of this schema can be carried by the dialect."""


class Transport(NamedTuple):
    """The schema to send, what it does not enforce, and whether optional fields became nullable."""

    schema: Schema
    unenforced: tuple[str, ...]
    nulled: bool
    strict: bool


@dataclass(slots=True)
class _Walk:
    dialect: Dialect
    root: Schema
    dropped: set[str] = field(default_factory=set)
    nulled: bool = False
    open_shape: bool = False

    def drop(self, pointer: str, keyword: str) -> None:
        self.dropped.add(f"{pointer or '/'} {keyword}")


def transport_schema(schema: Mapping[str, Any], dialect: Dialect) -> Transport:
    """Return the form of `schema` that `dialect` carries.

    Raises:
        InexpressibleSchema: with the reason.
    """
    root = copy.deepcopy(dict(schema))
    walk = _Walk(dialect, root)
    _check_references(walk, root, "", ())
    if not _is_object(walk, root):
        raise InexpressibleSchema("the root of the schema is not an object")
    sent = _convert(walk, root, "")
    if "$ref" in sent:
        sent = _convert(walk, {**_resolve(walk, sent["$ref"]), "$defs": root.get("$defs", {})}, "")
    if walk.open_shape and dialect.refuses_open:
        raise InexpressibleSchema(
            f"{dialect.name} carries no object with free properties; use another way of structured output"
        )
    if walk.dialect.closed and walk.open_shape:
        return Transport(
            root,
            ("/ everything: an open object cannot be sent in strict form",),
            nulled=False,
            strict=False,
        )
    return Transport(sent, tuple(sorted(walk.dropped)), walk.nulled, strict=True)


def _resolve(walk: _Walk, reference: str) -> Schema:
    if not reference.startswith("#/"):
        raise InexpressibleSchema("a reference leaves the schema")
    target: Any = walk.root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or name not in target:
            raise InexpressibleSchema("a reference leads nowhere")
        target = target[name]
    if not isinstance(target, dict):
        raise InexpressibleSchema("a reference leads to no schema")
    return target


def _is_object(walk: _Walk, schema: Schema) -> bool:
    seen = 0
    while "$ref" in schema and seen < 32:
        schema = _resolve(walk, schema["$ref"])
        seen += 1
    return schema.get("type") == "object" or ("properties" in schema and "type" not in schema)


def _children(schema: Schema) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key in ("properties", "$defs"):
        if isinstance(schema.get(key), dict):
            found += [(f"{key}/{name}", child) for name, child in schema[key].items()]
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(schema.get(key), list):
            found += [(f"{key}/{index}", child) for index, child in enumerate(schema[key])]
    for key in ("items", "additionalProperties", "not", "contains"):
        if isinstance(schema.get(key), dict):
            found.append((key, schema[key]))
    return found


def _check_references(walk: _Walk, schema: Schema, pointer: str, trail: tuple[str, ...]) -> None:
    if len(trail) > 64 or pointer.count("/") > 200:
        raise InexpressibleSchema("the schema is nested too deeply")
    if "$ref" in schema:
        reference = schema["$ref"]
        if not isinstance(reference, str):
            raise InexpressibleSchema("a reference is no text")
        target = _resolve(walk, reference)
        if reference in trail:
            if not walk.dialect.recursive:
                raise InexpressibleSchema(f"{walk.dialect.name} has no recursive schemas")
            return
        _check_references(walk, target, pointer, (*trail, reference))
    for name, child in _children(schema):
        if child is False and not name.startswith(("items", "additional")):
            raise InexpressibleSchema(f"{pointer}/{name} allows no value")
        if isinstance(child, dict) and not name.startswith("$defs"):
            _check_references(walk, child, f"{pointer}/{name}", trail)


def _convert(walk: _Walk, schema: Any, pointer: str) -> Schema:
    if schema is True or schema == {}:
        walk.open_shape = True
        return {}
    if not isinstance(schema, dict):
        raise InexpressibleSchema(f"{pointer or '/'} is no schema")
    schema = _merge_single_all_of(schema)
    if schema.get("enum") == []:
        raise InexpressibleSchema(f"{pointer or '/'} allows no value")
    sent: Schema = {}
    for keyword in schema:
        _carry(walk, schema, sent, keyword, pointer)
    _descend(walk, sent, pointer)
    if "const" in sent and walk.dialect.const_as_enum:
        sent["enum"] = [sent.pop("const")]
    if sent.get("type") == "object" or "properties" in sent:
        _close(walk, schema, sent, pointer)
    return sent


def _carry(walk: _Walk, schema: Schema, sent: Schema, keyword: str, pointer: str) -> None:
    value = schema[keyword]
    if keyword in _ANNOTATIONS:
        if walk.dialect.keeps_annotations and keyword in {"title", "description"}:
            sent[keyword] = value
    elif keyword in _STRUCTURE:
        sent[keyword] = value
    elif keyword == "oneOf" and keyword not in walk.dialect.keywords:
        sent["anyOf"] = value
        walk.drop(pointer, keyword)
    elif keyword not in walk.dialect.keywords or (
        keyword in _RANGES and walk.dialect.ignores_number_range and schema.get("type") != "integer"
    ):
        walk.drop(pointer, keyword)
    elif keyword == "minItems" and walk.dialect.min_items_at_most is not None:
        if value > walk.dialect.min_items_at_most:
            walk.drop(pointer, keyword)
        sent[keyword] = min(value, walk.dialect.min_items_at_most)
    else:
        sent[keyword] = value


def _merge_single_all_of(schema: Schema) -> Schema:
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict):
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        if not set(rest) & set(parts[0]):
            return {**parts[0], **rest}
    return schema


def _descend(walk: _Walk, sent: Schema, pointer: str) -> None:
    for key in ("properties", "$defs"):
        if isinstance(sent.get(key), dict):
            sent[key] = {
                name: _convert(walk, child, f"{pointer}/{key}/{name}") for name, child in sent[key].items()
            }
    for key in ("anyOf", "oneOf", "prefixItems", "allOf"):
        if isinstance(sent.get(key), list):
            sent[key] = [
                _convert(walk, child, f"{pointer}/{key}/{index}") for index, child in enumerate(sent[key])
            ]
    if "items" in sent:
        if sent["items"] is False:
            del sent["items"]
            walk.drop(pointer, "items")
        else:
            sent["items"] = _convert(walk, sent["items"], f"{pointer}/items")


def _close(walk: _Walk, schema: Schema, sent: Schema, pointer: str) -> None:
    extra = sent.get("additionalProperties", True)
    if extra is not False:
        walk.open_shape = True
        if isinstance(extra, dict):
            sent["additionalProperties"] = _convert(walk, extra, f"{pointer}/additionalProperties")
    if not walk.dialect.closed:
        return
    properties: Schema = sent.setdefault("properties", {})
    optional = [name for name in properties if name not in schema.get("required", [])]
    for name in optional:
        if not _allows_null(walk, properties[name]):
            properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
            walk.nulled = True
    sent["required"] = list(properties)
    sent["additionalProperties"] = False


def _allows_null(walk: _Walk, schema: Schema, depth: int = 0) -> bool:
    if depth > 16:
        return False
    if "$ref" in schema:
        return _allows_null(walk, _resolve(walk, schema["$ref"]), depth + 1)
    kinds = schema.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    if None in schema.get("enum", []) or ("const" in schema and schema["const"] is None):
        return True
    return any(
        _allows_null(walk, option, depth + 1)
        for option in schema.get("anyOf", [])
        if isinstance(option, dict)
    )


def drop_nulled(schema: Mapping[str, Any], answer: Any) -> Any:
    """Remove nulls that stand for an absent optional field, judged by the contract's own schema."""
    walk = _Walk(OPENAI, dict(schema))
    return _drop(walk, dict(schema), answer, 0)


def _drop(walk: _Walk, schema: Any, value: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > 100:
        return value
    if "$ref" in schema:
        return _drop(walk, _resolve(walk, schema["$ref"]), value, depth + 1)
    if isinstance(value, list):
        return [_drop(walk, schema.get("items"), item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if "properties" not in schema:
        return _drop_option(walk, schema, value, depth)
    kept = {}
    for name, item in value.items():
        child = schema["properties"].get(name)
        absent = item is None and child is not None and name not in schema.get("required", [])
        if absent and not _allows_null(walk, child):
            continue
        kept[name] = _drop(walk, child, item, depth + 1)
    return kept


def _drop_option(walk: _Walk, schema: Schema, value: Schema, depth: int) -> Any:
    for option in schema.get("anyOf", []):
        target = _resolve(walk, option["$ref"]) if "$ref" in option else option
        if set(value) <= set(target.get("properties", {})):
            return _drop(walk, target, value, depth + 1)
    return value
