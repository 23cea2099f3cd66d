"""The one canonical JSON form, the one hash, and the strict decoder for everything not written by us.

Stored bytes are hashed as they lie; nothing is re-serialised to verify it. `canonical_json` fixes the
form in which we write: sorted keys, no spaces, UTF-8, no floats that are not finite.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NoReturn, TypeAlias, Union

from viano_assets.errors import ContractError

JsonValue: TypeAlias = Union[bool, int, float, str, list["JsonValue"], dict[str, "JsonValue"], None]

MAX_DEPTH = 100
"""Deepest nesting the strict decoder accepts."""

_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]', re.DOTALL)
"""A string, also an unterminated one, or a bracket."""

_UNSAFE = re.compile("[\x00\ud800-\udfff]")


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lowercase hex digits."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: object) -> bytes:
    """Serialise `value` in the canonical form.

    Raises:
        ContractError: `not_json` when the value holds NaN, an infinity or a foreign type.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise ContractError("not_json", f"value cannot be stored as JSON: {error}") from error


def _refuse(code: str, message: str) -> NoReturn:
    raise ContractError(code, message)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        _refuse("duplicate_key", "a JSON object names a key twice")
    return result


def _integer(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        _refuse("integer_range", "an integer does not fit 64 bits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        _refuse("number_range", "a number overflows to infinity")
    return value


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _STRUCTURE.finditer(text):
        char = token.group()[0]
        if char in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                _refuse("nesting_depth", f"JSON is nested deeper than {MAX_DEPTH}")
        elif char in "]}":
            depth -= 1


def _check_text(value: JsonValue) -> None:
    stack: list[JsonValue] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _UNSAFE.search(item):
                _refuse("invalid_text", "a string holds NUL or a lone surrogate")
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def strict_loads(data: bytes) -> JsonValue:
    """Decode JSON that somebody else wrote, refusing every ambiguity (rules: docs/contracts.md, S3).

    UTF-8 without BOM, one value, no duplicate keys, no NaN or infinity, integers within 64 bits,
    depth at most `MAX_DEPTH`, no NUL and no lone surrogate.

    Raises:
        ContractError: with the code of the rule that was broken.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContractError("invalid_utf8", f"not UTF-8 at byte {error.start}") from error
    if text.startswith("\ufeff"):
        _refuse("byte_order_mark", "JSON starts with a byte order mark")
    _check_depth(text)
    try:
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=lambda name: _refuse("not_a_number", f"JSON holds {name}"),
        )
    except json.JSONDecodeError as error:
        raise ContractError("invalid_json", f"{error.msg} at character {error.pos}") from error
    if "\\u" in text:  # nothing else can bring NUL or a surrogate into strict UTF-8 JSON
        _check_text(value)
    return value
