"""Where rows go: one DuckDB table per file and source table, typed as declared, widened when needed."""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from resources.tools.database.catalog import Column, ForeignKey
from resources.tools.database.naming import quote

if TYPE_CHECKING:
    import duckdb

_ARROW = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINTEGER": pa.uint32(), "UBIGINT": pa.uint64(),
    "DOUBLE": pa.float64(),
}  # fmt: skip


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
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        physical: str,
        name: str,
        columns: Sequence[Column],
        binary: Iterable[str] = (),
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
        parts = ", ".join(f"{quote(column.name)} {column.type}" for column in self.columns)
        connection.execute(f"CREATE TABLE {quote(physical)} ({parts})")

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

    def saw_lines(self, first: int, last: int) -> None:
        """Widen the span of lines the rows come from."""
        self.first_line = first if self.first_line is None else min(self.first_line, first)
        self.last_line = last if self.last_line is None else max(self.last_line, last)

    def _typed(self, index: int, array: pa.Array | None, rows: int) -> pa.Array:
        column = self.columns[index]
        if array is None:
            return pa.nulls(rows, pa.string())
        target = _ARROW.get(column.type)
        if column.type.startswith("DECIMAL("):
            precision, scale = column.type[8:-1].split(",")
            target = pa.decimal128(int(precision), int(scale))
        if target is None or array.type == target:
            return array
        try:
            return array.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            self._widen(index)
            return array

    def _widen(self, index: int) -> None:
        column = self.columns[index]
        self.connection.execute(
            f"ALTER TABLE {quote(self.physical)} ALTER COLUMN {quote(column.name)} TYPE VARCHAR"
        )
        self.columns[index] = column.model_copy(update={"type": "VARCHAR"})
        self.flag(f"column {column.name} kept as text: a value does not fit {column.declared or column.type}")

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
