"""Runs one SELECT in a throw-away process and ends it at the deadline, whatever it does."""

from __future__ import annotations

import json
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from resources.tools.database import cells, reading, worker
from resources.tools.database.snapshot import Snapshot

DEADLINE_S = 5.0
"""Wall seconds after which a process that has started is killed."""

START_S = 30.0
"""Wall seconds a process may take to start on a machine that does other work."""

MAX_OUTPUT = 4 << 20
_LINK = "snapshot"
"""The only name in the directory of the process."""

_MOUNT = ("-rnm", "sh", "-c", f'mount --bind "$0" {_LINK} && exec "$@"')
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class QueryAnswer(NamedTuple):
    """What came of a query.

    `refused`: outside the contract. `failed`: an error of DuckDB. `timeout`: ended at a time or memory
    limit. Otherwise `columns`, `types`, `rows` (JSON cells), `more` (a cap was reached), the tables read,
    whether the query sums up, so that it gives a row even when it found nothing, the folded names of
    tables of which the result shows a row wherever it reads them, and the folded names of columns it uses
    (`*`: any).
    """

    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    more: bool = False
    tables: tuple[str, ...] = ()
    summing: bool = False
    shown: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    refused: str | None = None
    failed: str | None = None
    timeout: bool = False


@cache
def isolation() -> Literal["mount", "network", "none"]:
    """Find out what the system lets an ordinary process cut off: its view of the files' places, its network.

    With mount namespaces the snapshot appears under a neutral name; elsewhere a query over a large table can
    read where the cache lies, and nothing else.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        return "none"
    with tempfile.TemporaryDirectory(prefix="viano-probe-") as place:
        for name in ("a", _LINK):
            (Path(place) / name).touch()
        if _works([unshare, *_MOUNT, str(Path(place) / "a"), "true"], place):
            return "mount"
        return "network" if _works([unshare, "-rn", "true"], place) else "none"


def _works(command: list[str], place: str) -> bool:
    done = subprocess.run(  # noqa: PLW1510 - its failure is the answer
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, cwd=place
    )
    return done.returncode == 0


def _command(snapshot: Path, place: Path) -> list[str]:
    """Return the command that runs the worker in `place`, with the snapshot there as `_LINK`."""
    python = [sys.executable, "-I", str(Path(worker.__file__))]
    cut_off = isolation()
    if cut_off == "mount":
        (place / _LINK).touch()
        return ["unshare", *_MOUNT, str(snapshot), *python]
    (place / _LINK).symlink_to(snapshot)
    return ["unshare", "-rn", *python] if cut_off == "network" else python


def select(
    snapshot: Snapshot, sql: str, limit: int, *, deadline: float = DEADLINE_S, cell_limit: int = 4_000
) -> QueryAnswer:
    """Run one SELECT over the snapshot's tables.

    Args:
        snapshot: the loaded tables.
        sql: untrusted text.
        limit: most rows to return.
        deadline: wall seconds.
        cell_limit: most characters of one cell.
    """
    job = {
        "file": _LINK,
        "tables": {table.name: table.rows for table in snapshot.catalog.tables},
        "sql": sql,
        "limit": limit,
        "cell_limit": cell_limit,
        "byte_limit": 200_000,
        "cells": cells.__file__,
        "reading": reading.__file__,
        "columns": {table.name: list(table.column_names) for table in snapshot.catalog.tables},
    }
    with tempfile.TemporaryDirectory(prefix="viano-query-") as empty:
        process = subprocess.Popen(
            _command(snapshot.file.resolve(), Path(empty)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=empty,
            env={"PATH": _PATH},
        )
        output = talk(process, json.dumps(job).encode(), deadline)
    return _read(output)


def talk(
    process: subprocess.Popen[bytes], job: bytes, deadline: float, *, max_output: int = MAX_OUTPUT
) -> bytes | None:
    """Give the job, collect the output; None when the deadline or the output cap was reached.

    The deadline counts from the first byte, which says that the process has started.
    """
    end = time.monotonic() + START_S
    collected = bytearray()
    if process.stdin is None or process.stdout is None:
        return None
    try:
        try:
            process.stdin.write(job)
            process.stdin.close()
        except BrokenPipeError:
            return b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while (left := end - time.monotonic()) > 0:
                if not selector.select(left):
                    return None
                piece = process.stdout.read1(1 << 16)  # type: ignore[attr-defined]  # a BufferedReader
                if not piece:
                    return bytes(collected)
                if not collected:
                    end = time.monotonic() + deadline
                collected += piece
                if len(collected) > max_output:
                    return None
        return None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _read(output: bytes | None) -> QueryAnswer:
    if output is None:
        return QueryAnswer(timeout=True, failed="stopped at the deadline")
    if not output.strip():
        return QueryAnswer(timeout=True, failed="ended at its CPU or memory limit")
    try:
        answer = json.loads(output)
    except ValueError:
        return QueryAnswer(failed="the query process gave no answer")
    if "refused" in answer:
        return QueryAnswer(refused=answer["refused"])
    if "failed" in answer:
        return QueryAnswer(failed=answer["failed"], timeout=bool(answer.get("limit")))
    return QueryAnswer(
        columns=tuple(answer["columns"]),
        types=tuple(answer["types"]),
        rows=tuple(tuple(row) for row in answer["rows"]),
        more=bool(answer["more"]),
        tables=tuple(answer["tables"]),
        summing=bool(answer["summing"]),
        shown=frozenset(name for name, shown in answer["shown"].items() if shown),
        used=frozenset(answer["used"]),
    )
