"""Redaction of whole files in bounded memory, with what only a file's structure tells.

A secret in a table is no `password = …`: it is the fourth value of a row. CSV files are read with their
header, SQL scripts by their statements (`redaction_sql`); everything else goes through the line
rules. A stream is fed pieces that end at line ends and keeps only a few words between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from viano_assets.case.redaction import Redactor
from viano_assets.case.redaction_columns import column_kinds, is_secret_name, pair_positions, split_cells
from viano_assets.case.redaction_plain import PlainStream, Stream
from viano_assets.case.redaction_rules import Flavour
from viano_assets.case.redaction_sql import SqlStream

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MAX_RECORD = 4 << 20


class CsvStream:
    """A delimited table: cells of secret columns whole, every other cell by the line rules."""

    def __init__(self, redactor: Redactor, table: str, delimiter: str) -> None:
        self._redactor = redactor
        self._table = table
        self._delimiter = delimiter
        self._plain = PlainStream(redactor, "data")
        self._kinds: dict[int, str] | None = None
        self._pair: tuple[int, int] | None = None
        self._held = ""

    def feed(self, piece: str) -> str:
        """See `Stream`."""
        text = self._held + piece
        self._held = ""
        if self._kinds is None:
            end = text.find("\n")
            header = text if end < 0 else text[:end]
            names = [cell.strip().strip('"') for cell in header.split(self._delimiter)]
            self._kinds = column_kinds(self._table, names)
            self._pair = pair_positions(names)
            if end < 0:
                return self._plain.feed(text)
            return self._plain.feed(text[: end + 1]) + self.feed(text[end + 1 :])
        if not self._kinds and self._pair is None:
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
        body = record.rstrip("\r\n")
        cells = split_cells(body, self._delimiter)
        kinds = dict(self._kinds or {})
        if (
            self._pair is not None
            and max(self._pair) < len(cells)
            and is_secret_name(cells[self._pair[0]].strip('"'))
        ):
            kinds[self._pair[1]] = "SECRET"
        for at, kind in kinds.items():
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


def stream_for(
    redactor: Redactor, name: str, flavour: Flavour, head: str, tables: dict[str, list[str]] | None = None
) -> Stream:
    """Choose the stream by the file's name; `head` is its first line, for the delimiter of a table.

    `tables` keeps the columns that one script teaches for the scripts after it.
    """
    lowered = name.lower()
    if lowered.endswith((".sql", ".dump", ".ddl")):
        return SqlStream(redactor, tables)
    if lowered.endswith((".csv", ".tsv", ".psv")) and flavour == "data":
        table = lowered.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        delimiter = max("\t,;|", key=head.count)
        return CsvStream(redactor, table, delimiter)
    return PlainStream(redactor, flavour)
