"""The generated dump in a MariaDB server of its own, where one is installed: every cell again."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.tools.database.naming import quote
from resources.tools.database.snapshot import Snapshot

PROGRAMS = ("mariadbd", "mariadb", "mariadb-install-db")
START_S = 60


def installed() -> bool:
    """Say whether a server can be started here."""
    return all(shutil.which(program) for program in PROGRAMS)


@contextmanager
def server(folder: Path) -> Iterator[list[str]]:
    """Run a server without network in `folder` and yield the client's command."""
    data, socket = folder / "data", folder / "socket"
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db", "--user=root"],
        check=True, capture_output=True,
    )  # fmt: skip
    running = subprocess.Popen(
        [
            "mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking",
            "--skip-grant-tables", "--user=root", "--character-set-server=utf8mb4",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    client = ["mariadb", "--no-defaults", f"--socket={socket}", "--default-character-set=utf8mb4", "--batch"]
    try:
        _await(client)
        yield client
    finally:
        running.terminate()
        running.wait(START_S)


def _await(client: list[str]) -> None:
    end = time.monotonic() + START_S
    while subprocess.run([*client, "-e", "SELECT 1"], capture_output=True, check=False).returncode:
        if time.monotonic() > end:
            raise RuntimeError("the MariaDB server did not start")
        time.sleep(0.2)


def differing_cells(folder: Path, dump: Path, snapshot: Snapshot, tables: int, kinds: Sequence[str]) -> int:
    """Load the dump into a server and compare every cell of every table with the snapshot's.

    Args:
        folder: a place for the server's files.
        dump: the dump, with tables `t0`, `t1`, … ordered by their first column.
        snapshot: what was read of the same dump.
        tables: number of tables.
        kinds: per column `int`, `real`, `text` or `binary`.
    """
    with server(folder) as client:
        subprocess.run([*client, "-e", "CREATE DATABASE world"], check=True)
        with dump.open("rb") as script:
            subprocess.run([*client, "world"], stdin=script, check=True)
        with snapshot.connect(3_600) as connection:
            return sum(_table(client, connection, f"t{number}", kinds) for number in range(tables))


def _table(client: list[str], connection: Any, table: str, kinds: Sequence[str]) -> int:
    """Compare one table; the server's cells come as hexadecimal digits, so that no escape can hide."""
    ours = connection.execute(f"SELECT * FROM {quote(table)} ORDER BY 1").fetchall()
    names = [column[0] for column in connection.description]
    cells = ", ".join(f"IFNULL(HEX(CAST(`{name}` AS BINARY)), '-')" for name in names)
    asked = [
        *client,
        "--skip-column-names",
        "world",
        "-e",
        f"SELECT {cells} FROM `{table}` ORDER BY `{names[0]}`",
    ]
    theirs = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()
    differ = abs(len(theirs) - len(ours)) * len(kinds)
    for line, row in zip(theirs, ours, strict=False):
        cells_there = line.split("\t")
        differ += sum(
            _value(cell, kind) != same(mine) for cell, kind, mine in zip(cells_there, kinds, row, strict=True)
        )
    return differ


def _value(cell: str, kind: str) -> Any:
    if cell == "-":
        return None
    if kind == "binary":
        return "0x" + cell
    text = bytes.fromhex(cell).decode("utf-8")
    return int(text) if kind == "int" else float(text) if kind == "real" else text


def same(value: Any) -> Any:
    """Return a cell of the snapshot as it is compared: numbers and texts as they are, all else as text."""
    return value if value is None or isinstance(value, int | float | str) else str(value)
