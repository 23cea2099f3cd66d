"""Says each long text of a request once.

`compress` replaces repeated long strings by `{"$shared": n}` and lists them once; `expand` restores the
value exactly. A value that itself uses that key is left alone: nothing shared means nothing to restore.
Hashes that bind other artifacts stand outside the compressed value.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from viano_assets.errors import ContractError

MARK = "$shared"
MINIMUM = 80
"""Shortest string in characters worth sharing."""


def compress(value: Any) -> dict[str, Any]:
    """Return `{"shared": [...], "value": ...}` with every repeated long string given once."""
    counts: Counter[str] = Counter()
    if not _count(value, counts):
        return {"shared": [], "value": value}
    shared = [text for text, number in counts.items() if number > 1 and len(text) >= MINIMUM]
    index = {text: position for position, text in enumerate(shared)}
    return {"shared": shared, "value": _replace(value, index)}


def expand(compressed: dict[str, Any]) -> Any:
    """Return the value that was compressed.

    Raises:
        ContractError: `compression_broken` for a reference to nothing.
    """
    if not compressed["shared"]:
        return compressed["value"]
    return _restore(compressed["value"], compressed["shared"])


def _count(value: Any, counts: Counter[str]) -> bool:
    """Count every string; return whether the value is free of the marking key."""
    if isinstance(value, str):
        counts[value] += 1
        return True
    if isinstance(value, list):
        return all(_count(item, counts) for item in value)
    if isinstance(value, dict):
        return MARK not in value and all(_count(value[key], counts) for key in sorted(value))
    return True


def _replace(value: Any, index: dict[str, int]) -> Any:
    if isinstance(value, str):
        return {MARK: index[value]} if value in index else value
    if isinstance(value, list):
        return [_replace(item, index) for item in value]
    if isinstance(value, dict):
        return {key: _replace(item, index) for key, item in value.items()}
    return value


def _restore(value: Any, shared: list[str]) -> Any:
    if isinstance(value, list):
        return [_restore(item, shared) for item in value]
    if isinstance(value, dict):
        if set(value) == {MARK}:
            position = value[MARK]
            if not isinstance(position, int) or not 0 <= position < len(shared):
                raise ContractError("compression_broken", "a shared text is not there")
            return shared[position]
        return {key: _restore(item, shared) for key, item in value.items()}
    return value
