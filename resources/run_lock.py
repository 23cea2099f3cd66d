"""A lock each Dagster run holds while its worker lives, so that a dead run can be told from a slow one.

The lock is an `flock` on `<DAGSTER_HOME>/run_locks/<run id>`: the kernel frees it when the process dies,
however it dies. A worker that ends its work writes a word into the file before it lets go; what is left of
the run then is Dagster's own last events. So a started run has no worker when

- its lock is free and the word is not there, or
- for longer than `GRACE_S` its lock was never made, or the word is there (it died before or after its work).
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GRACE_S = 120.0
"""How long a run may take from its start to its lock, and from its work's end to its own end, in seconds."""

_ENDED = b"ended"
_RUN_ID = re.compile(r"[0-9a-f-]{8,64}", re.ASCII)


def lock_folder(root: str | Path) -> Path:
    """Return the folder of the run locks below a Dagster home."""
    return Path(root) / "run_locks"


@contextmanager
def run_lock(root: str | Path, run_id: str) -> Iterator[None]:
    """Hold the lock of `run_id` for the duration of the block."""
    folder = lock_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / run_id, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        try:
            yield
        finally:
            os.pwrite(descriptor, _ENDED, 0)
    finally:
        os.close(descriptor)


def worker_is_dead(root: str | Path, run_id: str, started: float, now: float | None = None) -> bool:
    """Return True when the run that started at `started` (seconds of the epoch) has no worker any more."""
    moment = time.time() if now is None else now
    try:
        descriptor = os.open(lock_folder(root) / run_id, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return moment - started > GRACE_S
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if os.pread(descriptor, len(_ENDED), 0) != _ENDED:
            return True
        return moment - os.fstat(descriptor).st_mtime > GRACE_S
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def forget_ended(root: str | Path, under_way: Container[str]) -> None:
    """Remove the lock files of the runs that are not under way."""
    folder = lock_folder(root)
    for path in folder.iterdir() if folder.is_dir() else ():
        if _RUN_ID.fullmatch(path.name) and path.name not in under_way:
            with suppress(OSError):
                path.unlink()
