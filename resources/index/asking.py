"""Asks the index: SQL views over the files that count, and the child process that answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from resources.index import worker
from resources.index.checking import check_files
from resources.index.layout import TABLES_VERSION, Layout, View, damaged
from resources.index.tables import TABLES, UNIT_COLUMN
from resources.tools.database import sandbox
from resources.tools.database import worker as base_worker
from viano_assets.errors import BlockedError, InputError, PackageError

DEADLINE_S = 60.0
"""Wall seconds a question may take."""

CPU_SECONDS = 60
ADDRESS_SPACE = 6 << 30
MAX_BYTES = 256 << 20
"""Largest answer in bytes of JSON."""

CELL_LIMIT = 100_000
_TRIES = 5
_SQL_TYPES = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.list_(pa.string()): "VARCHAR[]",
}
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


class Answer(NamedTuple):
    """A query's result; cells are JSON values, `truncated` says that a limit cut the rows."""

    columns: list[str]
    rows: list[list[Any]]
    truncated: bool


def view_sql(view: View, table: str, *, prefix: str = "") -> str:
    """Return the SELECT that gives the rows of `table` that count; `prefix` stands before every path."""
    columns = ", ".join(f'NULL::{_SQL_TYPES[f.type]} AS "{f.name}"' for f in TABLES[table])
    parts = [f"SELECT {columns} WHERE false"]
    for files, dead in view.sources(table):
        places = _texts([prefix + name for name in files])
        part = f"SELECT * FROM read_parquet({places})"  # noqa: S608 - our own names
        if dead:
            part += f' WHERE "{UNIT_COLUMN[table]}" NOT IN ({_texts(sorted(dead))[1:-1]})'
        parts.append(part)
    return " UNION ALL BY NAME ".join(parts)


def files_of(view: View) -> list[str]:
    """Return every file that counts."""
    return [name for table in TABLES for files, _ in view.sources(table) for name in files]


def _texts(names: list[str]) -> str:
    return "[" + ", ".join("'" + name.replace("'", "''") + "'" for name in names) + "]"


def named_tables(sql: str) -> list[str]:
    """Return the tables that a question can read: those whose names stand in it."""
    text = sql.casefold()
    return [table for table in TABLES if table in text]


def check_current(layout: Layout, view: View) -> None:
    """Raise `index_outdated` when another release wrote the tables."""
    if view.current.tables != TABLES_VERSION:
        raise PackageError(
            "index_outdated",
            "the index was written by another release",
            where=str(layout.root),
            hint="make it again: viano index rebuild",
        )


def fresh_views(layout: Layout) -> Iterator[View]:
    """Yield views to try in turn: what a slow reader looked at may have been merged and removed meanwhile.

    Raises:
        PackageError: `index_damaged`, `index_outdated`.
    """
    view = None
    for _ in range(_TRIES):
        view = layout.view()
        check_current(layout, view)
        yield view
    missing = [name for name in files_of(layout.view()) if not (layout.root / name).is_file()]
    raise damaged(layout.root / (missing[0] if missing else "current.json"), "a file cannot be read")


def ask(
    layout: Layout,
    sql: str,
    *,
    limit: int,
    deadline: float = DEADLINE_S,
    between: Callable[[], None] = lambda: None,
) -> Answer:
    """Answer one SELECT (`SHOW TABLES`, `DESCRIBE t`, `EXPLAIN SELECT` too) in a throw-away process.

    Args:
        layout: the index.
        sql: untrusted text.
        limit: most rows.
        deadline: wall seconds.
        between: called after the view was taken and before the process starts; a seam for tests.

    Raises:
        InputError: `sql_refused` or `sql_failed`.
        BlockedError: `sql_limit` when time or memory ran out.
        PackageError: `index_damaged`, `index_outdated`.
    """
    result: dict[str, Any] = {}
    for view in fresh_views(layout):
        between()
        check_files(layout.root, view.sums(named_tables(sql)))
        result = _child(layout.root, view, sql, limit, deadline)
        lost = result.get("file") and not all((layout.root / name).is_file() for name in files_of(view))
        if not lost:
            break
    if result.get("file") or result.get("limit"):
        check_files(layout.root, layout.view().sums())
    if "refused" in result:
        raise InputError("sql_refused", result["refused"], hint="ask one SELECT at a time")
    if result.get("limit"):
        raise BlockedError(
            "sql_limit", result["failed"], hint="ask for less, or copy the index: viano index snapshot FILE"
        )
    if "failed" in result:
        raise InputError(
            "sql_failed", result["failed"], hint='viano sql "SHOW TABLES" lists the tables; docs/sql.md'
        )
    return Answer(result["columns"], result["rows"], bool(result["more"]))


def _child(root: Path, view: View, sql: str, limit: int, deadline: float) -> dict[str, Any]:
    job = {
        "views": [f'CREATE VIEW "{table}" AS {view_sql(view, table)}' for table in TABLES],
        "files": files_of(view),
        "sql": sql,
        "limit": limit,
        "cell_limit": CELL_LIMIT,
        "bytes": MAX_BYTES,
        "base": base_worker.__file__,
        "address_space": ADDRESS_SPACE,
        "cpu_seconds": CPU_SECONDS,
    }
    command = [sys.executable, "-I", str(Path(worker.__file__))]
    if sandbox.isolation() != "none":
        command = ["unshare", "-rn", *command]
    root.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=root,
        env=_ENVIRONMENT,
    )
    output = sandbox.talk(process, json.dumps(job).encode(), deadline, max_output=2 * MAX_BYTES)
    if output is None:
        return {"failed": f"stopped after {deadline:g} seconds", "limit": True}
    try:
        document: dict[str, Any] = json.loads(output)
    except ValueError:
        return {"failed": "ended at its CPU or memory limit", "limit": True}
    return document
