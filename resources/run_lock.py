"""A lock each Dagster run holds while its worker lives, so that a dead run can be told from a slow one.

The lock is an `flock` on `<DAGSTER_HOME>/run_locks/<run id>`: the kernel frees it when the process dies,
however it dies. The reaper sensor tries it; a started run whose lock is free has no worker.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lock_folder(root: str | Path) -> Path:
    """Return the folder of the run locks below a Dagster home."""
    return Path(root) / "run_locks"


@contextmanager
def run_lock(root: str | Path, run_id: str) -> Iterator[None]:
    """Hold the lock of `run_id` for the duration of the block."""
    folder = lock_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / run_id
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def worker_is_dead(root: str | Path, run_id: str) -> bool:
    """Return True when the run once held its lock and no process holds it now."""
    path = lock_folder(root) / run_id
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
