"""A dead worker is told from a slow one by the kernel, with real processes that really die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resources.run_lock import GRACE_S, forget_ended, lock_folder, run_lock, worker_is_dead

RUN = "0d1f6a52-8a8e-4d2a-9a51-3a0d0f0d9b11"
HOLDER = """
import sys, time
from resources.run_lock import run_lock
with run_lock(sys.argv[1], sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_killed_worker_is_dead_and_a_working_one_is_not(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), RUN], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        long_ago = time.time() - 10 * GRACE_S
        assert not worker_is_dead(tmp_path, RUN, long_ago)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert worker_is_dead(tmp_path, RUN, time.time())


def test_a_worker_that_ended_its_work_has_time_to_say_so(tmp_path: Path) -> None:
    with run_lock(tmp_path, RUN):
        pass
    now = time.time()
    assert not worker_is_dead(tmp_path, RUN, now - 10 * GRACE_S, now)
    assert worker_is_dead(tmp_path, RUN, now - 10 * GRACE_S, now + GRACE_S + 5)


def test_a_failing_worker_leaves_the_failure_to_dagster(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_lock(tmp_path, RUN):
        raise ZeroDivisionError
    assert not worker_is_dead(tmp_path, RUN, time.time())


def test_a_run_that_never_took_its_lock_is_dead_after_the_grace(tmp_path: Path) -> None:
    assert not worker_is_dead(tmp_path, RUN, started=1_000.0, now=1_000.0 + GRACE_S - 1)
    assert worker_is_dead(tmp_path, RUN, started=1_000.0, now=1_000.0 + GRACE_S + 1)


def test_only_lock_files_of_ended_runs_are_forgotten(tmp_path: Path) -> None:
    other = RUN.replace("0d1f", "ffff")
    for run_id in (RUN, other):
        with run_lock(tmp_path, run_id):
            pass
    (lock_folder(tmp_path) / "README").write_text("kept")
    forget_ended(tmp_path, {other})
    assert sorted(path.name for path in lock_folder(tmp_path).iterdir()) == ["README", other]
