"""Where a name or a value stands in the text of a tree without being read as a definition of it.

No table of definitions is whole: languages have no grammar here, macros declare things, an `#else` tears a
body apart. So a definition that is not in the table is absent only when its name stands nowhere, or only
where the text around it shows a mere use: a call, a member of something, a comparison, a comment. Every other
place is named, and the absence is partial.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resources.tools.source import legacy
from resources.tools.source import search as engine
from resources.tools.source.languages import CODE, language_of
from resources.tools.source.lines import LineMap
from resources.tools.source.outline import parts
from resources.tools.source.text import LEXERS
from resources.tools.source.view import View

LIMIT = 500
"""Most places that are looked at."""
_BYTES = 8 << 20
"""Most bytes of files whose comments and strings are told apart; in others each place counts."""
_WIDE = 400


class Place(NamedTuple):
    """A line on which the name stands."""

    path: str
    line: int
    text: str
    defining: bool
    """The text around it has the form of a definition."""


class Standing(NamedTuple):
    """The places that no reading explains; `cut` says why there may be more."""

    places: tuple[Place, ...]
    cut: str | None
    unparsed: tuple[str, ...]
    """Endings of the files among them that no grammar here reads."""

    def cause(self, what: str) -> str | None:
        """Say in words why an empty answer is not complete, or None when it is."""
        if not self.places:
            return f"the search for the {what} was cut: {self.cut}" if self.cut else None
        number = f"{len(self.places)} or more" if self.cut else str(len(self.places))
        spoken = f"the {what} stands at {number} places that were read as no definition"
        return spoken + (f"; not parsed: {', '.join(self.unparsed)}" if self.unparsed else "")


class _Around(NamedTuple):
    """The text on both sides of a match: its line before it, and what follows."""

    before: str
    after: str


def of_name(view: View, name: str, path: str | None = None) -> Standing:
    """Look for the last part of a name as a whole word, in one file or in all."""
    short = parts(name)[-1]
    found = engine.run(
        view.root,
        short,
        whole_word=True,
        globs=[engine.exactly(path)] if path else [],
        limit=LIMIT,
        foreign=view.foreign,
    )
    heads = _heads(view, short)

    def explained(where: str, at: int, language: str, around: _Around) -> bool:
        return (where, at) in heads or _is_use(language, around)

    return _standing(view, found, explained)


def of_value(view: View, value: int | str) -> Standing:
    """Look for a value as it can be written, where a name may be given it."""
    if isinstance(value, int):
        written = rf"\b(?:{abs(value)}|0[xX]0*(?i:{abs(value):x}))[uUlL]*\b"
    else:
        written = "[\"'`]" + engine.literal_pattern(value) + "[\"'`]"
    found = engine.run(view.root, written, regex=True, limit=LIMIT, foreign=view.foreign)

    def explained(_where: str, _at: int, language: str, around: _Around) -> bool:
        return bool(language) and not _GIVEN.search(around.before)

    return _standing(view, found, explained, strings=not isinstance(value, int))


_GIVEN = re.compile(
    r"(?:(?<![=!<>+\-*/|&^%])=\s*-?|:\s*-?|^\s*\w+\s*\(\s*-?|#\s*define\s+\w+\s+\(?-?|[A-Z]\w*[({]\s*-?)$"
)
"""What stands before a value that a name is given: `=`, `:`, `NAME(` of an enumerator or initialiser."""


def _heads(view: View, short: str) -> set[tuple[str, int]]:
    """Return path and byte of the name in each definition that was read."""
    heads: set[tuple[str, int]] = set()
    word = re.compile(rb"(?<!\w)" + re.escape(short.encode()) + rb"(?!\w)")
    for row in view.index.symbols_named(short):
        path = view.index.files[row.file].path
        found = word.search(view.file(path).data, row.start, row.end)
        if found:
            heads.add((path, found.start()))
    return heads


def _standing(
    view: View,
    found: engine.Found,
    explained: Callable[[str, int, str, _Around], bool],
    *,
    strings: bool = False,
) -> Standing:
    texts = _Texts(view)
    places: dict[tuple[str, int], Place] = {}
    unparsed: set[str] = set()
    for match in found.matches:
        text = texts.of(match.path)
        if text is None:
            continue
        at, end = match.start + text.shift, match.end + text.shift
        around = text.around(at, end)
        if text.is_aside(at, strings=strings) or explained(match.path, at, text.language, around):
            continue
        line = text.lines.line_at(at)
        shown = text.lines.text(line, line).strip()[:200]
        defining = _defines(text.language, around)
        before = places.get((match.path, line))
        places[match.path, line] = Place(
            match.path, line, shown, defining or (before is not None and before.defining)
        )
        if not text.language:
            unparsed.add(_ending(match.path))
    return Standing(tuple(places[key] for key in sorted(places)), found.cause, tuple(sorted(unparsed)))


def _ending(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return "." + name.rsplit(".", 1)[-1] if "." in name[1:] else name


_SKIPPED = frozenset({"docs", "config"})
_TEMPLATES = (".in", ".dist")


class _Texts:
    """The files that may define something; documents, settings and binary files do not."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[str, _Text | None] = {}
        self._lexed = 0

    def of(self, path: str) -> _Text | None:
        """Return a file as it is looked at, or None when it defines nothing."""
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> _Text | None:
        language = language_of(path) or ""
        if language in _SKIPPED and not path.endswith(_TEMPLATES):
            return None
        lines = self._view.file(path)
        if not lines.transcoded and not legacy.mostly_text(lines.data):
            return None
        parsed = language if language in CODE else ""
        self._lexed += len(lines.data)
        return _Text(lines, parsed, asides=bool(parsed) and self._lexed <= _BYTES)


class _Text:
    """One file; `language` is empty when no grammar reads it."""

    def __init__(self, lines: LineMap, language: str, *, asides: bool) -> None:
        self.lines = lines
        self.language = language
        self.shift = len(codecs.BOM_UTF8) if lines.data.startswith(codecs.BOM_UTF8) else 0
        self._text = lines.data.decode("latin-1")
        spans = list(_asides(self._text, language)) if asides else []
        self._starts = [s for s, _, _ in spans]
        self._spans = spans

    def around(self, at: int, end: int) -> _Around:
        """Return the text around a match."""
        begin = self._text.rfind("\n", max(0, at - _WIDE), at) + 1 or max(0, at - _WIDE)
        return _Around(self._text[begin:at], self._text[end : end + _WIDE])

    def is_aside(self, at: int, *, strings: bool) -> bool:
        """Say whether a byte stands in a comment or, unless strings are asked for, in a string."""
        index = bisect_right(self._starts, at) - 1
        if index >= 0:
            start, end, quoted = self._spans[index]
            if start <= at < end:
                return not (quoted and (strings or _KEY.match(self._text, end - 1)))
        if self.language:
            return False
        line = self._text.rfind("\n", 0, at) + 1
        return _COMMENT_LINE.match(self._text, line, at) is not None


_KEY = re.compile(r"[\"'`]\s*(?:\]\s*=(?!=)|:)")
"""A string that names a member: `exports["a"] = …`, `{"a": …}`."""
_COMMENT_LINE = re.compile(r"[ \t]*(?://|#(?!\s*(?:define|undef)\b)|\*|/\*|--|;|%)")


def _asides(text: str, language: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of comments and strings, and whether it is a string.

    A string over several lines is taken for one only where the language has them beyond doubt.
    """
    lexer = LEXERS.get(language)
    for match in lexer.finditer(text) if lexer else ():
        lead = match.group(1)[:1]
        quoted = lead in {'"', "'", "`"}
        if quoted and "\n" in match.group(1) and not match.group(1).startswith(('"""', "'''")):
            continue
        yield match.start(1), match.end(1), quoted


_VALUE_BEFORE = re.compile(
    r"(?:->|==|!=|<=|>=|&&|\|\||(?<![=!<>:+\-*/|&^%])=|\b(?:return|raise|except|new|throw|in|not|and|or|is|if|"
    r"elif|while|await|yield|case|delete|sizeof|typeof|instanceof|throws|extends|implements)\b\s*\(?)\s*$"
)
_COMPARED = re.compile(r"\s*(?:==|!=|&&|\|\|)")
_CALLED = re.compile(r"\s*\(")
_STATEMENT = re.compile(r"\s*\([^;{}]*\)\s*;")
_PROTOTYPE = re.compile(r"\s*\((?!\s*[\d\"'\-])[^;{}()]*\)\s*(?:const|override|noexcept|final|=\s*0|\s)*;")
_IMPORT = re.compile(r"^\s*(?:import\b|from\b|package\b|#\s*include\b)")
_OPAQUE = re.compile(r"\b(?:class|struct|union|enum)\s+$")
_MEMBER = re.compile(r"\.\s*$")


def _is_use(language: str, around: _Around) -> bool:
    """Say whether the text around a name shows that it is only used or declared there."""
    before, after = around
    if not language:
        return False
    if _IMPORT.match(before) or _VALUE_BEFORE.search(before) or _COMPARED.match(after):
        return True
    called = _CALLED.match(after) is not None
    if language == "python":
        return _python_use(before, after, called=called)
    member = _MEMBER.search(before) is not None and called and "function" not in before
    statement = not before.strip() and _STATEMENT.match(after) is not None
    return member or statement or (language in {"c", "cpp", "rust"} and _qualifies(before, after))


def _qualifies(before: str, after: str) -> bool:
    """Say whether a name of C, C++ or Rust only stands before `::`, or is declared with no body."""
    follows = after.lstrip()
    if follows.startswith("::"):
        return "namespace" not in before
    opaque = _OPAQUE.search(before) is not None and follows.startswith(";")
    return opaque or _PROTOTYPE.match(after) is not None


def _python_use(before: str, after: str, *, called: bool) -> bool:
    if before.strip() == "@":
        return True
    if _MEMBER.search(before) and not re.match(r"\s*(?::[^=\n]*)?=(?!=)", after):
        return True
    return called and not re.search(r"\b(?:def|class)\s+$", before)


_KEYWORD = re.compile(
    r"\b(?:def|fun|func|function|fn|sub|proc|class|struct|interface|trait|module|object|record|macro|alias)"
    r"\s+(?:[\w.]+[.:])?$",
    re.IGNORECASE,
)
_BODY = re.compile(r"\s*\([^;{}]*\)[^;{}()=]*\{")
_EXPRESSION = re.compile(r"[=(!?,~]|\.\s*$|->")


def _defines(language: str, around: _Around) -> bool:
    """Say whether the text around a name has the form of a definition."""
    if _KEYWORD.search(around.before):
        return True
    if language in {"python", "sql", "lua"}:
        return False
    return _BODY.match(around.after) is not None and not _EXPRESSION.search(around.before)
