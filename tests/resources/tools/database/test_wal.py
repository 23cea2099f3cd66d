"""SQLite with what stands beside it: rows that are in the log only, half-written pages, missing logs."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from resources.tools.database.catalog import Table
from resources.tools.database.snapshot import Snapshot
from tests.support.snapshots import rows_of, snapshot_of

SUFFIXES = ("", "-wal", "-shm")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A database copied while it is open: row 1 is in the file, row 2 only in the log."""
    folder = tmp_path_factory.mktemp("live")
    connection = sqlite3.connect(folder / "w.db")
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("CREATE TABLE quest (id INTEGER PRIMARY KEY, title TEXT)")
    connection.execute("CREATE VIEW v AS SELECT 1")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(t)")
    connection.execute("INSERT INTO quest VALUES (1, 'old')")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("INSERT INTO quest VALUES (2, 'new')")
    connection.commit()
    for suffix in SUFFIXES:
        shutil.copyfile(folder / f"w.db{suffix}", folder / f"x.db{suffix}")
    connection.close()
    return {suffix: (folder / f"x.db{suffix}").read_bytes() for suffix in SUFFIXES}


def load(folder: Path, parts: dict[str, bytes]) -> tuple[Snapshot, Table]:
    snapshot = snapshot_of(folder, {f"db/w.db{suffix}": raw for suffix, raw in parts.items()})
    table = snapshot.catalog.table("quest")
    assert table is not None
    return snapshot, table


def test_rows_in_the_log_are_read_and_the_inputs_stay(tmp_path: Path, live: dict[str, bytes]) -> None:
    snapshot, table = load(tmp_path, live)
    assert rows_of(snapshot, "quest") == [(1, "old"), (2, "new")]
    assert table.extent.kind == "full"
    for suffix, raw in live.items():
        stored = (tmp_path / "files" / "db" / f"w.db{suffix}").read_bytes()
        assert hashlib.sha256(stored).digest() == hashlib.sha256(raw).digest()
    folders = [path for path in (tmp_path / "derived").rglob("*") if path.is_dir()]
    assert [folder.name.split("-")[0] for folder in folders] == ["snapshot"]


def test_views_and_virtual_tables_are_listed(tmp_path: Path, live: dict[str, bytes]) -> None:
    snapshot, _ = load(tmp_path, live)
    texts = {entry.text for entry in snapshot.catalog.not_applied}
    assert {"view v", "virtual table words"} <= texts


@pytest.mark.parametrize(
    ("change", "basis"),
    [
        ({"-wal": None}, "was not shipped"),
        ({"-wal": b"\x00" * 64}, "cannot be read"),
        ({"-wal": "another"}, "does not belong"),
        ({"-wal": "torn"}, "not finished or is damaged"),
    ],
)
def test_a_log_that_cannot_be_replayed_makes_the_tables_doubtful(
    tmp_path: Path, live: dict[str, bytes], change: dict[str, bytes | str | None], basis: str
) -> None:
    parts = dict(live)
    del parts["-shm"]
    wanted = change["-wal"]
    if wanted is None:
        del parts["-wal"]
    elif isinstance(wanted, bytes):
        parts["-wal"] = wanted
    elif wanted == "another":
        parts["-wal"] = live["-wal"][:24] + b"\x00" * 8 + live["-wal"][32:]
    else:
        frame = live["-wal"][32:]
        parts["-wal"] = live["-wal"] + frame[:200] + b"\x01" * (len(frame) - 200)
    _, table = load(tmp_path, parts)
    assert table.extent.kind == "unknown"
    assert basis in table.extent.basis


def test_an_empty_log_says_that_nothing_is_missing(tmp_path: Path, live: dict[str, bytes]) -> None:
    _, table = load(tmp_path, {"": live[""], "-wal": b""})
    assert (table.rows, table.extent.kind) == (1, "full")


def test_a_hot_journal_takes_back_half_a_transaction(tmp_path: Path) -> None:
    """The file is copied in the middle of a commit: without its journal it holds rows that never were."""
    source = tmp_path / "j.db"
    connection = sqlite3.connect(source)
    connection.execute("CREATE TABLE quest (id INTEGER PRIMARY KEY, title TEXT)")
    connection.executemany("INSERT INTO quest VALUES (?, ?)", [(i, "x" * 400) for i in range(100)])
    connection.commit()
    connection.execute("PRAGMA cache_size=2")
    connection.execute("PRAGMA cache_spill=1")
    connection.execute("UPDATE quest SET title = 'changed'")
    parts = {s: (tmp_path / f"j.db{s}").read_bytes() for s in ("", "-journal")}
    connection.rollback()
    connection.close()
    assert b"changed" in parts[""]
    snapshot, table = load(tmp_path / "load", parts)
    assert {row[1] for row in rows_of(snapshot, "quest")} == {"x" * 400}
    assert (table.rows, table.extent.kind) == (100, "full")
    several = parts["-journal"] + b"\x00" * 8 + bytes.fromhex("d9d505f920a163d7")
    _, other = load(tmp_path / "several", {"": parts[""], "-journal": several})
    assert (other.extent.kind, "several files" in other.extent.basis) == ("unknown", True)
