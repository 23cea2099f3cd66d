"""Where rows go: one DuckDB table per file and source table, typed as declared, widened when needed."""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from resources.tools.database.catalog import Column, ForeignKey
from resources.tools.database.ddl import TableShape
from resources.tools.database.defaults import Default
from resources.tools.database.naming import quote
from resources.tools.database.widen import WHOLE, cast, truth_as_number, wider

if TYPE_CHECKING:
    import duckdb


def text_array(values: Sequence[bytes | None]) -> tuple[pa.StringArray, bool]:
    """Turn raw cells into text; the flag says that some were not UTF-8 and were read as Windows-1252."""
    raw = pa.array(values, pa.binary())
    try:
        return raw.cast(pa.string()), False
    except pa.ArrowInvalid:
        return pa.array([None if cell is None else _decode(cell) for cell in values], pa.string()), True


def _decode(cell: bytes) -> str:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        return cell.decode("cp1252", errors="backslashreplace")


class TableSink:
    """One table being loaded.

    Args:
        connection: open for writing, inside a transaction.
        physical: name of the DuckDB table until the names are settled.
        name: name of the table at its source.
        columns: with the types to try first; an undeclared column starts as text and is typed at the end.
        binary: columns whose string literals become `0x…`.
        defaults: what a column holds when rows leave it out; NULL when it is not named.

    Attributes:
        space: schema or database that the script names for the table, as written.
        created: whether its own file creates it.
        unsure: why the rows are perhaps not those of the source table, or None.
        marked: whether the file says that the rows of this table follow, even if there are none.
        parts: names of tables that hold rows of this one (partitions, heirs).
        whole: name of the table that this one is a part of.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        physical: str,
        name: str,
        columns: Sequence[Column],
        binary: Iterable[str] = (),
        defaults: Mapping[str, Default] | None = None,
    ) -> None:
        self.connection = connection
        self.physical = physical
        self.name = name
        self.columns = list(columns)
        self.binary = frozenset(binary)
        self.primary_key: tuple[str, ...] = ()
        self.foreign_keys: list[ForeignKey] = []
        self.rows = 0
        self.flags: list[str] = []
        self.first_line: int | None = None
        self.last_line: int | None = None
        self.defaults = dict(defaults or {})
        self.space = ""
        self.created = False
        self.unsure: str | None = None
        self.marked = False
        self.parts: list[str] = []
        self.whole: str | None = None
        self.create(physical)

    def create(self, physical: str) -> None:
        """Create an empty DuckDB table of the columns; defaults serve statements of the slow path."""
        import duckdb  # noqa: PLC0415 - heavy

        plain = [f"{quote(column.name)} {column.type}" for column in self.columns]
        full = [
            text if value is None else f"{text} DEFAULT '{value.replace(chr(39), chr(39) * 2)}'"
            for text, column in zip(plain, self.columns, strict=True)
            for value in [self.defaults.get(column.name, Default()).literal]
        ]
        try:
            self.connection.execute(f"CREATE TABLE {quote(physical)} ({', '.join(full)})")
        except duckdb.Error:
            self.connection.execute(f"CREATE TABLE {quote(physical)} ({', '.join(plain)})")

    def shape(self) -> TableShape:
        """Return what a CREATE TABLE of this table would say now."""
        columns = [column.model_copy(update={"doubt": None}) for column in self.columns]
        return TableShape(
            self.name, columns, self.primary_key, [], set(self.binary), dict(self.defaults), self.space
        )

    def doubt(self, reason: str) -> None:
        """Say that the rows are perhaps not those of the source table; the first reason is kept."""
        self.unsure = self.unsure or reason

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def flag(self, text: str) -> None:
        """Note a load remark once."""
        if text not in self.flags:
            self.flags.append(text)

    def append_raw(self, columns: Mapping[str, Sequence[bytes | None]], rows: int) -> None:
        """Append rows given as raw text cells by column; a missing column is NULL."""
        arrays: dict[str, pa.Array] = {}
        for name, cells in columns.items():
            arrays[name], damaged = text_array(cells)
            if damaged:
                self.flag(f"column {name} holds text that is not UTF-8; read as Windows-1252")
        self.append(arrays, rows)

    def append(self, arrays: Mapping[str, pa.Array], rows: int) -> None:
        """Append rows given as Arrow arrays by column; a missing column is NULL."""
        if not rows:
            return
        typed = [
            self._typed(index, arrays.get(column.name), rows) for index, column in enumerate(self.columns)
        ]
        batch = pa.table(typed, names=[f"c{index}" for index in range(len(typed))])
        self.connection.register("_batch", batch)
        try:
            self.connection.execute(f"INSERT INTO {quote(self.physical)} SELECT * FROM _batch")
        finally:
            self.connection.unregister("_batch")
        self.rows += rows

    def recount(self) -> None:
        """Count the rows after a statement that was executed in the database."""
        found = self.connection.execute(f"SELECT count(*) FROM {quote(self.physical)}").fetchone()
        self.rows = int(found[0]) if found else 0

    def saw_lines(self, first: int, last: int) -> None:
        """Widen the span of lines the rows come from."""
        self.first_line = first if self.first_line is None else min(self.first_line, first)
        self.last_line = last if self.last_line is None else max(self.last_line, last)

    def _typed(self, index: int, array: pa.Array | None, rows: int) -> pa.Array:
        column = self.columns[index]
        if array is None:
            self.left_out(column.name)
            text = self.defaults.get(column.name, Default()).literal
            if text is None:
                return pa.nulls(rows, pa.string())
            array = pa.repeat(pa.scalar(text, pa.string()), rows)
        made = cast(array, column.type)
        if made is None and column.type in WHOLE:
            array = truth_as_number(array)
            made = cast(array, column.type)
        return self._widen(index, array) if made is None else made

    def left_out(self, name: str) -> None:
        """Note that rows came without a value for a column; one nobody can fill is doubtful from now on."""
        default = self.defaults.get(name)
        if default is None or default.unknown is None:
            return
        for index, column in enumerate(self.columns):
            if column.name == name and column.doubt is None:
                doubt = f"rows came without a value for it: {default.unknown}"
                self.columns[index] = column.model_copy(update={"doubt": doubt})
                self.flag(f"column {name} is not known in every row: {default.unknown}")

    def _widen(self, index: int, array: pa.Array) -> pa.Array:
        column = self.columns[index]
        misfit = f"a value does not fit {column.declared or column.type}"
        for kind, made in wider(column.type, array):
            if self._retype(column, kind):
                self.columns[index] = column.model_copy(update={"type": kind})
                self.flag(f"column {column.name} widened to {kind}: {misfit}")
                return made
        self._alter(column, "VARCHAR")
        self.columns[index] = column.model_copy(update={"type": "VARCHAR"})
        self.flag(f"column {column.name} kept as text: {misfit}")
        return array

    def _alter(self, column: Column, kind: str) -> None:
        table, name = quote(self.physical), quote(column.name)
        self.connection.execute(f"ALTER TABLE {table} ALTER COLUMN {name} DROP DEFAULT")
        if kind != column.type:
            self.connection.execute(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind}")
        default = self.defaults.get(column.name, Default()).literal
        if default is not None:
            text = default.replace("'", "''")
            self.connection.execute(f"ALTER TABLE {table} ALTER COLUMN {name} SET DEFAULT '{text}'")

    def _retype(self, column: Column, kind: str) -> bool:
        """Give a column a wider type unless the rows it has would change by that."""
        if kind == "DOUBLE":
            found = self.connection.execute(
                f"SELECT max(abs({quote(column.name)}::HUGEINT)) FROM {quote(self.physical)}"
            ).fetchone()
            if found and found[0] is not None and int(found[0]) >= 10**15:
                return False
        self._alter(column, kind)
        return True

    def column(self, name: str) -> str | None:
        """Return the exact name of a column, found regardless of letter case."""
        return next((c.name for c in self.columns if c.name.casefold() == name.casefold()), None)

    def empty(self) -> None:
        """Delete every row; what was doubtful about them is no longer."""
        self.connection.execute(f"DELETE FROM {quote(self.physical)}")
        self.rows = 0
        self.first_line = self.last_line = self.unsure = None
        self.columns = [column.model_copy(update={"doubt": None}) for column in self.columns]
        self.marked = True

    def reshape(self, parts: Sequence[tuple[Column, str]]) -> None:
        """Give the table other columns, each with the SQL expression of its value in the rows that exist."""
        old, new = quote(self.physical), f"{self.physical}_new"
        self.columns = [column for column, _ in parts]
        self.create(new)
        listed = ", ".join(expression for _, expression in parts)
        self.connection.execute(f"INSERT INTO {quote(new)} SELECT {listed} FROM {old} ORDER BY rowid")
        self.connection.execute(f"DROP TABLE {old}")
        self.connection.execute(f"ALTER TABLE {quote(new)} RENAME TO {old}")
        self.primary_key = tuple(key for key in self.primary_key if self.column(key) is not None)

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column, in its keys too."""
        renamed = [c.model_copy(update={"name": new}) if c.name == old else c for c in self.columns]
        parts = list(zip(renamed, [quote(column.name) for column in self.columns], strict=True))
        if old in self.defaults:
            self.defaults[new] = self.defaults.pop(old)
        self.binary = frozenset(new if name == old else name for name in self.binary)
        key = tuple(new if part.casefold() == old.casefold() else part for part in self.primary_key)
        self.reshape(parts)
        self.primary_key = key

    def redeclare(self, name: str, column: Column) -> None:
        """Give a column another declaration; the type changes only in a table without rows."""
        changed = [
            c.model_copy(update={"type": column.type, "declared": column.declared, "comment": column.comment})
            if c.name == name
            else c
            for c in self.columns
        ]
        same = [c.type for c in changed] == [c.type for c in self.columns]
        if same:
            self.columns = changed
        else:
            self.reshape([(c, quote(c.name)) for c in changed])

    def set_default(self, name: str, default: Default) -> None:
        """Set what the column holds from now on when rows leave it out."""
        self.defaults[name] = default
        for column in self.columns:
            if column.name == name:
                self._alter(column, column.type)

    def infer_types(self) -> None:
        """Type the undeclared text columns whose every value is a plain number."""
        for index, column in enumerate(self.columns):
            if column.declared is not None or column.type != "VARCHAR":
                continue
            name, table = quote(column.name), quote(self.physical)
            found = self.connection.execute(
                f"SELECT count({name}), "
                f"count(*) FILTER (regexp_full_match({name}, '-?(0|[1-9][0-9]{{0,17}})')), "
                f"count(*) FILTER (regexp_full_match({name}, '-?(0|[1-9][0-9]{{0,14}})([.][0-9]{{1,12}})?')) "
                f"FROM {table}"
            ).fetchone()
            some, whole, real = found or (0, 0, 0)
            kind = "BIGINT" if some and whole == some else "DOUBLE" if some and real == some else None
            if kind is not None:
                self.connection.execute(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind}")
                self.columns[index] = column.model_copy(update={"type": kind})
