"""SQL scripts to statements: where each begins and ends, without reading their meaning.

One regular expression call walks over a whole statement, so that megabytes of literals cost one match.
Comments between statements are kept apart because dumps say important things in them (a WHERE, the end).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Literal, NamedTuple

Dialect = Literal["mysql", "postgres", "ansi"]

_NAME = rb"(?:`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|\[[^\]]+\]|[\w$]+)"
_TABLE = rb"(?:" + _NAME + rb"\s*\.\s*)*" + _NAME
_INSERT = re.compile(rb"INSERT\s+INTO\s+(" + _TABLE + rb")\s*(\([^()']*\))?\s*VALUES\s*(?=\()", re.IGNORECASE)
_COPY = re.compile(rb"COPY\s+(" + _TABLE + rb")\s*(\([^()]*\))?\s+FROM\s+stdin[^;]*;\r?\n", re.IGNORECASE)
_DELIMITER = re.compile(rb"DELIMITER[ \t]+(\S+)[^\n]*\n?", re.IGNORECASE)
_PSQL = re.compile(rb"\\[a-z][^\n]*\n?")
_AFTER = re.compile(rb"\s*+([,;]?)")
_COPY_PIECE = 4_000_000
NO_ROWS = b"\\."
"""Body of a COPY that says it has no rows."""

_POSTGRES = re.compile(
    rb"PostgreSQL database dump|^SET search_path|standard_conforming_strings|FROM stdin;", re.MULTILINE
)
_DOLLAR = re.compile(rb"\$(?:[A-Za-z_]\w*)?\$")


class _Grammar(NamedTuple):
    rows: re.Pattern[bytes]
    statement: re.Pattern[bytes]
    comments: re.Pattern[bytes]
    strings: re.Pattern[bytes]


def _grammar(dialect: Dialect) -> _Grammar:
    backslash = dialect == "mysql"
    single = rb"'(?:[^'\\]++|\\.|'')*+'" if backslash else rb"'(?:[^']++|'')*+'"
    double = rb'"(?:[^"\\]++|\\.|"")*+"' if backslash else rb'"(?:[^"]++|"")*+"'
    hash_comment = rb"|\#[^\n]*+" if backslash else b""
    stop = rb"'\"`;/\-\#" if backslash else rb"'\"`;/\-"
    comment = rb"--[^\n]*+" + hash_comment
    block = rb"/\*(?:[^*]++|\*(?!/))*+\*/"
    row = rb"\((?:[^'()\";/\-\#]++|" + single + rb"|-(?!-)|/(?!\*))*+\)"
    rest = rb"[/\-\#]" if backslash else rb"[/\-]"
    body = rb"(?:[^" + stop + rb"]++|" + single + rb"|" + double + rb"|`[^`]*+`|" + block + rb"|" + comment
    return _Grammar(
        rows=re.compile(rb"\s*+" + row + rb"(?:\s*+,\s*+" + row + rb"){0,3999}+", re.DOTALL),
        statement=re.compile(body + rb"|" + rest + rb")*+;?", re.DOTALL),
        comments=re.compile(rb"(?:\s++|;|" + comment + rb"|/\*(?!!)(?:[^*]++|\*(?!/))*+\*/)*+", re.DOTALL),
        strings=re.compile(single + rb"|" + double + rb"|`[^`]*+`|" + block + rb"|" + comment, re.DOTALL),
    )


_GRAMMARS: dict[Dialect, _Grammar] = {
    "mysql": _grammar("mysql"),
    "postgres": _grammar("postgres"),
    "ansi": _grammar("ansi"),
}


@dataclass(frozen=True, slots=True)
class Statement:
    """One piece of a script.

    kind: `insert` (literal rows, `body` holds up to 4,000 of them, several pieces per statement), `copy`
    (PostgreSQL text rows, empty when there are none), `meta` (a line of psql), `comment`,
    `conditional` (a MySQL `/*!…*/`), `block` (a DELIMITER section),
    `other` (anything else, whole), `cut` (the script ends inside a statement).
    """

    kind: Literal["insert", "copy", "meta", "comment", "conditional", "block", "other", "cut"]
    start: int
    body: bytes
    table: str = ""
    columns: tuple[str, ...] | None = None
    space: str = ""


def plain_name(raw: bytes | str) -> str:
    """Return the last part of a possibly quoted, possibly qualified SQL name."""
    text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw
    parts = re.findall(r"`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|\[[^\]]+\]|[\w$]+", text)
    name = parts[-1] if parts else text.strip()
    if name[:1] and name[0] in '`"[':
        quote = name[-1]
        name = name[1:-1].replace(quote * 2, quote)
    return name


def space_of(raw: bytes | str) -> str:
    """Return the schema or database of a qualified SQL name as written, empty when it has none."""
    text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw
    if "." not in text:
        return ""
    parts = re.findall(r"`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|\[[^\]]+\]|[\w$]+", text)
    return ".".join(plain_name(part) for part in parts[:-1])


def detect_dialect(head: bytes) -> Dialect:
    """Judge the dialect by what its dump tools write; a script of unknown origin is read as MySQL."""
    if _POSTGRES.search(head):
        return "postgres"
    if b"`" in head or re.search(rb"MySQL dump|MariaDB dump|ENGINE\s*=|\\'|/\*!\d", head):
        return "mysql"
    if re.search(rb"^PRAGMA |^BEGIN TRANSACTION|AUTOINCREMENT", head, re.MULTILINE):
        return "ansi"
    return "mysql"


def _columns(raw: bytes | None) -> tuple[str, ...] | None:
    if raw is None:
        return None
    return tuple(plain_name(part) for part in raw.strip()[1:-1].split(b","))


def statements(data: bytes | mmap, dialect: Dialect) -> Iterator[Statement]:
    """Yield the pieces of a script in order; `data` is the script or a memory map of it."""
    return _Scanner(data, dialect).run()


def without_comments(statement: bytes, dialect: Dialect) -> bytes:
    """Replace the comments of one statement by a space; strings keep what looks like a comment."""
    grammar = _GRAMMARS[dialect]
    return grammar.strings.sub(lambda m: b" " if m.group()[:1] in b"-#/" else m.group(), statement)


class _Scanner:
    """Walks over one script; `at` is the next byte to read."""

    def __init__(self, data: bytes | mmap, dialect: Dialect) -> None:
        self.data = data
        self.size = len(data)
        self.dialect = dialect
        self.grammar = _GRAMMARS[dialect]
        self.at = 3 if data[:3] == b"\xef\xbb\xbf" else 0

    def run(self) -> Iterator[Statement]:
        while self.at < self.size:
            start = self.at
            gap = self.grammar.comments.match(self.data, start)
            if gap is not None and gap.end() > start:
                self.at = gap.end()
                if gap.group().strip(b" \t\r\n;"):
                    yield Statement("comment", start, gap.group())
                continue
            yield from self._piece()
            if self.at <= start:
                yield Statement("cut", start, self.data[start : start + 200])
                return

    def _piece(self) -> Iterator[Statement]:
        start = self.at
        first = self.data[start : start + 3]
        if first == b"/*!":
            yield self._conditional()
        elif first[:1] in b"Ii" and (insert := _INSERT.match(self.data, start)):
            yield from self._insert(insert)
        elif first[:1] in b"Cc" and self.dialect == "postgres" and (copy := _COPY.match(self.data, start)):
            yield from self._copy(copy)
        elif first[:1] in b"Dd" and (mark := _DELIMITER.match(self.data, start)):
            yield self._block(mark)
        elif first[:1] == b"\\" and (meta := _PSQL.match(self.data, start)):
            self.at = meta.end()
            yield Statement("meta", start, meta.group())
        else:
            yield self._other()

    def _conditional(self) -> Statement:
        start = self.at
        end = self.data.find(b"*/", start)
        self.at = self.size if end < 0 else end + 2
        return Statement("cut" if end < 0 else "conditional", start, self.data[start : self.at])

    def _insert(self, head: re.Match[bytes]) -> Iterator[Statement]:
        start = self.at
        spans, cursor, mark = [], head.end(), b","
        while mark == b",":
            rows = self.grammar.rows.match(self.data, cursor)
            if rows is None:
                break
            after = _AFTER.match(self.data, rows.end())
            mark = after.group(1) if after else b""
            cursor = after.end() if after else rows.end()
            spans.append(rows.span())
        done = mark == b";" and bool(spans)
        cut = not done and cursor >= self.size and bool(spans)
        rest: Statement | None = None
        if not (done or cut):
            rest = self._other()
            if rest.kind != "cut" or not spans:
                yield rest
                return
        table, columns = plain_name(head.group(1)), _columns(head.group(2))
        space = space_of(head.group(1))
        for begin, end in spans:
            yield Statement("insert", begin, self.data[begin:end], table, columns, space)
        if rest is not None:
            yield Statement("cut", cursor, self.data[cursor : cursor + 200], table, space=space)
            return
        self.at = cursor
        if cut:
            yield Statement("cut", start, b"", table, space=space)

    def _copy(self, head: re.Match[bytes]) -> Iterator[Statement]:
        start, cursor = self.at, head.end()
        table, columns = plain_name(head.group(1)), _columns(head.group(2))
        space = space_of(head.group(1))
        if columns == ("",):
            columns = None
        empty = self.data[cursor : cursor + 2] == b"\\."
        end = cursor if empty else self.data.find(b"\n\\.", cursor)
        stop = self.size if end < 0 else end
        if cursor == stop and not empty and end >= 0:
            yield Statement("copy", cursor, b"", table, columns, space)
        while cursor < stop:
            upto = (
                stop if stop - cursor <= _COPY_PIECE else self.data.rfind(b"\n", cursor, cursor + _COPY_PIECE)
            )
            upto = stop if upto <= cursor else upto
            yield Statement("copy", cursor, self.data[cursor:upto].rstrip(b"\r"), table, columns, space)
            cursor = upto + 1
        if end < 0:
            self.at = self.size
            yield Statement("cut", start, b"", table, space=space)
            return
        if empty:
            yield Statement("copy", start, NO_ROWS, table, columns, space)
        line = self.data.find(b"\n", end + 1)
        self.at = self.size if line < 0 else line + 1

    def _block(self, mark: re.Match[bytes]) -> Statement:
        start = self.at
        if mark.group(1) == b";":
            self.at = mark.end()
            return Statement("comment", start, mark.group())
        back = re.compile(rb"^[ \t]*DELIMITER[ \t]+;[^\n]*\n?", re.IGNORECASE | re.MULTILINE)
        end = back.search(self.data, mark.end())
        self.at = end.end() if end else self.size
        return Statement("block", start, self.data[start : self.at])

    def _other(self) -> Statement:
        start = self.at
        whole = self.grammar.statement.match(self.data, start)
        end = whole.end() if whole else start
        if self.dialect == "postgres" and (mark := _DOLLAR.search(self.data, start, end)):
            end = self._dollar(mark, end)
        self.at = end
        text = self.data[start:end]
        return Statement("other" if text.endswith(b";") else "cut", start, text)

    def _dollar(self, mark: re.Match[bytes], end: int) -> int:
        """Extend a PostgreSQL statement over its dollar-quoted body."""
        close = self.data.find(mark.group(), mark.end())
        if close < 0:
            return self.size
        rest = self.grammar.statement.match(self.data, close + len(mark.group()))
        return rest.end() if rest else end


def strings_of(text: str, change: Callable[[str], str], dialect: Dialect) -> str:
    """Apply `change` to the parts of a statement that are neither strings, quoted names nor comments."""
    data = text.encode("utf-8")
    parts, at = [], 0
    for found in _GRAMMARS[dialect].strings.finditer(data):
        parts.append(change(data[at : found.start()].decode("utf-8")))
        parts.append(found.group().decode("utf-8"))
        at = found.end()
    parts.append(change(data[at:].decode("utf-8")))
    return "".join(parts)
