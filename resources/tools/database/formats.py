"""Tables that come as CSV, JSON, SQLite or Parquet.

All are read as text first and typed by what their values are, except where the format itself is typed. The
files are untrusted: SQLite is opened immutable or as a copy with its schema untrusted, Parquet with the
BROTLI codec and DuckDB files are refused (docs/tools.md).
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from resources.tools.database.catalog import Column
from resources.tools.database.ddl import parse_create
from resources.tools.database.manifest import Claim
from resources.tools.database.sink import TableSink
from resources.tools.database.wal import Beside, open_database
from viano_assets.case.redaction_columns import SECRET_COLUMN, column_kind, is_secret_name, pair_positions

if TYPE_CHECKING:
    import duckdb

_CHUNK = 20_000
_COMMIT_ROWS = 200_000
_MAX_JSON = 256 << 20
_MAX_CELL = 64 << 20
Redact = Callable[[str, str, str], str]
"""Redacts one value: table, column, text."""


class Loaded(NamedTuple):
    """Tables of one file, what the file itself says about them, remarks, parts that are no tables."""

    sinks: list[TableSink]
    claims: list[Claim]
    trouble: str | None = None
    left_out: tuple[str, ...] = ()


class Target(NamedTuple):
    """Where a format reader puts its tables."""

    connection: duckdb.DuckDBPyConnection
    physical: Callable[[], str]

    def table(self, name: str, columns: Sequence[Column]) -> TableSink:
        """Open a new table; duplicate or blank column names are made distinct."""
        seen: dict[str, int] = {}
        fixed = []
        for index, column in enumerate(columns):
            base = column.name.strip() or f"column_{index + 1}"
            count = seen.get(base.casefold(), 0)
            seen[base.casefold()] = count + 1
            fixed.append(column.model_copy(update={"name": f"{base}_{count + 1}" if count else base}))
        return TableSink(self.connection, self.physical(), name, fixed)


def _text_columns(names: Iterable[str]) -> list[Column]:
    return [Column(name=name, type="VARCHAR") for name in names]


def _fill(sink: TableSink, rows: Iterable[Sequence[str | None]]) -> None:
    width = len(sink.columns)
    chunk: list[Sequence[str | None]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) >= _CHUNK:
            _append(sink, chunk, width)
            chunk = []
    if chunk:
        _append(sink, chunk, width)


def _append(sink: TableSink, chunk: Sequence[Sequence[str | None]], width: int) -> None:
    arrays = {
        sink.columns[index].name: pa.array([row[index] for row in chunk], pa.string())
        for index in range(width)
    }
    sink.append(arrays, len(chunk))


def load_csv(target: Target, text: io.TextIOBase, name: str) -> Loaded:
    """Load one CSV or TSV; the first line that is not a comment holds the names."""
    lines = iter(text)
    comments: list[str] = []
    header = ""
    for line in lines:
        if line.startswith(("#", "--")):
            comments.append(line)
        elif line.strip():
            header = line
            break
    if not header:
        return Loaded([], [], "no header line")
    delimiter = max("\t,;|", key=header.count)
    if not header.count(delimiter) and len(header.split()) > 3:
        return Loaded([], [], "not a delimited table")
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(_chain(header, lines), delimiter=delimiter, doublequote=True)
    names = next(reader)
    sink = target.table(name, _text_columns(names))
    ragged = [0]
    _fill(sink, _csv_rows(reader, len(names), ragged))
    if ragged[0]:
        sink.flag(f"{ragged[0]} lines do not have {len(names)} fields and were left out")
    first = len(comments) + 2
    if sink.rows:
        sink.saw_lines(first, first + sink.rows - 1)
    from resources.tools.database.manifest import claims_in_comment  # noqa: PLC0415 - one reader of comments

    return Loaded([sink], claims_in_comment("".join(comments), name, name))


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _csv_rows(reader: Iterator[list[str]], width: int, ragged: list[int]) -> Iterator[list[str | None]]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            ragged[0] += 1
            continue
        if len(row) == width:
            yield [None if cell in {"", "\\N", "NULL"} else cell for cell in row]
        elif row:
            ragged[0] += 1


def load_json(target: Target, file: Path, text: Callable[[], io.TextIOBase], name: str) -> Loaded:
    """Load a JSON document or JSON lines, where it holds lists of flat objects."""
    with text() as stream:
        head = stream.read(1 << 16)
    first = head.lstrip().split("\n", 1)[0].rstrip()
    if _object(first) is not None and "\n" in head.strip():
        return _json_lines(target, text, name)
    if file.stat().st_size > _MAX_JSON:
        return Loaded([], [], f"a JSON document of more than {_MAX_JSON >> 20} MB; JSON lines would be read")
    repeated: list[str] = []
    with text() as stream:
        try:
            value = json.load(stream, object_pairs_hook=_pairs(repeated))
        except (ValueError, RecursionError) as error:
            return Loaded([], [], f"not JSON: {str(error)[:80]}")
    tables, facts = _find_tables(value, name)
    loaded = _json_tables(target, tables, facts)
    _flag_repeated(loaded, repeated)
    return loaded


def _json_lines(target: Target, text: Callable[[], io.TextIOBase], name: str) -> Loaded:
    rows, others = [], 0
    repeated: list[str] = []
    with text() as stream:
        for line in stream:
            value = _object(line, repeated)
            if value is not None:
                rows.append(value)
            elif line.strip():
                others += 1
    loaded = _json_tables(target, {name: rows}, {})
    _flag_repeated(loaded, repeated)
    for sink in loaded.sinks if others else ():
        sink.flag(f"{others} lines are no JSON objects and were left out")
    return loaded


def _pairs(repeated: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return a maker of objects that notes keys which stand twice in one object; the last value is kept."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            names = [name for name, _ in pairs]
            repeated.extend(sorted({name for name in names if names.count(name) > 1}))
        return value

    return made


def _flag_repeated(loaded: Loaded, repeated: list[str]) -> None:
    if repeated:
        names = ", ".join(sorted(set(repeated))[:5])
        for sink in loaded.sinks:
            sink.flag(
                f"{len(repeated)} objects of the file name a key twice ({names}); the last value is kept"
            )


def _object(line: str, repeated: list[str] | None = None) -> dict[str, Any] | None:
    try:
        value = json.loads(line, object_pairs_hook=_pairs([] if repeated is None else repeated))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _find_tables(value: Any, name: str) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    if _is_rows(value):
        return {name: value}, {}
    if not isinstance(value, dict):
        return {}, {}
    for key in ("rows", "data", "records"):
        if _is_rows(value.get(key)):
            own = value.get("table") or value.get("name") or name
            facts = {k: v for k, v in value.items() if k != key}
            return {str(own): value[key]}, {**facts, "table": str(own)}
    return {str(key): child for key, child in value.items() if _is_rows(child)}, {}


def _json_tables(
    target: Target, tables: Mapping[str, list[dict[str, Any]]], facts: Mapping[str, Any]
) -> Loaded:
    from resources.tools.database.manifest import claims_in_text  # noqa: PLC0415

    sinks = []
    for name, rows in tables.items():
        names = list(dict.fromkeys(key for row in rows for key in row))
        sink = target.table(name, _text_columns([str(_json_text(key)) for key in names]))
        _fill(sink, ([_json_text(row.get(key)) for key in names] for row in rows))
        sinks.append(sink)
    claims = claims_in_text(json.dumps(facts), "in the file itself", tables) if facts else []
    return Loaded(sinks, claims)


def _json_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", errors="backslashreplace").decode("utf-8")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return _json_text(json.dumps(value, ensure_ascii=False, sort_keys=True))


def load_sqlite(target: Target, file: Path, beside: Beside, scratch: Path, redact: Redact) -> Loaded:
    """Load every ordinary table of an SQLite file as it stands with its log (wal.py)."""
    sinks: list[TableSink] = []
    left_out: list[str] = []
    doubt: str | None = None
    try:
        with open_database(file, beside, scratch) as (connection, doubt):
            connection.text_factory = lambda raw: raw.decode("utf-8", errors="backslashreplace")
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA cell_size_check=ON")
            _sqlite_tables(target, connection, redact, sinks, left_out)
    except sqlite3.Error as error:
        return Loaded(sinks, [], f"SQLite: {str(error)[:120]}", left_out=tuple(left_out))
    for sink in sinks:
        if doubt is not None:
            sink.doubt(doubt)
    return Loaded(sinks, [], left_out=tuple(left_out))


def _sqlite_tables(
    target: Target,
    connection: sqlite3.Connection,
    redact: Redact,
    sinks: list[TableSink],
    left_out: list[str],
) -> None:
    """Load the tables into `sinks`; views, triggers and virtual tables are named in `left_out`."""
    waiting = 0
    listing = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema "
        "WHERE type IN ('table', 'view', 'trigger') AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name"
    ).fetchall()
    for kind, name, sql in listing:
        if kind != "table" or not sql or str(sql).lstrip().upper().startswith("CREATE VIRTUAL"):
            left_out.append(f"{kind if kind != 'table' else 'virtual table'} {name}")
            continue
        sinks.append(_sqlite_table(target, connection, str(name), str(sql), redact))
        waiting += sinks[-1].rows
        if waiting > _COMMIT_ROWS:
            target.connection.execute("COMMIT; CHECKPOINT; BEGIN")
            waiting = 0


def _sqlite_table(
    target: Target, connection: sqlite3.Connection, name: str, sql: str, redact: Redact
) -> TableSink:
    shape = parse_create(sql, sqlite=True, backslash=False)
    quoted = '"' + name.replace('"', '""') + '"'
    cursor = connection.execute(f"SELECT * FROM {quoted}")  # noqa: S608 - a quoted name of its own schema
    names = [str(part[0]) for part in cursor.description]
    declared = {column.name.casefold(): column for column in shape.columns} if shape else {}
    sink = target.table(name, [declared.get(n.casefold(), Column(name=n, type="VARCHAR")) for n in names])
    if shape is not None:
        sink.primary_key = shape.primary_key
        sink.foreign_keys = list(shape.foreign_keys)
    pair = pair_positions(names)
    while rows := cursor.fetchmany(_CHUNK):
        texts = [_sqlite_row(name, names, row, pair, redact) for row in rows]
        _append(sink, texts, len(names))
    return sink


def _sqlite_row(
    table: str, names: list[str], row: tuple[Any, ...], pair: tuple[int, int] | None, redact: Redact
) -> list[str | None]:
    """Return a row as texts; in a table of settings the name beside a value says whether it is a secret."""
    shown = [_sqlite_text(table, column, cell, redact) for column, cell in zip(names, row, strict=True)]
    if pair is not None and isinstance(row[pair[0]], str) and is_secret_name(row[pair[0]]):
        shown[pair[1]] = _sqlite_text(table, SECRET_COLUMN, row[pair[1]], redact)
    return shown


def _sqlite_text(table: str, column: str, value: Any, redact: Redact) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        shown = "0x" + value.hex().upper()
        return redact(table, column, shown) if column_kind(table, column) == "SECRET" else shown
    if isinstance(value, str):
        return redact(table, column, value)
    return repr(value) if isinstance(value, float) else str(value)


def load_parquet(target: Target, file: Path, name: str, redact: Redact) -> Loaded:
    """Load one Parquet file; nested columns become JSON-like text."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy

    try:
        source = pq.ParquetFile(file)
        codecs = {
            source.metadata.row_group(group).column(column).compression
            for group in range(source.metadata.num_row_groups)
            for column in range(source.metadata.num_columns)
        }
        if "BROTLI" in codecs:
            return Loaded(
                [], [], "Parquet with BROTLI is refused (decoder faults); write it with another codec"
            )
        sink = target.table(name, [_parquet_column(field) for field in source.schema_arrow])
        for batch in source.iter_batches(batch_size=_CHUNK):
            batch.validate(full=True)
            arrays = {}
            for column, array in zip(sink.columns, batch.columns, strict=True):
                arrays[column.name] = _parquet_array(array, column, name, redact)
            sink.append(arrays, batch.num_rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        return Loaded([], [], f"Parquet: {str(error)[:120]}")
    return Loaded([sink], [])


_PARQUET = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "uint8": "UTINYINT",
    "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT", "float": "DOUBLE", "double": "DOUBLE",
}  # fmt: skip


def _parquet_column(field: pa.Field) -> Column:
    kind = str(field.type)
    return Column(name=field.name, type=_PARQUET.get(kind, "VARCHAR"), declared=kind)


def _parquet_array(array: pa.Array, column: Column, table: str, redact: Redact) -> pa.Array:
    if column.type != "VARCHAR":
        return array
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        values = [None if cell is None else redact(table, column.name, cell) for cell in array.to_pylist()]
    elif pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        values = [None if cell is None else "0x" + cell.hex().upper() for cell in array.to_pylist()]
    else:
        try:
            return array.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = [None if cell.as_py() is None else str(cell) for cell in array]
    return pa.array(values, pa.string())
