"""Real processes racing for one case (R8), killed and stopped at random (R17)."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.deep._faults_kill import Tally
from tests.support.cases import first_change
from tests.support.processes import first_line, go, worker
from viano_assets.errors import PackageError
from viano_assets.package.store import CheckpointStore

CASE = "c"


def race(home: Path, tally: Tally, processes: int, commits: int) -> int:
    """Let processes commit to one case at once; every acknowledged commit must be there exactly once."""
    CheckpointStore(home).create(CASE, first_change(b"small"))
    with contextlib.ExitStack() as stack:
        names = [f"w{n}" for n in range(processes)]
        workers = [stack.enter_context(worker("commit", str(home), CASE, str(commits), n)) for n in names]
        for each in workers:
            first_line(each)
        for each in workers:
            go(each)
        told = [line.split() for each in workers for line in each.communicate()[0].splitlines()]
    head = CheckpointStore(home).latest(CASE, audit_history=True)
    stored = [(str(c.generation), c.detail["by"], str(c.detail["n"])) for c in head.checkpoints[1:]]
    if sorted(stored) != sorted(tuple(line) for line in told) or len(told) != processes * commits:
        tally.note("lost", f"{processes} processes: what was acknowledged is not what is stored")
    return len(told)


def soak(home: Path, tally: Tally, kills: int) -> int:
    """Kill (and sometimes stop first) a committing process at random moments, again and again."""
    CheckpointStore(home).create(CASE, first_change(b"small"))
    rng = random.Random(17)
    done = 0
    while done < kills:
        with worker("commit", str(home), CASE, "100000", f"k{done}") as process:
            first_line(process)
            go(process)
            time.sleep(rng.uniform(0.005, 0.12))
            if rng.random() < 0.3:
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
            lines = process.communicate()[0].splitlines()
        done += 1
        acknowledged = max((int(line.split()[0]) for line in lines if line.count(" ") == 2), default=0)
        try:
            head = CheckpointStore(home).latest(CASE)
        except PackageError as error:
            tally.note("torn", f"after kill {done}: {error}")
            break
        if head.generation < acknowledged:
            tally.note(
                "lost", f"after kill {done}: {acknowledged} was acknowledged, {head.generation} is there"
            )
        if acknowledged and head.generation > acknowledged + 1:
            tally.note("resurrected", f"after kill {done}: {head.generation} after {acknowledged}")
    report = CheckpointStore(home).verify(CASE, audit_history=True)
    if not report.good:
        tally.note("torn", f"after the soak: {report.problems[:3]}")
    sys.stderr.write(f"soak: {done} kills, {report.generation} generations\n")
    return done
