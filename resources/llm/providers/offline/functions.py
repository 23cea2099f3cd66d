"""Functions as text: their parameters, the calls they make, and what a class keeps of its constructor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Scene, Wish

_NAME_FIRST = re.compile(r"\.(?:py|ts|tsx|js|jsx|go|rs|lua|kt|swift)$")
_MAKER = re.compile(r"\bdef __init__\s*\(|^\s*constructor\s*\(", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WORDS = frozenset({"if", "while", "for", "switch", "return", "sizeof", "catch", "elif", "and", "or", "not"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call on a line: receiver as written, name, arguments, and where it begins and ends.

    `then` is the method called on what the call made: `Span(a, b).Holds(x)` has `then == "Holds"`.
    """

    receiver: str
    name: str
    arguments: tuple[str, ...]
    start: int
    end: int
    then: str | None

    def negated(self, line: str) -> bool:
        """Say whether the outcome of the call is turned round."""
        return re.search(r"(?:!|\bnot)\s*\(?\s*$", line[: self.start]) is not None


def short(symbol: str | None) -> str:
    """Return the last part of a qualified name."""
    return re.split(r"::|\.|#", symbol or "")[-1]


def owner(symbol: str | None) -> str:
    """Return the part of a qualified name that holds the last one: `Span` of `rail::Span::Holds`."""
    parts = re.split(r"::|\.|#", symbol or "")
    return parts[-2] if len(parts) > 1 else ""


def closing(text: str, opened: int) -> int:
    """Return the index of the bracket that closes the one at `opened`, -1 when none does."""
    depth = 0
    for index in range(opened, len(text)):
        depth += (text[index] in "([{") - (text[index] in ")]}")
        if depth == 0:
            return index
    return -1


def split_arguments(text: str) -> tuple[str, ...]:
    """Split a list of arguments at its top-level commas."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([{<") - (char in ")]}>")
        if char == "," and depth <= 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return tuple([*parts, last] if last or parts else [])


def calls(line: str) -> Iterator[Call]:
    """Yield the calls of a line from left to right, outer ones before those in their arguments."""
    for match in re.finditer(r"([A-Za-z_]\w*)\s*\(", line):
        end = closing(line, match.end() - 1)
        if end < 0 or match[1] in _WORDS:
            continue
        begin = _chain_start(line, match.start())
        receiver = re.sub(r"(?:\.|->|::)$", "", line[begin : match.start()].strip())
        then = re.match(r"\s*(?:\.|->)\s*([A-Za-z_]\w*)\s*\(", line[end + 1 :])
        arguments = split_arguments(line[match.end() : end])
        yield Call(receiver, match[1], arguments, begin, end, then[1] if then else None)


def _chain_start(line: str, index: int) -> int:
    """Walk back over `a.b().c->` to where the expression begins."""
    while True:
        before = re.search(r"(?:\.|->|::)\s*$", line[:index])
        if before is None:
            return index
        index = before.start()
        if index and line[index - 1] == ")":
            depth, place = 0, index - 1
            while place >= 0:
                depth += (line[place] == ")") - (line[place] == "(")
                if depth == 0:
                    break
                place -= 1
            index = max(place, 0)
        name = re.search(r"[A-Za-z_]\w*$", line[:index])
        index = name.start() if name is not None else index


def parameters(record: Record, name: str) -> list[str]:
    """Return the names of the parameters with which `name` is defined in a record, receiver left out.

    The constructor of a class may have a name of its own (`__init__`, `constructor`).
    """
    match = _MAKER.search(record.content) or re.search(rf"(?<!\w){re.escape(name)}\s*\(", record.content)
    end = closing(record.content, match.end() - 1) if match else -1
    if match is None or end < 0:
        return []
    first = _NAME_FIRST.search(record.location.path or "") is not None
    found = []
    for part in split_arguments(record.content[match.end() : end]):
        words = _IDENTIFIER.findall(part.split("=")[0])
        if words:
            found.append(words[0] if first else words[-1])
    return found[1:] if found[:1] in (["self"], ["cls"]) else found


def kept(record: Record, parameter: str) -> set[str]:
    """Return the members in which a constructor keeps a parameter."""
    word = re.escape(parameter)
    initialised = re.findall(rf"[:,]\s*([A-Za-z_]\w*)\s*[({{]\s*{word}\s*[)}}]", record.content)
    assigned = re.findall(
        rf"(?:\bthis\s*(?:->|\.)\s*|\bself\.)?\b([A-Za-z_]\w*)\s*=\s*{word}\s*(?:;|$)",
        record.content,
        re.MULTILINE,
    )
    return {*initialised, *assigned}


def mentions(text: str, names: Iterable[str]) -> bool:
    """Say whether one of the names stands in a text as a whole word."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def body_wish(found: Record, purpose: str, countercheck: str | None = None) -> Wish:
    """Return the look that reads the whole function around a found line."""
    place = found.location
    span = {"path": str(place.path), "symbol": str(place.symbol)}
    return Wish("source.read", span, purpose, countercheck)


def definition_wish(name: str, purpose: str, countercheck: str | None = None) -> Wish:
    """Return the look for where a name is defined."""
    return Wish("source.symbol", {"name": name, "limit": 5}, purpose, countercheck)


def definitions(scene: Scene, name: str) -> list[Record]:
    """Return the records that show where a name is defined, as far as it was looked for."""
    return [
        record
        for record in scene.findings.of_kind("source")
        if record.tool in {"source.symbol", "source.read"}
        and short(record.location.symbol) == name
        and re.search(rf"(?<!\w){re.escape(name)}\b", record.content)
    ]


def body_of(scene: Scene, record: Record) -> Record | None:
    """Return the record that shows the whole function around a found line, if it was read."""
    place = record.location
    for other in scene.findings.of_kind("source"):
        span = other.location
        if (
            other.tool in {"source.read", "source.symbol"}
            and span.path == place.path
            and span.symbol == place.symbol
            and (span.line_start or 0) <= (place.line_start or 0) <= (span.line_end or 0)
        ):
            return other
    return None
