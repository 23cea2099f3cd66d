"""The one way from case data to Dagster metadata: escaped, capped, finite, only http(s) links."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg

from viano_assets.errors import VianoError

MAX_BYTES = 64_000
"""Largest text of one metadata entry in bytes."""

_ESCAPES = str.maketrans({c: "\\" + c for c in "\\`*_[]<>|#!"})


def plain(text: str) -> str:
    """Return `text` without control characters and lone surrogates, cut to `MAX_BYTES`."""
    kept = text
    if not text.replace("\n", "").replace("\t", "").isprintable():
        kept = "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    data = kept.encode("utf-8")
    if len(data) <= MAX_BYTES:
        return kept
    return data[: MAX_BYTES - 40].decode("utf-8", errors="ignore") + "\n… cut at 64 kB"


def escaped(text: str) -> str:
    """Return `text` so that Markdown and HTML show it literally."""
    return plain(text).translate(_ESCAPES)


def json_safe(value: Any) -> Any:
    """Return `value` with numbers finite and text plain; what cannot be shown becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**53) < value < 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else "no data"
    if isinstance(value, Mapping):
        return {plain(str(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    return plain(str(value))


@contextmanager
def failing() -> Iterator[None]:
    """Turn an error of Viano into a failure that the page shows with its code and remedy, without retries."""
    try:
        yield
    except VianoError as error:
        raise dg.Failure(
            str(error), metadata=to_metadata({"code": error.code, "hint": error.hint}), allow_retries=False
        ) from error


def to_metadata(values: Mapping[str, Any]) -> dict[str, dg.MetadataValue[Any]]:
    """Turn plain values into metadata entries.

    Text that starts with a Markdown heading is taken as our own Markdown; a list of flat records with the
    same names becomes a table, any other list or a dict JSON; `bytes` are a PNG picture; NaN and infinities
    become "no data".
    """
    entries: dict[str, dg.MetadataValue[Any]] = {}
    for name, value in values.items():
        if value is None:
            continue
        entries[name] = _entry(value)
    return entries


def _is_table(rows: Sequence[Any]) -> bool:
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        return False
    names = list(rows[0])
    scalar = (str, int, float, bool, type(None))
    return all(list(row) == names and all(isinstance(v, scalar) for v in row.values()) for row in rows)


def _table(rows: Sequence[Mapping[str, Any]]) -> dg.MetadataValue[Any]:
    schema = dg.TableSchema(columns=[dg.TableColumn(name, type=_column(rows, name)) for name in rows[0]])
    records = [dg.TableRecord({n: "" if v is None else v for n, v in row.items()}) for row in rows]
    return dg.MetadataValue.table(records, schema)


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    kinds = {type(row[name]) for row in rows}
    return "int" if kinds == {int} else "float" if kinds <= {int, float} else "string"


def _entry(value: Any) -> dg.MetadataValue[Any]:
    if isinstance(value, bytes):
        picture = base64.b64encode(value).decode("ascii")
        return dg.MetadataValue.md(f"![plot](data:image/png;base64,{picture})")
    match json_safe(value):
        case bool() as flag:
            entry: dg.MetadataValue[Any] = dg.MetadataValue.bool(flag)
        case int() as number:
            entry = dg.MetadataValue.int(number)
        case float() as number:
            entry = dg.MetadataValue.float(number)
        case list() as rows if _is_table(rows):
            entry = _table(rows)
        case (dict() | list()) as document:
            entry = dg.MetadataValue.json(document)
        case str() as text if text.startswith(("http://", "https://")) and "\n" not in text:
            entry = dg.MetadataValue.url(text)
        case str() as text if text.startswith("#"):
            entry = dg.MetadataValue.md(text)
        case other:
            entry = dg.MetadataValue.text(str(other))
    return entry
