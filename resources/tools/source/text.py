"""Words out of code and prose: comments and strings apart from code, identifiers split, words stemmed.

The same functions make the index and read a report, so that both meet in the same terms.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

WORD = re.compile(r"[^\W\d]\w*")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_PARTS_AND_BREAKS = re.compile(_PARTS.pattern + r"|\n")


_PLACEHOLDER = re.compile(r"(REDACTED_[A-Z]+_)[0-9a-f]{10}")
_PLACEHOLDER_BYTES = re.compile(_PLACEHOLDER.pattern.encode())


def without_pseudonyms(text: str) -> str:
    """Return text of the same length in which every placeholder of redaction reads the same.

    A placeholder holds digits of the package's key: as words they would make the ranking of one tree
    differ from package to package.
    """
    return _PLACEHOLDER.sub(r"\1xxxxxxxxxx", text) if "REDACTED_" in text else text


def without_pseudonyms_in(data: bytes) -> bytes:
    """Do the same to the bytes of a file."""
    return _PLACEHOLDER_BYTES.sub(rb"\1xxxxxxxxxx", data) if b"REDACTED_" in data else data


def _lexer(*parts: tuple[str, str]) -> re.Pattern[str]:
    """Build the pattern of comments and strings from first characters and what follows each.

    The search runs from one first character to the next; alternatives at every position would cost
    many times as much.
    """
    leads = "".join(dict.fromkeys(lead for lead, _ in parts))
    rest = "|".join(rf"(?<=[{re.escape(lead)}]){body}" for lead, body in parts)
    return re.compile(rf"([{re.escape(leads)}](?:{rest}))")


_QUOTED = (('"', r'[^"\\\n]*+(?:\\[\s\S][^"\\\n]*+)*+"'), ("'", r"[^'\\\n]*+(?:\\[\s\S][^'\\\n]*+)*+'"))
_CHARACTER = ("'", r"(?:\\[^'\n]{1,8}|[^'\\\n])'")
_STARRED = r"\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)"
_SLASHED = ("/", rf"(?:/[^\n]*|{_STARRED})")
_TO_LINE_END = r"[^\n]*"

_PLAIN = r"(?<![fF].)(?<![fF][rRbBuU].)"
_PY = _lexer(
    ("#", _TO_LINE_END),
    ('"', _PLAIN + r'""[^"]*+(?:"(?!"")[^"]*+)*+(?:"""|\Z)'),
    ("'", _PLAIN + r"''[^']*+(?:'(?!'')[^']*+)*+(?:'''|\Z)"),
    *_QUOTED,
)
_C = _lexer(_SLASHED, _QUOTED[0], _CHARACTER)
_JS = _lexer(_SLASHED, *_QUOTED, ("`", r"[^`\\]*+(?:\\[\s\S][^`\\]*+)*+`"))
_GO = _lexer(_SLASHED, _QUOTED[0], ("`", "[^`]*`"), _CHARACTER)
_LUA = _lexer(("-", r"-(?:\[\[[\s\S]*?(?:\]\]|\Z)|[^\n]*)"), *_QUOTED, ("[", r"\[[\s\S]*?(?:\]\]|\Z)"))
_SQL = _lexer(("-", r"-[^\n]*"), ("#", _TO_LINE_END), ("/", _STARRED), ("'", r"(?:\\[\s\S]|''|[^'\\])*'"))
_HASH = _lexer(("#;", _TO_LINE_END), ('"', r'[^"\n]*"'), ("'", r"[^'\n]*'"))

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
"""Per language a pattern whose group 1 is a comment, a docstring or a string literal."""

_PREFIX = frozenset("rRbBuUfF")
_TRIPLE = ('"""', "'''")


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
    if language == "python":
        return _split_python(parts)
    code, found = " ".join(parts[0::2]), parts[1::2]
    leads = _COMMENT_LEADS.get(language, "/")
    comments = [p for p in found if p[0] in leads]
    return Split(code, comments, [p for p in found if p[0] not in leads])


_COMMENT_LEADS = {"lua": "-", "sql": "-#/", "config": "#;"}


def _split_python(parts: list[str]) -> Split:
    """Give each string the prefix that stands before it; whole docstrings count as comments."""
    comments: list[str] = []
    strings: list[str] = []
    for position in range(1, len(parts), 2):
        part, before = parts[position], parts[position - 1]
        if part[0] == "#":
            comments.append(part)
            continue
        size = 0
        while size < 2 and before[-1 - size : len(before) - size] in _PREFIX:
            size += 1
        if size:
            parts[position - 1] = before[:-size]
        (comments if part.startswith(_TRIPLE) else strings).append(before[len(before) - size :] + part)
    return Split(" ".join(parts[0::2]), comments, strings)


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


class BulkTerms:
    """The index terms of many identifiers at once, the same as `Terms.of` gives for each.

    Attributes:
        vocabulary: every term, in the order of its number.
        starts: per identifier where its terms begin in `ids`, and the end.
        ids: numbers of terms.
    """

    vocabulary: list[str]
    starts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]

    def __init__(self, identifiers: Sequence[str]) -> None:
        import numpy as np  # noqa: PLC0415 - heavy, only where an index is built

        numbers = _TermNumbers()
        pieces = _PARTS_AND_BREAKS.findall("\n".join(identifiers) + "\n") if identifiers else []
        found = np.fromiter(map(numbers.__getitem__, pieces), np.int64, len(pieces))
        breaks = found == _LINE_BREAK
        owners = np.cumsum(breaks)
        parts = np.bincount(owners[~breaks], minlength=len(identifiers))
        compound = np.flatnonzero(parts > 1).tolist()
        lower = "\n".join([identifiers[i].strip("_") for i in compound]).lower().split("\n")
        long = [i for i, whole in zip(compound, lower, strict=False) if len(whole) > 3]
        terms = numbers.terms
        named = [terms.setdefault("=" + whole, len(terms)) for whole in lower if len(whole) > 3]
        kept = found >= 0
        rows = np.concatenate([owners[kept], np.array(long, dtype=np.int64)])
        self.vocabulary = list(terms)
        self.ids = np.concatenate([found[kept], np.array(named, dtype=np.int64)])[
            np.argsort(rows, kind="stable")
        ]
        self.starts = np.zeros(len(identifiers) + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=len(identifiers)), out=self.starts[1:])


_LINE_BREAK = -2
_NOT_INDEXED = -1


class _TermNumbers(dict[str, int]):
    """The number of the term of each part of a name."""

    def __init__(self) -> None:
        super().__init__({"\n": _LINE_BREAK})
        self.terms: dict[str, int] = {}
        self._stems = _Stems()

    def __missing__(self, part: str) -> int:
        term = self._stems[part]
        number = self[part] = self.terms.setdefault(term, len(self.terms)) if term else _NOT_INDEXED
        return number


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
