"""Starting real worker processes for tests, and making sure they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def worker(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `tests.support.package_worker` and kill it at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.package_worker", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait for the next line of output."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    """Let a worker that said it is ready start."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


MARK = "VIANO_TEST_MARK"


def marked(mark: str) -> list[int]:
    """Return the living processes that were started under `mark`, however deep down and in which session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            state = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"{MARK}={mark}\0".encode() in environment and state != "Z":
            found.append(int(folder.name))
    return sorted(found)


@contextmanager
def started(
    command: Sequence[str], mark: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command under `mark`, its output in `log`, and kill whatever is left of it at the end."""
    inherited = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    with (
        log.open("ab") as said,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=inherited | {MARK: mark} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            for pid in marked(mark):
                os.kill(pid, signal.SIGKILL)


def wait_until(true: Callable[[], bool], what: str, patience_s: float = 120.0) -> None:
    """Wait for a condition.

    Raises:
        AssertionError: it did not come true in time.
    """
    end = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience_s:g} s: {what}")
        time.sleep(0.1)
