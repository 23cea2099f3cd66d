"""The store of case packages: content kept once, commits that survive anything.

One immutable container per generation (`container`), committed by giving it a name that must be free.

Commit order; nothing before step 6 is an acknowledgement:

1. Take the case lock without waiting (`case_busy` when another has it). The first time, empty `tmp/` and
   flush `gens/` and `objects/` once, because a predecessor may have died between its link and its flush.
2. Each new content of 1 MiB and more: create a temporary file that must not exist, write, flush, rename to
   `objects/<sha256>`. An object that is already there is hashed, not trusted.
3. Flush `objects/` when the generation names an object the previous head did not, even an old one.
4. Write the container to `tmp/` and flush it.
5. Link it to its number. The name exists: another writer won, `stale_head`. Then remove the temporary name.
6. Flush `gens/`: committed. Then, with the anchor on, the anchor moves forward.

So a small commit flushes twice. Whatever is visible was complete before it got its name; a damaged head is
therefore always damage, never a torn write, and never a reason to fall back to an older generation.

A failed flush of a file: the file is abandoned and removed, never flushed or read again (the kernel may have
dropped its pages and would report success). A failed flush of `gens/` after the link: the outcome is not
known, the commit raises `fsync_failed`, and this process refuses further commits to the case; the generation
may or may not be there after a power loss, and the next process takes it as it finds it.

Trade-offs and limits: order comes from generation numbers only, never from clocks. The lock saves work and
is not needed for correctness. Hash chains find damage and mix-ups, not a forger who can write: for that the
anchor and its key lie outside the case directory. Removing the newest generation is found only with the
anchor. A file system that loses flushed data is beyond help. POSIX only; hard links preferred.
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from viano_assets.errors import ConfigurationError, DefectError, InputError, PackageError, StorageError
from viano_assets.package.anchor import Anchor, Witness
from viano_assets.package.audit import Auditor, GarbageReport, PackageAudit, Problem
from viano_assets.package.changes import first_manifest
from viano_assets.package.clock import Clock, SystemClock, iso
from viano_assets.package.files import sync_directory
from viano_assets.package.filesystem import FileSystem, OsFileSystem, storage_error
from viano_assets.package.history import History
from viano_assets.package.importing import Importer
from viano_assets.package.layout import TEMPORARY_NAME, CasePaths
from viano_assets.package.limits import PackageLimits
from viano_assets.package.locking import CaseLocks
from viano_assets.package.model import Change, Head
from viano_assets.package.reader import Files, PackageReader, StoredHead
from viano_assets.package.staging import Nursery
from viano_assets.package.streams import open_checked
from viano_assets.package.telemetry import Telemetry
from viano_assets.package.transfer import Exported, Exporter
from viano_assets.package.writer import PackageWriter, ProgressHook, stale
from viano_assets.partitions import check_case_id

_PACKAGE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class CheckpointStore:
    """All case packages of one home; safe to share between threads.

    Args:
        home: the home directory; made when the first case is created.
        filesystem, clock, token: the seams for disk, time and random names (16 hex digits).
        limits: how much a package may hold.
        progress: called with a path and its bytes stored so far while large content is written.
        anchor: the optional witness outside the case directories; its key seals every new generation.
    """

    def __init__(
        self,
        home: Path,
        *,
        filesystem: FileSystem | None = None,
        clock: Clock | None = None,
        token: Callable[[], str] = lambda: secrets.token_hex(8),
        limits: PackageLimits | None = None,
        progress: ProgressHook | None = None,
        anchor: Anchor | None = None,
    ) -> None:
        self.home = home
        self.limits = limits or PackageLimits()
        self.clock = clock or SystemClock()
        self.telemetry = Telemetry(self.clock)
        self._filesystem = filesystem or OsFileSystem()
        self._locks = CaseLocks(self._filesystem)
        self._anchor = anchor
        key = None if anchor is None else anchor.key
        self._reader = PackageReader(self._filesystem, self.limits, key)
        self._writer = PackageWriter(self._filesystem, self._reader, self.limits, key, token, progress)
        self._auditor = Auditor(self._filesystem, self._reader, self.limits)
        self._exporter = Exporter(self._filesystem, self._reader, token, progress)
        self._importer = Importer(self._filesystem, self._reader, self.limits, key, token, progress)
        self._nursery = Nursery(self._filesystem, self.clock, home, token)
        self._durable: dict[str, int] = {}
        self._distrusted: set[str] = set()

    def paths(self, case_id: str) -> CasePaths:
        """Return where a case lies in this home."""
        return CasePaths(f"{self.home}/cases/{check_case_id(case_id)}")

    def _existing(self, case_id: str) -> CasePaths:
        paths = self.paths(case_id)
        kind = self._filesystem.kind(paths.root)
        if kind is None:
            raise InputError(
                "case_not_found",
                f"there is no case {case_id!r}",
                where=str(self.home),
                hint="see `viano case list`; names are case-sensitive",
            )
        for folder in (paths.root, paths.generations, paths.objects):
            kind = self._filesystem.kind(folder)
            if kind not in {"directory", None}:
                raise PackageError("not_a_directory", f"a {kind} stands for a directory", where=folder)
        return paths

    def case_ids(self) -> list[str]:
        """Return the ids of all cases in this home, sorted."""
        return self._nursery.case_ids()

    def exists(self, case_id: str) -> bool:
        """Say whether the case is there, without validating it."""
        return self._filesystem.kind(self.paths(case_id).root) is not None

    def create(self, case_id: str, change: Change, *, package_id: str | None = None) -> Head:
        """Create a case with generation 1; either all of it is there afterwards or nothing.

        Args:
            case_id: the name; unique regardless of letter case.
            change: the content; its lifecycle is required.
            package_id: a UUID; None makes a new one.

        Raises:
            InputError: `invalid_case_id` or `case_exists`.
            ContractError: the change breaks a rule of the package.
            StorageError: the disk refused.
        """
        check_case_id(case_id)
        identity = package_id or str(uuid.uuid4())
        if not _PACKAGE_ID.fullmatch(identity):
            raise InputError("invalid_package_id", f"{identity!r} is not a UUID", where=case_id)
        empty = StoredHead(
            manifest=first_manifest(case_id, identity, change),
            files=Files({}),
            checkpoints=History((), ()),
            record_sha256="",
            entries={},
            segments=(),
            chain=(),
            total_bytes=0,
        )
        with self.telemetry.timed("checkpoint_create"), self._nursery.staged(case_id) as staging:
            head = self._writer.publish(staging, empty, change, iso(self.clock.now()))
            self._name(staging, head)
            return head

    def _name(self, staging: CasePaths, head: StoredHead) -> None:
        """Give a staged case its name, its witness first."""
        anchor = self._anchor

        def witness() -> None:
            if anchor is not None:
                anchor.write(head.case_id, Witness(head.generation, head.record_sha256, 1))

        self._nursery.adopt(staging, head.case_id, witness)
        self._durable[head.case_id] = head.generation
        self._distrusted.discard(head.case_id)

    def latest(self, case_id: str, package_id: str | None = None, audit_history: bool = False) -> Head:
        """Return the newest generation, validated on every call.

        The newest managed name selects a candidate; its identity, its record chain back to the newest
        snapshot, the complete checkpoint history and every live byte are hashed afresh. Damage to
        superseded content or obsolete generations does not matter here.

        Args:
            case_id: the case.
            package_id: when given, the package must have this identity.
            audit_history: also validate every obsolete generation and its content.

        Raises:
            InputError: `case_not_found`.
            PackageError: the head is damaged, misidentified or forged; never answered by an older one.
            NewerFormatError: a newer release wrote it.
        """
        with self.telemetry.timed("checkpoint_lookup"):
            paths = self._existing(case_id)
            witness = self._witness(case_id)
            since = witness and witness.since
            listing = self._reader.listing(paths)
            head = self._reader.load(paths, case_id, listing.newest, since)
            self._confirm(witness, head)
            if package_id is not None and head.manifest.package_id != package_id:
                raise PackageError(
                    "wrong_package",
                    f"the case has package {head.manifest.package_id}, not {package_id}",
                    where=paths.root,
                )
            if audit_history:
                self._reader.audit_all(paths, head, listing, since)
            return head

    def at_generation(self, case_id: str, generation: int) -> Head:
        """Return an older generation, validated as if it were the head."""
        with self.telemetry.timed("checkpoint_lookup"):
            witness = self._witness(case_id)
            return self._reader.load(self._existing(case_id), case_id, generation, witness and witness.since)

    def revision(self, case_id: str) -> int:
        """Return the analysis revision that the newest record names; nothing else is read or validated.

        Raises:
            InputError: `case_not_found`.
            PackageError: the record is damaged.
        """
        paths = self._existing(case_id)
        return self._reader.named_revision(paths, case_id)

    def _witness(self, case_id: str) -> Witness | None:
        return None if self._anchor is None else self._anchor.read(case_id)

    def _confirm(self, witness: Witness | None, head: StoredHead) -> None:
        if self._anchor is not None and witness is not None:
            self._anchor.confirm(head.case_id, witness, head.generation, head.record_sha256)

    def _own(self, head: Head) -> StoredHead:
        if not isinstance(head, StoredHead):
            raise DefectError(
                "foreign_head", "the head was not made by this kind of store", where=head.case_id
            )
        return head

    def _stored_path(self, head: StoredHead, path: str) -> CasePaths:
        if path not in head.entries:
            raise PackageError(
                "artifact_unknown",
                f"generation {head.generation} names no file {path!r}",
                where=head.case_id,
            )
        return self.paths(head.case_id)

    def read(self, head: Head, path: str) -> bytes:
        """Return one artifact's bytes, hashed at the read.

        Raises:
            PackageError: `artifact_unknown`, `artifact_missing` or `artifact_damaged`.
        """
        stored = self._own(head)
        with self.telemetry.timed("artifact_read"):
            return self._reader.content(self._stored_path(stored, path), stored.entries[path], path)

    def open(self, head: Head, path: str) -> BinaryIO:
        """Open one artifact for streaming and seeking; closing raises when its hash does not hold."""
        stored = self._own(head)
        paths = self._stored_path(stored, path)
        entry = stored.entries[path]
        place = paths.generation(entry.generation) if entry.generation else paths.object(entry.sha256)
        return open_checked(
            self._filesystem, place, entry.offset, entry.size, entry.sha256, f"{place} {path}"
        )

    @contextmanager
    def lock(self, case_id: str) -> Iterator[None]:
        """Hold the case lock; the same thread may enter again.

        Raises:
            BusyError: `case_busy` at once when another thread or process holds it.
        """
        with self._held(case_id, self._existing(case_id)):
            yield

    def in_work(self, case_id: str) -> bool:
        """Say whether a process or thread holds the case lock; also True where that cannot be found out."""
        return self._locks.taken(case_id, self._existing(case_id).lock)

    @contextmanager
    def _held(self, case_id: str, paths: CasePaths) -> Iterator[bool]:
        with self._locks.hold(
            case_id, paths.lock, lambda real: self._settle(case_id, paths, real=real)
        ) as real:
            yield real

    def _settle(self, case_id: str, paths: CasePaths, *, real: bool) -> None:
        """After the lock was taken: empty `tmp/` and make a dead predecessor's names durable."""
        known = self._durable.get(case_id)
        if known is not None and self._filesystem.kind(paths.generation(known + 1)) is None:
            return
        try:
            if real:
                self._empty(paths)
            for folder in (paths.temporary, paths.objects):
                if self._filesystem.kind(folder) is None:
                    self._filesystem.mkdir(folder)
        except OSError as error:
            raise storage_error(error, paths.root) from error
        newest = self._reader.newest(paths)
        sync_directory(self._filesystem, paths.generations)
        sync_directory(self._filesystem, paths.objects)
        self._durable[case_id] = newest

    def _empty(self, paths: CasePaths) -> None:
        if self._filesystem.kind(paths.temporary) is None:
            return
        for name, kind in self._filesystem.scan(paths.temporary):
            if kind == "file" and TEMPORARY_NAME.fullmatch(name):
                self._filesystem.unlink(f"{paths.temporary}/{name}")

    def commit(self, head: Head, change: Change) -> Head:
        """Publish the next generation if and only if `head` still is the head.

        Raises:
            StaleHeadError: `stale_head`, another writer came first.
            BusyError: another process or thread holds the case.
            ContractError: the change breaks a rule of the package; nothing was written.
            StorageError: the disk refused; the head is unchanged, or its state is unknown (`fsync_failed`
                at `gens`) and this process commits nothing more to the case.
        """
        old = self._own(head)
        with self.telemetry.timed("checkpoint_commit"), self.lock(old.case_id):
            paths = self.paths(old.case_id)
            self._refuse_distrusted(old.case_id, paths)
            if self._filesystem.kind(paths.generation(old.generation + 1)) is not None:
                raise stale(paths.generation(old.generation + 1))
            self._reader.record_matches(paths, old)
            witness = self._witness(old.case_id)
            self._confirm(witness, old)
            try:
                new = self._writer.publish(paths, old, change, iso(self.clock.now()))
            except StorageError as error:
                if error.where == paths.generations:
                    self._distrusted.add(old.case_id)
                raise
            self._durable[old.case_id] = new.generation
            if self._anchor is not None and witness is not None:
                self._anchor.write(
                    old.case_id, witness._replace(generation=new.generation, record_sha256=new.record_sha256)
                )
            return new

    def _refuse_distrusted(self, case_id: str, paths: CasePaths) -> None:
        if case_id in self._distrusted:
            raise StorageError(
                "outcome_unknown",
                "an earlier commit of this process may or may not be durable",
                where=paths.generations,
                hint="check the disk, then start the command again",
            )

    def adopt_anchor(self, case_id: str) -> Head:
        """Take a case that was written without the anchor under it, trusting what lies there now.

        Raises:
            ConfigurationError: `anchor_off`.
            PackageError: the case does not validate.
        """
        if self._anchor is None:
            raise ConfigurationError("anchor_off", "there is no anchor", hint="switch integrity.anchor on")
        with self.lock(case_id):
            paths = self._existing(case_id)
            number = self._reader.newest(paths)
            head = self._reader.load(paths, case_id, number, number + 1)
            self._anchor.write(case_id, Witness(head.generation, head.record_sha256, head.generation + 1))
            return head

    def verify(self, case_id: str, *, audit_history: bool = False) -> PackageAudit:
        """Return everything wrong with a package; with `audit_history` its whole history too.

        Raises:
            InputError: `case_not_found`.
        """
        with self.telemetry.timed("checkpoint_verify"):
            paths = self._existing(case_id)
            witness = None
            problems: tuple[Problem, ...] = ()
            try:
                witness = self._witness(case_id)
            except PackageError as error:
                problems = (Problem(error.code, error.message, error.where),)
            since = witness and witness.since
            audit, head = self._auditor.verify(paths, case_id, since, audit_history=audit_history)
            try:
                if head is not None:
                    self._confirm(witness, head)
            except PackageError as error:
                problems = (Problem(error.code, error.message, error.where),)
            return replace(audit, problems=audit.problems + problems)

    def collect_garbage(self, case_id: str, *, dry_run: bool = True) -> GarbageReport:
        """Find, and unless it is a dry run remove, objects that no generation names.

        Raises:
            BusyError: `case_busy`; never during a commit.
            BlockedError: `gc_without_lock`.
            PackageError: the history is damaged, so what is named is not known.
        """
        paths = self._existing(case_id)
        with self._held(case_id, paths) as locked:
            head = self.latest(case_id, audit_history=True)
            return self._auditor.collect(paths, self._own(head), dry_run=dry_run, locked=locked)

    def export(
        self, case_id: str, target: Path, *, generation: int | None = None, overwrite: bool = False
    ) -> Exported:
        """Write a case, or an older generation of it as if it were the head, to one self-contained ZIP.

        Raises:
            InputError: `case_not_found`, `output_exists` or `output_folder_missing`.
            PackageError: the package is damaged.
            StorageError: the disk refused.
        """
        with self.telemetry.timed("package_export"):
            head = self.latest(case_id) if generation is None else self.at_generation(case_id, generation)
            return self._exporter.export(self.paths(case_id), self._own(head), target, overwrite=overwrite)

    def import_package(self, source: Path) -> Head:
        """Make a case from an export; either all of it is there afterwards or nothing.

        Raises:
            InputError: not an export, refused by the archive rules, or `case_exists`.
            NewerFormatError: a newer release wrote it.
            PackageError: it does not hold together.
            StorageError: the disk refused.
        """
        with self.telemetry.timed("package_import"), self._importer.opened(source) as (archive, summary):
            with self._nursery.staged(summary.case_id) as staging:
                head = self._importer.build(archive, summary, staging, str(source))
                self._name(staging, head)
            return self.latest(summary.case_id)
