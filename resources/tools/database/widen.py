"""The next type that holds every value of a number column, when one does not fit the declared type.

A number column never becomes text because of a number: comparisons would silently turn lexical. Only text
among the numbers does that, and then `db.rows` compares what is a number as a number (rows.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
WHOLE = (*_SIGNED, *_UNSIGNED, "HUGEINT")
_ARROW = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINTEGER": pa.uint32(), "UBIGINT": pa.uint64(),
    "HUGEINT": pa.decimal128(38, 0), "DOUBLE": pa.float64(),
}  # fmt: skip
_PRECISION = 38
_EXACT = r"-?0*(\d{0,15}|\d{1,14}\.\d{0,4}|\d{1,8}\.\d{0,7})"
"""Decimal texts that a double shows again as they are (15 significant digits)."""


def arrow_type(kind: str) -> pa.DataType | None:
    """Return the Arrow type in which rows of a DuckDB number type are handed over; None for text."""
    if kind.startswith("DECIMAL("):
        precision, scale = kind[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW.get(kind)


def cast(array: pa.Array, kind: str) -> pa.Array | None:
    """Return the values as `kind`, or None when one does not fit."""
    target = arrow_type(kind)
    if target is None or array.type == target:
        return array
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def truth_as_number(array: pa.Array) -> pa.Array:
    """Return texts with the words true and false as 1 and 0."""
    if not pa.types.is_string(array.type):
        return array
    lower = pc.utf8_lower(array)
    return pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", array))


def wider(kind: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield wider types than `kind` that hold `array`, narrowest first, with the values as that type.

    The caller checks that the rows it already has fit as well.
    """
    if kind in WHOLE:
        names = ["BIGINT", "HUGEINT"] if kind not in {"BIGINT", "UBIGINT"} else ["HUGEINT"]
        for name in names if kind != "HUGEINT" else []:
            made = cast(array, name)
            if made is not None:
                yield name, made
        exact = (
            pa.types.is_string(array.type)
            and pc.all(pc.match_substring_regex(array.drop_null(), f"^(?:{_EXACT})$")).as_py()
        )
        made = cast(array, "DOUBLE") if exact else None
        if made is not None:
            yield "DOUBLE", made
    elif kind.startswith("DECIMAL(") and pa.types.is_string(array.type):
        precision, scale = (int(part) for part in kind[8:-1].split(","))
        parts = pc.extract_regex(array.drop_null(), r"^-?(?P<whole>\d+)(?:\.(?P<part>\d*))?$")
        if parts.null_count or not len(parts):
            return
        lengths = [pc.max(pc.utf8_length(parts.field(index))).as_py() or 0 for index in (0, 1)]
        scale, whole = max(scale, lengths[1]), max(precision - scale, lengths[0])
        if whole + scale <= _PRECISION:
            name = f"DECIMAL({_PRECISION},{scale})"
            made = cast(array, name)
            if made is not None:
                yield name, made
