"""Export and import take no more memory for larger content."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore

SIZE_MB = 160
LIMIT_MB = 110
"""Resident at most; a bare interpreter with the store takes about 40.

Read from the process itself: `ru_maxrss` of a child starts with what its parent had.
"""

CHILD = """
import sys
from pathlib import Path
from viano_assets.package.store import CheckpointStore
home, other, file = map(Path, sys.argv[1:])
CheckpointStore(home).export("c", file)
head = CheckpointStore(other).import_package(file)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(head.record_sha256, int(peak.split()[1]) // 1024)
"""


def test_a_large_package_travels_in_bounded_memory(tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as stream:
        block = random.Random(1).randbytes(1 << 20)
        for number in range(SIZE_MB):
            stream.write(number.to_bytes(8, "big") + block[8:])
    change = Change("e", put={"inputs/dump.bin": large}, raw=frozenset({"inputs/dump.bin"}), lifecycle="R")
    head = CheckpointStore(tmp_path / "home").create("c", change)
    large.unlink()
    arguments = [str(tmp_path / name) for name in ("home", "other", "c.zip")]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], check=True, capture_output=True, text=True
    )
    record, resident = done.stdout.split()
    assert record == head.record_sha256
    assert int(resident) < LIMIT_MB
