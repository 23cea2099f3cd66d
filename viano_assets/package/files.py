"""Reading and writing whole files through the disk seam, with the failures translated."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from viano_assets.errors import InputError, PackageError
from viano_assets.package.filesystem import FileSystem, raise_reading, storage_error

CHUNK = 1 << 20
_WHOLE = 1 << 20
_KEPT = 64 << 20


class Digest(NamedTuple):
    """Hash and size of content."""

    sha256: str
    size: int


class Container:
    """Random access to one generation file; a small one is read whole, once.

    With a `buffer` the bytes lie in it, and hold only until it is used for the next file.
    """

    def __init__(
        self, filesystem: FileSystem, path: str, limit: int, buffer: bytearray | None = None
    ) -> None:
        self._filesystem = filesystem
        self.path = path
        try:
            descriptor = filesystem.open_file(path)
            try:
                self.size = filesystem.size(descriptor)
                if self.size > limit:
                    raise PackageError(
                        "generation_too_big", f"the generation has {self.size} bytes", where=path
                    )
                self._data = _first(filesystem, descriptor, min(self.size, _WHOLE), buffer)
            finally:
                filesystem.close(descriptor)
        except OSError as error:
            raise_reading(error, path)

    def read(self, offset: int, size: int) -> memoryview:
        """Return up to `size` bytes at `offset`; fewer when the file ends before."""
        if offset + size <= len(self._data):
            return self._data[offset : offset + size]
        if self.size <= _WHOLE:
            return self._data[offset:]
        try:
            descriptor = self._filesystem.open_file(self.path)
            try:
                return memoryview(self._filesystem.read(descriptor, size, offset))
            finally:
                self._filesystem.close(descriptor)
        except OSError as error:
            raise_reading(error, self.path)

    def whole(self) -> bytes:
        """Return all bytes."""
        return bytes(self.read(0, self.size))


def _first(filesystem: FileSystem, descriptor: int, size: int, buffer: bytearray | None) -> memoryview:
    """Return the first bytes of a file, in the buffer when there is one."""
    if buffer is not None and filesystem.read_into(descriptor, buffer, 0) >= size:
        return memoryview(buffer)[:size]
    return memoryview(filesystem.read(descriptor, size, 0))


class Containers:
    """The generation files opened during one lookup; those read whole are kept up to 64 MiB together."""

    def __init__(self, filesystem: FileSystem, place: Callable[[int], str], limit: int) -> None:
        self._filesystem = filesystem
        self.path = place
        self._limit = limit
        self._kept: dict[int, Container] = {}
        self._bytes = 0
        self._buffer = bytearray()
        self._lent: tuple[int, Container] | None = None

    def get(self, number: int) -> Container:
        """Return the container of one generation, reading it when it is not kept."""
        file = self._kept.get(number)
        if file is None:
            file = Container(self._filesystem, self.path(number), self._limit)
            self._bytes += min(file.size, _WHOLE)
            if self._bytes > _KEPT:
                self._kept.clear()
                self._bytes = min(file.size, _WHOLE)
            self._kept[number] = file
        return file

    def lent(self, number: int) -> Container:
        """Return a container whose bytes hold until the next one is lent; a kept one is given as it is."""
        file = self._kept.get(number)
        if file is not None:
            return file
        if self._lent is None or self._lent[0] != number:
            self._buffer = self._buffer or bytearray(_WHOLE)
            self._lent = None
            self._lent = number, Container(self._filesystem, self.path(number), self._limit, self._buffer)
        return self._lent[1]

    def piece(self, number: int, offset: int, size: int) -> bytes | memoryview:
        """Return one range without reading the rest of a container that is not kept."""
        file = self._kept.get(number)
        if file is not None:
            return file.read(offset, size)
        path = self.path(number)
        try:
            descriptor = self._filesystem.open_file(path)
            try:
                return self._filesystem.read(descriptor, size, offset)
            finally:
                self._filesystem.close(descriptor)
        except OSError as error:
            raise_reading(error, path)


def hash_file(filesystem: FileSystem, path: str) -> Digest:
    """Hash a file of any size in constant memory."""
    digest = hashlib.sha256()
    size = 0
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    try:
        descriptor = filesystem.open_file(path)
        try:
            while count := filesystem.read_into(descriptor, buffer, size):
                digest.update(view[:count])
                size += count
        finally:
            filesystem.close(descriptor)
    except OSError as error:
        raise_reading(error, path)
    return Digest(digest.hexdigest(), size)


def write_hashed(filesystem: FileSystem, path: str, chunks: Iterable[bytes]) -> Digest:
    """Write durably and return what was written."""
    digest = hashlib.sha256()
    size = 0

    def passing() -> Iterable[bytes]:
        nonlocal size
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            yield chunk

    write_durably(filesystem, path, passing())
    return Digest(digest.hexdigest(), size)


def write_durably(filesystem: FileSystem, path: str, chunks: Iterable[bytes]) -> None:
    """Create a file, write, flush and close it; on any failure the file is abandoned and removed.

    A failed flush is never tried again: the kernel may have dropped the pages and would then report success.

    Raises:
        StorageError: `fsync_failed` or what the write met.
    """
    stage = "storage_failed"
    descriptor = -1
    try:
        descriptor = filesystem.create_file(path)
        for chunk in chunks:
            filesystem.write(descriptor, chunk)
        stage = "fsync_failed"
        filesystem.fsync(descriptor)
        closing, descriptor = descriptor, -1
        filesystem.close(closing)
    except OSError as error:
        _abandon(filesystem, descriptor, path)
        raise storage_error(error, path, code=stage) from error
    except BaseException:
        _abandon(filesystem, descriptor, path)
        raise


def _abandon(filesystem: FileSystem, descriptor: int, path: str) -> None:
    if descriptor >= 0:
        with contextlib.suppress(OSError):
            filesystem.close(descriptor)
    remove_quietly(filesystem, path)


def remove_quietly(filesystem: FileSystem, path: str) -> None:
    """Remove a temporary file; a leftover is harmless and emptied later."""
    with contextlib.suppress(OSError):
        filesystem.unlink(path)


def sync_directory(filesystem: FileSystem, path: str) -> None:
    """Make the names in a directory durable.

    Raises:
        StorageError: `fsync_failed`.
    """
    try:
        descriptor = filesystem.open_directory(path)
        try:
            filesystem.fsync(descriptor)
        finally:
            filesystem.close(descriptor)
    except OSError as error:
        raise storage_error(error, path, code="fsync_failed") from error


def source_chunks(path: Path, limit: int, progress: Callable[[int], None] | None) -> Iterable[bytes]:
    """Read a file of the user in pieces.

    Raises:
        InputError: `not_a_file`, `unreadable_input` or `input_too_big`.
    """
    if path.exists() and not path.is_file():
        raise InputError("not_a_file", "only regular files can be stored", where=str(path))
    done = 0
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                done += len(chunk)
                if done > limit:
                    raise InputError(
                        "input_too_big", f"the file has more than {limit} bytes", where=str(path)
                    )
                yield chunk
                if progress is not None:
                    progress(done)
    except OSError as error:
        raise InputError(
            "unreadable_input",
            f"the file cannot be read: {error.strerror}",
            where=str(path),
            hint="check the path and its permissions",
        ) from error
