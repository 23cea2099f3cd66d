"""The disk seam: every file operation of the package goes through `FileSystem`.

Tests wrap it to count, fail, delay or kill at any single operation. `point` marks named places in the
product between two operations; the real file system ignores it. Files are opened without following a
symbolic link and without waiting on a FIFO, and only regular files are read.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import Literal, NamedTuple, NoReturn, Protocol

from viano_assets.errors import PackageError, StorageError, VianoError

Kind = Literal["file", "directory", "link", "other"]

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


class DirEntry(NamedTuple):
    """One name in a directory and what it is."""

    name: str
    kind: Kind


class FileSystem(Protocol):
    """The operations the package needs; every one raises `OSError` like its system call."""

    def scan(self, directory: str) -> list[DirEntry]:
        """List a directory that is not a symbolic link, in no particular order."""
        ...

    def kind(self, path: str) -> Kind | None:
        """Say what stands at `path` without following links; None when nothing does."""
        ...

    def open_file(self, path: str) -> int:
        """Open a regular file for reading and return its descriptor."""
        ...

    def open_directory(self, path: str) -> int:
        """Open a directory for `fsync`."""
        ...

    def create_file(self, path: str) -> int:
        """Create a file that must not exist yet and return its descriptor."""
        ...

    def open_lock(self, path: str) -> int:
        """Open or create a lock file."""
        ...

    def try_lock(self, descriptor: int) -> bool:
        """Take the exclusive lock without waiting.

        Returns:
            False when this file system has no locks; BlockingIOError when another holds it.
        """
        ...

    def unlock(self, descriptor: int) -> None:
        """Give the lock back, also where a copy of the descriptor is still open."""
        ...

    def size(self, descriptor: int) -> int:
        """Return the size of an open file in bytes."""
        ...

    def read(self, descriptor: int, size: int, offset: int) -> bytes:
        """Read up to `size` bytes at `offset`."""
        ...

    def read_into(self, descriptor: int, buffer: bytearray, offset: int) -> int:
        """Fill `buffer` from `offset` and return the number of bytes read."""
        ...

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        """Write all of `data`."""
        ...

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of `data` at `offset`."""
        ...

    def fsync(self, descriptor: int) -> None:
        """Make a file's or directory's content durable."""
        ...

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        ...

    def publish(self, source: str, target: str) -> None:
        """Give the file its final name if and only if the name is free (`FileExistsError` otherwise)."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename atomically, replacing a file or an empty directory."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name."""
        ...

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        ...

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def point(self, name: str) -> None:
        """Pass a named fault point."""
        ...


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


class OsFileSystem:
    """The operating system's files."""

    def scan(self, directory: str) -> list[DirEntry]:
        """List a real directory."""
        descriptor = os.open(directory, _DIRECTORY)
        try:
            with os.scandir(descriptor) as entries:
                return [
                    DirEntry(e.name, "file" if e.is_file(follow_symlinks=False) else _other_kind(e))
                    for e in entries
                ]
        finally:
            os.close(descriptor)

    def kind(self, path: str) -> Kind | None:
        """Say what stands at `path`."""
        try:
            return _kind(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open_file(self, path: str) -> int:
        """Open a regular file for reading."""
        descriptor = os.open(path, _READ)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.ELOOP, "not a regular file", path)
        return descriptor

    def open_directory(self, path: str) -> int:
        """Open a directory."""
        return os.open(path, _DIRECTORY)

    def create_file(self, path: str) -> int:
        """Create a new file, readable and writable by its owner and readable by the group."""
        return os.open(path, _CREATE, 0o640)

    def open_lock(self, path: str) -> int:
        """Open or create a lock file."""
        return os.open(path, _LOCK, 0o640)

    def try_lock(self, descriptor: int) -> bool:
        """Take the lock of this open file description."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise
        return True

    def unlock(self, descriptor: int) -> None:
        """Give the lock of this open file description back."""
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def size(self, descriptor: int) -> int:
        """Return the size in bytes."""
        return os.fstat(descriptor).st_size

    def read(self, descriptor: int, size: int, offset: int) -> bytes:
        """Read up to `size` bytes, fewer only at the end of the file."""
        data = os.pread(descriptor, size, offset)
        while len(data) < size:
            more = os.pread(descriptor, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def read_into(self, descriptor: int, buffer: bytearray, offset: int) -> int:
        """Fill a buffer."""
        return os.preadv(descriptor, [buffer], offset)

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        """Write all bytes, continuing after a short write."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        """Write all bytes at a place, continuing after a short write."""
        view = memoryview(data)
        while view:
            done = os.pwrite(descriptor, view, offset)
            view = view[done:]
            offset += done

    def fsync(self, descriptor: int) -> None:
        """Flush; a directory of a file system that cannot sync directories counts as synced."""
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno == errno.EINVAL and stat.S_ISDIR(os.fstat(descriptor).st_mode):
                return
            raise

    def close(self, descriptor: int) -> None:
        """Close."""
        os.close(descriptor)

    def publish(self, source: str, target: str) -> None:
        """Link and unlink; without hard links, rename without replacing."""
        try:
            os.link(source, target, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            rename_without_replacing(source, target)
            return
        os.unlink(source)  # noqa: PTH108

    def rename(self, source: str, target: str) -> None:
        """Rename."""
        os.rename(source, target)  # noqa: PTH104

    def unlink(self, path: str) -> None:
        """Unlink."""
        os.unlink(path)  # noqa: PTH108

    def mkdir(self, path: str) -> None:
        """Make a directory for the owner and the group's readers."""
        os.mkdir(path, 0o750)  # noqa: PTH102

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)  # noqa: PTH106

    def point(self, name: str) -> None:
        """Do nothing."""


def _other_kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    return "directory" if entry.is_dir(follow_symlinks=False) else "other"


def rename_without_replacing(source: str, target: str) -> None:
    """Rename through `renameat2(RENAME_NOREPLACE)`; where the kernel lacks it, check and rename.

    The last resort has a window between the check and the rename, which only the case lock closes.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        done = rename(
            _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(_RENAME_NOREPLACE)
        )
        if done == 0:
            return
        code = ctypes.get_errno()
        if code not in {errno.ENOSYS, errno.EINVAL}:
            raise OSError(code, os.strerror(code), target)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(source, target)  # noqa: PTH104


_STORAGE_CODES = {
    errno.ENOSPC: ("storage_full", "the disk is full", "free space, then run the same command again"),
    errno.EDQUOT: (
        "storage_full",
        "the disk quota is used up",
        "free space, then run the same command again",
    ),
    errno.EFBIG: ("file_too_big", "the file system refuses a file of this size", "use another file system"),
    errno.EROFS: ("storage_read_only", "the file system is read-only", "choose a writable --home"),
    errno.EACCES: ("storage_denied", "access is denied", "check the owner and mode of the home"),
    errno.EPERM: ("storage_denied", "access is denied", "check the owner and mode of the home"),
    errno.EMFILE: (
        "too_many_open_files",
        "too many files are open",
        "raise the open-files limit (ulimit -n)",
    ),
    errno.ENFILE: ("too_many_open_files", "too many files are open", "close other programs"),
}


def storage_error(error: OSError, path: str, *, code: str = "storage_failed") -> StorageError:
    """Translate a failed operation; `code` is used for causes without a code of their own."""
    known = _STORAGE_CODES.get(error.errno or 0)
    if known is not None and code == "storage_failed":
        return StorageError(known[0], known[1], where=path, hint=known[2])
    return StorageError(
        code,
        f"the disk reported {os.strerror(error.errno or 0)!r}",
        where=path,
        hint="check the disk; nothing that was not acknowledged counts as stored",
    )


def refusal_of_the_disk(error: OSError) -> StorageError | None:
    """Return what to tell the user when the disk, its rights or a limit refused; None for any other cause."""
    if error.errno not in _STORAGE_CODES:
        return None
    return storage_error(error, str(error.filename2 or error.filename or ""))


def reading_error(error: OSError, path: str) -> VianoError:
    """Translate a failed read of something the package names."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return PackageError("artifact_missing", "a file the package names is not there", where=path)
    if error.errno in {errno.ELOOP, errno.ENXIO}:
        return PackageError("not_a_regular_file", "a link or special file stands in the package", where=path)
    return storage_error(error, path)


def raise_reading(error: OSError, path: str) -> NoReturn:
    """Raise the translated error of a failed read."""
    raise reading_error(error, path) from error
