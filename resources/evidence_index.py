"""The evidence index of a home: one Parquet file a table and partition, asked through DuckDB.

A publication writes the partition's files under names nobody has read yet and then replaces the
partition's manifest in one step; readers list manifests and read exactly the files they name, so that
they see a partition either before or after a publication. Nobody holds a shared writable database file.
The index is derived: `rebuild` makes it again from the packages and gives the same rows.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from resources.index.rows import CaseRows
from resources.index.tables import CASE_TABLES
from viano_assets.errors import InputError, VianoError
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import CaseRevision
from viano_assets.phases.protocols import Store

MAX_SQL_BYTES = 16_384
_LOCK = (
    "SET enable_external_access=false",
    "SET memory_limit='1GB'",
    "SET lock_configuration=true",
)
_ALLOWED = ("SELECT", "EXPLAIN")


class Answer(NamedTuple):
    """A query's result; cells are JSON values, `truncated` says that a limit cut the rows."""

    columns: list[str]
    rows: list[list[Any]]
    truncated: bool


class EvidenceIndex:
    """The index below `home/index`.

    Args:
        home: the Viano home.
    """

    def __init__(self, home: Path) -> None:
        self._root = home / "index"
        self._parts = self._root / "parts"
        self._manifests = self._root / "manifests"

    def update(self, store: Store, head: Head, revision: int | None = None) -> None:
        """Write the rows of one revision (default: the current) of a head."""
        number = revision or head.revision
        key = CaseRevision(head.case_id, number).key
        folder = self._parts / key
        folder.mkdir(parents=True, exist_ok=True)
        self._manifests.mkdir(parents=True, exist_ok=True)
        files: dict[str, str] = {}
        for table, rows in CaseRows(store, head, number).tables().items():
            if rows:
                name = f"{head.generation:08d}-{head.record_sha256[:12]}-{table}.parquet"
                _replace(folder / name, pa.Table.from_pylist(rows, schema=CASE_TABLES[table]))
                files[table] = name
        manifest = {"partition_key": key, "generation": head.generation, "files": files}
        _replace_text(self._manifests / f"{key}.json", json.dumps(manifest, sort_keys=True))
        for old in folder.iterdir():
            if old.name not in files.values() and not old.name.startswith("."):
                _remove_superseded(old, head.generation)

    def rebuild(self, store: CheckpointStore) -> dict[str, int]:
        """Make the index again from all packages and return the rows per table."""
        wanted: set[str] = set()
        for case_id in store.case_ids():
            try:
                head = store.latest(case_id)
            except VianoError:
                continue
            for number in range(1, head.revision + 1):
                self.update(store, head, number)
                wanted.add(f"{CaseRevision(case_id, number).key}.json")
        for manifest in self._manifests.glob("*.json"):
            if manifest.name not in wanted:
                manifest.unlink()
        connection = self._connect()
        return {
            name: int(_one(connection, f"SELECT count(*) FROM {name}"))  # noqa: S608  # our own names
            for name in CASE_TABLES
        }

    def query(self, sql: str, *, limit: int = 1_000) -> Answer:
        """Answer one SELECT.

        Raises:
            InputError: `sql_refused` or `sql_failed`.
        """
        connection = self._connect()
        for statement in _LOCK:
            connection.execute(statement)
        _gate(connection, sql)
        try:
            result = connection.execute(sql)
            rows = result.fetchmany(limit + 1)
        except duckdb.Error as error:
            raise InputError(
                "sql_failed", str(error).split("\n", 1)[0], hint='viano sql "SHOW TABLES" lists the tables'
            ) from error
        columns = [str(column[0]) for column in result.description or []]
        shown = [[_cell(value) for value in row] for row in rows[:limit]]
        return Answer(columns, shown, len(rows) > limit)

    def snapshot(self, target: Path) -> Path:
        """Copy the index into one self-contained DuckDB file.

        Raises:
            InputError: `target_exists`.
        """
        if target.exists():
            raise InputError("target_exists", "the file exists", where=str(target), hint="name a new file")
        connection = self._connect()
        work = target.with_name(f".{target.name}.{os.getpid()}")
        connection.execute(f"ATTACH '{_quoted(work)}' AS snapshot")
        for name in CASE_TABLES:
            connection.execute(f"CREATE TABLE snapshot.{name} AS FROM {name}")
        connection.execute("DETACH snapshot")
        connection.close()
        work.replace(target)
        return target

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """Open an in-memory database whose tables hold the index as it stands now."""
        files = self._files()
        connection = duckdb.connect(":memory:")
        for name, schema in CASE_TABLES.items():
            empty = schema.empty_table()
            connection.register("_empty", empty)
            connection.execute(f"CREATE TABLE {name} AS FROM _empty")
            connection.unregister("_empty")
            if files.get(name):
                connection.execute(
                    f"INSERT INTO {name} BY NAME FROM read_parquet(?, union_by_name=true)",  # our own names
                    [files[name]],
                )
        return connection

    def _files(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in CASE_TABLES}
        if not self._manifests.is_dir():
            return found
        for path in sorted(self._manifests.glob("*.json")):
            manifest = json.loads(path.read_text(encoding="utf-8"))
            folder = self._parts / manifest["partition_key"]
            for table, name in manifest["files"].items():
                if table in found and (folder / name).exists():
                    found[table].append(str(folder / name))
        return found


def _gate(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    if len(sql.encode()) > MAX_SQL_BYTES:
        raise InputError("sql_refused", "the query is longer than 16 KB", hint="shorten it")
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise InputError("sql_failed", str(error).split("\n", 1)[0], hint="check the query") from error
    if len(statements) != 1 or statements[0].type.name not in _ALLOWED:
        raise InputError("sql_refused", "only one SELECT is answered", hint="ask one question at a time")


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    return None if row is None else row[0]


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)  # noqa: PLR0124  # NaN
    if isinstance(value, (list, tuple)):
        return [_cell(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _cell(item) for key, item in value.items()}
    return str(value)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _replace(path: Path, table: pa.Table) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as temporary:
        pq.write_table(table, temporary, compression="zstd")
        temporary.flush()
        os.fsync(temporary.fileno())
    Path(temporary.name).replace(path)


def _replace_text(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=".new-", delete=False, mode="w", encoding="utf-8"
    ) as temporary:
        temporary.write(text)
        temporary.flush()
        os.fsync(temporary.fileno())
    Path(temporary.name).replace(path)


def _remove_superseded(path: Path, generation: int) -> None:
    """Remove a file two generations old; a reader that listed the manifest before may still open the last."""
    if path.name[:8].isdigit() and int(path.name[:8]) < generation - 1:
        path.unlink(missing_ok=True)
