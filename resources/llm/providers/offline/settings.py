"""Settings as they stand: in force in the diagnostics, in the source's templates, as defaults in calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Scene

ASSIGNMENT = r"^\s*[\"']?[A-Za-z][A-Za-z0-9_.\-]*[\"']?\s*[=:]\s*\S"
"""A line that gives a name a value, in the usual configuration languages."""

TEMPLATES = (
    "**/*.dist",
    "**/*.conf*",
    "**/*.cfg*",
    "**/*.ini*",
    "**/*.toml*",
    "**/*.yaml*",
    "**/*.yml*",
    "**/*.properties*",
)

_LINE = re.compile(
    r"^\s*[\"']?([A-Za-z][\w.\-]*)[\"']?\s*[=:]\s*(\"[^\"]*\"|'[^']*'|[^#;,]*?)\s*[,;]?\s*(?:[#;].*)?$"
)
_IN_CALL = re.compile(
    r"[\"']([A-Za-z][\w.\-]{2,80})[\"']\s*,\s*(-?\d+(?:\.\d+)?[fFuUlL]*|true|false|True|False|\"[^\"\n]*\")"
)
_NAMED = re.compile(r"[\"']([A-Za-z][\w.\-]{3,80})[\"']")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UNITS = (1.0, 60.0, 1000.0, 3600.0, 60_000.0, 100.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """One value: name, value as written, the record and the exact line it stands on."""

    name: str
    value: str
    record: Record
    line: str

    @property
    def number(self) -> float | None:
        """The value as a number, if it is one."""
        return number_of(self.value)


def number_of(text: str) -> float | None:
    """Return a plain number, without type suffixes of a programming language."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)[fFuUlL]*", text.strip("\"' "))
    return float(match[1]) if match else None


def plain_name(name: str) -> str:
    """Return a name without case, dots, dashes and underscores."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def last_part(name: str) -> str:
    """Return the plain form of the last dotted part of a name."""
    return plain_name(re.split(r"[.:/]", name)[-1])


def words_of(name: str) -> set[str]:
    """Return the lower-case words a name is made of."""
    return {word.casefold() for word in _WORD.findall(name) if len(word) > 2}


def matches(value: float | None, wanted: float) -> bool:
    """Say whether two numbers are the same quantity, perhaps in another usual unit."""
    if value is None:
        return False
    return any(value == wanted * unit or value * unit == wanted for unit in _UNITS)


def exactly(value: float | None, numbers: Iterable[float]) -> bool:
    """Say whether a number is one of `numbers` as it is written."""
    return value is not None and value in set(numbers)


def listed(record: Record) -> Iterator[tuple[str, str]]:
    """Yield (path, line) of a listing of matches."""
    for text in record.content.splitlines():
        try:
            entry = json.loads(text)
        except ValueError:
            continue
        if isinstance(entry, dict) and "text" in entry and "line" in entry:
            yield str(entry.get("path", entry.get("file", ""))), str(entry["text"])


def _parsed(line: str, record: Record) -> Setting | None:
    match = None if line.lstrip().startswith(("#", ";", "//", "*")) else _LINE.match(line)
    if match is None or not match[2].strip("\"' "):
        return None
    return Setting(match[1], match[2].strip("\"' "), record, line.strip())


def _lines(record: Record) -> Iterator[str]:
    if record.kind == "search":
        yield from (text for _, text in listed(record))
    else:
        yield from record.content.splitlines()


def _better(old: Setting | None, new: Setting) -> bool:
    """An excerpt of few lines carries a claim better than a listing or a long window."""
    if old is None:
        return True
    return (new.record.kind != "search", -len(new.record.content)) > (
        old.record.kind != "search",
        -len(old.record.content),
    )


def in_force(scene: Scene) -> dict[str, Setting]:
    """Return what the configuration of the diagnostics sets, by name; the last value of a name counts."""
    files = set(config_files(scene))
    values: dict[str, str] = {}
    found: dict[str, Setting] = {}
    for look in scene.findings.by("log.search", "log.window"):
        for record in look.records:
            if not record.usable or (record.kind not in {"config", "search"}):
                continue
            rows = (
                [text for path, text in listed(record) if path in files]
                if record.kind == "search"
                else record.content.splitlines()
            )
            for line in rows:
                setting = _parsed(line, record)
                if setting is None:
                    continue
                if values.get(setting.name) != setting.value:
                    values[setting.name] = setting.value
                    found.pop(setting.name, None)
                if _better(found.get(setting.name), setting):
                    found[setting.name] = setting
    return found


def config_files(scene: Scene) -> list[str]:
    """Return the configuration files of the diagnostics."""
    logs = scene.overview.get("logs") or []
    named = [str(item["file"]) for item in logs if item.get("kind") == "config" and "file" in item]
    seen = [
        str(record.location.path)
        for record in scene.findings.of_kind("config")
        if record.tool.startswith("log.") and record.location.path
    ]
    return list(dict.fromkeys([*named, *seen]))


def templates(scene: Scene) -> dict[str, Setting]:
    """Return what the source's own configuration templates set, by name."""
    found: dict[str, Setting] = {}
    for look in scene.findings.by("source.search"):
        if look.arguments.get("pattern") != ASSIGNMENT and not look.arguments.get("globs"):
            continue
        for record in look.records:
            if record.usable and record.kind in {"search", "source", "config"}:
                for line in _lines(record):
                    setting = _parsed(line, record)
                    if setting is not None and _better(found.get(setting.name), setting):
                        found[setting.name] = setting
    return found


def in_calls(scene: Scene) -> dict[str, Setting]:
    """Return the defaults that getter calls of the source name beside a setting."""
    found: dict[str, Setting] = {}
    for record in scene.findings.of_kind("source"):
        if not record.tool.startswith("source."):
            continue
        for line in record.content.splitlines():
            for match in _IN_CALL.finditer(line):
                setting = Setting(match[1], match[2].strip('"'), record, line.strip())
                if _better(found.get(match[1]), setting):
                    found[match[1]] = setting
    return found


def named_in(record: Record) -> set[str]:
    """Return the string literals of a record that may name a setting."""
    return set(_NAMED.findall(record.content))


def of_name(settings: dict[str, Setting], name: str) -> Setting | None:
    """Return the setting called `name`, however it is written."""
    if name in settings:
        return settings[name]
    wanted = plain_name(name)
    for other, setting in settings.items():
        if plain_name(other) == wanted or (len(last_part(name)) > 5 and last_part(other) == wanted):
            return setting
    return None
