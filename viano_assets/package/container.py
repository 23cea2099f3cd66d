"""One generation as one ZIP file with stored members: `record.json` first, then the new small content.

    record.json | files/<path> ... | history/<first>-<last>.jsonl | central directory | end record + trailer

The bytes are a function of the record, the content and the trailer's key alone: member times are fixed,
nothing is compressed, no extra fields. So a reader rebuilds the expected bytes and compares; the central
directory is written for people's ZIP tools and never trusted. The trailer is the archive comment and holds
the SHA-256 (or, with a key, the HMAC-SHA-256) of every byte before the end record: nothing follows the
newest generation that could vouch for it, so it vouches for itself.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from viano_assets.errors import NewerFormatError, PackageError

RECORD_NAME = b"record.json"
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_VERSION = 20
_UTF8 = 0x0800
_DATE = 0x0021  # 1980-01-01, the earliest a ZIP can say
_UNIX_FILE = 0o100640 << 16
_MADE_BY = (3 << 8) | _VERSION
_TRAILER = re.compile(rb"viano-package-v([0-9]{1,6}) (sha256|hmac-sha256) ([0-9a-f]{64})")

RECORD_START = _LOCAL.size + len(RECORD_NAME)
"""Offset of the record's first byte in every container."""


class Member(NamedTuple):
    """One piece of content: its name in the container and its bytes."""

    name: str
    data: bytes


class Trailer(NamedTuple):
    """What a container says about all bytes before its end record."""

    kind: str
    digest: str


def member_overhead(name: str) -> int:
    """Bytes between the end of one member's content and the start of this member's content."""
    return _LOCAL.size + len(name.encode("utf-8"))


def _local(name: bytes, crc: int, size: int) -> bytes:
    return _LOCAL.pack(
        b"PK\x03\x04", _VERSION, _UTF8, 0, 0, _DATE, crc, size, size, len(name), 0
    ) + name  # fmt: skip


def build(record: bytes, members: Sequence[Member], key: bytes | None = None) -> bytes:
    """Return the one container of this record, content and key."""
    parts: list[bytes] = []
    central: list[bytes] = []
    position = 0
    named = [(RECORD_NAME, record), *((member.name.encode("utf-8"), member.data) for member in members)]
    for name, data in named:
        size = len(data)
        crc = zlib.crc32(data)
        local = _local(name, crc, size)
        central.append(
            _CENTRAL.pack(
                b"PK\x01\x02", _MADE_BY, _VERSION, _UTF8, 0, 0, _DATE, crc, size, size,
                len(name), 0, 0, 0, 0, _UNIX_FILE, position,
            ) + name
        )  # fmt: skip
        parts += (local, data)
        position += len(local) + size
    directory = b"".join(central)
    body = b"".join([*parts, directory])
    trailer = _trailer(body, key)
    end = _END.pack(b"PK\x05\x06", 0, 0, len(named), len(named), len(directory), position, len(trailer))
    return body + end + trailer


def _trailer(body: bytes, key: bytes | None) -> bytes:
    if key is None:
        return b"viano-package-v1 sha256 " + hashlib.sha256(body).hexdigest().encode()
    return b"viano-package-v1 hmac-sha256 " + hmac.new(key, body, hashlib.sha256).hexdigest().encode()


def read_record(head: bytes | memoryview, limit: int, where: str) -> bytes:
    """Return the record from the first bytes of a container; the caller checks its hash.

    Raises:
        PackageError: `container_damaged` when the bytes do not start with a whole record.
    """
    data = memoryview(head)
    if len(data) >= RECORD_START:
        size = int.from_bytes(data[22:26], "little")
        record = bytes(data[RECORD_START : RECORD_START + size])
        header = _local(RECORD_NAME, zlib.crc32(record), size)
        if size <= limit and len(record) == size and data[:RECORD_START] == header:
            return record
    raise PackageError("container_damaged", "the generation does not start with a whole record", where=where)


def record_size(head: bytes, where: str) -> int:
    """Return the record's size as the first bytes of a container state it, before it is read."""
    if len(head) < RECORD_START or head[:4] != b"PK\x03\x04":
        raise PackageError("container_damaged", "the generation is not a container", where=where)
    return int.from_bytes(head[22:26], "little")


def read_trailer(data: bytes, where: str) -> Trailer:
    """Return the trailer of a whole container.

    Raises:
        NewerFormatError: the trailer names a later version of the format.
        PackageError: `container_damaged` when there is no trailer.
    """
    match = _TRAILER.search(data, max(0, len(data) - 120))
    if match is None or match.end() != len(data):
        raise PackageError("container_damaged", "the generation has no trailer", where=where)
    if int(match[1]) > 1:
        raise NewerFormatError(
            "newer_format",
            f"the generation has format {int(match[1])}, this release reads 1",
            where=where,
            hint="use the release that wrote it, or a newer one",
        )
    return Trailer(match[2].decode(), match[3].decode())


def check(data: bytes, record: bytes, members: Sequence[Member], key: bytes | None, where: str) -> None:
    """Check that `data` is exactly the container of this record and content.

    Raises:
        PackageError: `key_missing` (the trailer is an HMAC and no key is given), `unkeyed_generation`
            (a key is given and the trailer is not an HMAC) or `container_damaged`.
    """
    trailer = read_trailer(data, where)
    if trailer.kind == "hmac-sha256" and key is None:
        raise PackageError(
            "key_missing",
            "the generation is sealed with a key that is not configured",
            where=where,
            hint="give the integrity key this home was written with",
        )
    if trailer.kind == "sha256" and key is not None:
        raise PackageError(
            "unkeyed_generation", "the generation is not sealed with the integrity key", where=where
        )
    if build(record, members, key) != data:
        raise PackageError(
            "container_damaged", "the generation's bytes do not match its record and trailer", where=where
        )


def digest(data: bytes | memoryview) -> str:
    """Return the SHA-256 of content without copying it."""
    return hashlib.sha256(data).hexdigest()
