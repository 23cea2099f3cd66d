"""The ZIP reader behind `archive`: own parsing, because the rules need what ordinary readers hide.

The central directory is read once and every local header is compared with it; the bytes of entries must not
overlap; there is exactly one end record, at the very end, and it is where it says the directory is.
"""

from __future__ import annotations

import io
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

from viano_assets.package.archive import Entry, EntryCheck, Skipped, refuse

_END = struct.Struct("<4sHHHHIIH")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR = struct.Struct("<4sIQI")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_MAX_DIRECTORY = 256 << 20
_CHUNK = 1 << 16
_DESCRIPTOR = 0x0008
_UTF8 = 0x0800
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_PATCHED = 0x0020
_SETUID = 0o7000


class _Directory(NamedTuple):
    entries: int
    size: int
    offset: int
    end: int


class _Place(NamedTuple):
    method: int
    flags: int
    crc: int
    packed: int
    size: int
    header: int
    data: int


class _Fields(NamedTuple):
    """One central header: place, name bytes, extra fields, mode and system it was made on."""

    place: _Place
    raw_name: bytes
    extra: dict[int, bytes]
    mode: int
    made_by: int


class ZipArchive:
    """A checked ZIP archive."""

    format = "zip"

    def __init__(self, stream: BinaryIO, size: int, check: EntryCheck) -> None:
        self._stream = stream
        self._size = size
        self._check = check
        self._where = check.where
        directory = self._find_directory()
        self._places: dict[Entry, _Place] = {}
        spans = []
        for fields in self._central(directory):
            place = self._local(fields, directory)
            spans.append((place.header, place.data + place.packed + _descriptor_bytes(place)))
            self._take(fields, place)
        self._check_spans(spans, directory)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The files in order."""
        return tuple(self._check.entries)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What was left out."""
        return tuple(self._check.skipped)

    def members(self) -> Iterator[tuple[Entry, BinaryIO]]:
        """Yield every file with its content."""
        for entry in self._check.entries:
            with self.open(entry) as content:
                yield entry, content

    def open(self, entry: Entry) -> BinaryIO:
        """Open one file."""
        raw = _Content(self._stream, self._places[entry], entry.name, self._where)
        return cast("BinaryIO", io.BufferedReader(raw, _CHUNK))

    def _read(self, offset: int, size: int) -> bytes:
        self._stream.seek(offset)
        data = self._stream.read(size)
        if len(data) != size:
            refuse("archive_truncated", "the archive ends too early", self._where)
        return data

    def _find_directory(self) -> _Directory:
        tail_start = max(0, self._size - _END.size - 0xFFFF)
        tail = self._read(tail_start, self._size - tail_start)
        position = tail.rfind(b"PK\x05\x06")
        if position < 0:
            refuse("archive_truncated", "the archive has no end record", self._where)
        if len(tail) - position < _END.size:
            refuse("archive_truncated", "the end record is cut", self._where)
        record = _END.unpack_from(tail, position)
        if position + _END.size + record[7] != len(tail):
            refuse("archive_trailing_bytes", "bytes follow the end of the archive", self._where)
        earlier = tail.rfind(b"PK\x05\x06", 0, position)
        while earlier >= 0:
            if earlier + _END.size + int.from_bytes(tail[earlier + 20 : earlier + 22], "little") == len(tail):
                refuse("archive_ambiguous", "the archive has two end records", self._where)
            earlier = tail.rfind(b"PK\x05\x06", 0, earlier)
        return self._directory(record, tail_start + position)

    def _directory(self, record: tuple[int, ...], end: int) -> _Directory:
        _, disk, start_disk, here, entries, size, offset, _ = record
        locator = self._read(end - _LOCATOR.size, _LOCATOR.size) if end >= _LOCATOR.size else b""
        if locator[:4] == b"PK\x06\x07":
            return self._directory64(record, locator, end - _LOCATOR.size)
        if (disk, start_disk) != (0, 0) or here != entries:
            refuse("archive_multi_disk", "the archive is a part of several", self._where)
        return self._placed(entries, size, offset, end)

    def _directory64(self, record: tuple[int, ...], locator: bytes, end: int) -> _Directory:
        _, disk, start, disks = _LOCATOR.unpack(locator)
        if disk != 0 or disks > 1 or start + _END64.size > end:
            refuse("archive_multi_disk", "the zip64 locator names another disk or place", self._where)
        values = _END64.unpack(self._read(start, _END64.size))
        signature, length, _, _, this_disk, start_disk, here, entries, size, offset = values
        if signature != b"PK\x06\x06" or start + 12 + length != end:
            refuse("archive_ambiguous", "the zip64 locator does not name the zip64 end record", self._where)
        if (this_disk, start_disk) != (0, 0) or here != entries:
            refuse("archive_multi_disk", "the archive is a part of several", self._where)
        old = (record[1], record[2], record[3], record[4])
        new = (this_disk, start_disk, here, entries)
        same = all(o in {n, 0xFFFF} for o, n in zip(old, new, strict=True))
        if not same or record[5] not in {size, 0xFFFFFFFF} or record[6] not in {offset, 0xFFFFFFFF}:
            refuse("archive_ambiguous", "the two end records disagree", self._where)
        return self._placed(entries, size, offset, start)

    def _placed(self, entries: int, size: int, offset: int, end: int) -> _Directory:
        if offset + size > end:
            refuse("archive_truncated", "the directory lies outside the archive", self._where)
        if offset + size < end:
            refuse(
                "archive_prefix",
                "bytes stand before or inside the archive that it does not name",
                self._where,
            )
        if entries > self._check.policy.limits.entries:
            refuse("archive_too_many_entries", f"the archive names {entries} entries", self._where)
        if size > _MAX_DIRECTORY or size < entries * _CENTRAL.size:
            refuse("archive_damaged", "the directory's size does not fit its entries", self._where)
        return _Directory(entries, size, offset, end)

    def _central(self, directory: _Directory) -> Iterator[_Fields]:
        data = self._read(directory.offset, directory.size)
        position = 0
        for _ in range(directory.entries):
            if position + _CENTRAL.size > len(data) or data[position : position + 4] != b"PK\x01\x02":
                refuse("archive_damaged", "a directory entry is not valid", self._where)
            values = _CENTRAL.unpack_from(data, position)
            name_end = position + _CENTRAL.size + values[10]
            extra_end = name_end + values[11]
            next_position = extra_end + values[12]
            if next_position > len(data):
                refuse("archive_damaged", "a directory entry is cut", self._where)
            raw_name = data[position + _CENTRAL.size : name_end]
            yield self._fields(values, raw_name, data[name_end:extra_end])
            position = next_position
        if position != len(data):
            refuse("archive_damaged", "the directory holds more than its entries", self._where)

    def _fields(self, values: tuple[int, ...], raw_name: bytes, extra_bytes: bytes) -> _Fields:
        _, made_by, _, flags, method, _, _, crc, packed, size = values[:10]
        disk, attributes, header = values[13], values[15], values[16]
        if disk not in {0, 0xFFFF}:
            refuse("archive_multi_disk", "an entry lies on another disk", self._where)
        extra = self._extra(extra_bytes)
        size, packed, header = self._wide(extra, size, packed, header)
        place = _Place(method, flags, crc, packed, size, header, 0)
        return _Fields(place, raw_name, extra, attributes >> 16, made_by >> 8)

    def _extra(self, data: bytes) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        position = 0
        while position + 4 <= len(data):
            kind, size = struct.unpack_from("<HH", data, position)
            if position + 4 + size > len(data):
                break
            if kind in found and kind in {0x0001, 0x7075}:
                refuse("archive_ambiguous", "an entry says its size or name twice", self._where)
            found[kind] = data[position + 4 : position + 4 + size]
            position += 4 + size
        return found

    def _wide(self, extra: dict[int, bytes], size: int, packed: int, header: int) -> tuple[int, int, int]:
        values = [size, packed, header]
        data = extra.get(0x0001, b"")
        for i, value in enumerate(values):
            if value == 0xFFFFFFFF:
                if len(data) < 8:
                    refuse("archive_damaged", "a zip64 size is missing", self._where)
                values[i] = int.from_bytes(data[:8], "little")
                data = data[8:]
        return values[0], values[1], values[2]

    def _local(self, fields: _Fields, directory: _Directory) -> _Place:
        place = fields.place
        if place.header + _LOCAL.size > directory.offset:
            refuse("archive_damaged", "an entry lies outside the archive", self._where)
        header = self._read(place.header, _LOCAL.size + len(fields.raw_name))
        signature, _, flags, method, _, _, crc, packed, size, name_size, extra_size = _LOCAL.unpack_from(
            header
        )
        if (
            signature != b"PK\x03\x04"
            or name_size != len(fields.raw_name)
            or header[_LOCAL.size :] != fields.raw_name
            or method != place.method
            or (flags ^ place.flags) & (_DESCRIPTOR | _UTF8 | _ENCRYPTED)
        ):
            refuse("archive_ambiguous", "an entry and the directory disagree", self._where)
        data = place.header + len(header) + extra_size
        if not flags & _DESCRIPTOR:
            extra = self._extra(self._read(place.header + len(header), extra_size))
            size, packed, _ = self._wide(extra, size, packed, 0)
            if (crc, packed, size) != (place.crc, place.packed, place.size):
                refuse("archive_ambiguous", "an entry and the directory disagree on its size", self._where)
        if data + place.packed > directory.offset:
            refuse("archive_damaged", "an entry reaches into the directory", self._where)
        return place._replace(data=data)

    def _take(self, fields: _Fields, place: _Place) -> None:
        check = self._check
        name, encoding = self._name(fields)
        kind = stat.S_IFMT(fields.mode) if fields.made_by in {3, 19} else 0
        folder = name.endswith("/")
        clean = check.clean(name[:-1] if folder else name)
        if place.flags & (_ENCRYPTED | _PATCHED):
            refuse(
                "archive_encrypted",
                f"{name!r} is encrypted or a patch",
                self._where,
                "pack it without a password",
            )
        if place.method not in {0, 8}:
            refuse("archive_method", f"{name!r} is packed with method {place.method}", self._where)
        if folder:
            if place.size or kind not in {0, stat.S_IFDIR}:
                refuse("archive_special_file", f"the folder {name!r} has content", self._where)
            return
        if kind not in {0, stat.S_IFREG}:
            check.special(clean, "a symbolic link" if kind == stat.S_IFLNK else "a device or special file")
            return
        if fields.mode & _SETUID and kind and check.policy.portable_names:
            refuse("archive_special_file", f"{name!r} asks for the rights of another user", self._where)
        if place.method == 0 and place.packed != place.size:
            refuse("archive_damaged", f"{name!r} is stored with two sizes", self._where)
        entry = Entry(clean, fields.raw_name, encoding, place.size)
        check.add(entry, place.packed)
        self._places[entry] = place

    def _name(self, fields: _Fields) -> tuple[str, str]:
        raw = fields.raw_name
        name, encoding = self._check.name(raw, "utf-8" if fields.place.flags & _UTF8 else "", "cp437")
        unicode_path = fields.extra.get(0x7075, b"")
        if len(unicode_path) > 5 and int.from_bytes(unicode_path[1:5], "little") == zlib.crc32(raw):
            try:
                other = unicode_path[5:].decode("utf-8")
            except UnicodeDecodeError:
                refuse("archive_name_encoding", f"the Unicode name of {raw!r} is not UTF-8", self._where)
            if encoding not in {"ascii", "utf-8"}:
                return other, "utf-8"
            if other != name:
                refuse("archive_ambiguous", f"{name!r} also calls itself {other!r}", self._where)
        return name, encoding

    def _check_spans(self, spans: list[tuple[int, int]], directory: _Directory) -> None:
        end = 0
        for start, stop in sorted(spans):
            if start < end:
                refuse("archive_overlap", "two entries share bytes", self._where)
            end = stop
        if end > directory.offset:
            refuse("archive_overlap", "an entry reaches into the directory", self._where)
        first = min((start for start, _ in spans), default=directory.offset)
        if first != 0:
            refuse("archive_prefix", "bytes stand before the archive", self._where)


def _descriptor_bytes(place: _Place) -> int:
    return 12 if place.flags & _DESCRIPTOR else 0


class _Content(io.RawIOBase):
    """The unpacked bytes of one entry, checked for length and CRC when they end."""

    def __init__(self, stream: BinaryIO, place: _Place, name: str, where: str) -> None:
        super().__init__()
        self._stream = stream
        self._place = place
        self._name = name
        self._where = where
        self._position = place.data
        self._left = place.packed
        self._done = 0
        self._crc = 0
        self._inflate = zlib.decompressobj(-15) if place.method == 8 else None
        self._finished = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def _next(self, size: int) -> bytes:
        if self._finished or size == 0:
            return b""
        data = self._stored(size) if self._inflate is None else self._inflated(size)
        self._crc = zlib.crc32(data, self._crc)
        self._done += len(data)
        if self._done > self._place.size or (not data and self._done < self._place.size):
            self._refuse("does not have the size it states")
        if self._done == self._place.size:
            self._finish()
        return data

    def _raw(self, size: int) -> bytes:
        self._stream.seek(self._position)
        data = self._stream.read(min(size, self._left))
        self._position += len(data)
        self._left -= len(data)
        return data

    def _stored(self, size: int) -> bytes:
        return self._raw(size)

    def _inflated(self, size: int) -> bytes:
        inflate = self._inflate
        data = b""
        while inflate is not None and not data and not inflate.eof:
            packed = inflate.unconsumed_tail or self._raw(_CHUNK)
            try:
                data = inflate.decompress(packed, size)
            except zlib.error:
                self._refuse("cannot be unpacked")
            if not packed and not data:
                break
        return data

    def _finish(self) -> None:
        self._finished = True
        inflate = self._inflate
        if inflate is not None:
            packed = b"-"
            while not inflate.eof and packed:
                packed = inflate.unconsumed_tail or self._raw(_CHUNK)
                try:
                    if inflate.decompress(packed, 1):
                        self._refuse("holds more than the size it states")
                except zlib.error:
                    self._refuse("cannot be unpacked")
            if not inflate.eof or inflate.unused_data:
                self._refuse("does not end where it says")
        if self._left or self._crc != self._place.crc:
            self._refuse("does not have the checksum it states")

    def _refuse(self, what: str) -> None:
        refuse("archive_damaged", f"{self._name!r} {what}", self._where)
