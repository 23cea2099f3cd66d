"""An SQLite file together with what stands beside it: its write-ahead log or its rollback journal.

Rows that were committed last stand in the `-wal` only, and a hot `-journal` takes back half-written pages.
Both are replayed by SQLite itself on a copy; the inputs stay as they are. Where that cannot be done, or the
log that belongs to the file was not shipped, the reason is returned and the tables are not whole.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote as url_quote

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER = 32
_FRAME_HEADER = 24
_WAL_MODE = b"\x02\x02"


class Beside(NamedTuple):
    """Files beside a database, where they were shipped."""

    wal: Path | None = None
    journal: Path | None = None


class Opened(NamedTuple):
    """A database that can be read; `doubt` says why its newest rows may be missing."""

    connection: sqlite3.Connection
    doubt: str | None


@contextmanager
def open_database(file: Path, beside: Beside, scratch: Path) -> Iterator[Opened]:
    """Open a database as it was when it was copied, without changing any input.

    Args:
        file: the database.
        beside: what was shipped beside it.
        scratch: an existing directory for a copy; emptied afterwards.
    """
    wal = beside.wal if beside.wal is not None and beside.wal.stat().st_size else None
    journal = beside.journal if beside.journal is not None and _hot(beside.journal) else None
    shared = journal is not None and _names_another(journal)
    if shared or (wal is None and journal is None):
        address = f"file:{url_quote(str(file))}?mode=ro&immutable=1"
        doubt = "its -journal belongs to a transaction over several files" if shared else None
        with closing(sqlite3.connect(address, uri=True)) as connection:
            yield Opened(connection, doubt or _mode_doubt(file, beside))
        return
    folder = scratch / "sqlite"
    folder.mkdir()
    try:
        copy = folder / "copy.db"
        shutil.copyfile(file, copy)
        if wal is not None:
            shutil.copyfile(wal, folder / "copy.db-wal")
        if journal is not None:
            shutil.copyfile(journal, folder / "copy.db-journal")
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            yield Opened(connection, None if wal is None else _replayed(connection, file, wal))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mode_doubt(file: Path, beside: Beside) -> str | None:
    if beside.wal is None and _in_wal_mode(file):
        return "it is in WAL mode and its -wal was not shipped: the newest rows may be missing"
    return None


def _in_wal_mode(file: Path) -> bool:
    with file.open("rb") as handle:
        return handle.read(20)[18:20] == _WAL_MODE


def _hot(journal: Path) -> bool:
    with journal.open("rb") as handle:
        return handle.read(8) == _JOURNAL_MAGIC


def _names_another(journal: Path) -> bool:
    """Say whether a journal names a super-journal, which SQLite would look for and delete."""
    with journal.open("rb") as handle:
        handle.seek(-min(8, journal.stat().st_size), 2)
        return handle.read(8) == _JOURNAL_MAGIC and journal.stat().st_size > 16


def _replayed(connection: sqlite3.Connection, file: Path, wal: Path) -> str | None:
    """Return why not every row of the log is visible, or None."""
    with wal.open("rb") as handle:
        header = handle.read(_WAL_HEADER)
        if len(header) < _WAL_HEADER or struct.unpack(">I", header[:4])[0] not in _WAL_MAGIC:
            return "its -wal cannot be read"
        if not _in_wal_mode(file):
            return "a -wal stands beside it, and the file is not in WAL mode"
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        state = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        frames = int(state[1]) if state else 0
        page = struct.unpack(">I", header[8:12])[0]
        handle.seek(_WAL_HEADER + frames * (_FRAME_HEADER + page))
        following = handle.read(_FRAME_HEADER)
    if not frames:
        return "its -wal does not belong to it or is damaged"
    unfinished = following[8:16] == header[16:24]
    return "its -wal ends in a transaction that was not finished or is damaged" if unfinished else None
