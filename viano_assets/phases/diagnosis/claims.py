"""Finds what a text claims literally - quotes, places, ids, row keys - and checks it against what is stored.

A quote stands between backticks (any number, as in Markdown) or is a piece of code between quotation
marks. It is true when the same characters stand in the record, line by line: white space may differ,
nothing else. Cutting is allowed, but not through a word, a number, an operator, or behind a negation,
because such a cut says something else than the source. A line number is a hint: it may drift as long as
a true quote anchors it; without one it must lie within what was read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from viano_assets.phases.markdown import TICKS

_FENCE_INFO = re.compile(r"\A[A-Za-z0-9+#-]*[ \t]*\r?\n")
_MARKS = re.compile(r"[“„\"]([^“”„\"\n]{3,})[”“\"]|«([^«»\n]{3,})»")
_CODE_LIKE = re.compile(r"[(){}\[\];=<>|&]|::|->|[A-Za-z0-9]_[A-Za-z0-9]")
_NEWLINE = re.compile(r"\r\n|\n|\r")
_AROUND_SIGN = re.compile(r"\s*([^\w\s])\s*")
_SPACE = re.compile(r"\s+")
_ATOM = re.compile(r"[\w.$@:/\\-]+(?:\(\))?")
_NEGATION = re.compile(
    r"(?:[!~]|\b(?:not|no|never|without|cannot|isn't|doesn't|don't|nicht|kein|keine|keinen|keiner|nie|ohne))\s*\Z",
    re.IGNORECASE,
)
_OPERATOR = frozenset("=<>!&|+-*/%^~")
_EXTENSIONS = (
    "c|cc|cfg|conf|cpp|cs|csv|cxx|go|h|hpp|hxx|ini|java|js|json|jsx|kt|log|lua|md|php|properties|proto|py|pyi|pyx|"
    "rb|rs|rst|scala|sh|sql|swift|toml|ts|tsv|tsx|txt|xml|yaml|yml"
)
_RANGE = r"(?P<start>\d{1,9})(?:\s*(?:-|–|bis|to)\s*(?P<end>\d{1,9}))?(?![\w.]\w)"
_FILE = r"(?<![\w/.:-])(?P<path>(?:[\w.+@-]+/)*[\w.+@-]+\.(?:" + _EXTENSIONS + r"))"
_PLACE = re.compile(_FILE + r"(?::|,?\s+(?:in\s+)?(?:lines?|Zeilen?|L)\s+)" + _RANGE)
_BARE_PLACE = re.compile(r"(?<![\w/.:-])(?P<path>(?:[\w.+@-]+/)+[\w.+@-]*[A-Za-z][\w.+@-]*):" + _RANGE)
_LINES = re.compile(
    r"\b(?:lines?|Zeilen?)\s+(?P<start>\d{1,9})(?:\s*(?:-|–|bis|to|and|und)\s*(?P<end>\d{1,9}))?",
    re.IGNORECASE,
)
_EVIDENCE_ID = re.compile(r"(?<![\w.])E[1-9][0-9]{0,3}(?![\w.]\w|\w)")
_PAIR = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>-?\d+(?:\.\d+)?|'[^'\n]*'|\"[^\"\n]*\")"
)

_CELL = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>'[^'\n]*'|\"[^\"\n]*\"|[\w.+-]+)")


class Span(NamedTuple):
    """A place named in a text; lines 1-based inclusive, `path` None for bare line numbers."""

    path: str | None
    line_start: int
    line_end: int


class Claims(NamedTuple):
    """What a text claims literally. `balanced` is False when a backtick has no partner."""

    quotes: tuple[str, ...]
    places: tuple[Span, ...]
    evidence_ids: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    balanced: bool


def claims_of(text: str) -> Claims:
    """Return the literal claims of one text."""
    quotes: list[str] = []
    for ticks, inner in TICKS.findall(text):
        body = _FENCE_INFO.sub("", inner) if len(ticks) >= 3 else inner
        quotes.append(body.strip())
    prose = TICKS.sub(" \N{REPLACEMENT CHARACTER} ", text)
    for match in _MARKS.finditer(prose):
        inner = (match[1] or match[2]).strip()
        if _CODE_LIKE.search(inner):
            quotes.append(inner)
    unquoted = _MARKS.sub(" \N{REPLACEMENT CHARACTER} ", prose)
    places = [_span(match) for match in _PLACE.finditer(unquoted)]
    rest = _PLACE.sub(" ", unquoted)
    places += [_span(match) for match in _BARE_PLACE.finditer(rest)]
    rest = _BARE_PLACE.sub(" ", rest)
    places += [_span(match) for match in _LINES.finditer(rest)]
    pairs = tuple((m["name"], m["value"].strip("'\"")) for m in _PAIR.finditer(rest))
    ids = tuple(dict.fromkeys(_EVIDENCE_ID.findall(rest)))
    return Claims(tuple(dict.fromkeys(quotes)), tuple(places), ids, pairs, "`" not in prose)


def split_quotes(text: str) -> list[str]:
    """Split a text at its backtick quotes: prose, quote, prose, … in turn, starting and ending with prose."""
    parts: list[str] = []
    end = 0
    for match in TICKS.finditer(text):
        parts += [text[end : match.start()], match[2].strip()]
        end = match.end()
    return [*parts, text[end:]]


def _span(match: re.Match[str]) -> Span:
    start = int(match["start"])
    path = match.groupdict().get("path")
    return Span(path, start, int(match["end"]) if match["end"] else start)


def place_of(quote: str) -> Span | None:
    """Return the place when a quote is nothing but `path:line` or `path:line-line`."""
    match = _PLACE.fullmatch(quote) or _BARE_PLACE.fullmatch(quote)
    return None if match is None else _span(match)


def text_lines(content: str) -> list[str]:
    """Return the lines of a content as an editor counts them: LF, CRLF and CR end a line, nothing else."""
    lines = _NEWLINE.split(content)
    return lines[:-1] if lines[-1] == "" else lines


def _fold(line: str) -> str:
    return _SPACE.sub(" ", unicodedata.normalize("NFC", line)).strip()


def pair_of(quote: str) -> tuple[str, str] | None:
    """Return column and value when a quote is nothing but `column=value`."""
    match = _CELL.fullmatch(quote)
    return None if match is None else (match["name"], match["value"].strip("'\""))


class Position(NamedTuple):
    """Where a quote stands in a content: 0-based first line and number of lines."""

    line: int
    lines: int


@lru_cache(maxsize=256)
def _folded(content: str, compact: bool) -> tuple[str, ...]:
    lines = (_fold(line) for line in text_lines(content))
    return tuple(_AROUND_SIGN.sub(r"\1", line) for line in lines) if compact else tuple(lines)


def find_quote(content: str, quote: str, *, compact: bool = False) -> Position | None:
    """Return where `quote` stands in `content`, or None when it does not.

    `compact` also ignores white space beside punctuation, for the compact JSON of rows and schemas.
    """
    wanted = _folded(quote.strip(), compact)
    if not any(wanted):
        return None
    lines = _folded(content, compact)
    for first in range(len(lines) - len(wanted) + 1):
        if _matches(lines, first, wanted):
            return Position(first, len(wanted))
    return None


def _matches(lines: Sequence[str], first: int, wanted: Sequence[str]) -> bool:
    if len(wanted) == 1:
        return _within(lines[first], wanted[0])
    last = first + len(wanted) - 1
    return (
        list(lines[first + 1 : last]) == list(wanted[1:-1])
        and lines[first].endswith(wanted[0])
        and lines[last].startswith(wanted[-1])
        and _clean_cut(lines[first], len(lines[first]) - len(wanted[0]), len(lines[first]))
        and _clean_cut(lines[last], 0, len(wanted[-1]))
    )


def _within(line: str, quote: str) -> bool:
    start = line.find(quote)
    while start >= 0:
        if _clean_cut(line, start, start + len(quote)):
            return True
        start = line.find(quote, start + 1)
    return False


def _word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _clean_cut(line: str, start: int, end: int) -> bool:
    """Say whether cutting `line[start:end]` out leaves words, numbers, operators and negations whole."""
    quote, before, after = line[start:end], line[:start], line[end:]
    if not quote:
        return True
    return _clean_left(before, quote) and _clean_right(quote, after)


def _clean_left(before: str, quote: str) -> bool:
    if not before:
        return True
    head, left = quote[0], before[-1]
    if _word(head) and _word(left):
        return False
    if head.isdigit():
        if left == "." and before[-2:-1].isdigit():
            return False
        if left in "-+" and not (before[-2:-1] and (_word(before[-2]) or before[-2] in ")]")):
            return False
    if head in _OPERATOR and left in _OPERATOR:
        return False
    return bool(_ATOM.fullmatch(quote)) or _NEGATION.search(before) is None


def _clean_right(quote: str, after: str) -> bool:
    if not after:
        return True
    tail, right = quote[-1], after[0]
    if _word(tail) and _word(right):
        return False
    if tail.isdigit() and right == "." and after[1:2].isdigit():
        return False
    if tail in "-+." and right.isdigit():
        return False
    return not (tail in _OPERATOR and right in _OPERATOR)


def same_path(named: str, stored: str) -> bool:
    """Say whether a path as written means the stored one: equal, or its trailing components."""
    cut = named.removeprefix("./").strip("/")
    return bool(cut) and (stored == cut or stored.endswith("/" + cut))


def overlaps(span: Span, start: int, end: int) -> bool:
    """Say whether a named span lies within lines `start`..`end`."""
    return start <= span.line_start <= span.line_end <= end
