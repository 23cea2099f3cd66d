"""A process that works on a case, for tests that race or kill real processes.

python -m tests.support.package_worker commit HOME CASE COUNT NAME   commit COUNT times, whoever else does
python -m tests.support.package_worker hold HOME CASE                take the lock and sleep
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from viano_assets.errors import BusyError, StaleHeadError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore


def commit(home: Path, case_id: str, count: int, name: str) -> None:
    """Commit until `count` commits were acknowledged; each is printed once it is."""
    store = CheckpointStore(home)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    done = 0
    while done < count:
        try:
            head = store.latest(case_id)
            put: dict[str, bytes | Path] = {f"work/{name}-{done}.json": f"{name} {done}".encode() * 50}
            head = store.commit(head, Change("work", put=put, detail={"by": name, "n": done}))
        except (BusyError, StaleHeadError):
            continue
        done += 1
        sys.stdout.write(f"{head.generation} {name} {done - 1}\n")
        sys.stdout.flush()


def hold(home: Path, case_id: str) -> None:
    """Hold the lock until killed."""
    with CheckpointStore(home).lock(case_id):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        time.sleep(600)


if __name__ == "__main__":
    action, where, case = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if action == "commit":
        commit(where, case, int(sys.argv[4]), sys.argv[5])
    else:
        hold(where, case)
