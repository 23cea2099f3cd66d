"""Merging: many small files of the journal into one segment, small segments into larger ones."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from resources.index.layout import TABLES_VERSION, Current, Entry, Layout, Rows, Segment, damaged
from resources.index.tables import TABLES, UNIT_COLUMN
from viano_assets.errors import InputError

JOURNAL_LIMIT = 64
"""Publications after which the journal becomes a segment."""

TIER = 4
"""Two neighbouring segments are merged when the older has at most this many times the units of the newer."""

ROW_GROUP = 65_536
UNITS = "units"
"""The file of a segment that names its units."""


Tables = Mapping[str, pa.Table]


def as_tables(rows: Rows) -> dict[str, pa.Table]:
    """Return the rows of one unit as tables.

    Raises:
        InputError: `rows_unusable` when a value does not fit its column.
    """
    try:
        return {t: pa.Table.from_pylist(list(r), schema=TABLES[t]) for t, r in rows.items() if r}
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InputError("rows_unusable", f"a value does not fit its column: {str(error)[:200]}") from error


def write_tables_of_unit(root: Path, unit: str, generation: int, tables: Tables) -> Entry:
    """Write the Parquet files of one publication, under names nobody has read yet."""
    shard = hashlib.sha256(unit.encode()).hexdigest()[:2]
    folder = root / "parts" / shard
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    sums: dict[str, str] = {}
    tag = f"{unit}-{generation:08d}-{secrets.token_hex(4)}"
    for table, content in tables.items():
        files[table] = f"parts/{shard}/{tag}-{table}.parquet"
        sums[files[table]] = _write(root / files[table], content)
    return Entry(unit, generation, files, sums)


def _write(path: Path, table: pa.Table) -> str:
    """Write a file and return its SHA-256."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=ROW_GROUP)
    data = memoryview(sink.getvalue())
    work = path.with_name(f".{path.name}")
    work.write_bytes(data)
    work.replace(path)
    return hashlib.sha256(data).hexdigest()


def write_units(root: Path, name: str, units: Sequence[tuple[str, Tables]]) -> Segment:
    """Write the tables of many units as one segment."""
    tables = {
        table: pa.concat_tables([content[table] for _, content in units if table in content])
        for table in sorted({table for _, content in units for table in content})
    }
    return write_tables(root, name, [unit for unit, _ in units], tables)


def write_tables(root: Path, name: str, units: Sequence[str], tables: Tables) -> Segment:
    """Write whole tables of many units as one segment."""
    (root / "segments").mkdir(parents=True, exist_ok=True)
    files = {}
    sums = {}
    for table in sorted(tables):
        if tables[table].num_rows:
            files[table] = f"segments/{name}-{table}.parquet"
            sums[files[table]] = _write(root / files[table], tables[table])
    names = _units_file(name)
    sums[names] = _write(root / names, pa.table({"unit": pa.array(sorted(units), pa.string())}))
    return Segment(name, len(units), (), files, sums)


def _units_file(name: str) -> str:
    return f"segments/{name}-{UNITS}.parquet"


def read_units(root: Path, segment: Segment) -> list[str]:
    """Return the units of a segment, the replaced ones included.

    Raises:
        PackageError: `index_damaged`.
    """
    name = _units_file(segment.name)
    table = _read(root, name, segment.sums)
    try:
        return [str(unit) for unit in table["unit"].to_pylist()]
    except KeyError as error:
        raise damaged(root / name, "a file of the index cannot be read") from error


def _read(root: Path, name: str, sums: Mapping[str, str], schema: pa.Schema | None = None) -> pa.Table:
    """Read a file that has to have the hash it was written with."""
    path = root / name
    try:
        data = path.read_bytes()
        if name in sums and hashlib.sha256(data).hexdigest() != sums[name]:
            raise damaged(path, "a file of the index is not what was written")
        table = pq.ParquetFile(pa.BufferReader(data)).read()
        return table if schema is None else _shaped(table, schema)
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, "a file of the index cannot be read") from error


def _shaped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return `table` with the columns of today; a column that is new since is NULL."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def new_name(number: int) -> str:
    """Return a segment name nobody has used."""
    return f"{number:06d}-{secrets.token_hex(4)}"


def fold_journal(layout: Layout) -> None:
    """Merge the journal into a new segment and begin another journal; call with the lock held."""
    view = layout.view()
    if not view.entries or view.current.tables != TABLES_VERSION:
        return
    number = view.current.number + 1
    tables = {
        table: pa.concat_tables(
            [
                _read(layout.root, e.files[table], e.sums, TABLES[table])
                for e in view.entries.values()
                if table in e.files
            ]
            or [TABLES[table].empty_table()]
        )
        for table in TABLES
    }
    segment = write_tables(layout.root, new_name(number), sorted(view.entries), tables)
    now = time.time()
    used = {name for entry in view.lines for name in entry.files.values()}
    trash = [*view.current.trash, *((name, now) for name in sorted(used))]
    trash.append((view.current.journal, now))
    older = tuple(with_dead(layout.root, old, view.entries) for old in view.current.segments)
    layout.flip(Current(number, (*older, segment), layout.emptied(trash), view.current.tables))


def with_dead(root: Path, segment: Segment, units: Iterable[str]) -> Segment:
    """Return a segment with those of `units` that it holds marked as replaced."""
    hit = set(units) & set(read_units(root, segment))
    return segment._replace(dead=tuple(sorted({*segment.dead, *hit}))) if hit else segment


def merge_segments(layout: Layout) -> bool:
    """Merge two neighbouring segments of like size, without holding the lock while writing.

    Returns whether there was anything to merge. One process at a time: call with the compaction lock held.
    """
    current = layout.current()
    pair = _pair(current.segments)
    if pair is None:
        return False
    tables = {
        table: pa.concat_tables([_alive(layout.root, segment, table) for segment in pair]) for table in TABLES
    }
    units: set[str] = set()
    for segment in pair:
        units |= set(read_units(layout.root, segment)) - set(segment.dead)
    merged = write_tables(layout.root, new_name(current.number), sorted(units), tables)
    gone = {segment.name: segment for segment in pair}
    with layout.lock():
        view = layout.view()
        segments: list[Segment] = []
        for segment in view.current.segments:
            if segment.name not in gone:
                segments.append(segment)
            elif segment.name == pair[-1].name:
                later = {
                    unit
                    for now in view.current.segments
                    if now.name in gone
                    for unit in set(now.dead) - set(gone[now.name].dead)
                }
                segments.append(with_dead(layout.root, merged, later))
        since = time.time()
        trash = [*view.current.trash, (view.current.journal, since)]
        for segment in pair:
            trash += [(name, since) for name in superseded(segment)]
        state = Current(view.current.number + 1, tuple(segments), layout.emptied(trash), view.current.tables)
        layout.flip(state, list(view.entries.values()))
    return True


def superseded(segment: Segment) -> list[str]:
    """Return the files of a segment that no longer counts."""
    return [*sorted(segment.files.values()), _units_file(segment.name)]


def _pair(segments: Sequence[Segment]) -> tuple[Segment, Segment] | None:
    for older, newer in reversed(list(pairwise(segments))):
        if older.units - len(older.dead) <= TIER * max(1, newer.units - len(newer.dead)):
            return older, newer
    return None


def _alive(root: Path, segment: Segment, table: str) -> pa.Table:
    if table not in segment.files:
        return TABLES[table].empty_table()
    rows = _read(root, segment.files[table], segment.sums, TABLES[table])
    if not segment.dead:
        return rows
    dead = pc.is_in(rows[UNIT_COLUMN[table]], pa.array(segment.dead, pa.string()))
    return rows.filter(pc.invert(dead))
