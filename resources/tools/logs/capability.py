"""Would this line have been written at all? What the shipped configuration and the logs themselves say.

A missing line proves nothing unless something shows that it would have been there: a setting that turns the
kind of message on, or the same kind of message in the same file. This module collects those signs; it knows
no particular program, only that settings are named after what they set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from resources.tools.logs.files import TextFile
from resources.tools.logs.times import parse

_SETTING = re.compile(
    r"^\s*(?:export\s+)?[\"']?(?P<key>[A-Za-z][\w.\-/ ]{1,80}?)[\"']?\s*[:=]\s*"
    r"(?P<value>[^#;]*?)\s*[,;]?\s*(?:[#;].*)?$"
)
_TOPIC = re.compile(r"log|appender|verbos|debug|trace|filter|level|journal|audit", re.IGNORECASE)
_LEVELS = ("trace", "debug", "detail", "info", "notice", "warn", "warning", "error", "fatal", "critical")
_OFF = re.compile(r"^[\"']?(?:0|off|none|false|no|disabled|aus|nein)[\"']?$", re.IGNORECASE)
_ON = re.compile(r"^[\"']?(?:1|on|true|yes|enabled|all|an|ja)[\"']?$", re.IGNORECASE)
_FILTER = re.compile(r"filter|suppress|mute|exclude|ignore|disable", re.IGNORECASE)


Verdict = Literal["written", "on", "off", "unknown"]

_SILENT = ("neither the configuration nor the log says so",)


class Setting(NamedTuple):
    """A logging setting as it stands: file, line, key, value."""

    path: str
    line: int
    key: str
    value: str


class Judgement(NamedTuple):
    """`written`: the same kind of line stands in the log; `on`, `off`: a setting says so; else `unknown`."""

    verdict: Verdict
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


_NAMES = "|".join(sorted(_LEVELS, key=len, reverse=True))
_NAMED = re.compile(
    rf"[\"']?\b(?:log|event)?_?(?:level|lvl|severity)(?:name)?[\"']?\s*[=:]\s*[\"']?({_NAMES})\b",
    re.IGNORECASE,
)
_ENCLOSED = re.compile(rf"(?<=[\[(<|])\s*({_NAMES})\s*(?=[\])>|:])", re.IGNORECASE)
_FIRST = re.compile(rf"[\s\[(<|\-:]*({_NAMES})\b(?!\s*=)", re.IGNORECASE)
_LOUD = re.compile(rf"(?<![\w.\-])({_NAMES.upper()})(?![\w.\-])")
_HEAD_WORDS = 7


def level_of(line: str) -> str | None:
    """Return the level of a line where a level stands, not where its message mentions one.

    That is a field (`level=debug`, `[Debug]`), the first word behind the time, or a word in capitals among
    the first ones of the line.
    """
    named = _NAMED.search(line[:1000])
    if named:
        return named.group(1).lower()
    stamp = parse(line)
    rest = line[line.find(stamp.text) + len(stamp.text) :] if stamp and stamp.text in line else line
    first = _FIRST.match(rest) if stamp else None
    if first:
        return first.group(1).lower()
    head = " ".join(line.split(None, _HEAD_WORDS)[:_HEAD_WORDS])
    found = [m for m in (_ENCLOSED.search(head), _LOUD.search(head)) if m]
    return min(found, key=lambda m: m.start()).group(1).lower() if found else None


def level_counts(file: TextFile) -> dict[str, int]:
    """Count the levels of the lines in the first and last part of a log."""
    data = file.content
    raw = bytes(data[: 1 << 20]) + b"\n" + bytes(data[max(1 << 20, len(data) - (1 << 20)) :])
    counts: Counter[str] = Counter()
    for line in raw.split(b"\n"):
        if _ANY_LEVEL.search(line):
            counts[level_of(line.decode("utf-8", "replace")) or ""] += 1
    del counts[""]
    return dict(counts)


_ANY_LEVEL = re.compile(rb"\b(?:" + _NAMES.encode() + rb")\b", re.IGNORECASE)


class Topic(NamedTuple):
    """Lines of the logs that hold the word asked about: how many, and their levels."""

    lines: int = 0
    levels: frozenset[str] = frozenset()


NOWHERE = Topic()


def judge(
    level: str | None,
    topic: str | None,
    found: Sequence[Setting],
    levels: dict[str, int],
    *,
    seen: bool,
    standing: Topic = NOWHERE,
) -> Judgement:
    """Judge whether a line of `level` about `topic` would have been written.

    Args:
        level: level word of the line asked about, if known.
        topic: word that a filter or logger is named after, if known.
        found: the settings of the configuration.
        levels: levels that lines of the log have.
        seen: the line itself stands in the log.
        standing: lines of the log that hold the topic as a whole word.
    """
    if seen:
        return Judgement("written", ("such a line stands in the log",))
    wanted = _rank(level) if level is not None else None
    ranks = [rank for name in standing.levels if (rank := _rank(name)) is not None]
    if standing.lines and (level is None or (wanted is not None and any(rank <= wanted for rank in ranks))):
        return Judgement("written", (f"{standing.lines} lines with the word {topic} stand in the log",))
    verdict, reasons = _by_topic(topic, found)
    if verdict == "off" and standing.lines:
        spoken = f"but {standing.lines} lines with the word {topic} stand in the log"
        return Judgement("unknown", (*reasons, spoken))
    if level is not None and verdict == "unknown" and not reasons:
        return _by_level(level, found, levels)
    return Judgement(verdict, reasons or _SILENT)


def _by_topic(topic: str | None, found: Sequence[Setting]) -> tuple[Verdict, tuple[str, ...]]:
    """Return what the settings named after the topic say; when they disagree it stays unknown."""
    reasons: list[str] = []
    verdicts: set[Verdict] = set()
    for setting in found:
        if topic is None or topic.casefold() not in setting.key.casefold():
            continue
        filtering = bool(_FILTER.search(setting.key))
        if _ON.match(setting.value) or _OFF.match(setting.value):
            verdicts.add("on" if bool(_ON.match(setting.value)) != filtering else "off")
            place = f"{setting.path}:{setting.line} {setting.key} = {setting.value}"
            reasons.append(place + (" (a filter)" if filtering else ""))
    return (verdicts.pop() if len(verdicts) == 1 else "unknown"), tuple(reasons)


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
