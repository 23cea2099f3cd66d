"""Redaction of whole files in bounded memory, with what only a file's structure tells.

A secret in a table is no `password = …`: it is the fourth value of a row. CSV files are read with their
header, SQL dumps with their `CREATE TABLE` and `INSERT` column lists; everything else goes through the
line rules. A stream is fed pieces that end at line ends and keeps only a few words between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from viano_assets.case.redaction import Flavour, Redactor
from viano_assets.case.redaction_columns import column_kind, is_account_table

_CREATE = re.compile(
    r"\s*create\s+table\s+(?:if\s+not\s+exists\s+)?([`\"\[]?[\w.$-]+[`\"\]]?)", re.IGNORECASE
)
_INSERT = re.compile(
    r"\s*(?:insert(?:\s+ignore)?|replace)\s+into\s+([`\"\[]?[\w.$`\"-]+[`\"\]]?)\s*(\([^()']*\))?\s*(?:values?)?",
    re.IGNORECASE,
)
_COPY = re.compile(r"copy\s+([\w.\"]+)\s*\(([^()]*)\)\s+from\s+stdin", re.IGNORECASE)
_COLUMN = re.compile(r"\s*[`\"\[]?([A-Za-z_][\w$]*)[`\"\]]?\s+[A-Za-z]")
_NO_COLUMN = frozenset(
    {"primary", "unique", "key", "index", "constraint", "foreign", "fulltext", "check", "spatial"}
)
_VALUE = re.compile(r"'(?:[^'\\\n]|\\.|'')*'|[(),;]|[^'(),;]+|'[^\n]*")
_STRING_REST = re.compile(r"(?:[^'\\\n]|\\.|'')*'")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_PEM = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY", re.ASCII)
_MAX_RECORD = 4 << 20


class Stream(Protocol):
    """Redacts one file piece by piece."""

    def feed(self, piece: str) -> str:
        """Return the redacted piece; pieces end at line ends, except the last."""
        ...

    def finish(self) -> str:
        """Return what is still held back."""
        ...


class PlainStream:
    """The line rules; a private key may begin in one piece and end in another."""

    def __init__(self, redactor: Redactor, flavour: Flavour) -> None:
        self._redactor = redactor
        self._flavour = flavour
        self._in_key = False

    def feed(self, piece: str) -> str:
        """See `Stream`."""
        head = ""
        if self._in_key:
            end = piece.find("-----END ")
            stop = len(piece) if end < 0 else end
            head = re.sub(
                r"[^\r\n]+", lambda line: self._redactor.placeholder("SECRET", line[0]), piece[:stop]
            )
            piece = piece[stop:]
        marks = _PEM.findall(piece) if "PRIVATE KEY" in piece else []
        if marks:
            self._in_key = marks[-1] == "BEGIN"
        elif piece:
            self._in_key = False
        return head + self._redactor.redact(piece, self._flavour)

    def finish(self) -> str:
        """See `Stream`."""
        return ""


class SqlStream:
    """A SQL dump: values of secret columns by position, everything else by the line rules."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._plain = PlainStream(redactor, "data")
        self._columns: dict[str, list[str]] = {}
        self._creating: str | None = None
        self._kinds: dict[int, str] | None = None
        self._copying = self._in_string = False
        self._depth = self._position = 0

    def feed(self, piece: str) -> str:
        """See `Stream`."""
        if not self._interesting(piece):
            return self._plain.feed(piece)
        return self._plain.feed("".join(self._line(line) for line in _LINES.findall(piece)))

    def finish(self) -> str:
        """See `Stream`."""
        return ""

    def _interesting(self, piece: str) -> bool:
        return (
            self._creating is not None
            or self._kinds is not None
            or re.search(r"create\s+table|insert|replace|copy", piece, re.IGNORECASE) is not None
        )

    def _line(self, line: str) -> str:
        if self._copying:
            return self._copy_row(line)
        if self._in_string or self._depth:
            return self._values(line)
        create = _CREATE.match(line)
        if create is not None:
            self._creating = _bare(create[1])
            self._columns[self._creating] = []
            self._kinds = None
        elif self._creating is not None:
            self._column(line)
        elif (copy := _COPY.match(line)) is not None:
            self._kinds = self._positions(_bare(copy[1]), [_bare(c) for c in copy[2].split(",")])
            self._copying = True
        elif (insert := _INSERT.match(line)) is not None:
            table = _bare(insert[1])
            listed = [_bare(c) for c in insert[2].strip("()").split(",")] if insert[2] else None
            self._kinds = self._positions(table, listed or self._columns.get(table))
            return line[: insert.end()] + self._values(line[insert.end() :])
        else:
            return self._values(line)
        return line

    def _column(self, line: str) -> None:
        if line.lstrip().startswith(")") or line.rstrip().endswith(";"):
            self._creating = None
            return
        match = _COLUMN.match(line)
        if match is not None and self._creating is not None and match[1].lower() not in _NO_COLUMN:
            self._columns[self._creating].append(match[1])

    def _positions(self, table: str, columns: list[str] | None) -> dict[int, str] | None:
        """Return position to kind; -1 stands for every text of a row whose columns are unknown."""
        if columns is None:
            return {-1: "SECRET"} if is_account_table(table) else None
        found = {
            at: kind for at, name in enumerate(columns) if (kind := column_kind(table, name)) is not None
        }
        return found or None

    def _values(self, text: str) -> str:
        """Redact the row values of one line; a row and a string may go on in the next line."""
        if self._kinds is None:
            return text
        parts: list[str] = []
        at = 0
        if self._in_string:
            rest = _STRING_REST.match(text)
            at = rest.end() if rest is not None else len(text)
            self._in_string = rest is None
            parts.append(self._hidden(text[:at], "\n" if rest is None else "'"))
        for match in _VALUE.finditer(text, at):
            word = match[0]
            if word[0] == "'":
                self._in_string = len(word) == 1 or word[-1] != "'" or word.endswith("\\'")
                parts.append("'" + self._hidden(word[1:], "" if self._in_string else "'"))
                continue
            parts.append(word)
            if word == "(":
                self._depth += 1
                self._position = 0 if self._depth == 1 else self._position
            elif word == ")":
                self._depth = max(0, self._depth - 1)
            elif word == "," and self._depth == 1:
                self._position += 1
            elif word == ";" and self._depth == 0:
                self._kinds = None
                return "".join(parts) + text[match.end() :]
        return "".join(parts)

    def _hidden(self, value: str, tail: str) -> str:
        """Return the placeholder for a value of the current column, `tail` kept; or the value itself."""
        kinds = self._kinds or {}
        kind = kinds.get(self._position, kinds.get(-1))
        body = value.removesuffix(tail)
        if kind is None or not body:
            return value
        return self._redactor.placeholder(kind, body) + value[len(body) :]

    def _copy_row(self, line: str) -> str:
        if line.startswith("\\."):
            self._copying, self._kinds = False, None
        if self._kinds is None:
            return line
        body = line.rstrip("\r\n")
        cells = body.split("\t")
        for at, kind in self._kinds.items():
            if 0 <= at < len(cells) and cells[at] not in {"", "\\N"}:
                cells[at] = self._redactor.placeholder(kind, cells[at])
        return "\t".join(cells) + line[len(body) :]


class CsvStream:
    """A delimited table: cells of secret columns whole, every other cell by the line rules."""

    def __init__(self, redactor: Redactor, table: str, delimiter: str) -> None:
        self._redactor = redactor
        self._table = table
        self._delimiter = delimiter
        self._plain = PlainStream(redactor, "data")
        self._kinds: dict[int, str] | None = None
        self._held = ""

    def feed(self, piece: str) -> str:
        """See `Stream`."""
        text = self._held + piece
        self._held = ""
        if self._kinds is None:
            end = text.find("\n")
            header = text if end < 0 else text[:end]
            names = [cell.strip().strip('"') for cell in header.split(self._delimiter)]
            self._kinds = {
                at: kind
                for at, name in enumerate(names)
                if (kind := column_kind(self._table, name)) is not None
            }
            if end < 0:
                return self._plain.feed(text)
            return self._plain.feed(text[: end + 1]) + self.feed(text[end + 1 :])
        if not self._kinds:
            return self._plain.feed(text)
        return self._plain.feed("".join(self._record(record) for record in self._records(text)))

    def finish(self) -> str:
        """See `Stream`."""
        held, self._held = self._held, ""
        return self._plain.feed(self._record(held)) if held else ""

    def _records(self, text: str) -> Iterator[str]:
        record = ""
        for line in _LINES.findall(text):
            record += line
            if record.count('"') % 2 == 0 or len(record) > _MAX_RECORD:
                yield record
                record = ""
        self._held = record

    def _record(self, record: str) -> str:
        cells: list[str] = []
        cell = ""
        body = record.rstrip("\r\n")
        for part in body.split(self._delimiter):
            cell = f"{cell}{self._delimiter}{part}" if cell else part
            if cell.count('"') % 2 == 0:
                cells.append(cell)
                cell = ""
        if cell:
            cells.append(cell)
        for at, kind in (self._kinds or {}).items():
            if at < len(cells):
                cells[at] = self._cell(cells[at], kind)
        return self._delimiter.join(cells) + record[len(body) :]

    def _cell(self, cell: str, kind: str) -> str:
        quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
        value = cell[1:-1] if quoted else cell
        if not value.strip() or value.strip().lower() in {"null", "\\n", "none"}:
            return cell
        new = self._redactor.placeholder(kind, value) + "\n" * value.count("\n")
        return f'"{new}"' if quoted else new


def stream_for(redactor: Redactor, name: str, flavour: Flavour, head: str) -> Stream:
    """Choose the stream by the file's name; `head` is its first line, for the delimiter of a table."""
    lowered = name.lower()
    if lowered.endswith((".sql", ".dump", ".ddl")):
        return SqlStream(redactor)
    if lowered.endswith((".csv", ".tsv", ".psv")) and flavour == "data":
        table = lowered.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        delimiter = max("\t,;|", key=head.count)
        return CsvStream(redactor, table, delimiter)
    return PlainStream(redactor, flavour)


def _bare(name: str) -> str:
    return name.strip().strip('`"[] ').rsplit(".", 1)[-1].strip('`"')
