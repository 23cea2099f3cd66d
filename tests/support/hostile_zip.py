"""Builds ZIP bytes field by field, so that a test can state one lie."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field, replace

__all__ = ["Piece", "build"]


@dataclass(frozen=True)
class Piece:
    """One entry; every field can lie."""

    name: bytes
    data: bytes = b""
    method: int = 0
    flags: int = 0x0800
    mode: int = 0o100644
    made_by: int = 3
    packed: bytes | None = None
    size: int | None = None
    crc: int | None = None
    local_name: bytes | None = None
    extra: bytes = b""
    central_size: int | None = None
    at: int | None = None
    descriptor: bool = False
    extras: dict[str, int] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        if self.packed is not None:
            return self.packed
        if self.method == 8:
            engine = zlib.compressobj(9, zlib.DEFLATED, -15)
            return engine.compress(self.data) + engine.flush()
        return self.data


def build(
    *pieces: Piece,
    prefix: bytes = b"",
    suffix: bytes = b"",
    comment: bytes = b"",
    gap: bytes = b"",
    zip64: bool = False,
    disk: int = 0,
    count: int | None = None,
    shift: int = 0,
    locator_shift: int = 0,
) -> bytes:
    out = bytearray(prefix)
    central = bytearray()
    base = shift
    for piece in pieces:
        content = piece.content
        size = len(piece.data) if piece.size is None else piece.size
        crc = zlib.crc32(piece.data) if piece.crc is None else piece.crc
        name = piece.name if piece.local_name is None else piece.local_name
        offset = len(out) + base if piece.at is None else piece.at
        flags = piece.flags | (8 if piece.descriptor else 0)
        told = (0, 0, 0) if piece.descriptor else (crc, len(content), size)
        out += struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, flags, piece.method, 0, 33, *told, len(name), 0)
        out += name + content
        if piece.descriptor:
            out += struct.pack("<III", crc, len(content), size)
        central += struct.pack(
            "<4sHHHHHHIIIHHHHHII", b"PK\1\2", piece.made_by << 8 | 20, 20, flags, piece.method, 0, 33, crc,
            len(content), size if piece.central_size is None else piece.central_size, len(piece.name),
            len(piece.extra), 0, piece.extras.get("disk", 0), 0, piece.mode << 16, offset,
        )  # fmt: skip
        central += piece.name + piece.extra
    out += gap
    start = len(out) + base
    out += central
    entries = len(pieces) if count is None else count
    if zip64:
        where = len(out) + base
        out += struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, entries, entries, len(central), start)
        out += struct.pack("<4sIQI", b"PK\6\7", 0, where + locator_shift, 1)
        out += struct.pack("<4sHHHHIIH", b"PK\5\6", 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    else:
        out += struct.pack(
            "<4sHHHHIIH", b"PK\5\6", disk, disk, entries, entries, len(central), start, len(comment)
        )
    return bytes(out + comment + suffix)


def lie(piece: Piece, **changes: object) -> Piece:
    return replace(piece, **changes)  # type: ignore[arg-type]
