"""The evidence index under eight processes for five minutes: writers and readers at once, and deaths.

`VIANO_INDEX_SECONDS` shortens it. Prints what was read and written, and what went wrong.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from resources.evidence_index import EvidenceIndex
from tests.support.index_units import WHOLE

WRITERS, READERS = 4, 4


def _start(role: str, home: Path, number: int, stop: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.index_worker", role, str(home), str(number), str(stop)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def main() -> dict[str, object]:
    """Run the processes, kill a writer now and then, and add up what they saw."""
    seconds = float(os.environ.get("VIANO_INDEX_SECONDS", "300"))
    rng = random.Random(8)
    with tempfile.TemporaryDirectory(prefix="viano-index-") as folder:
        home, stop = Path(folder) / "home", Path(folder) / "stop"
        workers = [_start("write", home, number, stop) for number in range(WRITERS - 1)]
        workers += [_start("read", home, number, stop) for number in range(READERS)]
        victim = _start("write", home, WRITERS, stop)
        kills, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(rng.uniform(2, 12), max(0.0, end - time.monotonic())))
            victim.kill()
            victim.communicate()
            kills += 1
            victim = _start("write", home, WRITERS + kills, stop)
        stop.touch()
        results: list[dict[str, Any]] = []
        errors = 0
        for process in [*workers, victim]:
            output, error = process.communicate(timeout=120)
            errors += process.returncode != 0
            if process.returncode == 0:
                results.append(json.loads(output))
            else:
                print(error[-2_000:], file=sys.stderr)
        rows = EvidenceIndex(home).query(WHOLE, limit=100_000).rows
        torn = sum(not (r[2] == r[3] and r[1] == r[4] == r[5]) for r in rows)
        segments = len(EvidenceIndex(home).layout.current().segments)
    return {
        "seconds": seconds,
        "processes": WRITERS + READERS,
        "kills": kills,
        "errors": errors,
        "publications": sum(item.get("published", 0) for item in results),
        "reads": sum(item.get("reads", 0) for item in results),
        "torn": torn + sum(item.get("torn", 0) for item in results),
        "lost": sum(item.get("lost", 0) for item in results),
        "segments": segments,
    }
