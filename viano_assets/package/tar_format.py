"""The TAR reader behind `archive`: ustar, pax and GNU long names, plain or compressed, as one stream.

The archive is read twice: once over all headers, before anything is handed out, and once for the content.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol, cast

from viano_assets.package.archive import Entry, EntryCheck, Skipped, refuse

_BLOCK = 512
_CHUNK = 1 << 16
_MAX_HEADER = 1 << 20
_LZMA_MEMORY = 256 << 20
_SPECIAL = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a FIFO",
}


def tar_compression(start: bytes) -> str | None:
    """Return how a TAR is compressed (`none`, `gzip`, `bzip2`, `xz`) from its first 512 bytes, or None."""
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    if start[:3] == b"BZh":
        return "bzip2"
    if start[:6] == b"\xfd7zXZ\x00":
        return "xz"
    if len(start) == _BLOCK and (not any(start) or _checksum_fits(start)):
        return "none"
    return None


def _checksum_fits(block: bytes) -> bool:
    stored = _octal(block[148:156])
    blank = block[:148] + b" " * 8 + block[156:]
    signed = sum(blank) - 256 * sum(byte > 127 for byte in blank)
    return stored is not None and stored in {sum(blank), signed}


def _octal(field: bytes) -> int | None:
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    text = field.split(b"\x00", 1)[0].strip(b" ")
    if not all(digit in b"01234567" for digit in text):
        return None
    return int(text or b"0", 8)


class _Decompressor(Protocol):
    eof: bool

    def decompress(self, data: bytes, max_length: int = ...) -> bytes:
        """Unpack up to `max_length` bytes."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end of the packed stream."""
        ...


class _Unpacked:
    """The uncompressed TAR bytes, read forwards only; size and ratio are capped as they come."""

    def __init__(self, stream: BinaryIO, size: int, compression: str, check: EntryCheck) -> None:
        self._stream = stream
        self._size = size
        self._compression = compression
        self._check = check
        self._packed = 0
        self._buffer = b""
        self._at = 0
        self._pending = b""
        self._total = 0
        self._engine = self._new()
        self._stream.seek(0)

    def _new(self) -> _Decompressor | None:
        makers: dict[str, Callable[[], object]] = {
            "gzip": lambda: zlib.decompressobj(31),
            "bzip2": bz2.BZ2Decompressor,
            "xz": lambda: lzma.LZMADecompressor(memlimit=_LZMA_MEMORY),
        }
        maker = makers.get(self._compression)
        return None if maker is None else cast("_Decompressor", maker())

    def _more(self) -> bytes:
        """Return the next unpacked bytes; nothing at the end."""
        if self._engine is None:
            self._stream.seek(self._packed)
            data = self._stream.read(_CHUNK)
            self._packed += len(data)
            return data
        while True:
            data = self._step()
            if data or self._finished():
                break
        self._total += len(data)
        limits = self._check.policy.limits
        if self._total > limits.total_bytes + limits.entries * 4 * _BLOCK:
            refuse("archive_too_big", "the archive unpacks to too much", self._check.where)
        self._check.check_ratio(self._total, self._packed, "the archive")
        return data

    def _finished(self) -> bool:
        return self._packed >= self._size and not self._pending and (self._engine is None or self._engine.eof)

    def _step(self) -> bytes:
        engine = self._engine
        if engine is None or self._finished():
            return b""
        if engine.eof:
            engine = self._engine = self._new() or engine
        tail: bytes = getattr(engine, "unconsumed_tail", b"")
        if not tail and getattr(engine, "needs_input", True):
            tail = self._pending
            self._pending = b""
            if not tail:
                self._stream.seek(self._packed)
                tail = self._stream.read(_CHUNK)
                self._packed += len(tail)
        try:
            data = engine.decompress(tail, _CHUNK)
            if engine.eof:
                self._pending = engine.unused_data
            if not tail and not data and not engine.eof and getattr(engine, "needs_input", True):
                refuse("archive_truncated", "the compressed archive ends too early", self._check.where)
            return data
        except (zlib.error, OSError, lzma.LZMAError, ValueError, EOFError):
            refuse("archive_damaged", "the compressed archive cannot be unpacked", self._check.where)

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, fewer only at the end."""
        parts = []
        wanted = size
        while wanted:
            if self._at == len(self._buffer):
                self._buffer = self._more()
                self._at = 0
                if not self._buffer:
                    break
            part = self._buffer[self._at : self._at + wanted]
            self._at += len(part)
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)

    def exactly(self, size: int) -> bytes:
        """Return `size` bytes or refuse."""
        data = self.read(size)
        if len(data) != size:
            refuse("archive_truncated", "the archive ends too early", self._check.where)
        return data

    def skip(self, size: int) -> None:
        """Pass over `size` bytes."""
        ahead = len(self._buffer) - self._at
        if self._engine is None and size > ahead:
            size -= ahead
            self._at = len(self._buffer)
            if self._packed + size > self._size:
                refuse("archive_truncated", "the archive ends too early", self._check.where)
            self._packed += size
            return
        while size:
            size -= len(self.exactly(min(size, _CHUNK)))


class _Header(NamedTuple):
    kind: bytes
    raw_name: bytes
    size: int
    utf8: bool
    sparse: bool


class TarArchive:
    """A checked TAR archive."""

    format = "tar"

    def __init__(self, stream: BinaryIO, size: int, compression: str, check: EntryCheck) -> None:
        self._stream = stream
        self._size = size
        self._compression = compression
        self._check = check
        self._where = check.where
        data = self._unpacked()
        for header in self._headers(data):
            self._take(header)
            data.skip(_padded(header.size))
        while chunk := data.read(_CHUNK):
            if any(chunk):
                refuse("archive_trailing_bytes", "bytes follow the end of the archive", self._where)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The files in order."""
        return tuple(self._check.entries)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What was left out."""
        return tuple(self._check.skipped)

    def _unpacked(self) -> _Unpacked:
        return _Unpacked(self._stream, self._size, self._compression, self._check)

    def members(self) -> Iterator[tuple[Entry, BinaryIO]]:
        """Yield every file with its content."""
        data = self._unpacked()
        pending = iter(self._check.entries)
        for header in self._headers(data):
            if self._is_file(header):
                content = _Content(data, header.size)
                with cast("BinaryIO", io.BufferedReader(content, _CHUNK)) as stream:
                    yield next(pending), stream
                content.drain()
                data.skip(_padded(header.size) - header.size)
            else:
                data.skip(_padded(header.size))

    def open(self, entry: Entry) -> BinaryIO:
        """Open one file by unpacking from the start; KeyError when the entry is of another archive."""
        data = self._unpacked()
        pending = iter(self._check.entries)
        for header in self._headers(data):
            if self._is_file(header) and next(pending) == entry:
                return cast("BinaryIO", io.BufferedReader(_Content(data, header.size), _CHUNK))
            data.skip(_padded(header.size))
        raise KeyError(entry.name)

    @staticmethod
    def _is_file(header: _Header) -> bool:
        return header.kind in {b"0", b"7"} and not header.raw_name.endswith(b"/") and not header.sparse

    def _take(self, header: _Header) -> None:
        check = self._check
        name, encoding = check.name(header.raw_name, "utf-8" if header.utf8 else "", "latin-1")
        if name.rstrip("/") in {".", ""} and header.kind == b"5":
            return
        clean = check.clean(name.removesuffix("/"))
        if self._is_file(header):
            check.add(Entry(clean, header.raw_name, encoding, header.size), None)
        elif header.sparse:
            check.special(clean, "a sparse file")
        elif header.kind not in {b"5", b"0", b"7"}:
            check.special(clean, _SPECIAL.get(header.kind, f"of the unknown type {header.kind!r}"))
        elif header.size:
            refuse("archive_special_file", f"the folder {name!r} has content", self._where)

    def _headers(self, data: _Unpacked) -> Iterator[_Header]:
        """Yield the header of every member; the caller reads or skips the padded content after each."""
        shared: dict[bytes, bytes] = {}
        own: dict[bytes, bytes] = {}
        long_name: bytes | None = None
        while True:
            block = data.exactly(_BLOCK)
            if not any(block):
                return
            kind, size = self._block(block)
            if kind in {b"x", b"g", b"L", b"K"}:
                if size > _MAX_HEADER:
                    refuse("archive_damaged", "a header is larger than 1 MiB", self._where)
                content = data.exactly(_padded(size))[:size]
                if kind == b"g":
                    shared.update(self._pax(content))
                elif kind == b"x":
                    own = self._pax(content)
                elif kind == b"L":
                    long_name = content.split(b"\x00", 1)[0]
                continue
            fields = {**shared, **own}
            yield self._header(block, kind, size, fields, long_name)
            own = {}
            long_name = None

    def _block(self, block: bytes) -> tuple[bytes, int]:
        if not _checksum_fits(block):
            refuse("archive_damaged", "a header does not have its checksum", self._where)
        if block[156:157] == b"S":
            refuse("archive_special_file", "the archive holds an old GNU sparse file", self._where)
        size = _octal(block[124:136])
        if size is None or size > self._check.policy.limits.file_bytes:
            refuse("archive_damaged", "a header has no valid size", self._where)
        kind = block[156:157]
        return (b"0" if kind == b"\x00" else kind), (0 if kind in b"123456" else size)

    def _header(
        self, block: bytes, kind: bytes, size: int, fields: dict[bytes, bytes], long_name: bytes | None
    ) -> _Header:
        name = block[:100].split(b"\x00", 1)[0]
        if block[257:263] == b"ustar\x00":
            prefix = block[345:500].split(b"\x00", 1)[0]
            name = prefix + b"/" + name if prefix else name
        if b"size" in fields:
            text = fields[b"size"]
            if not text.isdigit() or len(text) > 19:
                refuse("archive_damaged", "a header has no valid size", self._where)
            size = int(text) if kind not in b"123456" else 0
        utf8 = b"path" in fields and fields.get(b"hdrcharset") != b"BINARY"
        name = fields.get(b"path", long_name if long_name is not None else name)
        if b"\x00" in name:
            refuse("archive_name", f"the name {name!r} has a NUL", self._where)
        sparse = any(key.startswith(b"GNU.sparse.") for key in fields)
        return _Header(kind, name, size, utf8, sparse)

    def _pax(self, content: bytes) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        position = 0
        while position < len(content):
            space = content.find(b" ", position, position + 12)
            length = content[position:space] if space > 0 else b""
            end = position + int(length) if length.isdigit() else 0
            if end <= space or end > len(content) or content[end - 1 : end] != b"\n":
                refuse("archive_damaged", "an extended header is not valid", self._where)
            key, mark, value = content[space + 1 : end - 1].partition(b"=")
            if not mark:
                refuse("archive_damaged", "an extended header is not valid", self._where)
            found[key] = value
            position = end
        return found


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


class _Content(io.RawIOBase):
    """The bytes of one member."""

    def __init__(self, data: _Unpacked, size: int) -> None:
        super().__init__()
        self._data = data
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        count = min(len(view), self._left)
        if count:
            view[:count] = self._data.exactly(count)
            self._left -= count
        return count

    def drain(self) -> None:
        """Pass over what was not read."""
        self._data.skip(self._left)
        self._left = 0
