"""Copies what counts into one self-contained DuckDB file, whole or not at all.

DuckDB writes the tables of a file at its last checkpoint, and a connection that closes swallows what goes
wrong then: on a full disk it leaves a file without tables. So the checkpoint is asked for, the file synced,
and what was written is opened and counted before it gets its name.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb

from resources.index.asking import files_of, fresh_views, view_sql
from resources.index.checking import check_files
from resources.index.layout import Layout, View
from resources.index.tables import TABLES
from viano_assets.errors import InputError


def copy_index(layout: Layout, target: Path) -> Path:
    """Write the tables into the new file `target`; nothing is left behind when that fails.

    Raises:
        InputError: `target_exists`; `target_not_writable` with the reason, for instance a full disk.
        PackageError: `index_damaged`, `index_outdated`: the index itself.
    """
    if not target.name:
        raise _not_writable(target, "it names no file")
    work = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        there = target.exists()
        if not there:
            _write(layout, work, target)
            os.link(work, target)
    except FileExistsError:
        there = True
    except OSError as error:
        raise _not_writable(target, error.strerror or type(error).__name__) from error
    finally:
        _clear(work)
    if there:
        raise InputError("target_exists", "the file exists", where=str(target), hint="name a new file")
    return target


def _write(layout: Layout, work: Path, target: Path) -> None:
    """Write the work file; only what is wrong with the files of the index is told as damage of the index."""
    root = layout.root.resolve()
    for view in fresh_views(layout):
        check_files(root, view.sums())
        _clear(work)
        try:
            expected = _tables(work, view, root)
            _check_written(work, expected)
        except duckdb.Error as error:
            check_files(root, view.sums())
            if all((root / name).is_file() for name in files_of(view)):
                raise _not_writable(target, _reason(error, work)) from error
            continue
        return


def _tables(work: Path, view: View, root: Path) -> dict[str, int]:
    """Create the tables, bring them to the disk and return their rows."""
    with duckdb.connect(work) as connection:
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table} AS {view_sql(view, table, prefix=f'{root}/')}")
        counts = _counts(connection)
        connection.execute("CHECKPOINT")
    with work.open("rb") as file:
        os.fsync(file.fileno())
    return counts


def _check_written(work: Path, expected: dict[str, int]) -> None:
    with duckdb.connect(work, read_only=True) as connection:
        if _counts(connection) != expected:
            raise OSError(0, "what was written is not what was read")


def _counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    counts = {}
    for table in TABLES:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own names
        counts[table] = int(row[0]) if row else 0
    return counts


def _clear(work: Path) -> None:
    """Remove the work file with what DuckDB puts beside it: its log and its folder for what does not fit."""
    for path in (work, work.with_name(f"{work.name}.wal"), work.with_name(f"{work.name}.tmp")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError:
            continue


def _reason(error: duckdb.Error, work: Path) -> str:
    """Return DuckDB's reason without the name of the work file, which nobody knows."""
    text = str(error).strip().split("\n", 1)[0] or type(error).__name__
    return text.replace(str(work), "the file").replace(str(work.resolve()), "the file")[:300]


def _not_writable(target: Path, reason: str) -> InputError:
    return InputError(
        "target_not_writable",
        f"the file cannot be written: {reason}",
        where=str(target),
        hint="name another place, or make room there",
    )
