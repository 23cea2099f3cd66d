"""Rows as evidence: reading them by condition or key, naming them, saying how complete their table is."""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from resources.tools.contract import Arguments, compact
from resources.tools.database.catalog import Column, Table
from resources.tools.database.cells import encode_cell
from resources.tools.database.compare import (
    Filter,
    Scalar,
    all_of,
    any_of,
    comparison,
    has_bits,
    is_numeric,
    text_value,
)
from resources.tools.database.naming import quote
from viano_assets.evidence.model import Completeness, Draft, Location, Provenance

if TYPE_CHECKING:
    import duckdb


class Condition(Arguments):
    """One typed condition on a column; conditions are joined by AND."""

    column: str
    op: Literal["=", "!=", "<", "<=", ">", ">=", "in", "like", "is_null", "not_null", "has_bits"]
    value: Scalar | list[Scalar] | None = None

    @model_validator(mode="after")
    def _bits_are_whole(self) -> Self:
        if self.op == "has_bits" and not isinstance(self.value, int):
            raise ValueError("has_bits needs a whole number")
        return self


class Row(NamedTuple):
    """One row: JSON cells by column, in column order."""

    table: Table
    cells: dict[str, Any]

    @property
    def key(self) -> dict[str, str]:
        """Key columns (all columns when the row has no key) to their values as text."""
        names = self.table.primary_key
        if not names or any(self.cells.get(name) is None for name in names):
            names = self.table.column_names
        return {name: text_of(self.cells[name]) for name in names if self.cells.get(name) is not None}


def text_of(cell: Any) -> str:
    """Return a JSON cell as plain text."""
    return cell if isinstance(cell, str) else compact(cell)


def find_column(table: Table, name: str) -> Column | None:
    """Return a column, found regardless of letter case."""
    for column in table.columns:
        if column.name == name:
            return column
    folded = name.casefold()
    return next((column for column in table.columns if column.name.casefold() == folded), None)


def column_of(table: Table, name: str) -> tuple[str, str] | None:
    """Return the exact name and type of a column, found regardless of letter case."""
    column = find_column(table, name)
    return None if column is None else (column.name, column.type)


def where(table: Table, conditions: Iterable[Condition]) -> Filter | str:
    """Translate conditions; a text says which one does not fit the table."""
    parts: list[Filter] = []
    for condition in conditions:
        column = find_column(table, condition.column)
        if column is None:
            return f"table {table.name} has no column {condition.column}"
        made = _one(column, condition)
        if isinstance(made, str):
            return made
        parts.append(_doubted(column, made))
    return all_of(parts)


def _doubted(column: Column, made: Filter) -> Filter:
    """Rows whose value only the server knew cannot be judged."""
    if column.doubt is None:
        return made
    missing = f"{quote(column.name)} IS NULL"
    return made._replace(
        undecided=f"({made.undecided}) OR {missing}" if made.undecided else missing,
        reason=f"{column.name}: {column.doubt}",
    )


def _one(column: Column, condition: Condition) -> Filter | str:
    name, value, op = quote(column.name), condition.value, condition.op
    if op in {"is_null", "not_null"}:
        return Filter(f"{name} IS {'NOT ' if op == 'not_null' else ''}NULL", [])
    if isinstance(value, list) != (op == "in") or value is None or value == []:
        return f"{column.name}: `in` needs a list, every other comparison one value"
    if isinstance(value, list):
        each = [comparison(column, "=", item) for item in value]
        return any_of([found for found in each if isinstance(found, Filter)])
    if op == "like":
        return Filter(f"{name}::VARCHAR ILIKE ?", [text_value(value)])
    if op == "has_bits":
        return has_bits(column, int(value))
    return comparison(column, op, value)


def key_filter(table: Table, key: Mapping[str, Scalar]) -> Filter | str:
    """Translate a key object."""
    return where(table, [Condition(column=name, op="=", value=value) for name, value in key.items()])


def fetch(connection: duckdb.DuckDBPyConnection, table: Table, condition: Filter, limit: int) -> list[Row]:
    """Read rows in a stable order (the key, else the order of the file)."""
    names = table.column_names
    parts = ", ".join(
        quote(c.name)
        if is_numeric(c.type) and not c.type.startswith("DECIMAL")
        else f"{quote(c.name)}::VARCHAR"
        for c in table.columns
    )
    order = ", ".join(quote(name) for name in table.primary_key) or "rowid"
    found = connection.execute(
        f"SELECT {parts} FROM {quote(table.name)} WHERE {condition.sql} ORDER BY {order} LIMIT {int(limit)}",
        condition.values,
    ).fetchall()
    return [Row(table, dict(zip(names, (encode_cell(cell) for cell in row), strict=True))) for row in found]


def count(connection: duckdb.DuckDBPyConnection, table: Table, condition: Filter) -> int:
    """Count rows."""
    row = connection.execute(
        f"SELECT count(*) FROM {quote(table.name)} WHERE {condition.sql}", condition.values
    ).fetchone()
    return int(row[0]) if row else 0


def undecided(connection: duckdb.DuckDBPyConnection, table: Table, condition: Filter) -> int:
    """Count the rows that a condition could not judge and that might be meant."""
    if not condition.undecided:
        return 0
    return count(connection, table, Filter(condition.undecided, condition.values))


def completeness(tables: Iterable[Table], columns: Iterable[str] | None = None) -> Completeness:
    """Complete only when every table is full, no copy contradicts it, and what is looked at is known.

    Args:
        tables: what was looked at.
        columns: those the look depends on; None is all, because a link or a value may stand in any.
    """
    names = None if columns is None else {name.casefold() for name in columns}
    whole = all(
        table.extent.kind == "full"
        and not table.conflicts
        and not any(names is None or name.casefold() in names for name in table.doubtful)
        for table in tables
    )
    return Completeness.COMPLETE if whole else Completeness.PARTIAL


def scope(tables: Sequence[Table]) -> dict[str, Any]:
    """Say which tables were searched and how much of each is here."""
    return {
        "tables": [
            {"table": table.name, "rows": table.rows, "path": table.path, **extent_of(table)}
            for table in tables
        ]
    }


def extent_of(table: Table) -> dict[str, Any]:
    """Return how whole a table is, as evidence shows it."""
    extent = table.extent.model_dump(exclude_none=True)
    return {"completeness": extent.pop("kind"), **extent}


def location(table: Table, key: Mapping[str, str] | None = None, column: str | None = None) -> Location:
    """Return the place of a row or table."""
    return Location(path=table.path, table=table.name, key=dict(key) if key else None, column=column)


def row_draft(row: Row) -> Draft:
    """Return one row as evidence."""
    table = row.table
    doubts = {column.name: column.doubt for column in table.columns if column.doubt is not None}
    shown = {
        name: {"unknown": doubts[name]} if cell is None and name in doubts else cell
        for name, cell in row.cells.items()
    }
    return Draft(
        content=compact({"table": table.name, "row": shown}),
        provenance=Provenance(
            kind="row",
            input_path=table.input_path,
            input_sha256=table.input_sha256,
            location=location(table, row.key),
        ),
        completeness=completeness([table], ()),
    )


class RowsArguments(Arguments):
    """Arguments of `db.rows`."""

    table: str
    where: list[Condition] = Field(default_factory=list, max_length=12)
    limit: int = Field(default=10, ge=1, le=50)
