"""`make test-deep NAME=faults`: the package under death, power loss, damage, races and mutants.

`DEEP=quick` runs a twentieth of the counts, `DEEP=nightly` ten times as many; the default is the release
bar. Everything odd is told on standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.deep import _faults_bytes, _faults_calls, _faults_fuzz, _faults_kill, _faults_power, _faults_soak
from tests.deep._faults_kill import Tally
from tests.support.clock_settings import DECISIONS, SETTINGS, play
from tests.support.forgeries import expected, faults, leaf_faults
from tests.support.package_machine import PackageMachine

_RUNS_AT_ONCE = 250
SCALE = {"quick": 0.05, "nightly": 10.0}.get(os.environ.get("DEEP", ""), 1.0)


def _machine(runs: int) -> int:
    """Run the store against its model, a few hundred runs at a time: Hypothesis keeps what it generated."""
    done = 0
    while done < runs:
        count = min(_RUNS_AT_ONCE, runs - done)
        run_state_machine_as_test(
            PackageMachine,
            settings=settings(
                max_examples=count,
                stateful_step_count=50,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        done += count
        sys.stderr.write(f"stateful: {done} runs\n")
    return done


def _clocks(scratch: Path, tally: Tally) -> None:
    """Play every timed decision with every clock (R10); a fault is counted as torn."""
    plays = 0
    for number, setting in enumerate(SETTINGS):
        for decision in DECISIONS:
            plays += 1
            folder = scratch / f"{number}-{plays}"
            for fault in play(decision, setting, folder):
                tally.note("torn", f"{decision}, {setting.name}: {fault}")
            shutil.rmtree(folder)
    sys.stderr.write(f"clocks: {len(SETTINGS)} settings, {plays} plays\n")


def _replays(tally: Tally) -> None:
    """Forge every bound field, and an even share of all leaves (R13); what passes is counted as torn."""
    count, passed = leaf_faults(max(1, round(5 / SCALE)))
    found = faults() + passed
    for fault in found:
        tally.note("torn", fault)
    sys.stderr.write(f"replay: {2 * len(expected())} forgeries of bound fields, {count} of any leaf\n")


def _mutation(count: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.deep._faults_mutation", str(count)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    sys.stderr.write(f"mutation: {figures['mutants']} of {figures['of']} mutants\n")
    return figures


def main() -> dict[str, object]:
    """Run every suite and return the figures."""
    tally = Tally()
    with _faults_bytes.temporary() as folder:
        root = Path(folder)
        _faults_kill.run(root / "kill", tally)
        _faults_calls.run(root / "calls", tally, min(1.0, SCALE * 2))
        _clocks(root / "clocks", tally)
        _replays(tally)
        power = _faults_power.run(root / "power", tally)
        edits = _faults_bytes.flips(root / "flips", tally, int(5_000 * min(SCALE, 1)))
        sys.stderr.write(f"damage: {edits} cuts and flips\n")
        disks = _faults_bytes.full_disks(root / "small", tally)
        sys.stderr.write(f"full disks: {disks} sizes\n")
        raced = _faults_soak.race(root / "two", tally, 2, int(100 * SCALE) or 5)
        raced += _faults_soak.race(root / "eight", tally, 8, int(25 * SCALE) or 2)
        sys.stderr.write(f"races: {raced} acknowledged commits\n")
        tally.points += _faults_soak.soak(root / "soak", tally, int(40 * SCALE) or 4)
        fuzzed = _faults_bytes.fuzz(root / "fuzz", tally, int(10_000 * SCALE))
        fuzzed += _faults_fuzz.run(root / "inputs", tally, int(10_000 * SCALE))
        runs = _machine(max(20, int(2_000 * SCALE)))
    mutation = _mutation(0 if SCALE > 1 else max(20, int(400 * SCALE)))
    return {
        "kill_points": tally.points,
        "power_states": power,
        "torn": tally.torn,
        "lost": tally.lost,
        "resurrected": tally.resurrected,
        "stateful_runs": runs,
        "fuzz_inputs": fuzzed,
        "mutants": int(mutation["mutants"]),
        "mutation_score": mutation["mutation_score"],
    }
