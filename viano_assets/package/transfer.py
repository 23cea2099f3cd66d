"""One self-contained ZIP of a case, and back: the same head hash and the same generations, byte for byte.

    package.json            what it is: case, package, generation, hash of the head's record
    history.jsonl           the raw record of every generation, one a line
    files/<path>            every artifact of the head under its own path
    blobs/<sha256>          content that only older generations name, and sealed history

Containers are not exported: they are a function of their record and content and are built again. The bytes
of an export are a function of the head (and of the zlib in use, for the members it shrinks). An import is
read by the strict archive rules, built and validated whole beside the cases, and named in one step.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from viano_assets.canonical import canonical_json
from viano_assets.errors import InputError
from viano_assets.package.files import hash_file, remove_quietly, sync_directory
from viano_assets.package.filesystem import FileSystem, storage_error
from viano_assets.package.layout import CasePaths
from viano_assets.package.reader import PackageReader, StoredHead
from viano_assets.package.record import Stored
from viano_assets.package.streams import open_checked
from viano_assets.package.writer import ProgressHook

SCHEMA = "package-export-v1"
_CHUNK = 1 << 20
_SAMPLE = 64 << 10
_KEYS = frozenset({"schema", "case", "package", "gen", "head", "files"})
_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote: file, its hash and size, the head it carries."""

    path: Path
    sha256: str
    bytes: int
    record_sha256: str
    generation: int


class _SeamFile(io.RawIOBase):
    """A seekable file being written through the disk seam."""

    def __init__(self, filesystem: FileSystem, descriptor: int) -> None:
        super().__init__()
        self._filesystem = filesystem
        self._descriptor = descriptor
        self._position = 0
        self._end = 0

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._end}[whence]
        self._position = base + offset
        return self._position

    def write(self, data: object) -> int:
        view = memoryview(cast("bytes", data))
        self._filesystem.write_at(self._descriptor, view, self._position)
        self._position += len(view)
        self._end = max(self._end, self._position)
        return len(view)


class Exporter:
    """Writes exports of the packages below one file system."""

    def __init__(
        self,
        filesystem: FileSystem,
        reader: PackageReader,
        token: Callable[[], str],
        progress: ProgressHook | None,
    ) -> None:
        self._filesystem = filesystem
        self._reader = reader
        self._token = token
        self._progress = progress

    def export(self, paths: CasePaths, head: StoredHead, target: Path, *, overwrite: bool) -> Exported:
        """Write the head and its whole history to one ZIP.

        Raises:
            InputError: `output_exists` or `output_folder_missing`.
            PackageError: the history or its content is damaged.
            StorageError: the disk refused; no partial file is left under the target's name.
        """
        final = str(target)
        if not overwrite and self._filesystem.kind(final) is not None:
            raise InputError(
                "output_exists", "the file is already there", where=final, hint="choose another -o"
            )
        folder = str(target.parent)
        if self._filesystem.kind(folder) is None:
            raise InputError(
                "output_folder_missing", "the folder is not there", where=folder, hint="make it first"
            )
        temporary = f"{folder}/.{target.name}.{self._token()}"
        try:
            descriptor = self._filesystem.create_file(temporary)
            try:
                with (
                    io.BufferedWriter(_SeamFile(self._filesystem, descriptor), _CHUNK) as stream,
                    zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
                ):
                    self._write(paths, head, archive)
                self._filesystem.fsync(descriptor)
            finally:
                self._filesystem.close(descriptor)
            self._filesystem.point("export.written")
            self._filesystem.rename(temporary, final)
        except OSError as error:
            remove_quietly(self._filesystem, temporary)
            raise storage_error(error, temporary) from error
        except BaseException:
            remove_quietly(self._filesystem, temporary)
            raise
        sync_directory(self._filesystem, folder)
        digest = hash_file(self._filesystem, final)
        return Exported(target, digest.sha256, digest.size, head.record_sha256, head.generation)

    def _write(self, paths: CasePaths, head: StoredHead, archive: zipfile.ZipFile) -> None:
        summary = {
            "schema": SCHEMA,
            "case": head.case_id,
            "package": head.manifest.package_id,
            "gen": head.generation,
            "head": head.record_sha256,
            "files": len(head.entries),
        }
        archive.writestr(_info("package.json", 0), canonical_json(summary))
        known: dict[str, Stored] = {}
        with archive.open(_info("history.jsonl", head.generation * 4_096), "w", force_zip64=True) as stream:
            for raw, record in self._reader.records(paths, head):
                stream.write(raw + b"\n")
                for stored in record.put.values():
                    known.setdefault(stored.sha256, stored)
                for segment in record.snapshot.segments if record.snapshot is not None else ():
                    place = Stored(
                        segment.sha256, segment.size, segment.generation, segment.offset, raw=False
                    )
                    known.setdefault(segment.sha256, place)
        live = set()
        for path, stored in sorted(head.entries.items()):
            self._content(paths, archive, f"files/{path}", stored)
            live.add(stored.sha256)
        for sha256, stored in sorted(known.items()):
            if sha256 not in live:
                self._content(paths, archive, f"blobs/{sha256}", stored)

    def _content(self, paths: CasePaths, archive: zipfile.ZipFile, name: str, stored: Stored) -> None:
        place = paths.generation(stored.generation) if stored.generation else paths.object(stored.sha256)
        where = f"{place} {name}"
        with open_checked(
            self._filesystem, place, stored.offset, stored.size, stored.sha256, where
        ) as source:
            first = source.read(_CHUNK)
            info = _info(name, stored.size)
            info.compress_type = zipfile.ZIP_DEFLATED if _shrinks(first[:_SAMPLE]) else zipfile.ZIP_STORED
            with archive.open(info, "w") as stream:
                done = 0
                while first:
                    stream.write(first)
                    done += len(first)
                    if self._progress is not None:
                        self._progress(name, done)
                    first = source.read(_CHUNK)


def _info(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.create_system = 3
    info.external_attr = 0o100640 << 16
    info.file_size = size
    info.compress_type = zipfile.ZIP_DEFLATED
    info._compresslevel = 1  # type: ignore[attr-defined]  # noqa: SLF001 - public only from 3.13 on
    return info


def _shrinks(sample: bytes) -> bool:
    return len(zlib.compress(sample, 1)) * 20 < len(sample) * 19
