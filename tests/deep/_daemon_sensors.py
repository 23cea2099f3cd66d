"""A real `dagster-daemon` over a real home: due retries and dead runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from tests.support.analyst_server import AnalystServer, recorded
from tests.support.commands import viano
from tests.support.graph import small_case
from tests.support.processes import started, wait_until
from viano_assets.automation.sensors import RETRY_TAG
from viano_assets.data_files import CONFIG
from viano_assets.package.store import CheckpointStore

CASE = "A-1"
WAIT_S = 120
"""How long the provider asks to wait: longer than a daemon needs to start on a busy machine."""

PATIENCE_S = 420.0
LATER_TICKS = 3
"""Ticks of the retry sensor that are watched after the retried run."""

DAEMON = (sys.executable, "-m", "dagster._daemon", "run", "-m", "viano_assets.definitions")


def dagster_home(home: Path) -> dict[str, str]:
    """Give a home its Dagster home as `viano ui` does and return the environment that uses it."""
    folder = home / "dagster"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(CONFIG / "dagster.yaml", folder / "dagster.yaml")
    return {"DAGSTER_HOME": str(folder), "VIANO_HOME": str(home)}


@contextmanager
def opened(environment: dict[str, str]) -> Iterator[dg.DagsterInstance]:
    """Open the instance of a Dagster home, whose settings name it by the environment."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        with dg.DagsterInstance.get() as instance:
            yield instance
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _ticks(instance: dg.DagsterInstance, name: str) -> int:
    """Return how many finished ticks of a sensor the instance has stored."""
    for state in instance.all_instigator_state():
        if state.name == name:
            ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=100)
            return sum(tick.is_completed for tick in ticks)
    return 0


def _retries(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    return [run for run in instance.get_runs() if RETRY_TAG in run.tags]


def _deferred(home: Path) -> datetime:
    overlay = CheckpointStore(home).latest(CASE).manifest.overlay
    if overlay is None or overlay.kind != "deferred" or overlay.not_before is None:
        raise AssertionError(f"the case was not put off: {overlay}")
    return datetime.fromisoformat(overlay.not_before)


def retry_after_restart(root: Path) -> dict[str, object]:
    """Defer a case, kill the daemon, let the due time pass, start it again, and count the runs."""
    home = root / "home"
    small_case(home, CASE)
    environment = dagster_home(home)
    refusal = (429, {"retry-after": str(WAIT_S)})
    with AnalystServer(refusals=[refusal]) as server, opened(environment) as instance:
        server.configure(home)
        answer = viano(home, "run", CASE)
        if answer.status != 3:
            raise AssertionError(f"exit {answer.status}: {answer.err}")
        due = _deferred(home)
        with started(DAEMON, f"one-{root.name}", root / "said", environment):
            wait_until(lambda: _ticks(instance, "due_retries") > 0, "the retry sensor ticked", PATIENCE_S)
            if datetime.now(UTC) > due:
                raise AssertionError(f"the daemon needed more than {WAIT_S} s to start; nothing is shown")
            early = len(_retries(instance))
        time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
        with started(DAEMON, f"two-{root.name}", root / "said", environment):
            wait_until(lambda: _finished(instance), "the retried run is over", PATIENCE_S)
            seen = _ticks(instance, "due_retries")
            wait_until(
                lambda: _ticks(instance, "due_retries") >= seen + LATER_TICKS, "later ticks", PATIENCE_S
            )
            runs = _retries(instance)
    if early:
        raise AssertionError("a run was started before its time")
    return {
        "retries_due": 1,
        "retry_runs": len(runs),
        "retry_diagnoses": int(CheckpointStore(home).latest(CASE).pointer("diagnosis") is not None),
    }


def _finished(instance: dg.DagsterInstance) -> bool:
    runs = _retries(instance)
    return bool(runs) and all(run.is_finished for run in runs)


def reaped_by_a_tick(root: Path) -> dict[str, object]:
    """Kill a run's worker during a model call; the daemon ends the run and the next one continues."""
    home = root / "home"
    key = small_case(home, CASE)
    environment = dagster_home(home)
    materialise = (
        *(sys.executable, "-m", "dagster", "asset", "materialize", "-m", "viano_assets.definitions"),
        *("--select", 'group:"case"', "--partition", key),
    )
    with AnalystServer() as server, opened(environment) as instance:
        server.configure(home)
        if viano(home, "sync").status:
            raise AssertionError("viano sync failed")
        with started(materialise, f"dies-{root.name}", root / "said", environment) as worker:
            wait_until(lambda: len(server.asked) > 1, "the second model call", PATIENCE_S)
            os.killpg(worker.pid, signal.SIGKILL)
        unfinished = [run.run_id for run in instance.get_runs() if not run.is_finished]
        if len(unfinished) != 1:
            raise AssertionError(f"{len(unfinished)} runs were left under way by the dead worker")
        store = CheckpointStore(home)
        known, asked = recorded(store, store.latest(CASE)), len(server.asked)
        with started(DAEMON, f"reaps-{root.name}", root / "said", environment):
            wait_until(lambda: _failed(instance, unfinished), "a tick ended the dead run", PATIENCE_S)
        subprocess.run(
            materialise, env=os.environ | environment, check=True, timeout=PATIENCE_S, capture_output=True
        )
        again = [number for number in server.asked[asked:] if number in known]
        done = [
            run
            for run in instance.get_runs(filters=dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS]))
            if run.tags.get(PARTITION_NAME_TAG) == key
        ]
    if len(done) != 1:
        raise AssertionError("the run after the dead one did not succeed")
    return {"dead_runs": 1, "reaped_runs": len(unfinished), "repeated_calls": len(again)}


def _failed(instance: dg.DagsterInstance, ids: list[str]) -> bool:
    runs = [instance.get_run_by_id(run_id) for run_id in ids]
    return all(run is not None and run.status is dg.DagsterRunStatus.FAILURE for run in runs)
