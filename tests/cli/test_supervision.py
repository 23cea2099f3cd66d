"""A supervised program leaves nothing running, even one that does not want to end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.support.processes import marked, started, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

STUBBORN = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(600)
open(sys.argv[1], "w").close()
time.sleep(600)
"""

SUPERVISING = """
import os, sys
from viano_assets.cli.supervision import supervise
command = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
sys.exit(supervise(command, os.environ, patience_s=0.5, grace_s=0.5))
"""


def test_what_does_not_want_to_end_is_killed_also_in_a_session_of_its_own(tmp_path: Path) -> None:
    mark, ready = f"stubborn-{tmp_path}", tmp_path / "ready"
    command = [sys.executable, "-c", SUPERVISING, STUBBORN, str(ready)]
    with started(command, mark, tmp_path / "said") as process:
        wait_until(ready.exists, "the program is ready")
        assert len(marked(mark)) >= 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert marked(mark) == []


@pytest.mark.parametrize("status", [0, 3])
def test_a_program_that_ends_by_itself_hands_its_status_on(tmp_path: Path, status: int) -> None:
    command = [sys.executable, "-c", SUPERVISING, f"raise SystemExit({status})", ""]
    with started(command, f"plain-{tmp_path}", tmp_path / "said") as process:
        assert process.wait(30) == (1 if status else 0)
