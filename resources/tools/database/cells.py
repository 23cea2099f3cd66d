r"""Cells of a result as JSON that every reader can hold, with nothing lost and nothing coerced.

Ordinary values are plain JSON. Whatever JSON or Python cannot hold exactly is an object with its type:
`{"blob": "0x41"}`, `{"number": "NaN"}`, `{"integer": "170141183460469231731687303715884105727"}`,
`{"text": "a\\x00b"}`. Dates, times and intervals arrive as text, because values such as `infinity` or the
year 294247 exist in databases and nowhere else. This module imports the standard library only; the query
process loads it by path.
"""

from __future__ import annotations

import math
import re
from typing import Any

_UNSAFE = re.compile("[\x00\ud800-\udfff]")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return "\\x00" if code == 0 else f"\\u{code:04x}"


def encode_cell(value: Any, limit: int = 4_000) -> Any:
    """Return the JSON form of one value; text and bytes beyond `limit` characters are cut and say so."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else {"integer": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        cell: dict[str, Any] = {"blob": "0x" + raw[:limit].hex().upper()}
        return cell if len(raw) <= limit else {**cell, "bytes": len(raw), "cut": True}
    return _text(str(value), limit)


def _text(text: str, limit: int) -> Any:
    cut = len(text) > limit
    shown = text[:limit]
    if _UNSAFE.search(shown):
        escaped: dict[str, Any] = {"text": _UNSAFE.sub(_escape, shown)}
        return {**escaped, "characters": len(text), "cut": True} if cut else escaped
    return {"text": shown, "characters": len(text), "cut": True} if cut else shown


def is_void(value: Any) -> bool:
    """Say whether a cell says nothing was there: NULL, zero, false or an empty text."""
    return value is None or value is False or value in (0, "", "0")
