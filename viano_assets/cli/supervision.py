"""Runs a program in the foreground and leaves nothing of it behind, whatever its processes do."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PATIENCE_S = 15.0
"""How long a stopped program may take to end by itself, in seconds."""

GRACE_S = 5.0
"""How long what it left running may take after SIGTERM, in seconds, before it is killed."""

_PR_SET_CHILD_SUBREAPER = 36
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S = 0.1


def supervise(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    patience_s: float = PATIENCE_S,
    grace_s: float = GRACE_S,
) -> int:
    """Run `command` until it ends or this process is asked to stop; end every process it started.

    SIGINT, SIGTERM and SIGHUP are passed on as SIGINT, the orderly way. On Linux orphans of the program come
    to this process, also those in sessions of their own; elsewhere only its process group is ended.

    Returns:
        The exit status: 0 when it ended well or was asked to stop, else 1.
    """
    _adopt_orphans()
    asked: list[float] = []

    def stop(number: int, frame: object) -> None:
        del number, frame
        asked.append(time.monotonic())

    before = {number: signal.signal(number, stop) for number in _STOPPING}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    told = 0
    try:
        while process.poll() is None:
            if len(asked) > told:
                told = len(asked)
                _signal_group(process.pid, signal.SIGINT)
            if asked and time.monotonic() - asked[0] > patience_s:
                break
            time.sleep(_POLL_S)
    finally:
        _end_all(process, grace_s)
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0 if asked or process.returncode == 0 else 1


def _adopt_orphans() -> None:
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_all(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """End the group of the program and every descendant; those of a dead one come as children."""
    how = signal.SIGTERM
    end = time.monotonic() + grace_s
    while True:
        _signal_group(process.pid, how)
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, how)
        if not _any_left(process):
            return
        if time.monotonic() > end:
            how = signal.SIGKILL
        time.sleep(_POLL_S)


def _any_left(process: subprocess.Popen[bytes]) -> bool:
    """Reap what has ended and tell whether anything is left."""
    process.poll()
    for child in _children():
        if child != process.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
    return bool(_children()) or process.poll() is None


def _children() -> list[int]:
    """Return the children of this process; none where there is no /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = (
                (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            )
            if int(parent) == os.getpid():
                found.append(int(folder.name))
    return found


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
