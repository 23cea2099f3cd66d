"""What leaves: rules applied to every request before any provider sees it, and the preview of the bytes.

Rules come from the operator's `[egress]` alone and hold for every provider and for failover alike:

- `deny_files`: globs over source paths; the contents of evidence from such a file are withheld;
- `deny_tables`: names or globs; the contents of evidence from such a table are withheld;
- `deny_columns`: `table.column` globs; that column's values are withheld from result rows and keys;
- `redact`: regular expressions replaced in every string.

A rule changes contents only, never ids, hashes or structure, so that citations stay checkable.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from resources.llm.config import EgressRules
from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.errors import ContractError
from viano_assets.phases.protocols import Message, ModelRequest

MASKED = "[withheld]"
_CONTENT_KEYS = frozenset({"content", "text", "excerpt", "line", "lines"})


class Filtered(NamedTuple):
    """A request as it may leave, and how often each rule acted (`rule` to count)."""

    request: ModelRequest
    applied: dict[str, int]


@dataclass(frozen=True, slots=True)
class EgressPreview:
    """The exact bytes that would go to one provider; `url` is empty when nothing leaves the process.

    `key_variable` names the environment variable whose value would be sent in `key_header`.
    """

    provider: str
    model: str
    url: str
    headers: Mapping[str, str]
    key_header: str
    key_variable: str
    body: bytes
    applied: Mapping[str, int]
    unenforced: Sequence[str]
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the preview as JSON; the body stands as text."""
        return {
            "provider": self.provider,
            "model": self.model,
            "url": self.url,
            "headers": dict(self.headers),
            "key": {"header": self.key_header, "from": self.key_variable} if self.key_variable else None,
            "bytes": len(self.body),
            "sha256": sha256_hex(self.body),
            "body": self.body.decode(),
            "rules_applied": dict(sorted(self.applied.items())),
            "unenforced": list(self.unenforced),
            "problem": self.problem or None,
        }


class EgressFilter:
    """Applies the rules to requests."""

    def __init__(self, rules: EgressRules) -> None:
        self._rules = rules
        self._patterns = [
            (f"redact[{index}]", re.compile(rule.pattern), rule.replacement)
            for index, rule in enumerate(rules.redact)
        ]
        self._idle = rules == EgressRules()

    def apply(self, request: ModelRequest) -> Filtered:
        """Return the request as it may leave."""
        if self._idle:
            return Filtered(request, {})
        applied: dict[str, int] = {}
        messages = tuple(self._message(message, applied) for message in request.messages)
        return Filtered(request.model_copy(update={"messages": messages}), applied)

    def _message(self, message: Message, applied: dict[str, int]) -> Message:
        if message.role == "user":
            try:
                value: Any = strict_loads(message.content.encode())
            except ContractError:
                value = None
            if value is not None:
                withheld = self._withhold(value, applied)
                return Message(role="user", content=canonical_json(self._redact(withheld, applied)).decode())
        return Message(role=message.role, content=self._text(message.content, applied))

    def _redact(self, value: Any, applied: dict[str, int]) -> Any:
        if isinstance(value, str):
            return self._text(value, applied)
        if isinstance(value, list):
            return [self._redact(item, applied) for item in value]
        if isinstance(value, dict):
            return {key: self._redact(item, applied) for key, item in value.items()}
        return value

    def _text(self, text: str, applied: dict[str, int]) -> str:
        for name, pattern, replacement in self._patterns:
            text, count = pattern.subn(replacement.replace("\\", "\\\\"), text)
            if count:
                applied[name] = applied.get(name, 0) + count
        return text

    def _withhold(self, value: Any, applied: dict[str, int]) -> Any:
        if isinstance(value, list):
            return [self._withhold(item, applied) for item in value]
        if not isinstance(value, dict):
            return value
        rule = self._denied(value)
        if rule is not None:
            applied[rule] = applied.get(rule, 0) + 1
            return {
                key: f"[withheld by egress rule {rule}]"
                if key in _CONTENT_KEYS and isinstance(item, str)
                else item
                for key, item in value.items()
            }
        columns = self._denied_columns(value)
        if columns:
            value = {
                key: self._columns(item, columns, applied) if key in _CONTENT_KEYS else item
                for key, item in value.items()
            }
            value = _mask_keys(value, columns, applied)
        return {key: self._withhold(item, applied) for key, item in value.items()}

    def _denied(self, value: Mapping[str, Any]) -> str | None:
        """Return the rule that withholds this record's contents; a record is known by where it points."""
        for path in _named(value, "path", "file"):
            for index, glob in enumerate(self._rules.deny_files):
                if _matches(path, glob):
                    return f"deny_files[{index}]"
        for table in _named(value, "table"):
            for index, glob in enumerate(self._rules.deny_tables):
                if fnmatch.fnmatchcase(table.lower(), glob.lower()):
                    return f"deny_tables[{index}]"
        return None

    def _denied_columns(self, value: Mapping[str, Any]) -> list[str]:
        found: set[str] = set()
        for table in _named(value, "table"):
            for rule in self._rules.deny_columns:
                name, _, column = rule.rpartition(".")
                if fnmatch.fnmatchcase(table.lower(), (name or "*").lower()):
                    found.add(column.lower())
        return sorted(found)

    def _columns(self, content: Any, columns: Sequence[str], applied: dict[str, int]) -> Any:
        """Mask columns in a content that is rows as JSON; other forms are withheld whole."""
        if not isinstance(content, str):
            return content
        lines = []
        for line in content.split("\n"):
            try:
                row: Any = strict_loads(line.encode()) if line.strip() else None
            except ContractError:
                applied["deny_columns"] = applied.get("deny_columns", 0) + 1
                return "[withheld by egress rule deny_columns]"
            masked = _mask(row, columns, applied)
            lines.append(line if row is None else json.dumps(masked, ensure_ascii=False))
        return "\n".join(lines)


def _mask(row: Any, columns: Sequence[str], applied: dict[str, int]) -> Any:
    if isinstance(row, list):
        return [_mask(item, columns, applied) for item in row]
    if not isinstance(row, dict):
        return row
    result = {}
    for key, item in row.items():
        if any(fnmatch.fnmatchcase(key.lower(), column) for column in columns):
            if item != MASKED:
                applied["deny_columns"] = applied.get("deny_columns", 0) + 1
            result[key] = MASKED
        else:
            result[key] = _mask(item, columns, applied)
    return result


def _mask_keys(value: dict[str, Any], columns: Sequence[str], applied: dict[str, int]) -> dict[str, Any]:
    """Mask denied columns in row keys of the provenance."""
    result = dict(value)
    for name in ("key", "location", "provenance"):
        inner = result.get(name)
        if isinstance(inner, dict):
            result[name] = (
                _mask(inner, columns, applied) if name == "key" else _mask_keys(inner, columns, applied)
            )
    return result


def _named(value: Mapping[str, Any], *keys: str) -> list[str]:
    """Return the paths or tables a record names, in itself or in its location, provenance or arguments."""
    found = [value[key] for key in keys if isinstance(value.get(key), str)]
    for name in ("location", "provenance", "attributes", "arguments", "origin"):
        inner = value.get(name)
        if isinstance(inner, dict):
            found += _named(inner, *keys)
    return found


def _matches(path: str, glob: str) -> bool:
    if glob.startswith("**/") and fnmatch.fnmatchcase(path, glob[3:]):
        return True
    return fnmatch.fnmatchcase(path, glob)
