"""Would this line have been written at all? What the shipped configuration and the logs themselves say.

A missing line proves nothing unless something shows that it would have been there: a setting that turns the
kind of message on, or the same kind of message in the same file. This module collects those signs; it knows
no particular program, only that settings are named after what they set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from resources.tools.logs.files import TextFile

_SETTING = re.compile(
    r"^\s*(?:export\s+)?[\"']?(?P<key>[A-Za-z][\w.\-/ ]{1,80}?)[\"']?\s*[:=]\s*"
    r"(?P<value>[^#;]*?)\s*[,;]?\s*(?:[#;].*)?$"
)
_TOPIC = re.compile(r"log|appender|verbos|debug|trace|filter|level|journal|audit", re.IGNORECASE)
_LEVELS = ("trace", "debug", "detail", "info", "notice", "warn", "warning", "error", "fatal", "critical")
_OFF = re.compile(r"^[\"']?(?:0|off|none|false|no|disabled|aus|nein)[\"']?$", re.IGNORECASE)
_ON = re.compile(r"^[\"']?(?:1|on|true|yes|enabled|all|an|ja)[\"']?$", re.IGNORECASE)
_FILTER = re.compile(r"filter|suppress|mute|exclude|ignore|disable", re.IGNORECASE)


_SILENT = ("neither the configuration nor the log says so",)


class Setting(NamedTuple):
    """A logging setting as it stands: file, line, key, value."""

    path: str
    line: int
    key: str
    value: str


class Judgement(NamedTuple):
    """`written`: the same kind of line stands in the log; `on`, `off`: a setting says so; else `unknown`."""

    verdict: Literal["written", "on", "off", "unknown"]
    reasons: tuple[str, ...]


def settings(files: Sequence[TextFile]) -> list[Setting]:
    """Collect the logging settings of all configuration files."""
    found = []
    for file in files:
        if file.kind != "config" or file.lines > 50_000:
            continue
        section = ""
        for number, line in enumerate(file.text(1, file.lines) if file.lines else [], 1):
            head = re.match(r"\s*\[([^\]]+)\]\s*$", line)
            if head:
                section = head.group(1)
                continue
            match = None if line.lstrip().startswith(("#", ";", "//")) else _SETTING.match(line)
            if match and (_TOPIC.search(match["key"]) or _TOPIC.search(section)):
                key = f"{section}.{match['key'].strip()}" if section else match["key"].strip()
                found.append(Setting(file.path, number, key, match["value"].strip()))
    return found


def level_counts(file: TextFile) -> dict[str, int]:
    """Count the level words in the first and last part of a log."""
    data = file.content
    text = bytes(data[: 1 << 20]) + bytes(data[max(1 << 20, len(data) - (1 << 20)) :])
    counts = {}
    for level in _LEVELS:
        number = len(re.findall(rb"\b" + level.encode() + rb"\b", text, re.IGNORECASE))
        if number:
            counts[level] = number
    return counts


def judge(
    level: str | None, topic: str | None, found: Sequence[Setting], levels: dict[str, int], *, seen: bool
) -> Judgement:
    """Judge whether a line of `level` about `topic` would have been written.

    Args:
        level: level word of the line asked about, if known.
        topic: word that a filter or logger is named after, if known.
        found: the settings of the configuration.
        seen: the line itself stands in the log.
        levels: level words that occur in the log.
    """
    if seen:
        return Judgement("written", ("such a line stands in the log",))
    reasons: list[str] = []
    verdict: Literal["written", "on", "off", "unknown"] = "unknown"
    for setting in found:
        about = topic is not None and topic.casefold() in setting.key.casefold()
        if not about:
            continue
        place = f"{setting.path}:{setting.line} {setting.key} = {setting.value}"
        filtering = bool(_FILTER.search(setting.key))
        if _ON.match(setting.value) or _OFF.match(setting.value):
            on = bool(_ON.match(setting.value)) != filtering
            verdict = "off" if not on or verdict == "off" else "on"
            reasons.append(place + (" (a filter)" if filtering else ""))
    if level is not None and verdict == "unknown":
        return _by_level(level, found, levels)
    return Judgement(verdict, tuple(reasons) or _SILENT)


def _by_level(level: str, found: Sequence[Setting], levels: dict[str, int]) -> Judgement:
    wanted = _rank(level)
    if wanted is None:
        return Judgement("unknown", (f"{level} is no known level",))
    lower = sorted(name for name in levels if (rank := _rank(name)) is not None and rank <= wanted)
    if lower:
        return Judgement("written", (f"lines of level {', '.join(lower)} stand in the log",))
    verdicts: list[Literal["on", "off"]] = []
    reasons = []
    for setting in found:
        limit = _rank(setting.value)
        if limit is not None and "level" in setting.key.casefold():
            reasons.append(f"{setting.path}:{setting.line} {setting.key} = {setting.value}")
            verdicts.append("on" if wanted >= limit else "off")
    if len(set(verdicts)) == 1:
        return Judgement(verdicts[0], tuple(reasons))
    return Judgement("unknown", tuple(reasons) or _SILENT)


def _rank(word: str) -> int | None:
    text = word.strip("\"' ").casefold()
    return _LEVELS.index(text) if text in _LEVELS else None
