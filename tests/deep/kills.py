"""`make test-deep NAME=kills`: `kill -9` of `viano run` and of the Dagster run at ten random moments.

A moment is a published generation, drawn anew for every death, and up to half a second more. The model
sits behind a real HTTP endpoint that counts its calls. After each death the next run must continue without
any cleaning up, ask nothing again whose answer the package holds, and end with the same canonical bytes of
diagnosis and localisation as an undisturbed run. `KILLS_SEED` draws other moments.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.analyst_server import AnalystServer, recorded
from tests.support.graph import small_case
from viano_assets.canonical import canonical_json
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.diagnosis.view import case_view

ROOT = Path(__file__).resolve().parents[2]
CASE = "CRANE-17"
CLI = (sys.executable, "-c", "from viano_assets.cli.main import main; main()")
DEATHS = {"viano run": 5, "dagster run": 5}
PATIENCE_S = 300.0
DRAWS = 5
"""How many moments are drawn for one death; a run may end before the last ones."""

FIRST_GENERATION = 3
"""The first generation that a run publishes; the import publishes two."""


@dataclass
class Tally:
    """What was found."""

    kills: int = 0
    repeated_calls: int = 0
    different_results: int = 0


@dataclass(frozen=True)
class Way:
    """One way of running a case: its command, and what has to happen before it is run again."""

    name: str
    command: Sequence[str]
    after_death: Sequence[str] | None


def _ways(key: str) -> list[Way]:
    dagster = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "viano_assets.definitions"]
    return [
        Way("viano run", [*CLI, "run", CASE], None),
        Way(
            "dagster run",
            [*dagster, "--select", 'group:"case"', "--partition", key],
            [sys.executable, "-m", "tests.support.reap"],
        ),
    ]


def environment(home: Path) -> dict[str, str]:
    """Return the environment that makes `home` the Viano home, with a Dagster home of its own."""
    return os.environ | {"VIANO_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}


def _generation(home: Path) -> int:
    return len(os.listdir(home / "cases" / CASE / "gens"))  # noqa: PTH208 - polled often


def die(way: Way, home: Path, moment: int, pause_s: float) -> bool:
    """Start the way, kill its whole group at the moment, and tell whether it was still running.

    A run that ended by itself before must have succeeded.
    """
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            way.command,
            env=environment(home),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        ) as process,
    ):
        end = time.monotonic() + PATIENCE_S
        while _generation(home) < moment and process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(pause_s)
        alive = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.wait() > 0:
            said.seek(0)
            raise AssertionError(f"{way.name} exited {process.returncode}: {said.read()[-2_000:]!r}")
    return alive


def finish(command: Sequence[str], home: Path) -> None:
    """Run a command to its end; it must succeed."""
    done = subprocess.run(
        command,
        env=environment(home),
        cwd=ROOT,
        check=False,
        timeout=PATIENCE_S,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise AssertionError(f"{command[-3:]} exited {done.returncode}: {done.stderr[-2_000:]}")


def outcome(home: Path) -> bytes:
    """Return the canonical bytes of diagnosis and localisation."""
    store = CheckpointStore(home)
    head = store.latest(CASE, audit_history=True)
    view: Mapping[str, object] = case_view(store, head, head.revision)
    if view["diagnosis"] is None:
        raise AssertionError(f"{home}: the run ended without a diagnosis")
    return canonical_json({name: view[name] for name in ("diagnosis", "localisation")})


@dataclass
class _Trials:
    """Everything the deaths of one suite share."""

    root: Path
    seed: Path
    server: AnalystServer
    expected: bytes
    generations: int
    chance: random.Random
    tally: Tally

    def kill_once(self, way: Way, number: int) -> None:
        """Kill a run of a fresh copy once, carry on to the end and judge."""
        for _ in range(DRAWS):
            home = self.root / f"{way.name.split()[0]}-{number}"
            shutil.copytree(self.seed, home)
            moment = self.chance.randint(FIRST_GENERATION - 1, self.generations - 1)
            pause = self.chance.uniform(0, 0.5)
            before = len(self.server.asked)
            if die(way, home, moment, pause):
                break
            shutil.rmtree(home)  # it ended before the moment came: no death, so draw another
        else:
            raise AssertionError(f"{way.name}: ended before {DRAWS} drawn moments")
        self.tally.kills += 1
        store = CheckpointStore(home)
        head = store.latest(CASE, audit_history=True)
        known, asked = recorded(store, head), len(self.server.asked)
        if way.after_death is not None:
            finish(way.after_death, home)
        finish(way.command, home)
        again = [n for n in self.server.asked[asked:] if n in known]
        self.tally.repeated_calls += len(again)
        different = outcome(home) != self.expected
        self.tally.different_results += different
        sys.stderr.write(
            f"{way.name}: died after generation {head.generation} of {self.generations} + {pause:.2f} s; "
            f"{len(known)} answers kept, {asked - before} + {len(self.server.asked) - asked} calls, "
            f"{len(again)} repeated{', DIFFERENT' if different else ''}\n"
        )
        shutil.rmtree(home)


def main() -> dict[str, object]:
    """Kill and continue; return the figures."""
    seed = int(os.environ.get("KILLS_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
    sys.stderr.write(f"KILLS_SEED={seed}\n")
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="viano-kills-") as folder, AnalystServer() as server:
        root = Path(folder)
        key = small_case(root / "seed", CASE)
        server.configure(root / "seed")
        ways = _ways(key)
        whole = root / "whole"
        shutil.copytree(root / "seed", whole)
        finish(ways[0].command, whole)
        finish([*CLI, "sync"], root / "seed")
        trials = _Trials(
            root, root / "seed", server, outcome(whole), _generation(whole), random.Random(seed), tally
        )
        for way in ways:
            for number in range(DEATHS[way.name]):
                trials.kill_once(way, number)
    return {
        "kills": tally.kills,
        "repeated_calls": tally.repeated_calls,
        "different_results": tally.different_results,
    }
