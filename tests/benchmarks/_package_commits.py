"""CPU seconds of committing the measured steps in a fresh process, beside nothing else.

    python -m tests.benchmarks._package_commits HOME

The counterpart of `_package_langgraph.py`: the same steps, the inputs stored before the clock starts.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.benchmarks import _package_workload as load
from viano_assets.package.store import CheckpointStore


def run(home: Path) -> dict[str, float]:
    """Commit every step and return figures."""
    store = CheckpointStore(home)
    head = load.first(store, {"inputs/source/source.zip": b"x" * (1 << 20)})
    changes = [load.change_of(step) for step in load.steps()]
    with store.lock(load.CASE):
        start = time.process_time()
        for change in changes:
            head = store.commit(head, change)
        cpu = time.process_time() - start
    return {"cpu_seconds": cpu, "steps": float(len(changes))}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Path(sys.argv[1]))) + "\n")
