"""A command on a disk of its own that is too small for what it wants to write."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import ROOT

ON_A_SMALL_DISK = """
mount -t tmpfs -o size="$1" small "$2" || exit 77
shift; disk="$1"; shift
"$@" 2>&1
echo "status $?"
ls -A "$disk"
"""
"""Runs a command with a file system of `$1` at `$2`, then says its status and what is left there."""

_NAMESPACE = ("unshare", "-rm", "sh", "-c", ON_A_SMALL_DISK, "sh")


def on_a_small_disk(size: str, disk: Path, *command: str) -> str:
    """Return what a command says when `disk` holds `size`; skip where nobody may mount."""
    disk.mkdir(exist_ok=True)
    done = subprocess.run(
        [*_NAMESPACE, size, str(disk), *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "status " not in done.stdout:
        pytest.skip("a file system of its own cannot be mounted here")
    return done.stdout
