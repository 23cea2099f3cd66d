"""JSON whose strings know where they stand in the raw file.

Python's reader drops positions, so this small one keeps them: every string value becomes a `Text` cut out of
the file's, escapes resolved, each character with the bytes of its escape. Structure only; numbers and
words are kept as text.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, Union

from viano_assets.case.text import Text

MAX_DEPTH = 60

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_STRING_PART = re.compile(r'[^"\\\n]+')
_ESCAPE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORD = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")

Value: TypeAlias = Union["Word", Text, list["Value"], dict[str, "Value"]]


@dataclass(frozen=True, slots=True)
class Word:
    """A number or one of `true`, `false`, `null`, as it stands, with its place."""

    text: Text


class JsonError(ValueError):
    """The text is no JSON."""


def parse(text: Text) -> Value:
    """Return the value in `text`.

    Raises:
        JsonError: the text is no JSON, or nested deeper than `MAX_DEPTH`.
    """
    parser = _Parser(text)
    value = parser.value(0)
    parser.space()
    if parser.at < len(text.text):
        parser.fail("more than one value")
    return value


class _Parser:
    def __init__(self, text: Text) -> None:
        self._text = text
        self._chars = text.text
        self.at = 0

    def fail(self, why: str) -> NoReturn:
        line = self._chars.count("\n", 0, self.at) + 1
        raise JsonError(f"{why} in line {line}")

    def space(self) -> None:
        match = _SPACE.match(self._chars, self.at)
        self.at = match.end() if match is not None else self.at

    def value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            self.fail("nested too deep")
        self.space()
        char = self._chars[self.at : self.at + 1]
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char == '"':
            return self._string()
        match = _WORD.match(self._chars, self.at)
        if match is None:
            self.fail("no value")
        self.at = match.end()
        return Word(self._text.cut(*match.span()))

    def _object(self, depth: int) -> dict[str, Value]:
        result: dict[str, Value] = {}
        repeated: dict[str, int] = {}
        self.at += 1
        self.space()
        while self._chars[self.at : self.at + 1] != "}":
            if self._chars[self.at : self.at + 1] != '"':
                self.fail("no key")
            key = self._string().text
            self.space()
            self._expect(":")
            value = self.value(depth + 1)
            if key in result:
                repeated[key] = repeated.get(key, 0) + 1
                key = f"{key}'{repeated[key] if repeated[key] > 1 else ''}"
            while key in result:
                key += "'"
            result[key] = value
            self._separator("}")
        self.at += 1
        return result

    def _array(self, depth: int) -> list[Value]:
        result: list[Value] = []
        self.at += 1
        self.space()
        while self._chars[self.at : self.at + 1] != "]":
            result.append(self.value(depth + 1))
            self._separator("]")
        self.at += 1
        return result

    def _expect(self, char: str) -> None:
        if self._chars[self.at : self.at + 1] != char:
            self.fail(f"{char!r} is missing")
        self.at += 1

    def _separator(self, closing: str) -> None:
        self.space()
        if self._chars[self.at : self.at + 1] == closing:
            return
        self._expect(",")
        self.space()

    def _string(self) -> Text:
        parts: list[str] = []
        starts, ends = array("q"), array("q")
        self.at += 1
        while True:
            char = self._chars[self.at : self.at + 1]
            if char in {"", "\n"}:
                self.fail("a string does not end")
            if char == '"':
                self.at += 1
                break
            begin = self.at
            if char == "\\":
                new = self._escape()
                starts.extend([self._text.starts[begin]] * len(new))
                ends.extend([self._text.ends[self.at - 1]] * len(new))
            else:
                match = _STRING_PART.match(self._chars, self.at)
                assert match is not None
                new = match[0]
                self.at = match.end()
                starts.extend(self._text.starts[begin : self.at])
                ends.extend(self._text.ends[begin : self.at])
            parts.append(new)
        return _normal(Text("".join(parts), starts, ends, self._text.line_starts, self._text.encoding))

    def _escape(self) -> str:
        char = self._chars[self.at + 1 : self.at + 2]
        if char == "u":
            return self._unicode()
        if char not in _ESCAPE:
            self.fail("an unknown escape")
        self.at += 2
        return _ESCAPE[char]

    def _unicode(self) -> str:
        code = self._code(self.at)
        self.at += 6
        if 0xD800 <= code < 0xDC00 and self._chars[self.at : self.at + 2] == "\\u":
            low = self._code(self.at)
            if 0xDC00 <= low < 0xE000:
                self.at += 6
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))
        if code == 0:
            return "\u2400"
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def _code(self, at: int) -> int:
        match = re.compile(r"\\u([0-9A-Fa-f]{4})").match(self._chars, at)
        if match is None:
            self.fail("a damaged \\u escape")
        return int(match[1], 16)


def _normal(text: Text) -> Text:
    """Make every line end one newline character, as in a file's text."""
    replacements = [(m.start(), m.end(), "\n") for m in re.finditer(r"\r\n|\r", text.text)]
    return text.replace(replacements)
