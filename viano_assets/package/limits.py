"""How much a package may hold; the store refuses to write more and to read more."""

from __future__ import annotations

from dataclasses import dataclass

BLOB_IN_CONTAINER = 1 << 20
"""Content of this many bytes or more lies once in `objects/` instead of in a container."""

SNAPSHOT_EVERY = 256
"""Every generation divisible by this carries the full listing, so that a lookup needs no older record."""


@dataclass(frozen=True, slots=True)
class PackageLimits:
    """Ceilings of one package; sizes in bytes."""

    files: int = 200_000
    file_bytes: int = 16 << 30
    total_bytes: int = 64 << 30
    record_bytes: int = 64 << 20
    detail_bytes: int = 64 << 10
    container_bytes: int = 1 << 30
    container_members: int = 60_000
    generations: int = 10_000_000
