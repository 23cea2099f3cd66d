"""Redaction of SQL scripts and dumps by what their statements say.

A script is read token by token (strings, quoted names, comments, brackets), so its layout does not matter:
several columns or statements on a line, column lists and rows over many lines, quoted and qualified names.
`CREATE TABLE` and `ALTER TABLE` teach the columns; `INSERT`, `REPLACE` and `COPY` rows are redacted by them.
Only a few words are kept between pieces. What is not such a statement is left to the line rules.
"""

from __future__ import annotations

import re
from typing import Final

from viano_assets.case.redaction import Redactor
from viano_assets.case.redaction_columns import (
    column_kinds,
    is_account_table,
    is_secret_name,
    pair_positions,
    split_cells,
)
from viano_assets.case.redaction_ddl import NAME, altered, bare, created
from viano_assets.case.redaction_plain import PlainStream

_READ = "create|alter|insert|replace|copy"
_START = re.compile(
    rf"(?:^|;|\*/)[ \t]*+(?:/\*![0-9]*+[ \t]*+)?(?P<word>{_READ})\b",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT = re.compile(rf"^[ \t]*+(?:go|{_READ})\b", re.IGNORECASE | re.MULTILINE)
_NO_ESCAPES = re.compile(
    r"PostgreSQL|SQLite|^PRAGMA |standard_conforming_strings|^COPY .* FROM stdin|SET ANSI_NULLS|\[dbo\]",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD = 65_536

_WITH = r"'(?:[^'\\]++|\\.|'')*+'"
_WITHOUT = r"[eE]'(?:[^'\\]++|\\.|'')*+'|'(?:[^']++|'')*+'"
_OTHER = r'"(?:[^"\\]++|\\.|"")*+"|`[^`]*+`|(?:--|# )[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/'
_WORD = r"(?:[^'\"`(),;\[\]/\-#eE]++|[eE](?!')|-(?!-)|/(?!\*)|#(?! ))++"
_TOKENS: Final = {
    True: re.compile(rf"{_WITH}|{_OTHER}|[(),;\[\]]|{_WORD}|.", re.DOTALL),
    False: re.compile(rf"{_WITHOUT}|{_OTHER}|[(),;\[\]]|{_WORD}|.", re.DOTALL),
}
_SKIP: Final = {
    escapes: re.compile(
        rf"(?:[^'\"`;\-/#\n]++|\n(?![ \t]*+(?:go|{_READ})\b)"
        rf"|{strings}|{_OTHER}|-(?!-)|/(?!\*)|#(?! ))*+",
        re.DOTALL | re.IGNORECASE,
    )
    for escapes, strings in ((True, _WITH), (False, r"'(?:[^']++|'')*+'"))
}
_ENDS: Final = {
    "'": {
        True: re.compile(r"(?:[^'\\]++|\\.|'')*+'", re.DOTALL),
        False: re.compile(r"(?:[^']++|'')*+'"),
    },
    '"': dict.fromkeys((True, False), re.compile(r'(?:[^"\\]++|\\.|"")*+"', re.DOTALL)),
    "`": dict.fromkeys((True, False), re.compile(r"[^`]*+`")),
    "/*": dict.fromkeys((True, False), re.compile(r"(?:[^*]++|\*(?!/))*+\*/")),
}
_CREATE_MAYBE = re.compile(r"\s*(?:(?!table\b)\w+\s+){0,4}table\b", re.IGNORECASE)
_INSERT_HEAD = re.compile(
    rf"\s*(?:(?:or\s+\w+|ignore|low_priority|high_priority|delayed|overwrite|into|table)\s+)*+{NAME}",
    re.IGNORECASE,
)
_COPY_HEAD = re.compile(
    rf"\s*{NAME}\s*(?:\((?P<columns>[^()]*)\))?\s*from\s+stdin\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_VALUES = re.compile(r"\b(values?|select|set|default|exec(?:ute)?)\b", re.IGNORECASE)
_HEX = re.compile(r"\s*0x[0-9a-f]{8,}\s*", re.IGNORECASE)
_MAX_HEAD = 1 << 20


class SqlStream:
    """A SQL script: values of secret columns by position, everything else by the line rules.

    Args:
        redactor: the package's.
        others: columns by table name from other scripts of the archive; this one's are added.
    """

    def __init__(self, redactor: Redactor, others: dict[str, list[str]] | None = None) -> None:
        self._redactor = redactor
        self._plain = PlainStream(redactor, "data")
        self._tables: dict[str, list[str]] = {}
        self._others = {} if others is None else others
        self._escapes: bool | None = None
        self._mode = ""
        self._open = ""
        self._head: list[str] = []
        self._head_size = 0
        self._listed = False
        self._table = ""
        self._depth = self._base = self._position = 0
        self._kinds: dict[int, str] = {}
        self._pair: tuple[int, int] | None = None
        self._secret_row = False
        self._value_at: int | None = None
        self._delimiter = "\t"

    def feed(self, piece: str) -> str:
        """See `Stream`."""
        if self._escapes is None:
            self._escapes = _NO_ESCAPES.search(piece, 0, _HEAD) is None
        return self._plain.feed(self._scan(piece))

    def finish(self) -> str:
        """See `Stream`."""
        self._others.update(self._tables)
        return ""

    def _scan(self, text: str) -> str:
        parts: list[str] = []
        at = 0
        self._value_at = None
        while at < len(text):
            if not self._mode:
                start = _START.search(text, at - 1 if text[at - 1 : at] == ";" else at)
                stop = len(text) if start is None else start.end()
                parts.append(text[at:stop])
                at = stop
                if start is not None:
                    self._begin(start["word"].lower())
            elif self._open:
                at = self._rest(text, at, parts)
            elif self._mode == "skip":
                at = self._skip(text, at, parts)
            elif self._mode == "copy":
                at = self._copied(text, at, parts)
            else:
                at = self._statement(text, at, parts)
        return "".join(parts)

    def _begin(self, word: str) -> None:
        self._mode = "insert" if word == "replace" else word
        if word == "copy":
            self._mode = "copying"
        self._head = []
        self._head_size = 0
        self._listed = False
        self._table = ""
        self._depth = self._base = self._position = 0
        self._kinds = {}
        self._pair = None
        self._secret_row = False

    def _rest(self, text: str, at: int, parts: list[str]) -> int:
        """Go on with a string or comment that the piece before left open."""
        quote = self._open
        match = _ENDS[quote][bool(self._escapes)].match(text, at)
        end = len(text) if match is None else match.end()
        word = text[at:end]
        if self._mode == "rows" and quote in {"'", '"'}:
            body = word if match is None else word[:-1]
            parts.append(self._hidden(body) + word[len(body) :])
        else:
            self._remember(word if quote != "/*" else "")
            parts.append(word)
        if match is not None:
            self._open = ""
        return end

    def _skip(self, text: str, at: int, parts: list[str]) -> int:
        """Pass over the rest of a statement whose values may be seen."""
        if (at == 0 or text[at - 1] == "\n") and _NEXT.match(text, at):
            self._mode = ""
            return at
        match = _SKIP[bool(self._escapes)].match(text, at)
        end = at if match is None else match.end()
        if end < len(text):
            if text[end] in "'\"`/":
                self._open = "/*" if text[end] == "/" else text[end]
                end += len(self._open)
            else:
                end += 1
                self._mode = ""
        parts.append(text[at:end])
        return end

    def _statement(self, text: str, at: int, parts: list[str]) -> int:
        mode = self._mode
        for match in _TOKENS[bool(self._escapes)].finditer(text, at):
            word = match[0]
            first = word[0]
            if self._depth == 0 and first not in "(),;[]'\"`":
                following = _NEXT.search(text, match.start(), match.end())
                if following is not None and (self._head or mode == "rows"):
                    parts.append(text[match.start() : following.start()])
                    self._end()
                    return following.start()
            if word in {"'", '"', "`"} or (word == "/" and text.startswith("/*", match.start())):
                return self._opened(text, match.start(), parts)
            if word.startswith(("--", "/*", "# ")):
                parts.append(word)
            elif mode == "rows":
                self._row(word, parts)
            else:
                parts.append(word)
                self._header(word)
            if self._mode != mode:
                return match.end()
        return len(text)

    def _opened(self, text: str, at: int, parts: list[str]) -> int:
        """Begin a string or comment that the piece does not end."""
        self._open = "/*" if text[at] == "/" else text[at]
        at += len(self._open)
        parts.append(self._open)
        if self._open != "/*":
            self._remember(self._open)
        return at

    def _remember(self, word: str) -> None:
        if self._mode != "rows":
            self._head.append(word)
            self._head_size += len(word)
            if self._head_size > _MAX_HEAD:
                self._mode, self._head = "skip", []

    def _end(self) -> None:
        """Take in what a statement that teaches something said."""
        mode, head = self._mode, "".join(self._head)
        self._mode, self._head = "", []
        if mode == "create":
            created(head, self._tables)
        elif mode == "alter":
            altered(head, self._tables)
        elif mode == "copying":
            self._copy_begins(head)

    def _header(self, word: str) -> None:
        """Read one token of a statement before its rows."""
        if word == ";" and (self._depth == 0 or self._mode == "insert"):
            self._end()
            return
        if self._mode == "insert":
            self._insert_header(word)
            return
        if word == "(":
            if self._depth == 0 and self._mode == "create" and not _CREATE_MAYBE.match("".join(self._head)):
                self._mode = ""
                return
            self._depth += 1
        elif word == ")":
            self._depth = max(0, self._depth - 1)
        self._remember(word)
        if word == ")" and self._depth == 0 and self._mode == "create":
            self._end()

    def _insert_header(self, word: str) -> None:
        if word[0] not in "'\"`([,)]" and (found := _VALUES.search(word)) is not None and self._depth == 0:
            self._head.append(word[: found.start()])
            self._rows(found[1].lower())
            return
        if word == "(":
            if self._depth == 0 and self._listed:
                self._rows("select")
                return
            self._listed = True
            self._depth += 1
        elif word == ")":
            self._depth = max(0, self._depth - 1)
        self._remember(word)

    def _rows(self, word: str) -> None:
        """Set what is known of the columns when the rows begin."""
        head, self._head = "".join(self._head), []
        name = _INSERT_HEAD.match(head)
        if name is None or word not in {"value", "values", "select"}:
            self._mode = "skip"
            return
        self._table = bare(name["name"])
        listed = head[name.end() :].partition("(")[2].rpartition(")")[0]
        columns = [bare(item) for item in listed.split(",")] if listed else self._columns()
        self._set_columns(columns)
        self._base = 0 if word == "select" else 1
        self._depth = self._position = 0
        self._mode = "rows" if self._kinds or self._pair else "skip"

    def _columns(self) -> list[str] | None:
        """Return the table's columns; of accounts only where this very script defines them."""
        table = self._table.lower()
        return self._tables.get(table) or (None if is_account_table(table) else self._others.get(table))

    def _set_columns(self, columns: list[str] | None) -> None:
        """Fill position to kind; -1 stands for every text of a row whose columns are unknown."""
        self._pair = None
        if columns is None:
            self._kinds = {-1: "SECRET"} if is_account_table(self._table) else {}
            return
        self._kinds = column_kinds(self._table, columns)
        self._pair = pair_positions(columns)

    def _row(self, word: str, parts: list[str]) -> None:
        first = word[0]
        if first in "'\"" or (len(word) > 1 and word[1] == "'"):
            self._string(word, parts)
            return
        if _HEX.fullmatch(word) and self._kind() == "SECRET":
            parts.append(f"'{self._redactor.placeholder('SECRET', word.strip())}'")
            return
        parts.append(word)
        if first in "([":
            self._depth += 1
            if self._depth == self._base == 1:
                self._new_row()
        elif first in ")]":
            self._depth = max(0, self._depth - 1)
        elif first == "," and self._depth == self._base:
            self._position += 1
        elif first == ";" and self._depth == 0:
            self._mode = ""
        elif self._base == 0 and self._depth == 0 and re.search(r"\bselect\b", word, re.IGNORECASE):
            self._new_row()

    def _new_row(self) -> None:
        self._position = 0
        self._secret_row = False
        self._value_at = None

    def _string(self, word: str, parts: list[str]) -> None:
        quote = word.index(word[-1]) + 1
        body = word[quote:-1]
        if self._pair is not None and self._depth == self._base:
            if self._position == self._pair[0] and is_secret_name(body):
                self._secret_row = True
                if self._value_at is not None:
                    early = parts[self._value_at]
                    hidden = self._redactor.line_placeholders("SECRET", early[1:-1])
                    parts[self._value_at] = early[0] + hidden + early[-1]
            elif self._position == self._pair[1] and not self._secret_row:
                self._value_at = len(parts)
        parts.append(word[:quote] + self._hidden(body) + word[-1])

    def _kind(self) -> str | None:
        if self._secret_row and self._pair is not None and self._position == self._pair[1]:
            return "SECRET"
        return self._kinds.get(self._position, self._kinds.get(-1))

    def _hidden(self, body: str) -> str:
        """Return the placeholders for a value of the current column, or the value where it may be seen."""
        kind = self._kind()
        return body if kind is None else self._redactor.line_placeholders(kind, body)

    def _copy_begins(self, head: str) -> None:
        match = _COPY_HEAD.match(head)
        if match is None:
            return
        self._table = bare(match["name"])
        listed = match["columns"]
        self._set_columns([bare(item) for item in listed.split(",")] if listed else self._columns())
        self._delimiter = "," if re.search(r"\bcsv\b", match["rest"], re.IGNORECASE) else "\t"
        given = re.search(r"delimiter\s+(?:as\s+)?'([^'])'", match["rest"], re.IGNORECASE)
        self._delimiter = self._delimiter if given is None else given[1]
        self._mode = "copy"
        self._position = -1

    def _copied(self, text: str, at: int, parts: list[str]) -> int:
        """Redact the rows of a `COPY`; the first line is the rest of the statement's own."""
        while at < len(text):
            end = text.find("\n", at) + 1 or len(text)
            line = text[at:end]
            at = end
            if self._position < 0:
                self._position = 0
                parts.append(line)
            elif line.startswith("\\."):
                self._mode = ""
                parts.append(line)
                break
            else:
                parts.append(self._copy_row(line))
        return at

    def _copy_row(self, line: str) -> str:
        if not self._kinds and self._pair is None:
            return line
        body = line.rstrip("\r\n")
        cells = body.split("\t") if self._delimiter == "\t" else split_cells(body, self._delimiter)
        secret = (
            self._pair is not None and self._pair[0] < len(cells) and is_secret_name(cells[self._pair[0]])
        )
        for at, cell in enumerate(cells):
            kind = self._kinds.get(at, self._kinds.get(-1))
            if secret and self._pair is not None and at == self._pair[1]:
                kind = "SECRET"
            if kind is not None and cell not in {"", "\\N"} and not (-1 in self._kinds and cell.isdigit()):
                cells[at] = self._redactor.placeholder(kind, cell)
        return self._delimiter.join(cells) + line[len(body) :]
