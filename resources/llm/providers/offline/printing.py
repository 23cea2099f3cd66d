"""Which statement of the code wrote a log line, with which values, and under which condition it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.bounds import block, tail, turns_away
from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Scene
from resources.llm.providers.offline.settings import number_of

MAX_NAMES = 4

MIN_LITERAL = 8
"""Literal characters a format needs, so that it recognises a line at all."""

_STRING = re.compile(r"f?\"((?:[^\"\\\n]|\\.)*)\"|f?'((?:[^'\\\n]|\\.)*)'")
_HOLE = re.compile(r"%[-+ #0-9.]*(?:hh|h|ll|l|z|j|t)?[diufFeEgGxXosScp]|\{[^{}]*\}")
_GUARD = re.compile(r"^\s*(?:\}?\s*else\s+)?(?:if|elif|case|while|when|switch)\b")


@dataclass(frozen=True, slots=True)
class Printed:
    """A log line, the statement that wrote it, its values by the last name of the argument, and its guard."""

    line: str
    log: Record
    statement: str
    source: Record
    values: dict[str, str]
    guard: str
    refuses: bool

    def number(self, name: str) -> float | None:
        """Return the logged value of a name as a number."""
        return number_of(self.values.get(name, ""))


def log_lines(scene: Scene) -> Iterator[tuple[Record, str]]:
    """Yield the log lines that were looked at, each with its record."""
    for record in scene.findings.of_kind("log"):
        for line in record.content.splitlines():
            if line.strip():
                yield record, line


def about(scene: Scene) -> list[tuple[Record, str]]:
    """Return the log lines about the affected things: those that hold most of the report's ids, in order."""
    names = scene.ids() or scene.numbers()[:MAX_NAMES]
    words = [re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w])") for name in names[:MAX_NAMES]]
    counted = [(sum(w.search(line) is not None for w in words), r, line) for r, line in log_lines(scene)]
    most = max((count for count, _, _ in counted), default=0)
    unique: dict[str, tuple[Record, str]] = {}
    for count, record, line in counted:
        if count and count == most:
            unique.setdefault(line, (record, line))
    return list(unique.values())


def printed(scene: Scene, sources: list[Record]) -> list[Printed]:
    """Return the log lines about the affected things that a statement of one of the sources wrote."""
    lines = about(scene)
    found: list[Printed] = []
    if not lines:
        return found
    for source in sources:
        for number, statement in _statements(source):
            pattern = _pattern(statement)
            if pattern is None:
                continue
            regex, arguments = pattern
            for record, line in lines:
                match = regex.search(line)
                if match is not None:
                    values = dict(zip(map(tail, arguments), match.groups(), strict=False))
                    guard = _guard(source, number)
                    after = "\n".join(source.content.splitlines()[number : number + 4])
                    turned = turns_away(block(after))
                    found.append(Printed(line, record, statement, source, values, guard, turned))
    return found


def formats(source: Record) -> list[str]:
    """Return the literal starts of what a function writes to a log, in order."""
    found = []
    for _, statement in _statements(source):
        if _pattern(statement) is not None and re.search(
            r"log|print|warn|error|debug|trace", statement, re.IGNORECASE
        ):
            literal = _STRING.search(statement)
            if literal is not None:
                text = _HOLE.sub("…", literal[1] or literal[2] or "").strip()
                found.append(text)
    return list(dict.fromkeys(found))


def _statements(record: Record) -> Iterator[tuple[int, str]]:
    """Yield statements with a string literal, joined over at most four lines, with their first line."""
    lines = record.content.splitlines()
    for number, line in enumerate(lines):
        if '"' not in line and "'" not in line:
            continue
        joined = line.strip()
        for following in lines[number + 1 : number + 4]:
            if joined.endswith((";", "{", "}")) or joined.count("(") <= joined.count(")"):
                break
            joined = f"{joined} {following.strip()}"
        yield number, joined


def _pattern(statement: str) -> tuple[re.Pattern[str], list[str]] | None:
    if statement.count("<<") >= 2:
        return _chained(statement, "<<")
    literal = _STRING.search(statement)
    if literal is None:
        return None
    text = literal[1] if literal[1] is not None else literal[2]
    holes = list(_HOLE.finditer(text))
    if len(_HOLE.sub("", text).strip()) < MIN_LITERAL:
        return None
    named = [hole[0].strip("{}").split(":")[0] for hole in holes if hole[0].startswith("{")]
    inline = literal[0].startswith("f") or any(re.fullmatch(r"[A-Za-z_][\w.]*", name) for name in named)
    arguments = named if inline and named else _arguments(statement[literal.end() :])
    pieces = _HOLE.split(text)
    return _regex(pieces), arguments


def _regex(pieces: list[str]) -> re.Pattern[str]:
    plain = [re.escape(re.sub(r"\\[nrt\"']", "", piece).strip("\n")) for piece in pieces]
    return re.compile("([^\\s,;]+)".join(plain))


def _chained(statement: str, sign: str) -> tuple[re.Pattern[str], list[str]] | None:
    pieces, arguments = [""], []
    for part in statement.rstrip("; ").split(sign)[1:]:
        literal = _STRING.fullmatch(part.strip())
        if literal is not None:
            pieces[-1] += literal[1] or ""
        elif part.strip() not in {"std::endl", "endl", "'\\n'"}:
            arguments.append(part.strip())
            pieces.append("")
    if len("".join(pieces).strip()) < MIN_LITERAL:
        return None
    return _regex(pieces), arguments


def _arguments(rest: str) -> list[str]:
    """Split what follows a format at its top-level commas."""
    found, depth, current = [], 0, ""
    for char in rest.lstrip(" ,%("):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                break
        if char == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += char
    return [*found, current.strip()] if current.strip() else found


def _guard(record: Record, number: int) -> str:
    """Return the condition a line stands under: the nearest one above it that is indented less."""
    lines = record.content.splitlines()
    depth = len(lines[number]) - len(lines[number].lstrip())
    for line in reversed(lines[:number]):
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            if _GUARD.match(line):
                return line.strip()
            depth = len(line) - len(line.lstrip())
    return ""
