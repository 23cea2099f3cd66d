"""Starting real worker processes for tests, and making sure they end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
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
