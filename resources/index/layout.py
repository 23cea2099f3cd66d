"""The files of the evidence index and what counts among them (docs/index.md).

    current.json            the segments, their replaced units, the name of the journal; replaced in one step
    journal-NNNNNN.jsonl    one line per publication since the last compaction; a line counts when complete
    parts/XX/...            one Parquet file a table of a publication
    segments/NNNNNN-...     many units merged, one Parquet file a table and one of its units

A reader takes `current.json`, then the journal that it names, and knows exactly which files count: nothing is
listed, so that no unit can vanish between two names. Writers append under a lock held for milliseconds. Files
that no longer count stay for `GRACE_S`; a reader that was slower than that takes a new view.

Nothing is synced to the disk: after a power loss `viano index rebuild` makes the index again, and a file that
cannot be read is named, never skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from resources.index.tables import TABLES
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import PackageError

GRACE_S = 900.0
"""Seconds a superseded file stays for readers that still use it."""

TABLES_VERSION = sha256_hex(
    canonical_json({name: [[f.name, str(f.type)] for f in schema] for name, schema in TABLES.items()})
)[:16]
"""Names the columns of this release; an index with others is made again."""

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by table."""


class Segment(NamedTuple):
    """Merged units: table to file, how many units, and which were replaced since (their rows are dead)."""

    name: str
    units: int
    dead: tuple[str, ...]
    files: Mapping[str, str]


class Entry(NamedTuple):
    """One publication of a unit: table to file below the index."""

    unit: str
    generation: int
    files: Mapping[str, str]


class Current(NamedTuple):
    """The content of `current.json`.

    `trash` holds (file, seconds since the epoch when it was superseded), `tables` names the columns that the
    files have.
    """

    number: int
    segments: tuple[Segment, ...]
    trash: tuple[tuple[str, float], ...]
    tables: str = TABLES_VERSION

    @property
    def journal(self) -> str:
        """The journal that continues this state."""
        return f"journal-{self.number:06d}.jsonl"


class View(NamedTuple):
    """What a reader goes by: the merged segments and the newest publication of every unit since."""

    current: Current
    entries: Mapping[str, Entry]
    lines: tuple[Entry, ...]

    def sources(self, table: str) -> list[tuple[tuple[str, ...], frozenset[str]]]:
        """Return groups of files of a table with the units to leave out of them."""
        fresh = tuple(e.files[table] for e in self.entries.values() if table in e.files)
        groups: dict[frozenset[str], list[str]] = {}
        for segment in self.current.segments:
            if table in segment.files:
                dead = frozenset(segment.dead) | frozenset(self.entries)
                groups.setdefault(dead, []).append(segment.files[table])
        found = [(tuple(files), dead) for dead, files in groups.items()]
        return [*found, (fresh, frozenset())] if fresh else found


class Layout:
    """Reads and flips the state below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def view(self) -> View:
        """Take the state as it stands.

        Raises:
            PackageError: `index_damaged`.
        """
        current = self.current()
        lines = self._journal(current)
        while lines is None:
            before, current = current, self.current()
            lines = self._journal(current)
            if lines is None and before == current:
                raise damaged(self.root / current.journal, "the journal is missing")
        newest: dict[str, Entry] = {}
        for entry in lines:
            known = newest.get(entry.unit)
            if known is None or entry.generation >= known.generation:
                newest[entry.unit] = entry
        return View(current, newest, tuple(lines))

    def current(self) -> Current:
        """Return the merged state; an index that was never written is empty."""
        path = self.root / "current.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            segments = tuple(
                Segment(item["name"], item["units"], tuple(item["dead"]), item["files"])
                for item in document["segments"]
            )
            trash = tuple((str(name), float(since)) for name, since in document["trash"])
            return Current(int(document["number"]), segments, trash, str(document["tables"]))
        except FileNotFoundError:
            return Current(0, (), ())
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(path, "the state cannot be read") from error

    def _journal(self, current: Current) -> list[Entry] | None:
        """Return the complete lines; None when the journal was compacted away after `current` was read."""
        try:
            data = (self.root / current.journal).read_bytes()
        except FileNotFoundError:
            return [] if current.number == 0 and not (self.root / "current.json").exists() else None
        complete = data[: data.rfind(b"\n") + 1]
        found = []
        for line in complete.splitlines():
            try:
                item = json.loads(line)
                found.append(Entry(item["unit"], item["generation"], item["files"]))
            except (ValueError, KeyError, TypeError) as error:
                raise damaged(self.root / current.journal, "a line cannot be read") from error
        return found

    @contextmanager
    def lock(self, name: str = "lock", *, wait: bool = True) -> Iterator[bool]:
        """Hold an exclusive lock of the index; with `wait` False yield False when it is taken."""
        self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(descriptor)

    def append(self, entries: Sequence[Entry]) -> int:
        """Make publications count and return how many lines the journal holds; call with the lock held."""
        if not (self.root / "current.json").exists():
            self.flip(Current(0, (), ()))
        path = self.root / self.current().journal
        with path.open("r+b") as file:
            data = file.read()
            file.seek(data.rfind(b"\n") + 1)
            file.truncate()
            file.write(
                b"".join(json.dumps(entry._asdict(), sort_keys=True).encode() + b"\n" for entry in entries)
            )
        return data.count(b"\n") + len(entries)

    def flip(self, current: Current, continued: Sequence[Entry] = ()) -> None:
        """Replace the state, with a journal that holds `continued`; call with the lock held."""
        lines = "".join(json.dumps(entry._asdict(), sort_keys=True) + "\n" for entry in continued)
        (self.root / current.journal).write_text(lines, encoding="utf-8")
        document = {
            "schema": "evidence-index-v2",
            "number": current.number,
            "tables": current.tables,
            "segments": [segment._asdict() for segment in current.segments],
            "trash": current.trash,
        }
        work = self.root / f".current-{os.getpid()}"
        work.write_text(json.dumps(document, sort_keys=True), encoding="utf-8")
        work.replace(self.root / "current.json")

    def emptied(self, trash: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
        """Delete what has been superseded for longer than the grace and return the rest."""
        kept = []
        for name, since in trash:
            if 0 <= time.time() - since < GRACE_S:
                kept.append((name, since))
                continue
            (self.root / name).unlink(missing_ok=True)
        return tuple(kept)


def damaged(path: Path, message: str) -> PackageError:
    """Return the error of an index that cannot be read."""
    return PackageError("index_damaged", message, where=str(path), hint="make it again: viano index rebuild")
