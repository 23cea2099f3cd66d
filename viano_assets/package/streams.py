"""Streaming reads whose bytes are checked: sequential reads are hashed as they pass, others at the close."""

from __future__ import annotations

import hashlib
import io
from typing import BinaryIO, cast

from viano_assets.errors import PackageError
from viano_assets.package.filesystem import FileSystem, raise_reading

_CHUNK = 1 << 20


class _Checked(io.RawIOBase):
    """A window of a file; closing raises when its content is not what the package names."""

    def __init__(
        self, filesystem: FileSystem, path: str, offset: int, size: int, sha256: str, where: str
    ) -> None:
        super().__init__()
        self._filesystem = filesystem
        self._path = path
        self._start = offset
        self._size = size
        self._sha256 = sha256
        self._where = where
        self._position = 0
        self._hashed = 0
        self._digest = hashlib.sha256()
        try:
            self._descriptor = filesystem.open_file(path)
        except OSError as error:
            self._descriptor = -1
            raise_reading(error, path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("negative seek position")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        wanted = min(len(view), self._size - self._position)
        if wanted <= 0:
            return 0
        try:
            data = self._filesystem.read(self._descriptor, wanted, self._start + self._position)
        except OSError as error:
            raise_reading(error, self._path)
        if len(data) < wanted:
            raise self._damaged()
        view[:wanted] = data
        if self._position == self._hashed:
            self._digest.update(data)
            self._hashed += wanted
        self._position += wanted
        return wanted

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        try:
            self._finish()
        finally:
            if self._descriptor >= 0:
                self._filesystem.close(self._descriptor)

    def _finish(self) -> None:
        if self._descriptor < 0:
            return
        while self._hashed < self._size:
            count = min(_CHUNK, self._size - self._hashed)
            data = self._filesystem.read(self._descriptor, count, self._start + self._hashed)
            if not data:
                break
            self._digest.update(data)
            self._hashed += len(data)
        if self._digest.hexdigest() != self._sha256:
            raise self._damaged()

    def _damaged(self) -> PackageError:
        return PackageError(
            "artifact_damaged", "the stored bytes are not what the package names", where=self._where
        )


def open_checked(
    filesystem: FileSystem, path: str, offset: int, size: int, sha256: str, where: str
) -> BinaryIO:
    """Open content for reading; every byte up to the furthest sequential read is hashed as it is handed out.

    Bytes read after a seek are covered by hashing the rest, and closing raises `artifact_damaged` when the
    whole does not have its hash.
    """
    raw = _Checked(filesystem, path, offset, size, sha256, where)
    return cast("BinaryIO", io.BufferedReader(raw, buffer_size=1 << 16))
