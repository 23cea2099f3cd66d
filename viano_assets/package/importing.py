"""Making a case from an export: read by the strict rules, built beside the cases, validated, then named."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from viano_assets.canonical import sha256_hex, strict_loads
from viano_assets.errors import ContractError, InputError, NewerFormatError, PackageError
from viano_assets.package import container
from viano_assets.package.archive import Archive, ArchiveLimits, ArchivePolicy, Entry, open_archive, refuse
from viano_assets.package.container import Member
from viano_assets.package.files import remove_quietly, sync_directory, write_durably, write_hashed
from viano_assets.package.filesystem import FileSystem
from viano_assets.package.layout import OBJECT_NAME, CasePaths
from viano_assets.package.limits import BLOB_IN_CONTAINER, PackageLimits
from viano_assets.package.names import NameIndex
from viano_assets.package.reader import PackageReader, StoredHead, check_successor, member_places
from viano_assets.package.record import Record, decode
from viano_assets.package.transfer import SCHEMA
from viano_assets.package.writer import ProgressHook
from viano_assets.partitions import check_case_id

_CHUNK = 1 << 20
_KEYS = frozenset({"schema", "case", "package", "gen", "head", "files"})


class _Spool:
    """Content of an import until its containers are built: large as objects, small in one scratch file."""

    def __init__(self, filesystem: FileSystem, paths: CasePaths, token: Callable[[], str]) -> None:
        self._filesystem = filesystem
        self._paths = paths
        self._token = token
        self._scratch = f"{paths.temporary}/t-{token()}"
        self._descriptor = filesystem.create_file(self._scratch)
        self._reading = filesystem.open_file(self._scratch)
        self._end = 0
        self._places: dict[str, tuple[int, int]] = {}
        self.sizes: dict[str, int] = {}
        self.used: set[str] = set()

    def close(self) -> None:
        """Remove the scratch file."""
        self._filesystem.close(self._reading)
        self._filesystem.close(self._descriptor)
        remove_quietly(self._filesystem, self._scratch)

    def take(self, stream: BinaryIO, size: int, report: Callable[[int], None]) -> str:
        """Store one member's content and return its hash."""
        if size >= BLOB_IN_CONTAINER:
            temporary = f"{self._paths.temporary}/t-{self._token()}"
            digest = write_hashed(self._filesystem, temporary, _chunks(stream, report))
            self._filesystem.rename(temporary, self._paths.object(digest.sha256))
            sha256 = digest.sha256
        else:
            data = stream.read()
            sha256 = sha256_hex(data)
            if sha256 not in self._places:
                self._filesystem.write_at(self._descriptor, data, self._end)
                self._places[sha256] = (self._end, len(data))
                self._end += len(data)
        self.sizes[sha256] = size
        return sha256

    def small(self, sha256: str, size: int, where: str) -> bytes:
        """Return small content by its hash."""
        place = self._places.get(sha256)
        if place is None or place[1] != size:
            raise PackageError(
                "artifact_missing", "the package lacks content that its history names", where=where
            )
        self.used.add(sha256)
        return self._filesystem.read(self._reading, size, place[0])

    def check_object(self, sha256: str, size: int, where: str) -> None:
        """Check that large content came with the package."""
        if self.sizes.get(sha256) != size or size < BLOB_IN_CONTAINER:
            raise PackageError(
                "artifact_missing", "the package lacks content that its history names", where=where
            )
        self.used.add(sha256)


def _chunks(stream: BinaryIO, report: Callable[[int], None]) -> Iterator[bytes]:
    done = 0
    while chunk := stream.read(_CHUNK):
        done += len(chunk)
        yield chunk
        report(done)


@dataclass(frozen=True, slots=True)
class Summary:
    """The `package.json` of an export."""

    case_id: str
    package_id: str
    generation: int
    record_sha256: str
    files: int


def read_summary(archive: Archive, where: str) -> Summary:
    """Read and check `package.json`.

    Raises:
        InputError: `not_a_package`.
        NewerFormatError: `newer_format`.
    """
    entry = next((e for e in archive.entries if e.name == "package.json"), None)
    if entry is None or entry.size > 4_096:
        raise InputError(
            "not_a_package", "the archive is not an exported case", where=where,
            hint="to make a case from a report use: viano case import",
        )  # fmt: skip
    with archive.open(entry) as stream:
        raw = stream.read()
    try:
        fields = strict_loads(raw)
    except ContractError as error:
        raise InputError(
            "not_a_package", f"package.json is not valid: {error.message}", where=where
        ) from error
    schema = fields.get("schema") if isinstance(fields, dict) else None
    if isinstance(schema, str) and schema.startswith("package-export-v") and schema != SCHEMA:
        raise NewerFormatError(
            "newer_format", f"the export has schema {schema}, this release reads {SCHEMA}", where=where,
            hint="use the release that wrote it, or a newer one",
        )  # fmt: skip
    if not isinstance(fields, dict) or fields.keys() != _KEYS or schema != SCHEMA:
        raise InputError("not_a_package", "package.json does not have its form", where=where)
    return _summary(fields, where)


def _summary(fields: Mapping[str, object], where: str) -> Summary:
    case, package, head = fields["case"], fields["package"], fields["head"]
    generation, files = fields["gen"], fields["files"]
    if (
        not isinstance(case, str)
        or not isinstance(package, str)
        or not isinstance(head, str)
        or not OBJECT_NAME.fullmatch(head)
        or type(generation) is not int
        or type(files) is not int
        or generation < 1
    ):
        raise InputError("not_a_package", "package.json does not have its form", where=where)
    return Summary(check_case_id(case), package, generation, head, files)


class Importer:
    """Builds packages from exports."""

    def __init__(
        self,
        filesystem: FileSystem,
        reader: PackageReader,
        limits: PackageLimits,
        key: bytes | None,
        token: Callable[[], str],
        progress: ProgressHook | None,
    ) -> None:
        self._filesystem = filesystem
        self._reader = reader
        self._limits = limits
        self._key = key
        self._token = token
        self._progress = progress

    @contextlib.contextmanager
    def opened(self, source: Path) -> Iterator[tuple[Archive, Summary]]:
        """Open an export by the strictest archive rules and read what it is.

        Raises:
            InputError: it is not a readable export.
            NewerFormatError: a newer release wrote it.
        """
        limits = ArchiveLimits(
            archive_bytes=self._limits.total_bytes,
            entries=2_000_000,
            file_bytes=self._limits.file_bytes,
            total_bytes=4 * self._limits.total_bytes,
            ratio=1_100,
        )
        with open_archive(source, ArchivePolicy(limits)) as archive:
            yield archive, read_summary(archive, str(source))

    def build(self, archive: Archive, summary: Summary, paths: CasePaths, where: str) -> StoredHead:
        """Build the package in a staging directory and validate it whole.

        Raises:
            PackageError: it does not hold together, or is not what it says it is.
        """
        spool = _Spool(self._filesystem, paths, self._token)
        try:
            live = self._take_content(archive, spool, where)
            history = next((e for e in archive.entries if e.name == "history.jsonl"), None)
            if history is None:
                raise InputError("not_a_package", "the archive holds no history", where=where)
            self._build_generations(archive, history, spool, paths, summary, where)
        finally:
            spool.close()
        head = self._reader.load(paths, summary.case_id, summary.generation, 1)
        self._reader.audit_all(paths, head, self._reader.listing(paths), 1)
        self._check(head, summary, live, spool, where)
        return head

    def _take_content(self, archive: Archive, spool: _Spool, where: str) -> dict[str, str]:
        live = {}
        for entry, stream in archive.members():
            folder, _, rest = entry.name.partition("/")
            report = _reporter(self._progress, entry.name)
            if folder == "files" and rest:
                live[rest] = spool.take(stream, entry.size, report)
            elif folder == "blobs" and OBJECT_NAME.fullmatch(rest):
                if spool.take(stream, entry.size, report) != rest:
                    raise PackageError(
                        "artifact_damaged", f"{entry.name} does not have its hash", where=where
                    )
            elif entry.name not in {"package.json", "history.jsonl"}:
                refuse("transfer_unnamed", f"{entry.name!r} is no part of an exported case", where)
        return live

    def _build_generations(
        self, archive: Archive, history: Entry, spool: _Spool, paths: CasePaths, summary: Summary, where: str
    ) -> None:
        previous: Record | None = None
        number = 0
        with archive.open(history) as stream:
            while line := stream.readline(self._limits.record_bytes + 2):
                number += 1
                if not line.endswith(b"\n") or number > summary.generation:
                    raise PackageError("record_invalid", "the history is not valid", where=where)
                record = decode(line[:-1], f"{where} generation {number}")
                self._check_identity(record, previous, number, summary, paths)
                self._build_one(record, line[:-1], spool, paths, where)
                previous = record
        if number != summary.generation:
            raise PackageError(
                "generation_missing", f"the history ends with generation {number}", where=where
            )
        sync_directory(self._filesystem, paths.generations)
        sync_directory(self._filesystem, paths.objects)

    @staticmethod
    def _check_identity(
        record: Record, previous: Record | None, number: int, summary: Summary, paths: CasePaths
    ) -> None:
        manifest = record.manifest
        if (manifest.case_id, manifest.package_id, manifest.generation) != (
            summary.case_id, summary.package_id, number,
        ):  # fmt: skip
            raise PackageError(
                "wrong_identity", "a record is of another case or generation", where=paths.root
            )
        if record.previous != (previous and previous.sha256):
            raise PackageError(
                "chain_broken", "a record names another predecessor", where=paths.generation(number)
            )
        if previous is not None:
            check_successor(previous, record, paths)

    def _build_one(self, record: Record, raw: bytes, spool: _Spool, paths: CasePaths, where: str) -> None:
        number = record.manifest.generation
        place = f"{where} generation {number}"
        hashes: dict[tuple[int, int], str] = {}
        for stored in record.put.values():
            if stored.generation == 0:
                spool.check_object(stored.sha256, stored.size, place)
            elif stored.generation == number:
                hashes[(stored.offset, stored.size)] = stored.sha256
        for segment in record.snapshot.segments if record.snapshot is not None else ():
            if segment.generation == number:
                hashes[(segment.offset, segment.size)] = segment.sha256
        members = []
        position = container.RECORD_START + len(raw)
        for offset, size, name in member_places(record):
            position += container.member_overhead(name)
            if offset != position:
                raise PackageError("record_invalid", "a place does not follow from the content", where=place)
            members.append(Member(name, spool.small(hashes[(offset, size)], size, place)))
            position += size
        if position > self._limits.container_bytes:
            raise PackageError("generation_too_big", f"the generation has {position} bytes", where=place)
        temporary = f"{paths.temporary}/t-{self._token()}"
        write_durably(self._filesystem, temporary, [container.build(raw, members, self._key)])
        self._filesystem.publish(temporary, paths.generation(number))

    @staticmethod
    def _check(head: StoredHead, summary: Summary, live: dict[str, str], spool: _Spool, where: str) -> None:
        if head.record_sha256 != summary.record_sha256:
            raise PackageError("wrong_identity", "the head is not the one package.json names", where=where)
        if {path: stored.sha256 for path, stored in head.entries.items()} != live or summary.files != len(
            live
        ):
            raise PackageError("artifact_missing", "files/ is not what the head names", where=where)
        unnamed = sorted(spool.sizes.keys() - spool.used)
        if unnamed:
            refuse("transfer_unnamed", f"no generation names the content {unnamed[0]}", where)
        names = NameIndex()
        for path in head.entries:
            collision = names.problem(path)
            if collision is not None:
                raise PackageError("colliding_path", f"{path!r} is {collision}", where=where)
            names.add(path)


def _reporter(hook: ProgressHook | None, name: str) -> Callable[[int], None]:
    """Return what reports the progress of one member."""

    def report(done: int) -> None:
        if hook is not None:
            hook(name, done)

    return report
