"""One SQL script into tables: literal rows on the fast path, the rest on the slow path or listed."""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from mmap import MADV_DONTNEED, mmap
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from resources.tools.database.catalog import Column, ForeignKey, NotApplied
from resources.tools.database.ddl import TableShape, parse_create
from resources.tools.database.manifest import Claim, claims_in_comment
from resources.tools.database.script import Dialect, Statement, plain_name, statements, without_comments
from resources.tools.database.sink import TableSink
from resources.tools.database.slow import SlowPath
from resources.tools.database.values import Cells, parse_values

if TYPE_CHECKING:
    import duckdb

_BATCH_BYTES = 4_000_000
_COMMIT_BYTES = 48_000_000
"""Rows of small tables stay in memory until the transaction ends; one transaction a table would be slow."""

_HOUSEKEEPING = re.compile(
    rb"\s*(?:SET\b(?!\s*@\w+\s*:?=)|LOCK\b|UNLOCK\b|USE\b|BEGIN\b|COMMIT\b|START\b|PRAGMA\b|DROP\b|GRANT\b|REVOKE\b|"
    rb"CREATE\s+(?:UNIQUE\s+)?INDEX\b|CREATE\s+(?:DATABASE|SCHEMA|SEQUENCE|EXTENSION|TYPE|DOMAIN)\b|COMMENT\s+ON\b|"
    rb"ALTER\s+(?:TABLE|SEQUENCE|DATABASE|SCHEMA|FUNCTION|TYPE)\b|SELECT\s+pg_catalog\.|ANALYZE\b|"
    rb"TRUNCATE\b|ROLLBACK\b|SAVEPOINT\b|RELEASE\b)",
    re.IGNORECASE,
)
_ALTER_KEY = re.compile(
    r"ALTER\s+TABLE\s+(?:ONLY\s+)?([\w.\"`]+)\s+ADD\s+(?:CONSTRAINT\s+\S+\s+)?"
    r"(?:PRIMARY\s+KEY\s*\(([^()]*)\)|FOREIGN\s+KEY\s*\(([^()]*)\)\s*REFERENCES\s+([\w.\"`]+)\s*\(([^()]*)\))",
    re.IGNORECASE,
)
_OBJECT = re.compile(rb"\b(VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT)\b")
_DATA = re.compile(
    rb"\s*(?:INSERT|REPLACE|UPDATE|DELETE)\b(?:\s+(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE|INTO|FROM|ONLY))*"
    rb"\s+((?:[`\"]?[\w$]+[`\"]?\s*\.\s*)?[`\"]?[\w$]+[`\"]?)",
    re.IGNORECASE,
)
_COPY_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_COPY_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)


@dataclass(slots=True)
class ScriptReport:
    """What became of one script.

    `ended` says how its end looks: with the dump tool's closing line, cleanly, or inside a statement.
    """

    dialect: Dialect
    sinks: list[TableSink] = field(default_factory=list)
    shapes: dict[int, TableShape] = field(default_factory=dict)
    not_applied: list[NotApplied] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    by_tool: bool = False
    ended: Literal["closing line", "cleanly", "cut"] = "cleanly"
    cut_table: str | None = None
    touched: set[str] = field(default_factory=set)
    """Folded names of tables for which a data statement was not applied."""


class ScriptLoader:
    """Loads one script.

    Args:
        connection: open for writing, inside a transaction.
        data: the script as bytes or a memory map.
        path: its path in the diagnostics, for the catalog.
        dialect: see `script.detect_dialect`.
        physical: makes the next free name of a DuckDB table.
        known: shapes of tables that other files created, by folded name.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        data: bytes | mmap,
        path: str,
        dialect: Dialect,
        physical: Callable[[], str],
        known: Mapping[str, TableShape],
    ) -> None:
        self.connection = connection
        self.path = path
        self.report = ScriptReport(dialect)
        self._data = data
        self._dialect = dialect
        self._physical = physical
        self._known = known
        self._tables: dict[str, TableSink] = {}
        self._slow = SlowPath(dialect)
        self._pending: list[Statement] = []
        self._pending_bytes = 0
        self._uncommitted = 0
        self._comment = ""
        self._newlines = _newlines(data)

    def run(self, progress: Callable[[int], None] | None = None) -> ScriptReport:
        """Read the whole script."""
        for statement in statements(self._data, self._dialect):
            if progress is not None:
                progress(statement.start)
            if statement.kind in {"insert", "copy"}:
                self._rows(statement)
            else:
                self._flush()
                self._other(statement)
        self._flush()
        self.report.sinks = list(dict.fromkeys(self.report.sinks))
        return self.report

    def _line(self, offset: int) -> int:
        return int(np.searchsorted(self._newlines, offset, side="left")) + 1

    def _list(self, statement: Statement, reason: str) -> None:
        target = statement.table or _target(statement.body)
        if target:
            self.report.touched.add(target.casefold())
        text = " ".join(statement.body[:240].decode("utf-8", errors="replace").split())[:200]
        self.report.not_applied.append(
            NotApplied(path=self.path, line=self._line(statement.start), reason=reason, text=text)
        )

    def _rows(self, statement: Statement) -> None:
        last = self._pending[-1] if self._pending else None
        if last is not None and (
            last.table != statement.table
            or last.columns != statement.columns
            or last.kind != statement.kind
            or self._pending_bytes > _BATCH_BYTES
        ):
            self._flush()
        self._pending.append(statement)
        self._pending_bytes += len(statement.body)
        if self._comment:
            claims = claims_in_comment(
                self._comment, f"{self.path}:{self._line(statement.start)}", statement.table
            )
            self.report.claims.extend(claims)
            self._comment = ""

    def _flush(self) -> None:
        batch, size = self._pending, self._pending_bytes
        self._pending, self._pending_bytes = [], 0
        if not batch:
            return
        self._load(batch)
        self._uncommitted += size
        if self._uncommitted > _COMMIT_BYTES:
            self.connection.execute("COMMIT; CHECKPOINT; BEGIN")
            self._uncommitted = 0

    def _load(self, batch: list[Statement]) -> None:
        if batch[0].kind == "copy":
            for statement in batch:
                self._copy(statement)
            return
        backslash = self._dialect == "mysql"
        cells = parse_values(b",".join(statement.body for statement in batch), backslash=backslash)
        if cells is not None and self._store(batch[0], cells):
            self._sink_lines(batch)
            return
        for statement in batch:
            single = parse_values(statement.body, backslash=backslash)
            if single is not None and self._store(statement, single):
                self._sink_lines([statement])
            else:
                self._slow_rows(statement)

    def _sink_lines(self, batch: list[Statement]) -> None:
        sink = self._tables[batch[0].table.casefold()]
        end = batch[-1].start + len(batch[-1].body)
        sink.saw_lines(self._line(batch[0].start), self._line(max(end - 1, 0)))

    def _slow_rows(self, statement: Statement) -> None:
        columns = f" ({', '.join(statement.columns)})" if statement.columns else ""
        mark = "`" if self._dialect == "mysql" else '"'
        head = f"INSERT INTO {mark}{statement.table}{mark}{columns} VALUES "
        self._execute(statement, head + statement.body.decode("utf-8", errors="replace"))

    def _store(self, statement: Statement, cells: Cells) -> bool:
        sink = self._sink(statement, cells.width)
        names = statement.columns or sink.names
        by_fold = {name.casefold(): name for name in sink.names}
        targets = [by_fold.get(name.casefold()) for name in names]
        if len(names) != cells.width or None in targets:
            return False
        columns = {}
        for index, name in enumerate(targets):
            values = cells.column(index)
            if name in sink.binary:
                values = _hex(values, cells.quoted(index))
            columns[str(name)] = values
        sink.append_raw(columns, cells.rows)
        return True

    def _sink(self, statement: Statement, width: int) -> TableSink:
        folded = statement.table.casefold()
        sink = self._tables.get(folded)
        if sink is not None:
            return sink
        shape = self._known.get(folded)
        if shape is None or (statement.columns is None and len(shape.columns) != width):
            names = statement.columns or tuple(f"column_{index + 1}" for index in range(width))
            shape = TableShape(statement.table, [Column(name=name, type="VARCHAR") for name in names])
        return self._new_sink(shape)

    def _new_sink(self, shape: TableShape) -> TableSink:
        sink = TableSink(self.connection, self._physical(), shape.name, shape.columns, shape.binary)
        sink.primary_key = shape.primary_key
        sink.foreign_keys = list(shape.foreign_keys)
        self._tables[shape.name.casefold()] = sink
        self.report.sinks.append(sink)
        return sink

    def _copy(self, statement: Statement) -> None:
        lines = statement.body.split(b"\n")
        rows = [line.rstrip(b"\r").split(b"\t") for line in lines]
        width = len(rows[0])
        if any(len(row) != width for row in rows):
            self._list(statement, "COPY rows of different widths")
            return
        sink = self._sink(statement, width)
        names = statement.columns or sink.names
        if len(names) != width or not set(names) <= set(sink.names):
            self._list(statement, "COPY columns do not match the table")
            return
        escaped = b"\\" in statement.body.replace(b"\\N", b"")
        columns: dict[str, list[bytes | None]] = {}
        for index, name in enumerate(names):
            cells = [row[index] for row in rows]
            columns[name] = [
                None if cell == b"\\N" else _COPY_ESCAPE.sub(_copy_unescape, cell) if escaped else cell
                for cell in cells
            ]
        sink.append_raw(columns, len(rows))
        sink.saw_lines(self._line(statement.start), self._line(statement.start + len(statement.body)))

    def _other(self, statement: Statement) -> None:
        if statement.kind == "comment":
            self._read_comment(statement)
        elif statement.kind == "conditional":
            if _OBJECT.search(statement.body):
                self._list(statement, "views, triggers and routines are not loaded")
        elif statement.kind == "block":
            self._list(statement, "DELIMITER block")
        elif statement.kind == "cut":
            self.report.ended = "cut"
            self.report.cut_table = statement.table or self._last_table()
            if statement.body.strip():
                self._list(statement, "the file ends inside this statement")
        else:
            self._statement(statement)

    def _last_table(self) -> str | None:
        return next(reversed(self._tables.values())).name if self._tables else None

    def _read_comment(self, statement: Statement) -> None:
        text = statement.body.decode("utf-8", errors="replace")
        self._comment = (self._comment + "\n" + text)[-4000:]
        if re.search(r"Dump completed|dump complete", text):
            self.report.ended = "closing line"
        if re.search(r"(MySQL|MariaDB) dump|PostgreSQL database dump", text):
            self.report.by_tool = True

    def _statement(self, statement: Statement) -> None:
        body = without_comments(statement.body, self._dialect)
        text = body.decode("utf-8", errors="replace").strip()
        create = parse_create(text)
        if create is not None:
            self.report.shapes[len(self.report.shapes)] = create
            self._new_sink(create)
        elif key := _ALTER_KEY.match(text):
            self._keys(key)
        elif not (
            (body[:6].upper() == b"INSERT" and self._literal(statement, body))
            or self._slow.set_variable(text)
            or _HOUSEKEEPING.match(body)
        ):
            self._execute(statement, text)

    def _literal(self, statement: Statement, body: bytes) -> bool:
        """Load an INSERT whose rows became literal once its comments were taken out."""
        pieces = list(statements(body, self._dialect))
        if not pieces or any(piece.kind != "insert" for piece in pieces):
            return False
        for piece in pieces:
            cells = parse_values(piece.body, backslash=self._dialect == "mysql")
            if cells is None or not self._store(piece, cells):
                return False
        sink = self._tables[pieces[0].table.casefold()]
        sink.saw_lines(self._line(statement.start), self._line(statement.start + len(statement.body) - 1))
        return True

    def _keys(self, found: re.Match[str]) -> None:
        sink = self._tables.get(plain_name(found.group(1)).casefold())
        if sink is None:
            return
        if found.group(2):
            sink.primary_key = tuple(plain_name(part) for part in found.group(2).split(","))
        else:
            own, target = (tuple(plain_name(p) for p in found.group(n).split(",")) for n in (3, 5))
            sink.foreign_keys.append(ForeignKey(columns=own, table=plain_name(found.group(4)), target=target))

    def _execute(self, statement: Statement, text: str) -> None:
        self.connection.execute("COMMIT")
        try:
            reason = self._slow.apply(text, self._tables)
        finally:
            self.connection.execute("BEGIN")
        if reason is not None:
            self._list(statement, reason)


def _target(body: bytes) -> str:
    found = _DATA.match(body)
    return plain_name(found.group(1)) if found else ""


def _hex(values: list[bytes | None], quoted: list[bool]) -> list[bytes | None]:
    return [
        cell if cell is None or not text or cell[:2] == b"0x" else b"0x" + cell.hex().upper().encode()
        for cell, text in zip(values, quoted, strict=True)
    ]


def _copy_unescape(match: re.Match[bytes]) -> bytes:
    return _COPY_ESCAPES.get(match.group(1), match.group(1))


def forget(data: bytes | mmap, begin: int, size: int) -> None:
    """Give mapped pages back to the system, so that a large script does not stay resident."""
    if isinstance(data, mmap) and hasattr(data, "madvise") and size > 0:
        data.madvise(MADV_DONTNEED, begin, size)


def _newlines(data: bytes | mmap) -> npt.NDArray[np.int64]:
    found = []
    step = 1 << 24
    for begin in range(0, len(data), step):
        block = np.frombuffer(data[begin : begin + step], dtype=np.uint8)
        found.append(np.flatnonzero(block == 10).astype(np.int64) + begin)
        forget(data, begin, min(step, len(data) - begin))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
