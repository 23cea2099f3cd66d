"""Typed comparisons of a column with a value: numbers as numbers, whatever the column's type became.

A column that a source declares as a number and that holds text as well is compared as a number where it holds
one; the rows that hold none are undecided, and an answer says how many there are. So are the rows of a column
whose value only the server knew (`Column.doubt`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from resources.tools.database.catalog import Column
from resources.tools.database.naming import declares_number, quote

Scalar = str | int | float | bool
NUMERIC = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "DECIMAL",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
)  # fmt: skip
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_TRUE = ("true", "t", "1", "yes", "y", "on")
_FALSE = ("false", "f", "0", "no", "n", "off")
_EXACT = 2**53
_HUGE = 2**127


class Filter(NamedTuple):
    """A condition with its parameters.

    `undecided` is the condition (without parameters) of the rows it cannot judge; `reason` says why.
    """

    sql: str
    values: list[Any]
    undecided: str = ""
    reason: str = ""


def is_numeric(kind: str) -> bool:
    """Say whether a DuckDB type holds numbers."""
    return kind.startswith(NUMERIC)


def text_value(value: Scalar) -> str:
    """Return a value as the text that a text column holds of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _number(value: Scalar) -> int | float | Decimal | None:
    """Return a value as a number that DuckDB can hold, or None."""
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            return None
        plain = text.lstrip("+-")
        if plain.isdigit():
            value = int(text)
        else:
            return Decimal(text) if len(plain) <= 30 and "e" not in plain.lower() else float(text)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and not -_HUGE < value < _HUGE:
        return float(value) if abs(value) < 10**300 else None
    return value


def comparison(column: Column, op: str, value: Scalar) -> Filter | str:
    """Compare a column with one value; a text says why that cannot be done.

    Args:
        column: of the snapshot.
        op: `=`, `!=`, `<`, `<=`, `>` or `>=`.
        value: number, text or truth value.
    """
    if is_numeric(column.type):
        return _numbers(column, op, value)
    if isinstance(value, bool) or (column.declared or "").lower().startswith("bool"):
        truth = _truth(column, op, value)
        if truth is not None:
            return truth
    return _texts(column, op, value)


def _numbers(column: Column, op: str, value: Scalar) -> Filter | str:
    name, number = quote(column.name), _number(value)
    if number is not None:
        exact = isinstance(number, float) and column.type.startswith("DECIMAL") and abs(number) < 10**15
        return Filter(f"{name} {op} ?", [Decimal(repr(number)) if exact else number])
    if op == "=":
        return Filter("false", [])
    if op == "!=":
        return Filter(f"{name} IS NOT NULL", [])
    return f"{column.name} holds numbers, and {value!r} is none"


def _truth(column: Column, op: str, value: Scalar) -> Filter | None:
    word = str(value).lower()
    same = _TRUE if word in _TRUE else _FALSE if word in _FALSE else None
    if same is None or op not in {"=", "!="}:
        return None
    listed = ", ".join(f"'{word}'" for word in same)
    return Filter(f"lower({quote(column.name)}::VARCHAR) {'IN' if op == '=' else 'NOT IN'} ({listed})", [])


def _as_number(name: str, op: str, number: float | Decimal) -> Filter:
    plain = f"TRY_CAST({name} AS DOUBLE) {op} ?"
    if isinstance(number, int) and abs(number) >= _EXACT:
        whole = f"TRY_CAST({name} AS DECIMAL(38, 0)) {op} ?::DECIMAL(38, 0)"
        return Filter(f"coalesce({whole}, {plain})", [number, float(number)])
    return Filter(plain, [float(number)])


def _texts(column: Column, op: str, value: Scalar) -> Filter | str:
    name, number = quote(column.name), _number(value)
    text = Filter(f"{name}::VARCHAR {op} ?", [text_value(value)])
    declared = declares_number(column.declared)
    if op in {"=", "!="}:
        if number is None or not declared:
            return text
        same = _as_number(name, "=", number)
        either = f"({name}::VARCHAR = ? OR coalesce({same.sql}, false))"
        values = [*text.values, *same.values]
        return Filter(either if op == "=" else f"({name} IS NOT NULL AND NOT {either})", values)
    if number is None:
        return f"{column.name} is declared as a number, and {value!r} is none" if declared else text
    ordered = _as_number(name, op, number)
    no_number = f"TRY_CAST({name} AS DOUBLE) IS NULL"
    if declared or not isinstance(value, str):
        reason = f"rows whose {column.name} is no number cannot be compared with one"
        return Filter(ordered.sql, ordered.values, f"{name} IS NOT NULL AND {no_number}", reason)
    return Filter(
        f"CASE WHEN {no_number} THEN {text.sql} ELSE {ordered.sql} END", [*text.values, *ordered.values]
    )


def has_bits(column: Column, bits: int) -> Filter | str:
    """Say whether all the bits are set in a column."""
    name = quote(column.name)
    if not 0 <= bits < _HUGE:
        return f"{column.name}: has_bits needs a number between 0 and 2^127"
    found = Filter(f"(TRY_CAST({name} AS HUGEINT) & ?::HUGEINT) = ?::HUGEINT", [bits, bits])
    if is_numeric(column.type):
        return found
    reason = f"rows whose {column.name} is no whole number have no bits"
    return found._replace(
        undecided=f"{name} IS NOT NULL AND TRY_CAST({name} AS HUGEINT) IS NULL", reason=reason
    )


def any_of(filters: Sequence[Filter]) -> Filter:
    """Join by OR."""
    return Filter(
        "(" + " OR ".join(one.sql for one in filters) + ")",
        [value for one in filters for value in one.values],
    )


def all_of(filters: Sequence[Filter]) -> Filter:
    """Join by AND; rows are undecided when nothing that can be judged excludes them."""
    values = [value for one in filters for value in one.values]
    doubts = [one for one in filters if one.undecided]
    perhaps = ""
    if doubts:
        each = [f"(({one.sql}) OR ({one.undecided}))" if one.undecided else f"({one.sql})" for one in filters]
        perhaps = " AND ".join(each) + " AND (" + " OR ".join(f"({one.undecided})" for one in doubts) + ")"
    reason = "; ".join(dict.fromkeys(one.reason for one in doubts))
    return Filter(" AND ".join(f"({one.sql})" for one in filters) or "true", values, perhaps, reason)
