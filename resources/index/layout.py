"""The files of the evidence index and what counts among them (docs/index.md).

    current.json            the segments, their replaced units, the name of the journal; replaced in one step
    journal-NNNNNN.jsonl    one line per publication since the last compaction; a line counts when complete
    parts/XX/...            one Parquet file a table of a publication
    segments/NNNNNN-...     many units merged, one Parquet file a table and one of its units

A reader takes `current.json`, then the journal that it names, and knows exactly which files count: nothing is
listed, so that no unit can vanish between two names. Writers append under a lock held for milliseconds. Files
that no longer count stay for `GRACE_S`; a reader that was slower than that takes a new view.

Every file is named with its SHA-256. Nothing is synced to the disk: a state that cannot be read is set aside
(`damaged/`) and the index made again from the packages; a damaged file is named, never skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    """Merged units: table to file, how many units, and which were replaced since (their rows are dead).

    `sums` holds the SHA-256 of every file, that of the units' names included.
    """

    name: str
    units: int
    dead: tuple[str, ...]
    files: Mapping[str, str]
    sums: Mapping[str, str]


class Entry(NamedTuple):
    """One publication of a unit: table to file below the index, and the SHA-256 of every file."""

    unit: str
    generation: int
    files: Mapping[str, str]
    sums: Mapping[str, str]


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

    def sums(self, tables: Collection[str] | None = None) -> dict[str, str]:
        """Return the SHA-256 of the files that count, of all or of some tables."""
        parts: list[Segment | Entry] = [*self.current.segments, *self.entries.values()]
        if tables is None:
            return {name: sha256 for part in parts for name, sha256 in part.sums.items()}
        named = ((part.files[table], part) for part in parts for table in tables if table in part.files)
        return {name: part.sums[name] for name, part in named if name in part.sums}


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
            segments = tuple(_segment(item) for item in document["segments"])
            trash = tuple((_file(name), float(since)) for name, since in document["trash"])
            return Current(_count(document["number"]), segments, trash, _text(document["tables"]))
        except FileNotFoundError as error:
            if any(int(found[1]) for found in map(_JOURNAL.fullmatch, self._names()) if found):
                raise damaged(path, "the state is missing") from error
            return Current(0, (), ())
        except _MALFORMED as error:
            raise damaged(path, "the state cannot be read") from error

    def _names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir()) if self.root.is_dir() else []

    def _journal(self, current: Current) -> list[Entry] | None:
        """Return the complete lines; None when the journal was compacted away after `current` was read."""
        try:
            data = (self.root / current.journal).read_bytes()
        except FileNotFoundError:
            return [] if current.number == 0 and not (self.root / "current.json").exists() else None
        except OSError as error:
            raise damaged(self.root / current.journal, "the journal cannot be read") from error
        complete = data[: data.rfind(b"\n") + 1]
        try:
            return [_entry(json.loads(line)) for line in complete.splitlines()]
        except _MALFORMED as error:
            raise damaged(self.root / current.journal, "a line cannot be read") from error

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
        current = self.current()
        if not (self.root / "current.json").exists():
            self.flip(current)
        path = self.root / current.journal
        try:
            opened = path.open("r+b")
        except (FileNotFoundError, IsADirectoryError) as error:
            raise damaged(path, "the journal is missing") from error
        with opened as file:
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
            "schema": "evidence-index-v3",
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

    def prepare(self) -> None:
        """Make the folders, moving whatever stands in their place out of the way."""
        if self.root.exists() and not self.root.is_dir():
            _away(self.root)
        for folder in (self.root, self.root / "parts", self.root / "segments"):
            if folder.exists() and not folder.is_dir():
                _away(folder)
            folder.mkdir(parents=True, exist_ok=True)
        for shard in sorted((self.root / "parts").iterdir()):
            if _SHARD.fullmatch(shard.name) and not shard.is_dir():
                _away(shard)
        for name in LOCKS:
            if (self.root / name).is_dir():
                _away(self.root / name)

    def set_aside(self) -> None:
        """Move a state that cannot be read into `damaged/` and begin an empty one; call with the lock held.

        The Parquet files stay for the readers of the old state and go at the next rebuild.
        """
        aside = self.root / "damaged"
        if aside.is_dir():
            shutil.rmtree(aside)
        aside.unlink(missing_ok=True)
        aside.mkdir()
        number = 0
        for path in sorted(self.root.iterdir()):
            journal = _JOURNAL.fullmatch(path.name)
            if journal:
                number = max(number, int(journal[1]))
            if journal or path.name == "current.json":
                path.rename(aside / path.name)
        self.flip(Current(number + 1, (), ()))


LOCKS = ("lock", "compaction")
_SHARD = re.compile(r"[0-9a-f]{2}")
_JOURNAL = re.compile(r"journal-(\d{6,18})\.jsonl", re.ASCII)
_FILE = re.compile(r"(?:parts/[0-9a-f]{2}|segments)/[^/\x00]+\.parquet|journal-\d{6,18}\.jsonl", re.ASCII)
_MALFORMED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


def _away(path: Path) -> None:
    target = path.with_name(f"{path.name}.damaged")
    if target.is_dir():
        shutil.rmtree(target)
    path.rename(target)


def _segment(item: Mapping[str, Any]) -> Segment:
    dead = tuple(_text(unit) for unit in item["dead"])
    return Segment(_text(item["name"]), _count(item["units"]), dead, _files(item["files"]), _sums(item))


def _entry(item: Mapping[str, Any]) -> Entry:
    return Entry(_text(item["unit"]), _count(item["generation"]), _files(item["files"]), _sums(item))


def _files(files: Mapping[str, Any]) -> dict[str, str]:
    return {_text(table): _file(name) for table, name in files.items()}


def _sums(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes; an earlier release wrote none, and its tables are outdated anyway."""
    return {_file(name): _text(sha256) for name, sha256 in item.get("sums", {}).items()}


def _file(value: object) -> str:
    """Return a name that stays in the index: what is named may be read and deleted."""
    name = _text(value)
    if not _FILE.fullmatch(name):
        raise ValueError(name)
    return name


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(value)
    return value


def damaged(path: Path, message: str) -> PackageError:
    """Return the error of an index that cannot be read."""
    return PackageError("index_damaged", message, where=str(path), hint="make it again: viano index rebuild")
