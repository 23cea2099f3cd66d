"""From a value to the names that stand for it: constants, macros, enumerators and flag bits.

Values are read from the text with the simple expressions that constants are written in (numbers,
shifts, `|`, `+`, `-`, names defined before). What needs a compiler is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from resources.tools.source.languages import CODE
from resources.tools.source.lines import decode, encoding_of
from resources.tools.source.reader import SourceIndex


class Constant(NamedTuple):
    """One name for the value; `how` is `equal` or `bit` (one of several flags that make it up)."""

    path: str
    line: int
    name: str
    value: str
    how: str


class Named(NamedTuple):
    """The constants with a value, how many files were read, and how many values stayed unknown."""

    constants: list[Constant]
    files: int
    unknown: int
    """Constants whose expression needs more than is known here."""


_ENUM = re.compile(rb"\benum\b\s*(?:class\s+|struct\s+)?(\w*)\s*(?::\s*[\w:]+\s*)?\{([^{}]*)\}")
_MEMBER = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:=(.*))?$", re.DOTALL)
_PLAIN = re.compile(
    rb"^[ \t]*(?:#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)"
    rb"|(?:[\w:<>*&,\[\] \t]*?\b)?([A-Za-z_]\w*)[ \t]*(?::[ \t]*[\w<>&'\[\]. ]+?)?[ \t]*=[ \t]*"
    rb"(-?\d[\w.]*|0[xX][0-9a-fA-F]+[uUlL]*|[\"'][^\"'\n]*[\"']|[\w<|+\- ()*]+?)[ \t]*[;,]?[ \t]*(?:(?://|#|--|/\*)[^\n]*)?\r?$)",
    re.MULTILINE,
)
_CANDIDATE = re.compile(
    rb"^(?:[^=\r\n]{1,200}=|[ \t]{0,40}#[ \t]{0,10}define)[^\r\n]{1,300}(?=\r|\n|\Z)", re.MULTILINE
)
_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|#[^\n]*")
_TOKEN = re.compile(r"0[xX][0-9a-fA-F]+|\d+|[A-Za-z_][\w:]*|<<|>>|[|+\-()~&*]")
_NUMBER = re.compile(r"^[-+]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*$")


def number(text: str) -> int | None:
    """Return the integer a literal writes, or None."""
    text = text.strip().replace("'", "") if not text.strip().startswith("'") else text.strip()
    if not _NUMBER.match(text):
        return None
    digits = text.rstrip("uUlL")
    try:
        return int(digits, 16 if "x" in digits.lower() else 10)
    except ValueError:
        return None


def evaluate(expression: str, known: dict[str, int]) -> int | None:
    """Return the value of a constant expression of integers, or None when it needs more than this knows."""
    simple = number(expression)
    if simple is not None:
        return simple
    expression = re.sub(
        r"\b(?:static_cast|[ui]int\d*(?:_t)?|int|unsigned|long)\b\s*(?:<[^<>]*>)?", "", expression
    )
    expression = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", expression)
    tokens = _TOKEN.findall(expression)
    if not tokens or len(tokens) > 60 or re.sub(r"\s", "", expression) != "".join(tokens):
        return None
    try:
        return _Expression(tokens, known).value()
    except (LookupError, ValueError):
        return None


class _Expression:
    """Recursive descent over `|`, `&`, shifts, `+ - *`, unary `- ~` and brackets, in C's order."""

    _LEVELS = (("|",), ("&",), ("<<", ">>"), ("+", "-"), ("*",))

    def __init__(self, tokens: list[str], known: dict[str, int]) -> None:
        self._tokens = tokens
        self._known = known
        self._at = 0

    def value(self) -> int:
        result = self._level(0)
        if self._at != len(self._tokens):
            raise ValueError
        return result

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _level(self, depth: int) -> int:
        if depth == len(self._LEVELS):
            return self._atom()
        left = self._level(depth + 1)
        while self._peek() in self._LEVELS[depth]:
            operator = self._tokens[self._at]
            self._at += 1
            right = self._level(depth + 1)
            left = self._apply(operator, left, right)
        return left

    @staticmethod
    def _apply(operator: str, left: int, right: int) -> int:
        if operator in {"<<", ">>"}:
            if not 0 <= right < 128:
                raise ValueError
            return left << right if operator == "<<" else left >> right
        table = {
            "|": left | right,
            "&": left & right,
            "+": left + right,
            "-": left - right,
            "*": left * right,
        }
        return table[operator]

    def _atom(self) -> int:
        word = self._peek()
        self._at += 1
        if word == "(":
            result = self._level(0)
            if self._peek() != ")":
                raise ValueError
            self._at += 1
            return result
        if word in {"-", "~"}:
            inner = self._atom()
            return -inner if word == "-" else ~inner
        found = number(word)
        return found if found is not None else self._known[word.rsplit("::", 1)[-1]]


def _members(body: str, known: dict[str, int], unknown: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield name, value and offset of enumerators whose value can be known; the others go to `unknown`."""
    clean = _COMMENT.sub(lambda m: " " * len(m.group()), body)
    following: int | None = 0
    at = 0
    for part in clean.split(","):
        match = _MEMBER.match(part)
        offset, at = at, at + len(part) + 1
        if match is None:
            following = None
            continue
        written = match.group(2)
        value = evaluate(written.strip(), known) if written else following
        following = None if value is None else value + 1
        if value is None:
            unknown.append(match.group(1))
        else:
            known[match.group(1)] = value
            yield match.group(1), value, offset + match.start(1)


def names_for(index: SourceIndex, root: Path, value: str) -> Named:
    """Return the constants with that value, equal ones first."""
    wanted = number(value)
    text = value.strip().strip("\"'")
    equal: list[Constant] = []
    bits: list[Constant] = []
    read = 0
    unknown: list[str] = []
    for row in index.files:
        if not row.indexed or (row.language not in CODE and row.language != "config"):
            continue
        data = (root / row.path).read_bytes()
        read += 1
        known: dict[str, int] = {}
        _plain(data, row.path, wanted, text, known, equal, unknown)
        if wanted is not None and b"enum" in data:
            _enums(data, row.path, wanted, known, equal, bits, unknown)
    distinct: dict[tuple[str, int, str], Constant] = {}
    for constant in equal + bits:
        distinct[constant.path, constant.line, constant.name.rsplit("::", 1)[-1]] = constant
    return Named(list(distinct.values()), read, len(unknown) if wanted is not None else 0)


def _line(data: bytes, offset: int) -> int:
    head = data[:offset]
    return head.count(b"\n") + 1 + (head.count(b"\r") - head.count(b"\r\n"))


def _plain_lines(data: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the lines that can define a constant; a very long line is none."""
    for line in _CANDIDATE.finditer(data):
        match = _PLAIN.match(data, line.start(), line.end())
        if match is not None:
            yield match


_FIXED = re.compile(rb"\b(?:const|constexpr|final|define|readonly|static)\b")
_ARITHMETIC = re.compile(r"[\w:()\s]+(?:<<|>>|[|+*&-])[\w:()\s|+*&<>~-]+")


def _plain(
    data: bytes,
    path: str,
    wanted: int | None,
    text: str,
    known: dict[str, int],
    out: list[Constant],
    unknown: list[str],
) -> None:
    encoding = encoding_of(data)
    for match in _plain_lines(data):
        group = 1 if match.group(1) else 3
        written = decode(match.group(group + 1), encoding)
        written = re.split(r"\s//|\s/\*", written)[0].strip()
        name = match.group(group).decode("utf-8", "replace")
        found = evaluate(written, known)
        if found is not None:
            known[name] = found
        elif _ARITHMETIC.fullmatch(written) and _FIXED.search(match.group()):
            unknown.append(name)
        same = (
            found == wanted if wanted is not None else written.strip("\"'") == text and written[:1] in "\"'"
        )
        if same:
            out.append(Constant(path, _line(data, match.start(group)), name, written, "equal"))


def _enums(
    data: bytes,
    path: str,
    wanted: int,
    known: dict[str, int],
    equal: list[Constant],
    bits: list[Constant],
    unknown: list[str],
) -> None:
    encoding = encoding_of(data)
    for match in _ENUM.finditer(data):
        outer = match.group(1).decode("utf-8", "replace")
        members = list(_members(decode(match.group(2), encoding), known, unknown))
        flags = [m for m in members if m[1] > 0 and m[1] & (m[1] - 1) == 0]
        mask = sum({m[1] for m in flags})
        whole = wanted > 0 and wanted & (wanted - 1) != 0 and wanted & ~mask == 0 and len(flags) >= 3
        for name, value, offset in members:
            how = "equal" if value == wanted else "bit"
            if value != wanted and not (whole and value & wanted and value in {f[1] for f in flags}):
                continue
            shown = f"{outer}::{name}" if outer else name
            place = _line(
                data,
                match.start(2) + len(decode(match.group(2), encoding)[:offset].encode(encoding, "replace")),
            )
            constant = Constant(path, place, shown, str(value), how)
            (equal if how == "equal" else bits).append(constant)
