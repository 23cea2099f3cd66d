"""What a column holds when an INSERT leaves it out: a literal, NULL, or something only the server knew."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKENS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`|"
    r"\b(?P<word>DEFAULT|GENERATED|AUTO_INCREMENT|AUTOINCREMENT|IDENTITY|AS\s*(?=\()|NOT\s+NULL|PRIMARY\s+KEY)\b",
    re.IGNORECASE | re.DOTALL,
)
_LITERAL = re.compile(
    r"\(*\s*(?:(?:N|_\w+|E)?\s*'(?P<text>(?:[^'\\]|\\.|'')*)'|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|"
    r"b'(?P<bits>[01]+)'|(?P<hex>0[xX][0-9a-fA-F]+|[xX]'[0-9a-fA-F]*')|(?P<word>NULL|TRUE|FALSE))"
    r"\s*\)*\s*(?:::[\w\s.\"]+(?:\(\d+(?:,\s*\d+)?\))?(?:\[\])?)?\s*"
    r"(?=$|,|\b(?:NOT|NULL|COMMENT|ON|CHECK|UNIQUE|PRIMARY|KEY|REFERENCES|COLLATE|CONSTRAINT|AUTO_INCREMENT|"
    r"CHARACTER|FIRST|AFTER|GENERATED|INVISIBLE|VISIBLE)\b)",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_SERIAL = re.compile(r"(?:small|big)?serial\b|serial[248]\b", re.IGNORECASE)


class Default(NamedTuple):
    """`literal` is the value as text (None is NULL); `unknown` says why nobody but the server knows it."""

    literal: str | None = None
    unknown: str | None = None


def read_default(declared: str, rest: str, *, backslash: bool) -> Default:
    """Read what follows a column's name in CREATE TABLE.

    Args:
        declared: the type alone.
        rest: the type and everything behind it.
        backslash: whether a backslash escapes in strings.
    """
    found: dict[str, int] = {}
    for token in _TOKENS.finditer(rest):
        if token.group("word"):
            found.setdefault(" ".join(token.group("word").upper().split()), token.end())
    if {"AUTO_INCREMENT", "AUTOINCREMENT", "IDENTITY"} & found.keys() or _SERIAL.match(declared):
        return Default(unknown="the server numbers it")
    if {"GENERATED", "AS"} & found.keys():
        return Default(unknown="the server computes it")
    if "DEFAULT" in found:
        return literal_of(rest[found["DEFAULT"] :].strip(), backslash=backslash)
    if "NOT NULL" in found or "PRIMARY KEY" in found:
        return Default(unknown="it may not be NULL and has no default")
    return Default()


def literal_of(text: str, *, backslash: bool) -> Default:
    """Read the expression behind DEFAULT."""
    found = _LITERAL.match(text)
    if found is None:
        shown = " ".join(text.split())[:60]
        return Default(unknown=f"its default {shown} is no literal")
    if found.group("text") is not None:
        plain = found.group("text").replace("''", "'")
        if backslash:
            plain = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), plain, flags=re.DOTALL)
        return Default(plain)
    if found.group("bits"):
        return Default(str(int(found.group("bits"), 2)))
    if found.group("hex"):
        return Default("0x" + re.sub(r"^0[xX]|^[xX]|'", "", found.group("hex")).upper())
    word = found.group("word")
    if word is not None:
        return Default(None if word.upper() == "NULL" else word.lower())
    return Default(found.group("number"))
