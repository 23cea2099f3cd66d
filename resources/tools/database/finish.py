"""After loading: names, keys, extents and conflicts, so that the catalog can be written."""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import duckdb

from resources.tools.database.catalog import Extent, ForeignKey, SourceFile, Table
from resources.tools.database.manifest import Claim, judge
from resources.tools.database.naming import quote
from resources.tools.database.register import folded_space
from resources.tools.database.sink import TableSink

_KEY_NAME = re.compile(r"(?:^|_)(?:id|guid|uuid|entry|key|no|nr|code|name)$|^id_", re.IGNORECASE)
_ORDER = {"full": 0, "filtered": 1, "unknown": 2}


@dataclass(slots=True)
class Origin:
    """Where a sink's rows come from and what its carrier alone says about their extent."""

    sink: TableSink
    file: SourceFile
    input_path: str
    input_sha256: str
    default: Extent
    claims: list[Claim] = field(default_factory=list)


def finish(connection: duckdb.DuckDBPyConnection, origins: Sequence[Origin]) -> tuple[Table, ...]:
    """Settle types, names, keys, extents and conflicts of everything that was loaded.

    Copies of one table from several files stay apart: the fullest copy takes the plain name, the others
    get `name__2`, …; none overrides another.
    """
    tables: list[Table] = []
    named = _names(origins)
    groups: dict[str, list[tuple[Origin, Extent]]] = {}
    for origin in origins:
        origin.sink.infer_types()
        repeated = _repeated(connection, origin.sink)
        default = origin.default
        if repeated:
            text = f"{repeated} rows share the key of another, so the rows are not those of one table"
            origin.sink.flag(text)
            default = Extent(kind="unknown", basis=text)
        extent = judge(origin.claims, origin.sink.rows, default)
        if repeated and extent.kind == "full":
            extent = default
        groups.setdefault(named[id(origin)].casefold(), []).append((origin, extent))
    taken: set[str] = set(groups)
    for folded in sorted(groups):
        group = sorted(
            groups[folded], key=lambda pair: (_ORDER[pair[1].kind], -pair[0].sink.rows, pair[0].file.path)
        )
        plain = named[id(group[0][0])]
        main: Table | None = None
        for number, (origin, extent) in enumerate(group, 1):
            name = named[id(origin)] if number == 1 else _free(f"{plain}__{number}", taken)
            connection.execute(f"ALTER TABLE {quote(origin.sink.physical)} RENAME TO {quote(name)}")
            origin.sink.physical = name
            table = _table(connection, origin, extent, name, None if main is None else main.name)
            if main is not None:
                table = table.model_copy(update={"conflicts": _conflicts(connection, main, table)})
            main = main or table
            tables.append(table)
    return _references(tuple(sorted(tables, key=lambda table: table.name)))


def _names(origins: Sequence[Origin]) -> dict[int, str]:
    """Name the tables: with their schema where tables of one name come from several schemas."""
    spaces: dict[str, set[str]] = {}
    twice: dict[str, set[tuple[str, str]]] = {}
    for origin in origins:
        folded, space = origin.sink.name.casefold(), folded_space(origin.sink.space)
        if origin.file.format == "script":
            spaces.setdefault(folded, set()).add(space)
            twice.setdefault(f"{origin.file.path}\n{folded}", set()).add((space, folded))
    apart = {
        folded
        for folded, found in spaces.items()
        if len(found - {""}) > 1 or any(len(t) > 1 for key, t in twice.items() if key.endswith(f"\n{folded}"))
    }
    return {
        id(origin): f"{origin.sink.space}.{origin.sink.name}"
        if origin.sink.name.casefold() in apart and origin.sink.space
        else origin.sink.name
        for origin in origins
    }


def _references(tables: tuple[Table, ...]) -> tuple[Table, ...]:
    """Let declared keys name the tables as they are called here."""
    known = {
        (folded_space(table.space), table.plain.casefold()): table.name for table in tables if not table.of
    }

    def settled(table: Table, key: ForeignKey) -> ForeignKey:
        space, _, plain = key.table.rpartition(".")
        wanted = folded_space(space or table.space)
        return key.model_copy(update={"table": known.get((wanted, plain.casefold()), plain)})

    return tuple(
        table.model_copy(update={"foreign_keys": tuple(settled(table, key) for key in table.foreign_keys)})
        for table in tables
    )


def _repeated(connection: duckdb.DuckDBPyConnection, sink: TableSink) -> int:
    """Count the rows whose declared key another row has too."""
    names = {name.casefold(): name for name in sink.names}
    key = [names.get(part.casefold()) for part in sink.primary_key]
    if not key or None in key:
        return 0
    listed = ", ".join(quote(str(name)) for name in key)
    present = " AND ".join(f"{quote(str(name))} IS NOT NULL" for name in key)
    try:
        row = connection.execute(
            f"SELECT (SELECT count(*) FROM {quote(sink.physical)} WHERE {present}) - count(*) "
            f"FROM (SELECT DISTINCT {listed} FROM {quote(sink.physical)} WHERE {present})"
        ).fetchone()
    except duckdb.OutOfMemoryException:
        sink.flag("whether its key is unique was not checked: too many rows")
        return 0
    return int(row[0]) if row else 0


def _free(name: str, taken: set[str]) -> str:
    while name.casefold() in taken:
        name += "_"
    taken.add(name.casefold())
    return name


def _table(
    connection: duckdb.DuckDBPyConnection, origin: Origin, extent: Extent, name: str, of: str | None
) -> Table:
    sink = origin.sink
    key, basis = _key(connection, sink)
    counted = connection.execute(f"SELECT count(*) FROM {quote(name)}").fetchone()
    return Table(
        name=name,
        space=origin.sink.space,
        of=of,
        path=origin.file.path,
        input_path=origin.input_path,
        input_sha256=origin.input_sha256,
        line_start=sink.first_line,
        line_end=sink.last_line,
        columns=tuple(sink.columns),
        primary_key=key,
        key_basis=basis,
        foreign_keys=tuple(sink.foreign_keys),
        rows=int(counted[0]) if counted else 0,
        extent=extent,
        flags=tuple(sink.flags),
    )


def _key(
    connection: duckdb.DuckDBPyConnection, sink: TableSink
) -> tuple[tuple[str, ...], Literal["declared", "inferred", "none"]]:
    names = {name.casefold(): name for name in sink.names}
    declared = tuple(names[key.casefold()] for key in sink.primary_key if key.casefold() in names)
    if declared and len(declared) == len(sink.primary_key):
        return declared, "declared"
    if not sink.rows:
        return (), "none"
    likely = [name for name in sink.names if _KEY_NAME.search(name)]
    if sink.names and sink.names[0] not in likely:
        likely.insert(0, sink.names[0])
    singles = [(name,) for name in likely[:4]]
    pairs = [(sink.names[0], name) for name in sink.names[1:5]] if len(sink.names) > 1 else []
    for candidate in singles + pairs:
        if _unique(connection, sink, candidate):
            return candidate, "inferred"
    return (), "none"


def _unique(connection: duckdb.DuckDBPyConnection, sink: TableSink, columns: tuple[str, ...]) -> bool:
    listed = ", ".join(quote(column) for column in columns)
    present = " AND ".join(f"{quote(column)} IS NOT NULL" for column in columns)
    row = connection.execute(
        f"SELECT count(*) = (SELECT count(*) FROM {quote(sink.physical)}) "
        f"AND count(DISTINCT ({listed})) = count(*) "
        f"FROM {quote(sink.physical)} WHERE {present}"
    ).fetchone()
    return bool(row and row[0])


def _conflicts(connection: duckdb.DuckDBPyConnection, main: Table, other: Table) -> int | None:
    """Count keys that both copies hold with different values in the columns they share."""
    shared = [name for name in main.column_names if name in set(other.column_names)]
    key = main.primary_key
    rest = [name for name in shared if name not in key]
    if not key or not set(key) <= set(shared):
        return None
    if not rest:
        return 0
    joined = " AND ".join(f"a.{quote(c)}::VARCHAR = b.{quote(c)}::VARCHAR" for c in key)
    differ = " OR ".join(f"a.{quote(c)}::VARCHAR IS DISTINCT FROM b.{quote(c)}::VARCHAR" for c in rest)
    row = connection.execute(
        f"SELECT count(*) FROM {quote(main.name)} a JOIN {quote(other.name)} b ON {joined} WHERE {differ}"
    ).fetchone()
    return int(row[0]) if row else None
