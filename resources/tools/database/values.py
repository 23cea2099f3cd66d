"""Literal VALUES lists to cells, at the speed of `bytes.split`.

A VALUES body holds strings and, between them, a skeleton of digits, commas, parentheses and NULL. Escapes
that would hide a quote are replaced by bytes that do not occur in the body; then every second piece between
quotes is a string, and the skeleton can be cut at its commas. Whatever is not a literal shows in the
skeleton and sends the statement to the slow path; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_SENTINELS = tuple(
    bytes([n]) for n in (0xFF, 0xFE, 0xFD, 0xFC, 0xF9, 0xC0, 0xC1, 1, 2, 3, 4, 5, 6, 7, 0x1C, 0x1D)
)
_DIGITS = b"0123456789.,()"
_TWO_WORDS = re.compile(rb"[\w.]\s+[\w.]")
_NULLS = frozenset({b"NULL", b"null"})
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_MYSQL_ESCAPES = {
    b"0": b"\0",
    b"b": b"\b",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"Z": b"\x1a",
    b"%": b"\\%",
    b"_": b"\\_",
}


class Cells(NamedTuple):
    """Rows of a VALUES body, flattened: `width` cells a row; None is NULL, `quoted` marks string literals."""

    flat: list[bytes | None]
    tokens: list[bytes]
    width: int
    mark: bytes

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.flat) // self.width if self.width else 0

    def column(self, index: int) -> list[bytes | None]:
        """Cells of one column, in row order."""
        return self.flat[index :: self.width]

    def quoted(self, index: int) -> list[bool]:
        """Whether each cell of one column was a string literal."""
        return [self.mark in token for token in self.tokens[index :: self.width]]


def _unescape(match: re.Match[bytes]) -> bytes:
    char = match.group(1)
    return _MYSQL_ESCAPES.get(char, char)


def _free_bytes(body: bytes, count: int) -> list[bytes] | None:
    free: list[bytes] = []
    for candidate in _SENTINELS:
        if candidate not in body:
            free.append(candidate)
            if len(free) == count:
                return free
    return None


def parse_values(body: bytes, *, backslash: bool) -> Cells | None:
    """Read `(…),(…)` where every value is a literal; None when it is not.

    Args:
        body: the text between VALUES and the end of the statement, without comments between rows.
        backslash: whether a backslash escapes inside strings (MySQL) or is an ordinary character.
    """
    free = _free_bytes(body, 3 if backslash else 1)
    if free is None:
        return None
    mark = free[0]
    escaped = backslash and b"\\" in body
    text = body
    if escaped:
        text = text.replace(b"\\\\", free[1]).replace(b"\\'", free[2])
    parts = text.split(b"'")
    if len(parts) % 2 == 0:
        return None
    spaced = mark.join(parts[0::2])
    skeleton = spaced.translate(None, b" \t\r\n")
    doubled = skeleton.count(mark + mark)
    if doubled != spaced.count(mark + mark) or _TWO_WORDS.search(spaced):
        return None
    tokens, width = _tokens(skeleton, mark)
    if not tokens:
        return None
    strings = parts[1::2]
    if escaped and strings:
        strings = _plain(strings, mark, free[1], free[2])
    return Cells(_merge(tokens, strings, mark, simple=not doubled), tokens, width, mark)


def _plain(strings: list[bytes], mark: bytes, backslash: bytes, quote: bytes) -> list[bytes]:
    joined = mark.join(strings)
    if b"\\" in joined:
        joined = _ESCAPE.sub(_unescape, joined)
    return joined.replace(quote, b"'").replace(backslash, b"\\").split(mark)


def _tokens(skeleton: bytes, mark: bytes) -> tuple[list[bytes], int]:
    if not (skeleton.startswith(b"(") and skeleton.endswith(b")")):
        return [], 0
    rows = skeleton[1:-1].split(b"),(")
    widths = {row.count(b",") for row in rows}
    flat = b",".join(rows)
    if len(widths) != 1 or b"(" in flat or b")" in flat:
        return [], 0
    tokens = flat.split(b",")
    rest = b"," + flat
    rest = rest.replace(b"NULL", b"").replace(b",-", b",").translate(None, _DIGITS + mark)
    if (rest or b"" in tokens or b"-N" in flat) and _literals(mark).fullmatch(flat) is None:
        return [], 0
    return tokens, widths.pop() + 1


@cache
def _literals(mark: bytes) -> re.Pattern[bytes]:
    """Return what matches a list of literals as a whole, in one walk of the matcher."""
    string = rb"(?:(?i:_binary|x|b|n|e|_utf8|_utf8mb4|_latin1)?+" + re.escape(mark) + rb"++)"
    number = rb"[+-]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+(?![\w.])"
    one = rb"(?:" + string + rb"|0[xX][0-9a-fA-F]++|" + number + rb"|NULL|null|true|false|TRUE|FALSE)"
    return re.compile(one + rb"(?:," + one + rb")*+")


def _merge(tokens: list[bytes], strings: list[bytes], mark: bytes, *, simple: bool) -> list[bytes | None]:
    source = iter(strings)
    null = b"NULL"
    if simple and tokens.count(mark) == len(strings) and b"null" not in tokens:
        return [next(source) if token == mark else None if token == null else token for token in tokens]
    return [_cell(token, source, mark) for token in tokens]


def _cell(token: bytes, source: Iterator[bytes], mark: bytes) -> bytes | None:
    count = token.count(mark)
    if not count:
        return None if token in _NULLS else token
    text = b"'".join(next(source) for _ in range(count))
    prefix = token.rstrip(mark).lower()
    if prefix == b"x":
        return b"0x" + text.upper()
    if prefix == b"b" and text and not text.strip(b"01"):
        return b"%d" % int(text, 2)
    return _ESCAPE.sub(_unescape, text) if prefix == b"e" else text
