"""File systems that fail on purpose, and one that writes down what was asked of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from viano_assets.package.filesystem import DirEntry, Kind, OsFileSystem

CHANGING = frozenset(
    {"create_file", "write", "write_at", "fsync", "publish", "rename", "unlink", "mkdir", "rmdir", "point"}
)


class Crash(BaseException):
    """The process is dead: nothing it does afterwards reaches the disk."""


class WatchedFileSystem(OsFileSystem):
    """Calls `before(operation, path)` at every operation; it may raise, and counts what is asked for."""

    def __init__(self, before: Callable[[str, str], None] | None = None) -> None:
        self.before = before
        self.counts: dict[str, int] = {}
        self.names: dict[int, str] = {}

    def _pass(self, operation: str, path: str) -> None:
        self.counts[operation] = self.counts.get(operation, 0) + 1
        if self.before is not None:
            self.before(operation, path)

    def _opened(self, descriptor: int, path: str) -> int:
        self.names[descriptor] = path
        return descriptor

    def die(self) -> None:
        """Close what is open, as the end of a process does."""
        for descriptor in list(self.names):
            os.close(descriptor)
        self.names.clear()

    def scan(self, directory: str) -> list[DirEntry]:
        self._pass("scan", directory)
        return super().scan(directory)

    def kind(self, path: str) -> Kind | None:
        self._pass("kind", path)
        return super().kind(path)

    def open_file(self, path: str) -> int:
        self._pass("open_file", path)
        return self._opened(super().open_file(path), path)

    def open_directory(self, path: str) -> int:
        self._pass("open_directory", path)
        return self._opened(super().open_directory(path), path)

    def create_file(self, path: str) -> int:
        self._pass("create_file", path)
        return self._opened(super().create_file(path), path)

    def open_lock(self, path: str) -> int:
        self._pass("open_lock", path)
        return self._opened(super().open_lock(path), path)

    def try_lock(self, descriptor: int) -> bool:
        self._pass("try_lock", self.names[descriptor])
        return super().try_lock(descriptor)

    def read(self, descriptor: int, size: int, offset: int) -> bytes:
        self._pass("read", self.names[descriptor])
        return super().read(descriptor, size, offset)

    def read_into(self, descriptor: int, buffer: bytearray, offset: int) -> int:
        self._pass("read_into", self.names[descriptor])
        return super().read_into(descriptor, buffer, offset)

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        self._pass("write", self.names[descriptor])
        super().write(descriptor, data)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        self._pass("write_at", self.names[descriptor])
        super().write_at(descriptor, data, offset)

    def fsync(self, descriptor: int) -> None:
        self._pass("fsync", self.names[descriptor])
        super().fsync(descriptor)

    def close(self, descriptor: int) -> None:
        path = self.names.pop(descriptor, "")
        super().close(descriptor)
        self._pass("close", path)

    def publish(self, source: str, target: str) -> None:
        self._pass("publish", target)
        super().publish(source, target)

    def rename(self, source: str, target: str) -> None:
        self._pass("rename", target)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._pass("unlink", path)
        super().unlink(path)

    def mkdir(self, path: str) -> None:
        self._pass("mkdir", path)
        super().mkdir(path)

    def rmdir(self, path: str) -> None:
        self._pass("rmdir", path)
        super().rmdir(path)

    def point(self, name: str) -> None:
        self._pass("point", name)


@dataclass
class FailNth:
    """Fails the `nth` operation of the named kinds (from 1) and, when it is a death, all after it.

    `short` writes half of the data before failing; the write is then done here.
    """

    nth: int
    code: int | None
    kinds: frozenset[str] = CHANGING
    seen: int = 0
    hit: bool = False
    where: str = ""
    log: list[str] = field(default_factory=list)

    def __call__(self, operation: str, path: str) -> None:
        if self.hit and self.code is None:
            raise Crash
        if operation not in self.kinds:
            return
        self.seen += 1
        self.log.append(f"{operation} {path}")
        if self.seen == self.nth:
            self.hit = True
            self.where = f"{operation} {path}"
            if self.code is None:
                raise Crash
            if operation != "point":
                raise OSError(self.code, os.strerror(self.code), path)


class ShortWrites(WatchedFileSystem):
    """The `nth` write stores half of its data and then finds the disk full."""

    def __init__(self, nth: int) -> None:
        super().__init__()
        self.nth = nth
        self.hit = False

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        self.nth -= 1
        if self.nth == 0:
            self.hit = True
            super().write(descriptor, memoryview(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(descriptor, data)


class NoLocks(WatchedFileSystem):
    """A file system without locks, as some network mounts are."""

    def try_lock(self, descriptor: int) -> bool:
        self._pass("try_lock", self.names[descriptor])
        return False


class NoHardLinks(WatchedFileSystem):
    """A file system without hard links."""

    def publish(self, source: str, target: str) -> None:
        from viano_assets.package.filesystem import rename_without_replacing

        self._pass("publish", target)
        rename_without_replacing(source, target)
