"""One SQL script into tables: literal rows on the fast path, the rest on the slow path or listed."""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from mmap import MADV_DONTNEED, mmap
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from resources.tools.database.catalog import Column, NotApplied
from resources.tools.database.ddl import TableShape, parse_create
from resources.tools.database.manifest import Claim, claims_in_comment
from resources.tools.database.register import Register
from resources.tools.database.script import (
    NO_ROWS,
    Dialect,
    Statement,
    plain_name,
    space_of,
    statements,
    without_comments,
)
from resources.tools.database.sink import TableSink
from resources.tools.database.slow import SlowPath
from resources.tools.database.structure import NOT_APPLIED, Structure
from resources.tools.database.values import Cells, parse_values

if TYPE_CHECKING:
    import duckdb

_BATCH_BYTES = 4_000_000
_COMMIT_BYTES = 48_000_000
"""Rows of small tables stay in memory until the transaction ends; one transaction a table would be slow."""

_HOUSEKEEPING = re.compile(
    rb"\s*(?:SET\b(?!\s*@\w+\s*:?=)|LOCK\b|UNLOCK\b|PRAGMA\b|DROP\b|GRANT\b|REVOKE\b|"
    rb"CREATE\s+(?:UNIQUE\s+)?INDEX\b|CREATE\s+(?:DATABASE|SCHEMA|SEQUENCE|EXTENSION|TYPE|DOMAIN)\b|"
    rb"COMMENT\s+ON\b|"
    rb"ALTER\s+(?:SEQUENCE|DATABASE|SCHEMA|FUNCTION|TYPE|INDEX|DEFAULT)\b|"
    rb"SELECT\s+pg_catalog\.|ANALYZE\b|VACUUM\b|"
    rb"SAVEPOINT\b|RELEASE\b)",
    re.IGNORECASE,
)
_CONDITIONAL = re.compile(rb"/\*!(?:M)?\d*\s*(.*?)\*/$", re.DOTALL)
_ACTS = re.compile(
    rb"(?:DROP\s+TABLE|TRUNCATE|RENAME\s+TABLE|ALTER\s+TABLE|ROLLBACK|INSERT|REPLACE|UPDATE|DELETE)\b",
    re.IGNORECASE,
)
_MARKER = re.compile(
    r"Dumping data for table\s+[`\"']?(?P<mysql>[^`\"'\n]+)|Data for Name: (?P<postgres>[^;\n]+); "
    r"Type: TABLE DATA; Schema: (?P<space>[^;\n]+)"
)
_FAR_REACHING = re.compile(r"(?:LOAD|MERGE|WITH|DO|BULK|COPY|IMPORT)\b", re.IGNORECASE)
_ANYTHING = re.compile(r"(?:EXEC(?:UTE)?|CALL)\b", re.IGNORECASE)
_BEFORE = re.compile(r"(?:UPDATE\b(.*?)\bSET\b|DELETE\b(.*?)(?:\bWHERE\b|$))", re.IGNORECASE | re.DOTALL)
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
    shapes: list[TableShape] = field(default_factory=list)
    not_applied: list[NotApplied] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    by_tool: bool = False
    ended: Literal["closing line", "cleanly", "cut"] = "cleanly"
    cut_table: TableSink | None = None
    data: bool = False
    """Whether the file holds rows or says that rows of some table follow."""

    touched: set[str] = field(default_factory=set)
    """Folded names of tables that this file changes and does not create."""

    def drop(self, sink: TableSink) -> None:
        """Forget a table that the script dropped."""
        self.sinks = [other for other in self.sinks if other is not sink]


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
        self._tables = Register()
        self._structure = Structure(self._tables, self.report.drop, backslash=dialect == "mysql")
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
        gone = [name for space, name in self._structure.absent if self._tables.find(space, name) is None]
        self.report.touched.update(name.casefold() for name in gone)
        return self.report

    def _line(self, offset: int) -> int:
        return int(np.searchsorted(self._newlines, offset, side="left")) + 1

    def _list(self, statement: Statement, reason: str, names: Sequence[tuple[str, str]] = ()) -> None:
        """List a statement as not applied; the tables it concerns become doubtful."""
        other = statement.kind == "other"
        body = without_comments(statement.body, self._dialect) if other else statement.body
        target = (statement.space, statement.table) if statement.table else _target(body)
        for space, name in dict.fromkeys([*names, *([target] if target else [])]):
            sink = self._tables.find(space, name)
            if sink is None:
                self.report.touched.add(name.casefold())
            else:
                sink.doubt(NOT_APPLIED)
        for sink in self._concerned(body.decode("utf-8", errors="replace").strip()) if other else ():
            sink.doubt(NOT_APPLIED)
        text = " ".join(statement.body[:240].decode("utf-8", errors="replace").split())[:200]
        self.report.not_applied.append(
            NotApplied(path=self.path, line=self._line(statement.start), reason=reason, text=text)
        )

    def _concerned(self, text: str) -> Iterable[TableSink]:
        """Return the tables that a statement which was not applied may change, apart from its target."""
        if _ANYTHING.match(text):
            return list(self._tables)
        if _FAR_REACHING.match(text):
            return self._tables.mentioned(text)
        changed = _BEFORE.match(text)
        return self._tables.mentioned(changed.group(1) or changed.group(2)) if changed else ()

    def _rows(self, statement: Statement) -> None:
        last = self._pending[-1] if self._pending else None
        if last is not None and (
            last.table != statement.table
            or last.space != statement.space
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
        sink = self._sink(batch[0], 0)
        end = batch[-1].start + len(batch[-1].body)
        sink.saw_lines(self._line(batch[0].start), self._line(max(end - 1, 0)))

    def _slow_rows(self, statement: Statement) -> None:
        columns = f" ({', '.join(statement.columns)})" if statement.columns else ""
        mark = "`" if self._dialect == "mysql" else '"'
        space = "".join(f"{mark}{part}{mark}." for part in statement.space.split(".") if part)
        head = f"INSERT INTO {space}{mark}{statement.table}{mark}{columns} VALUES "
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
        self.report.data = True
        sink = self._tables.find(statement.space, statement.table, rows=True)
        if sink is None:
            folded = statement.table.casefold()
            shape = self._known.get(f"{statement.space.casefold()}.{folded}") or self._known.get(folded)
            if shape is None or (statement.columns is None and len(shape.columns) != width):
                names = statement.columns or tuple(f"column_{index + 1}" for index in range(width))
                shape = TableShape(statement.table, [Column(name=name, type="VARCHAR") for name in names])
            sink = self._new_sink(shape, statement.space)
        self._structure.changed.add(sink)
        return sink

    def _new_sink(self, shape: TableShape, space: str) -> TableSink:
        sink = TableSink(
            self.connection, self._physical(), shape.name, shape.columns, shape.binary, shape.defaults
        )
        sink.primary_key = shape.primary_key
        sink.foreign_keys = list(shape.foreign_keys)
        self._tables.put(sink, space)
        self.report.sinks.append(sink)
        return sink

    def _create(self, statement: Statement, shape: TableShape) -> None:
        if shape.guarded and self._tables.exact(shape.space, shape.name) is not None:
            return
        other = None
        if shape.copied is not None:
            other = self._tables.find(space_of(shape.copied), plain_name(shape.copied))
            if other is None:
                self._list(statement, "it takes over the columns of a table that this file does not create")
                return
            shape.take_over(other.shape())
        self.report.shapes.append(shape)
        sink = self._new_sink(shape, shape.space)
        sink.created = True
        if shape.partitioned:
            sink.parts.append("its partitions")
        if shape.whole is not None and other is not None:
            other.parts.append(sink.name)
            sink.whole = other.name

    def _copy(self, statement: Statement) -> None:
        if statement.body == NO_ROWS:
            self._mark(statement.space, statement.table)
            return
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
        elif statement.kind == "meta":
            self._tables.follow(statement.body.decode("utf-8", errors="replace").strip())
        elif statement.kind == "conditional":
            inner = _CONDITIONAL.match(statement.body)
            if inner is not None and _ACTS.match(inner.group(1)):
                self._statement(Statement("other", statement.start, inner.group(1)))
            elif _OBJECT.search(statement.body):
                self._list(statement, "views, triggers and routines are not loaded")
        elif statement.kind == "block":
            self._list(statement, "DELIMITER block")
        elif statement.kind == "cut":
            self.report.ended = "cut"
            named = self._tables.find(statement.space, statement.table) if statement.table else None
            self.report.cut_table = named or self._tables.last()
            if statement.body.strip():
                self._list(statement, "the file ends inside this statement")
        else:
            self._statement(statement)

    def _read_comment(self, statement: Statement) -> None:
        text = statement.body.decode("utf-8", errors="replace")
        self._comment = (self._comment + "\n" + text)[-4000:]
        if re.search(r"Dump completed|dump complete", text):
            self.report.ended = "closing line"
        if re.search(r"(MySQL|MariaDB) dump|PostgreSQL database dump", text):
            self.report.by_tool = True
        for found in _MARKER.finditer(text):
            self._mark(found.group("space") or "", found.group("mysql") or found.group("postgres"))

    def _mark(self, space: str, name: str) -> None:
        """Note that the file says that the rows of a table follow, even if there are none."""
        self.report.data = True
        sink = self._tables.find("" if space == "-" else space, name.strip())
        if sink is not None:
            sink.marked = True

    def _statement(self, statement: Statement) -> None:
        body = without_comments(statement.body, self._dialect)
        text = body.decode("utf-8", errors="replace").strip()
        create = parse_create(text, sqlite=self._dialect == "ansi", backslash=self._dialect == "mysql")
        if create is not None:
            self._create(statement, create)
            return
        outcome = self._structure.apply(text)
        if outcome is not None:
            if outcome.reason is not None:
                self._list(statement, outcome.reason, outcome.names)
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
        sink = self._sink(pieces[0], 0)
        sink.saw_lines(self._line(statement.start), self._line(statement.start + len(statement.body) - 1))
        return True

    def _execute(self, statement: Statement, text: str) -> None:
        self.connection.execute("COMMIT")
        try:
            reason = self._slow.apply(text, self._tables, self._touch)
        finally:
            self.connection.execute("BEGIN")
        if reason is not None:
            self._list(statement, reason)

    def _touch(self, sink: TableSink) -> None:
        self.report.data = True
        self._structure.changed.add(sink)
        sink.recount()


def _target(body: bytes) -> tuple[str, str] | None:
    found = _DATA.match(body)
    return (space_of(found.group(1)), plain_name(found.group(1))) if found else None


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
