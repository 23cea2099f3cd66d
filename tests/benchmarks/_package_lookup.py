"""A cold lookup in a fresh process, beside merely hashing the same live bytes.

    python -m tests.benchmarks._package_lookup HOME [first]

Prints CPU and wall seconds of both; `first` is the one that runs first (`lookup` or `hash`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks._package_workload import CASE
from viano_assets.package.reader import StoredHead
from viano_assets.package.store import CheckpointStore


class Cost(NamedTuple):
    """CPU and wall seconds."""

    cpu: float
    wall: float


def lookup(home: Path) -> tuple[Cost, StoredHead]:
    """Validate the head with a store that knows nothing yet."""
    cpu, wall = time.process_time(), time.perf_counter()
    head = CheckpointStore(home).latest(CASE)
    cost = Cost(time.process_time() - cpu, time.perf_counter() - wall)
    assert isinstance(head, StoredHead)
    return cost, head


def places(head: StoredHead) -> dict[str, list[tuple[int, int]]]:
    """Return the file name and ranges of all live content."""
    found: dict[str, list[tuple[int, int]]] = {}
    for stored in head.entries.values():
        name = f"gens/g{stored.generation:08d}.zip" if stored.generation else f"objects/{stored.sha256}"
        found.setdefault(name, []).append((stored.offset, stored.size))
    return found


def merely_hash(home: Path, ranges: dict[str, list[tuple[int, int]]]) -> Cost:
    """Read the same bytes from the same files into one buffer and hash them, nothing else."""
    cpu, wall = time.process_time(), time.perf_counter()
    buffer = bytearray(1 << 20)
    view = memoryview(buffer)
    for name, parts in sorted(ranges.items()):
        descriptor = os.open(home / "cases" / CASE / name, os.O_RDONLY)
        for offset, size in parts:
            digest = hashlib.sha256()
            for start in range(0, size, len(buffer)):
                count = os.preadv(descriptor, [view[: min(len(buffer), size - start)]], offset + start)
                digest.update(view[:count])
            digest.digest()
        os.close(descriptor)
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def main(arguments: list[str]) -> None:
    home = Path(arguments[0])
    plan = home.parent / f"{home.name}.ranges.json"
    if not plan.exists():
        _, head = lookup(home)
        plan.write_text(json.dumps(places(head)))
    ranges = {name: [(a, b) for a, b in parts] for name, parts in json.loads(plan.read_text()).items()}
    if arguments[1:] == ["hash"]:
        hashed = merely_hash(home, ranges)
        looked, _ = lookup(home)
    else:
        looked, _ = lookup(home)
        hashed = merely_hash(home, ranges)
    sys.stdout.write(json.dumps({"lookup": looked, "hash": hashed}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
