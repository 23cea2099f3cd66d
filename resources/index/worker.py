"""The throw-away process that answers one question to the evidence index (docs/index.md).

It is started as `python -I worker.py` with the index as its folder, reads its job from standard input, limits
itself, lets DuckDB see exactly the files that count, locks it and writes one JSON document. The gate and the
process limits are those of the model's database tool, loaded from the path the job gives.
"""

from __future__ import annotations

import datetime as dt
import decimal
import importlib.util
import json
import math
import sys
from pathlib import Path
from typing import Any

LOCK = (
    "SET temp_directory=''",
    "SET secret_directory=''",
    "SET memory_limit='1GB'",
    "SET python_enable_replacements=false",
    "SET max_expression_depth=200",
    "SET enable_external_file_cache=false",
    "SET enable_external_access=false",
    "SET lock_configuration=true",
)
BATCH = 512
FILE_ERRORS = frozenset(
    {"IOException", "InvalidInputException", "HTTPException", "SerializationException", "InternalException"}
)
"""What DuckDB raises when a file is gone or is not Parquet."""


def cell(value: Any, limit: int) -> Any:
    """Return a value as JSON; text is cut at `limit` characters, what JSON does not know becomes text."""
    match value:
        case None | bool() | int():
            shown: Any = value
        case float() | decimal.Decimal():
            shown = float(value) if math.isfinite(value) else str(value)
        case list() | tuple():
            shown = [cell(item, limit) for item in value]
        case dict():
            shown = {str(key): cell(item, limit) for key, item in value.items()}
        case dt.date() | dt.time():
            shown = value.isoformat()
        case _:
            text = str(value)
            shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return shown


def run(job: dict[str, Any], base: Any) -> dict[str, Any]:
    """Carry out one job: `views` (CREATE VIEW statements), `files`, `sql`, `limit`, `cell_limit`, `bytes`."""
    import duckdb  # noqa: PLC0415 - after the limits

    base.say_started()
    connection = duckdb.connect(":memory:", config={**base._START, "threads": 2})  # noqa: SLF001
    statement = base.gate(connection, job["sql"])
    for view in job["views"]:
        connection.execute(view)
    connection.execute(f"SET allowed_paths={_list(job['files'])}")
    for setting in LOCK:
        connection.execute(setting)
    cursor = connection.execute(statement)
    names = [str(column[0]) for column in cursor.description or []]
    rows: list[list[Any]] = []
    used = 0
    while fetched := cursor.fetchmany(min(BATCH, job["limit"] + 1 - len(rows))):
        for values in fetched:
            row = [cell(value, job["cell_limit"]) for value in values]
            used += len(json.dumps(row))
            if used > job["bytes"] or len(rows) == job["limit"]:
                return {"columns": names, "rows": rows, "more": True}
            rows.append(row)
    return {"columns": names, "rows": rows, "more": False}


def _list(names: list[str]) -> str:
    return "[" + ",".join("'" + name.replace("'", "''") + "'" for name in names) + "]"


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Limit this process and carry out the job; any failure is an answer too."""
    spec = importlib.util.spec_from_file_location("base_worker", job["base"])
    if spec is None or spec.loader is None:
        return {"failed": "the query process is not installed completely"}
    base = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(base)
    base.limit_process(address_space=job["address_space"], cpu_seconds=job["cpu_seconds"])
    try:
        return run(job, base)
    except base.RefusedError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"failed": "out of memory", "limit": True}
    except Exception as error:  # noqa: BLE001 - the parent must hear of every failure as data
        text = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        name = type(error).__name__
        return {
            "failed": text,
            "limit": name in {"InterruptException", "OutOfMemoryException"},
            "file": name in FILE_ERRORS,
        }


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    sys.stdout.write(json.dumps(answer(json.loads(sys.stdin.read())), allow_nan=False))
    sys.stdout.flush()
