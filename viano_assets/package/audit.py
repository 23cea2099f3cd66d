"""Looking at a package as an auditor: everything that is wrong, what is not ours, what nobody names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from viano_assets.errors import BlockedError, PackageError
from viano_assets.package.files import Containers, sync_directory
from viano_assets.package.filesystem import FileSystem, storage_error
from viano_assets.package.layout import OBJECT_NAME, CasePaths, Listing
from viano_assets.package.limits import PackageLimits
from viano_assets.package.names import NameIndex
from viano_assets.package.reader import PackageReader, StoredHead

_OWN = frozenset({"gens", "objects", "tmp", "lock"})


class Problem(NamedTuple):
    """One thing that does not hold: stable code, sentence, place."""

    code: str
    message: str
    where: str


@dataclass(frozen=True, slots=True)
class PackageAudit:
    """The outcome of `verify` for the package itself.

    `strangers` are names in the case directory that are not Viano's, and leftovers of dead writers; they
    are never adopted and never removed unless they are ours. `unnamed_objects` is what `gc` would remove.
    """

    case_id: str
    package_id: str = ""
    generation: int = 0
    record_sha256: str = ""
    files: int = 0
    bytes: int = 0
    generations_checked: int = 0
    problems: tuple[Problem, ...] = ()
    strangers: tuple[str, ...] = ()
    unnamed_objects: int = 0

    @property
    def good(self) -> bool:
        """True when nothing is wrong; strangers are not wrong."""
        return not self.problems


class Garbage(NamedTuple):
    """One object that no generation names, and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What `gc` found, and whether it removed it."""

    objects: tuple[Garbage, ...] = ()
    removed: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of all objects found."""
        return sum(item.size for item in self.objects)


@dataclass(slots=True)
class _Findings:
    problems: list[Problem] = field(default_factory=list)

    def add(self, error: PackageError) -> None:
        self.problems.append(Problem(error.code, error.message, error.where))


class Auditor:
    """Audits and cleans the packages below one file system."""

    def __init__(self, filesystem: FileSystem, reader: PackageReader, limits: PackageLimits) -> None:
        self._filesystem = filesystem
        self._reader = reader
        self._limits = limits

    def verify(
        self, paths: CasePaths, case_id: str, since: int | None, *, audit_history: bool
    ) -> tuple[PackageAudit, StoredHead | None]:
        """Return everything wrong with a package, and its head when that much is readable."""
        found = _Findings()
        listing = Listing([], 0, [])
        try:
            listing = self._reader.listing(paths)
            head = self._reader.head(paths, case_id, listing.newest, since)
        except PackageError as error:
            found.add(error)
            strangers = tuple(self.strangers(paths))
            return PackageAudit(case_id, problems=tuple(found.problems), strangers=strangers), None
        containers = Containers(self._filesystem, paths.generation, self._limits.container_bytes)
        for problem in self._reader.live_problems(paths, head, containers):
            found.add(problem)
        names = NameIndex()
        for path in head.entries:
            collision = names.problem(path)
            if collision is not None:
                found.problems.append(Problem("colliding_path", f"{path!r} is {collision}", paths.root))
            names.add(path)
        unnamed = 0
        if audit_history:
            for problem in self._reader.history_problems(paths, head, listing, since):
                found.add(problem)
            if not found.problems:
                unnamed = len(self.garbage(paths, head))
        audit = PackageAudit(
            case_id=case_id,
            package_id=head.manifest.package_id,
            generation=head.generation,
            record_sha256=head.record_sha256,
            files=len(head.entries),
            bytes=head.total_bytes,
            generations_checked=head.generation if audit_history else len(head.chain),
            problems=tuple(found.problems),
            strangers=tuple(self.strangers(paths)),
            unnamed_objects=unnamed,
        )
        return audit, head

    def strangers(self, paths: CasePaths) -> list[str]:
        """Return the names in the case directory that are not part of the package, sorted."""
        found = []
        try:
            found += [name for name, _ in self._filesystem.scan(paths.root) if name not in _OWN]
            for folder, own in (("objects", OBJECT_NAME), ("tmp", None)):
                path = f"{paths.root}/{folder}"
                if self._filesystem.kind(path) == "directory":
                    for name, kind in self._filesystem.scan(path):
                        if own is None or kind != "file" or not own.fullmatch(name):
                            found.append(f"{folder}/{name}")
            if self._filesystem.kind(paths.generations) == "directory":
                known = {f"g{n:08d}.zip" for n in self._reader.numbers_leniently(paths)}
                found += [
                    f"gens/{name}"
                    for name, _ in self._filesystem.scan(paths.generations)
                    if name not in known
                ]
        except OSError as error:
            raise storage_error(error, paths.root) from error
        return sorted(found)

    def garbage(self, paths: CasePaths, head: StoredHead) -> list[Garbage]:
        """Return the objects that no generation from 1 to the head names.

        Raises:
            PackageError: a record cannot be read, so what is named is not known.
        """
        named = self._reader.named_objects(paths, head)
        found: list[Garbage] = []
        if self._filesystem.kind(paths.objects) is None:
            return found
        try:
            for name, kind in self._filesystem.scan(paths.objects):
                if kind == "file" and OBJECT_NAME.fullmatch(name) and name not in named:
                    descriptor = self._filesystem.open_file(paths.object(name))
                    try:
                        found.append(Garbage(name, self._filesystem.size(descriptor)))
                    finally:
                        self._filesystem.close(descriptor)
        except OSError as error:
            raise storage_error(error, paths.objects) from error
        return sorted(found)

    def collect(self, paths: CasePaths, head: StoredHead, *, dry_run: bool, locked: bool) -> GarbageReport:
        """Find and, unless it is a dry run, remove what no generation names; the caller holds the lock.

        Raises:
            BlockedError: `gc_without_lock`, the file system has no locks and a commit may be at work.
            PackageError: a record is damaged.
            StorageError: the disk refused; some objects may be gone already, which harms nothing.
        """
        found = tuple(self.garbage(paths, head))
        if dry_run or not found:
            return GarbageReport(found)
        if not locked:
            raise BlockedError(
                "gc_without_lock",
                "this file system has no locks, so another process may be committing",
                where=paths.root,
                hint="run it where the home lies on a local file system",
            )
        for item in found:
            try:
                self._filesystem.unlink(paths.object(item.sha256))
            except OSError as error:
                raise storage_error(error, paths.object(item.sha256)) from error
        sync_directory(self._filesystem, paths.objects)
        return GarbageReport(found, removed=True)
