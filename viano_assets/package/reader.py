"""Finding, decoding and validating heads. Nothing here writes.

A lookup reads, always from disk and always hashed: every record from the newest back to its snapshot, the
sealed history segments, and every live byte. A cache keyed by hash only saves decoding what was hashed.
Content that no live path names is not read, so damage to it is found by the audit alone.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from viano_assets.canonical import sha256_hex
from viano_assets.errors import PackageError
from viano_assets.package import container
from viano_assets.package.container import Member
from viano_assets.package.files import Containers, hash_file
from viano_assets.package.filesystem import FileSystem, raise_reading
from viano_assets.package.history import History, SealedSegment
from viano_assets.package.layout import CasePaths, Listing, read_listing
from viano_assets.package.limits import PackageLimits
from viano_assets.package.model import FileEntry, Head
from viano_assets.package.record import Record, Segment, Stored, decode

_CACHED_RECORDS = 4_096
_RECORD_GUESS = 8_192


class Files(Mapping[str, FileEntry]):
    """The live files as the model shows them, over the stored places."""

    def __init__(self, entries: Mapping[str, Stored]) -> None:
        self._entries = entries

    def __getitem__(self, path: str) -> FileEntry:
        stored = self._entries[path]
        return FileEntry(stored.sha256, stored.size)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: object) -> bool:
        return path in self._entries


class Link(NamedTuple):
    """One generation of the chain that a head stands on, with the hash of its record."""

    generation: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredHead(Head):
    """A head with the places of its content; `chain` runs from the snapshot to the head."""

    entries: Mapping[str, Stored] = field(repr=False, compare=False)
    segments: tuple[Segment, ...] = field(repr=False, compare=False)
    chain: tuple[Link, ...] = field(repr=False, compare=False)
    total_bytes: int = field(repr=False, compare=False)

    def raw_inputs(self) -> dict[str, str]:
        """Return path to SHA-256 of every raw input."""
        return {path: stored.sha256 for path, stored in self.entries.items() if stored.raw}


class PackageReader:
    """Reads packages below one file system; the caches belong to one case at a time per call."""

    def __init__(self, filesystem: FileSystem, limits: PackageLimits, key: bytes | None) -> None:
        self._filesystem = filesystem
        self._limits = limits
        self._key = key
        self._records: dict[str, Record] = {}
        self._segments: dict[str, SealedSegment] = {}
        self._heads: dict[str, StoredHead] = {}

    def listing(self, paths: CasePaths) -> Listing:
        """List the generations.

        Raises:
            PackageError: `no_generation`, `artifact_missing` or what `read_listing` raises.
        """
        try:
            entries = self._filesystem.scan(paths.generations)
        except OSError as error:
            raise_reading(error, paths.generations)
        listing = read_listing(entries, paths.generations)
        if not listing.newest:
            raise PackageError(
                "no_generation", "the case directory holds no generation", where=paths.generations
            )
        return listing

    def numbers_leniently(self, paths: CasePaths) -> list[int]:
        """Return the generation numbers among names of which some may be malformed."""
        found = []
        for entry in self._filesystem.scan(paths.generations):
            with contextlib.suppress(PackageError):
                found += read_listing([entry], paths.generations).numbers
        return found

    def records(self, paths: CasePaths, head: StoredHead) -> Iterator[tuple[bytes, Record]]:
        """Yield raw bytes and decoded form of every record from generation 1 to the head.

        Raises:
            PackageError: the chain does not end at the head.
        """
        previous: Record | None = None
        for number in range(1, head.generation + 1):
            containers = self._containers(paths)
            record = self.record(paths, head.case_id, number, None, containers)
            if record.previous != (previous and previous.sha256):
                raise PackageError(
                    "chain_broken", "the record names another predecessor", where=paths.generation(number)
                )
            yield self.record_bytes(number, containers), record
            previous = record
        if previous is None or previous.sha256 != head.record_sha256:
            raise PackageError("chain_broken", "the chain does not end at the head", where=paths.root)

    def named_objects(self, paths: CasePaths, head: StoredHead) -> set[str]:
        """Return the hashes of all objects that any generation names."""
        return {
            stored.sha256
            for _, record in self.records(paths, head)
            for stored in record.put.values()
            if stored.generation == 0
        }

    def newest(self, paths: CasePaths) -> int:
        """Return the highest generation number, compared as a number."""
        return self.listing(paths).newest

    def named_revision(self, paths: CasePaths, case_id: str) -> int:
        """Return the analysis revision that the record of the newest generation names."""
        record = self.record(paths, case_id, self.newest(paths), None, self._containers(paths))
        return record.manifest.analysis_revision

    def load(self, paths: CasePaths, case_id: str, number: int, since: int | None = None) -> StoredHead:
        """Validate generation `number` as a head: identity, chain, history and every live byte.

        `since` is the first generation whose trailer must be keyed; None when no key is in use.
        """
        containers = self._containers(paths)
        head = self.head(paths, case_id, number, since, containers)
        for problem in self.live_problems(paths, head, containers):
            raise problem
        return head

    def head(
        self,
        paths: CasePaths,
        case_id: str,
        number: int,
        since: int | None = None,
        containers: Containers | None = None,
    ) -> StoredHead:
        """Validate everything about a head but the content of its files."""
        opened = containers or self._containers(paths)
        records = self._chain(paths, case_id, number, opened)
        sealed = tuple(self._sealed(paths, s, opened) for s in _snapshot_segments(records[0]))
        head = self._heads.get(records[-1].sha256) or _fold(records, sealed, paths)
        self.check_container(records[-1], opened, since)
        self._check_manifest(head, paths)
        self._remember(records, head)
        return head

    def _remember(self, records: Sequence[Record], head: StoredHead) -> None:
        if len(self._records) > _CACHED_RECORDS:
            self._records.clear()
        if len(self._heads) > 64:
            self._heads.clear()
            self._segments.clear()
        self._records.update((record.sha256, record) for record in records)
        self._heads[head.record_sha256] = head

    def record_bytes(self, number: int, containers: Containers) -> bytes:
        """Return the raw record of one generation."""
        where = containers.path(number)
        start = bytes(containers.piece(number, 0, _RECORD_GUESS))
        size = container.record_size(start, where)
        if size > self._limits.record_bytes:
            raise PackageError("container_damaged", "the record is larger than the limit", where=where)
        if container.RECORD_START + size > len(start):
            start = bytes(containers.piece(number, 0, container.RECORD_START + size))
        return container.read_record(start, self._limits.record_bytes, where)

    def _containers(self, paths: CasePaths) -> Containers:
        return Containers(self._filesystem, paths.generation, self._limits.container_bytes)

    def record(
        self,
        paths: CasePaths,
        case_id: str,
        number: int,
        expected: str | None,
        containers: Containers,
    ) -> Record:
        """Read one record and check its identity and, when `expected` is given, its hash."""
        raw = self.record_bytes(number, containers)
        sha256 = sha256_hex(raw)
        where = paths.generation(number)
        if expected is not None and sha256 != expected:
            raise PackageError("chain_broken", "the next record names another predecessor", where=where)
        record = self._records.get(sha256) or decode(raw, where)
        if record.manifest.case_id != case_id or record.manifest.generation != number:
            raise PackageError(
                "wrong_identity",
                f"the record is of case {record.manifest.case_id!r}, generation {record.manifest.generation}",
                where=where,
            )
        return record

    def _chain(self, paths: CasePaths, case_id: str, number: int, containers: Containers) -> list[Record]:
        newer = record = self.record(paths, case_id, number, None, containers)
        records = [record]
        while record.snapshot is None:
            record = self.record(paths, case_id, record.manifest.generation - 1, record.previous, containers)
            check_successor(record, newer, paths)
            records.append(record)
            newer = record
        records.reverse()
        return records

    def _sealed(self, paths: CasePaths, segment: Segment, containers: Containers) -> SealedSegment:
        data = containers.piece(segment.generation, segment.offset, segment.size)
        where = f"{paths.generation(segment.generation)} history {segment.first}-{segment.last}"
        if len(data) != segment.size or container.digest(data) != segment.sha256:
            raise PackageError("history_damaged", "a history segment does not have its hash", where=where)
        known = self._segments.get(segment.sha256)
        if known is None:
            known = SealedSegment(bytes(data), segment.first, segment.last, where)
            self._segments[segment.sha256] = known
        return known

    def check_container(self, record: Record, containers: Containers, since: int | None) -> None:
        """Check one container byte by byte against its record, content and trailer."""
        number = record.manifest.generation
        file = containers.get(number)
        raw = self.record_bytes(number, containers)
        members = [
            Member(name, bytes(file.read(offset, size))) for offset, size, name in member_places(record)
        ]
        unkeyed = self._key is None or (since is not None and number < since)
        keyed = container.read_trailer(file.whole(), file.path).kind != "sha256"
        key = None if unkeyed and not keyed else self._key
        container.check(file.whole(), raw, members, key, file.path)

    def _check_manifest(self, head: StoredHead, paths: CasePaths) -> None:
        if len(head.entries) > self._limits.files or head.total_bytes > self._limits.total_bytes:
            raise PackageError("package_too_big", "the package exceeds the limits", where=paths.root)
        for name, path in head.manifest.pointers.items():
            if path not in head.entries:
                raise PackageError(
                    "dangling_pointer", f"pointer {name!r} names no live file", where=paths.root
                )

    def live_problems(
        self, paths: CasePaths, head: StoredHead, containers: Containers
    ) -> Iterator[PackageError]:
        """Hash every live byte and yield what is damaged or missing."""
        by_generation: defaultdict[int, dict[Stored, str]] = defaultdict(dict)
        for path, stored in head.entries.items():
            by_generation[stored.generation].setdefault(stored, path)
        for generation in sorted(by_generation):
            for stored, path in by_generation[generation].items():
                try:
                    good = self._intact(paths, stored, containers)
                except PackageError as error:
                    yield error
                    continue
                if not good:
                    place = paths.generation(generation) if generation else paths.object(stored.sha256)
                    yield PackageError(
                        "artifact_damaged",
                        f"the stored bytes of {path!r} are not what the package names",
                        where=place,
                    )

    def _intact(self, paths: CasePaths, stored: Stored, containers: Containers) -> bool:
        if stored.generation == 0:
            return hash_file(self._filesystem, paths.object(stored.sha256)) == stored[:2]
        data = containers.lent(stored.generation).read(stored.offset, stored.size)
        return len(data) == stored.size and container.digest(data) == stored.sha256

    def record_matches(self, paths: CasePaths, head: StoredHead) -> None:
        """Check that the record of `head` on disk still is the one it was read from.

        Raises:
            PackageError: `chain_broken` or what reading the record meets.
        """
        where = paths.generation(head.generation)
        raw = self.record_bytes(head.generation, self._containers(paths))
        if sha256_hex(raw) != head.record_sha256:
            raise PackageError("chain_broken", "the head's record is not the one that was read", where=where)

    def audit_all(self, paths: CasePaths, head: StoredHead, listing: Listing, since: int | None) -> None:
        """Validate every generation from 1 to the head and all content they name.

        Raises:
            PackageError: the first problem.
        """
        for problem in self.history_problems(paths, head, listing, since):
            raise problem

    def history_problems(
        self, paths: CasePaths, head: StoredHead, listing: Listing, since: int | None
    ) -> Iterator[PackageError]:
        """Yield everything wrong with the obsolete generations, newest first."""
        missing = set(range(1, head.generation + 1)) - set(listing.numbers)
        for number in sorted(missing):
            yield PackageError(
                "generation_missing", "a generation is missing", where=paths.generation(number)
            )
        if missing:
            return
        objects: dict[str, bool] = {}
        expected: str | None = head.record_sha256
        newer: Record | None = None
        for number in range(head.generation, 0, -1):
            containers = self._containers(paths)
            try:
                record = self.record(paths, head.case_id, number, expected, containers)
                if newer is not None:
                    check_successor(record, newer, paths)
                self.check_container(record, containers, since)
                self._audit_content(paths, record, containers, objects)
                self._audit_entry(paths, head, record)
            except PackageError as error:
                yield error
                expected = None
                newer = None
                continue
            expected, newer = record.previous, record

    def _audit_content(
        self, paths: CasePaths, record: Record, containers: Containers, objects: dict[str, bool]
    ) -> None:
        for path, stored in record.put.items():
            if stored.generation == 0:
                if stored.sha256 not in objects:
                    objects[stored.sha256] = self._intact(paths, stored, containers)
                good = objects[stored.sha256]
            else:
                good = self._intact(paths, stored, containers)
            if not good:
                raise PackageError(
                    "artifact_damaged",
                    f"the stored bytes of {path!r} are not what the generation names",
                    where=paths.generation(record.manifest.generation),
                )

    @staticmethod
    def _audit_entry(paths: CasePaths, head: StoredHead, record: Record) -> None:
        number = record.manifest.generation
        if head.checkpoints[number - 1] != record.checkpoint:
            raise PackageError(
                "history_invalid", "the history does not say what the generation's record says",
                where=paths.generation(number),
            )  # fmt: skip

    def content(self, paths: CasePaths, stored: Stored, path: str) -> bytes:
        """Return one live file's bytes.

        Raises:
            PackageError: `artifact_damaged` when they are not what the head names.
        """
        place = paths.generation(stored.generation) if stored.generation else paths.object(stored.sha256)
        try:
            descriptor = self._filesystem.open_file(place)
            try:
                exact = stored.generation > 0 or self._filesystem.size(descriptor) == stored.size
                data = self._filesystem.read(descriptor, stored.size, stored.offset)
            finally:
                self._filesystem.close(descriptor)
        except OSError as error:
            raise_reading(error, place)
        if not exact or len(data) != stored.size or sha256_hex(data) != stored.sha256:
            raise PackageError(
                "artifact_damaged",
                f"the stored bytes of {path!r} are not what the package names",
                where=place,
            )
        return data


def check_successor(older: Record, newer: Record, paths: CasePaths) -> None:
    """Check what never changes or only grows from one generation to the next."""
    one, two = older.manifest, newer.manifest
    if one.package_id != two.package_id or not one.analysis_revision <= two.analysis_revision:
        raise PackageError(
            "wrong_identity",
            "two generations disagree on package or revision",
            where=paths.generation(two.generation),
        )


def member_places(record: Record) -> list[tuple[int, int, str]]:
    """Return offset, size and name of every member that the record's own container holds, in file order."""
    number = record.manifest.generation
    first: dict[tuple[int, int], str] = {}
    for path, stored in sorted(record.put.items()):
        if stored.generation == number:
            first.setdefault((stored.offset, stored.size), f"files/{path}")
    if record.snapshot is not None:
        for segment in record.snapshot.segments:
            if segment.generation == number:
                first[(segment.offset, segment.size)] = f"history/{segment.first}-{segment.last}.jsonl"
    return sorted((offset, size, name) for (offset, size), name in first.items())


def _snapshot_segments(record: Record) -> tuple[Segment, ...]:
    return record.snapshot.segments if record.snapshot is not None else ()


def _fold(records: Sequence[Record], sealed: tuple[SealedSegment, ...], paths: CasePaths) -> StoredHead:
    """Apply the records after the snapshot to its listing."""
    snapshot = records[0].snapshot
    entries: dict[str, Stored] = dict(snapshot.files) if snapshot is not None else {}
    for record in records[1:]:
        for path, stored in record.put.items():
            old = entries.get(path)
            if old is not None and old.raw != stored.raw:
                raise PackageError(
                    "record_invalid", f"{path!r} changes between input and artifact",
                    where=paths.generation(record.manifest.generation),
                )  # fmt: skip
            entries[path] = stored
    return StoredHead(
        manifest=records[-1].manifest,
        files=Files(entries),
        checkpoints=History(sealed, tuple(record.checkpoint for record in records)),
        record_sha256=records[-1].sha256,
        entries=entries,
        segments=_snapshot_segments(records[0]),
        chain=tuple(Link(record.manifest.generation, record.sha256) for record in records),
        total_bytes=sum(stored.size for stored in entries.values()),
    )
