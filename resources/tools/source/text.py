"""Words out of code and prose: comments and strings apart from code, identifiers split, words stemmed.

The same functions make the index and read a report, so that both meet in the same terms.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

WORD = re.compile(r"[^\W\d]\w*")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")

_PY = re.compile(
    r'(#[^\n]*|[rRbBuU]{0,2}"""[\s\S]*?(?:"""|\Z)|[rRbBuU]{0,2}\'\'\'[\s\S]*?(?:\'\'\'|\Z))'
    r'|([rRbBuUfF]{0,2}(?:"(?:\\[\s\S]|[^"\\\n])*"|\'(?:\\[\s\S]|[^\'\\\n])*\'))'
)
_C = re.compile(
    r"(//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))"
    r"|(\"(?:\\[\s\S]|[^\"\\\n])*\"|'(?:\\[^'\n]{1,8}|[^'\\\n])')"
)
_JS = re.compile(
    r"(//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))"
    r"|(\"(?:\\[\s\S]|[^\"\\\n])*\"|'(?:\\[\s\S]|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`)"
)
_GO = re.compile(
    r"(//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))"
    r"|(\"(?:\\[\s\S]|[^\"\\\n])*\"|`[^`]*`|'(?:\\[^'\n]{1,8}|[^'\\\n])')"
)
_LUA = re.compile(
    r"(--\[\[[\s\S]*?(?:\]\]|\Z)|--[^\n]*)"
    r"|(\"(?:\\[\s\S]|[^\"\\\n])*\"|'(?:\\[\s\S]|[^'\\\n])*'|\[\[[\s\S]*?(?:\]\]|\Z))"
)
_SQL = re.compile(r"(--[^\n]*|#[^\n]*|/\*[\s\S]*?(?:\*/|\Z))|('(?:\\[\s\S]|''|[^'\\])*')")
_HASH = re.compile(r"(#[^\n]*|;[^\n]*)|(\"[^\"\n]*\"|'[^'\n]*')")

LEXERS: dict[str, re.Pattern[str]] = {
    "python": _PY,
    "c": _C,
    "cpp": _C,
    "java": _C,
    "rust": _C,
    "go": _GO,
    "javascript": _JS,
    "typescript": _JS,
    "tsx": _JS,
    "lua": _LUA,
    "sql": _SQL,
    "config": _HASH,
}
"""Per language a pattern whose group 1 is a comment (or docstring) and group 2 a string literal."""


def _split(words: str) -> list[str]:
    return words.split()


STOP = frozenset(
    _split(
        "a an and are as at be been by can do does for from had has have i if in into is it its of or "
        "our so such than that the their them then there these they this those to was we were which with "
        "you your self cls def return "
    )
)
"""Words of grammar that are not indexed at all."""

PROSE_STOP = STOP | frozenset(
    _split(
        "about again also although always am because being both but cannot could did doing done down "
        "else ever every few further having he her here him his how however itself just may me might "
        "more most much must my neither no nor not now often on ours out over per quite rather seems "
        "shall she should since some theirs though through thus too under up upon us very well what when "
        "where whether who whom whose why will within without would yes yet null void "
    )
)
"""Words of grammar that carry no place in the prose of a report, though in a name they may."""


class Split(NamedTuple):
    """A piece of source, its parts apart."""

    code: str
    comments: list[str]
    strings: list[str]


def split_code(text: str, language: str) -> Split:
    """Take comments and string literals out of `text`; text in an unknown language is all comment."""
    lexer = LEXERS.get(language)
    if lexer is None:
        return Split("", [text], [])
    parts = lexer.split(text)
    return Split(" ".join(parts[0::3]), [c for c in parts[1::3] if c], [s for s in parts[2::3] if s])


_SUFFIX = re.compile(
    r"(.{3,}?)(?:izations?|isations?|ize[rds]?|ise[rds]?|izing|ising|ations?|ators?|ating|ate[ds]?|e?ments?|ness(?:es)?"
    r"|ities|ity|ively|ive[s]?|ably|able|ible|ions?|ally|ings?|edly|ied|iers?|ies|ed|ers?|ors?|ly|es|[sey])"
)
_DOUBLED = re.compile(r".{2,}([bdfgkmnprt])\1")


def stem(word: str) -> str:
    """Return a crude common root of a lower-case English word (own rules, made for identifiers)."""
    if len(word) <= 3 or word.endswith("ss"):
        return word
    match = _SUFFIX.fullmatch(word)
    root = match.group(1) if match else word
    return root[:-1] if match and _DOUBLED.fullmatch(root) else root


def fold(text: str) -> str:
    """Return `text` in Unicode NFC."""
    return unicodedata.normalize("NFC", text)


class _Stems(dict[str, str]):
    """The index term of each part of a name; empty for what is not indexed."""

    def __missing__(self, part: str) -> str:
        lower = part.lower()
        indexed = len(lower) > 1 and lower not in STOP and not lower.isdigit()
        term = self[part] = stem(lower) if indexed else ""
        return term


class Terms:
    """Maps identifiers to index terms.

    An identifier gives the stems of its parts and, when it has several parts, itself in lower case
    behind `=` so that the whole name weighs on its own.
    """

    def __init__(self) -> None:
        self._stems = _Stems()

    def of(self, identifier: str) -> list[str]:
        """Return the terms of one identifier or word."""
        parts = _PARTS.findall(identifier)
        stems = self._stems
        terms = [t for t in map(stems.__getitem__, parts) if t]
        if len(parts) > 1:
            whole = identifier.strip("_").lower()
            if len(whole) > 3:
                terms.append("=" + whole)
        return terms
