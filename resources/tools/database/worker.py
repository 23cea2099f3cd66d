"""The throw-away process that runs one SELECT of a model (recipe: docs/tools.md).

It is started as `python -I worker.py`, reads its job from standard input, limits itself, locks DuckDB and
writes one JSON document. It knows nothing of Viano and is killed by its parent at the deadline.
"""

from __future__ import annotations

import importlib.util
import json
import re
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

MAX_SQL_BYTES = 16_384
"""Longest statement: the planner is not covered by the time limit."""

CPU_SECONDS = 4
ADDRESS_SPACE = 2 << 30
LOAD_ROWS = 150_000
"""Tables up to this many rows (together) are copied into memory, so that the file is out of reach."""

_PLAIN = frozenset({
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "VARCHAR", "BLOB",
})  # fmt: skip
_START: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}
_LOCK = (
    "SET temp_directory=''",
    "SET secret_directory=''",
    "SET memory_limit='256MB'",
    "SET max_execution_time=2000",
    "SET python_enable_replacements=false",
    "SET max_expression_depth=200",
    "SET enable_external_file_cache=false",
    "SET TimeZone='UTC'",
    "SET enable_external_access=false",
    "SET lock_configuration=true",
)


class RefusedError(Exception):
    """The statement is outside the contract; the message says why."""


def limit_process(*, address_space: int = ADDRESS_SPACE, cpu_seconds: int = CPU_SECONDS) -> None:
    """Forbid core files and every file write, cap CPU and memory. Called before DuckDB is imported."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def gate(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the one SELECT or EXPLAIN in `sql`.

    Raises:
        RefusedError: anything else.
    """
    import duckdb  # noqa: PLC0415 - after the limits

    if len(sql.encode("utf-8", errors="replace")) > MAX_SQL_BYTES:
        raise RefusedError(f"a statement of more than {MAX_SQL_BYTES} bytes")
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise RefusedError(f"not SQL: {str(error).splitlines()[0][:200]}") from error
    if len(statements) != 1:
        raise RefusedError("exactly one statement is allowed (PIVOT counts as several)")
    statement = statements[0]
    if statement.type == duckdb.StatementType.EXPLAIN:
        words = statement.query.split(None, 2)
        if len(words) < 3 or words[1].upper() != "SELECT":
            raise RefusedError("EXPLAIN is allowed for a SELECT and without ANALYZE")
    elif statement.type != duckdb.StatementType.SELECT:
        raise RefusedError(f"only SELECT is allowed, not {statement.type.name}")
    return statement


def sums_up(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Say whether a query gives a row even when it found nothing: an aggregate, EXISTS, a scalar subquery."""
    if re.search(r"\bexists\s*\(|^\s*select\s*\(", sql, re.IGNORECASE):
        return True
    called = {name.casefold() for name in re.findall(r"([A-Za-z_]\w*)\s*\(", sql)}
    return bool(called & _aggregates(connection))


def open_tables(job: dict[str, Any], wanted: set[str]) -> duckdb.DuckDBPyConnection:
    """Open the wanted tables: copied into memory when small, else the file read-only."""
    import duckdb  # noqa: PLC0415

    rows = {str(name): int(count) for name, count in job["tables"].items()}
    use = sorted(name for name in rows if name.casefold() in wanted)
    if sum(rows[name] for name in use) > LOAD_ROWS:
        return duckdb.connect(job["file"], read_only=True, config=_START)
    connection = duckdb.connect(":memory:", config=_START)
    connection.execute("SET memory_limit='512MB'; SET temp_directory=''")
    file = str(job["file"]).replace("'", "''")
    connection.execute(f"ATTACH '{file}' AS snapshot (READ_ONLY)")
    for name in use:
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {quoted} AS FROM snapshot.main.{quoted}")
    connection.execute("DETACH snapshot")
    return connection


def say_started() -> None:
    """Tell the parent that what follows is the work; the time of the start is the machine's."""
    sys.stdout.write("\n")
    sys.stdout.flush()


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Carry out one job: `file`, `tables` (name to rows), `columns`, `sql`, `limit` and byte caps."""
    import duckdb  # noqa: PLC0415

    say_started()
    encode = _module("cells", job["cells"]).encode_cell
    reading = _module("reading", job["reading"])
    parser = duckdb.connect(":memory:", config=_START)
    statement = gate(parser, job["sql"])
    explain = statement.type == duckdb.StatementType.EXPLAIN
    summing = sums_up(parser, statement.query)
    tree = parse_tree(parser, statement.query, explain=explain)
    columns = {str(name).casefold(): list(names) for name, names in job["columns"].items()}
    refuse_what_changes(parser, reading, tree, columns)
    wanted = reading.tables_read(tree) & columns.keys()
    aggregates = _aggregates(parser)
    parser.close()
    connection = open_tables(job, wanted)
    for setting in _LOCK:
        connection.execute(setting)
    sql = statement.query.rstrip().rstrip(";")
    if not explain:
        relation = connection.sql(sql)
        names, types = list(relation.columns), [str(kind) for kind in relation.types]
        parts = [
            f"#{index}" if kind in _PLAIN else f"CAST(#{index} AS VARCHAR)"
            for index, kind in enumerate(types, 1)
        ]
        sql = f"SELECT {', '.join(parts)} FROM ({sql}\n)"  # noqa: S608 - the gate has let one SELECT through
    else:
        names, types = ["part", "plan"], ["VARCHAR", "VARCHAR"]
    cursor = connection.execute(sql)
    answer = _fetch(cursor, names, types, job, encode)
    shown: dict[str, bool] = {}
    if not explain:
        shown = reading.shown_references(tree, columns, aggregates, answer["rows"], len(answer["columns"]))
    used = sorted(reading.names_used(tree))
    return {**answer, "tables": sorted(wanted), "summing": summing, "shown": shown, "used": used}


def parse_tree(connection: duckdb.DuckDBPyConnection, sql: str, *, explain: bool) -> Any:
    """Return DuckDB's parse tree of a SELECT; None when it gives none."""
    text = re.sub(r"^\s*EXPLAIN\s+", "", sql, flags=re.IGNORECASE) if explain else sql
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchone()
    try:
        tree = json.loads(row[0]) if row else None
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) and not tree.get("error") else None


def refuse_what_changes(
    connection: duckdb.DuckDBPyConnection, reading: Any, tree: Any, columns: dict[str, list[str]]
) -> None:
    """Refuse what would answer otherwise when it is asked again.

    Raises:
        RefusedError: the text depends on the moment, on chance or on this process.
    """
    if tree is None:
        raise RefusedError("its parts cannot be told apart, so whether it is repeatable is not known")
    catalogue = connection.execute(
        "SELECT function_name, function_type, stability, len(parameters), has_side_effects, macro_definition "
        "FROM duckdb_functions()"
    ).fetchall()
    read = reading.tables_read(tree)
    names = {column.casefold() for table, own in columns.items() if table in read for column in own}
    found = reading.what_changes(tree, reading.volatile_functions(catalogue), names)
    if found is not None:
        raise RefusedError(f"{found} answers otherwise at another time; ask for what the tables hold")


def _aggregates(connection: duckdb.DuckDBPyConnection) -> set[str]:
    rows = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
    ).fetchall()
    return {str(name).casefold() for (name,) in rows}


def _fetch(
    cursor: duckdb.DuckDBPyConnection,
    names: list[str],
    types: list[str],
    job: dict[str, Any],
    encode: Any,
) -> dict[str, Any]:
    rows: list[list[Any]] = []
    used, more = 0, False
    while len(rows) < job["limit"]:
        fetched = cursor.fetchmany(1)
        if not fetched:
            break
        row = [encode(cell, job["cell_limit"]) for cell in fetched[0]]
        used += len(json.dumps(row))
        if used > job["byte_limit"]:
            more = True
            break
        rows.append(row)
    else:
        more = bool(cursor.fetchmany(1))
    return {"columns": names, "types": types, "rows": rows, "more": more}


def _module(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RefusedError(f"{name}.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Read the job, answer with one JSON document; any failure is an answer too."""
    job = json.loads(sys.stdin.read())
    limit_process()
    try:
        answer = run(job)
    except RefusedError as error:
        answer = {"refused": str(error)}
    except MemoryError:
        answer = {"failed": "out of memory", "limit": True}
    except Exception as error:  # noqa: BLE001 - the parent must hear of every failure as data
        text = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        limit = type(error).__name__ in {"InterruptException", "OutOfMemoryException"}
        answer = {"failed": text, "limit": limit}
    sys.stdout.write(json.dumps(answer, allow_nan=False))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    main()
