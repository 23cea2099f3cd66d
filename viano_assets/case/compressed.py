"""Single files that were compressed on their own, as rotated logs and dumps are (`Server.log.1.gz`)."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol

from viano_assets.errors import InputError
from viano_assets.package.archive import is_archive_name


class _Source(Protocol):
    """A compressed file that is read unpacked."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


_READERS: Mapping[str, Callable[[Path], _Source]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)


def is_compressed_name(name: str) -> bool:
    """Say whether a name is that of one compressed file; a compressed TAR is an archive."""
    return PurePosixPath(name).suffix.lower() in _READERS and not is_archive_name(name)


class Unpacked:
    """The bytes of one compressed file, never more than `limit`; `count` tells how many were read."""

    def __init__(self, source: _Source, where: str, limit: int) -> None:
        self._source = source
        self._where = where
        self._limit = limit
        self.count = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes, empty at the end.

        Raises:
            InputError: `archive_damaged`, `archive_too_big`.
        """
        try:
            data = self._source.read(size)
        except _BROKEN as error:
            raise InputError(
                "archive_damaged", f"the compressed file cannot be unpacked: {error}", where=self._where
            ) from error
        self.count += len(data)
        if self.count > self._limit:
            raise InputError("archive_too_big", "it unpacks to more than is read", where=self._where)
        return data


@contextmanager
def unpacked(packed: Path, name: str, limit: int) -> Iterator[Unpacked]:
    """Open a compressed file; `name` tells how it was compressed."""
    with closing(_READERS[PurePosixPath(name).suffix.lower()](packed)) as source:
        yield Unpacked(source, name, limit)
