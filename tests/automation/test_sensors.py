"""Due retries are dispatched once, dead runs end: over a real instance on disk and real cases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from resources.dagster_viano import VianoResource
from resources.run_lock import lock_folder
from tests.automation.test_run_lock import HOLDER
from tests.support.clock_settings import SetClock
from tests.support.graph import small_case
from viano_assets.automation.heads import newest_heads
from viano_assets.automation.sensors import RETRY_TAG, due_retries, next_run_key, reap_dead_runs
from viano_assets.definitions import build_defs
from viano_assets.package.model import Change, Overlay
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import PARTITION_SET

pytestmark = pytest.mark.filterwarnings("ignore::dagster.PreviewWarning", "ignore::dagster.BetaWarning")

NOW = datetime.now(UTC)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as opened:
        yield opened


def _deferred(home: Path, case_id: str, due: datetime) -> str:
    key = small_case(home, case_id)
    _defer(home, case_id, due)
    return key


def _defer(home: Path, case_id: str, due: datetime, store: CheckpointStore | None = None) -> None:
    store = store or CheckpointStore(home)
    when = due.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    overlay = Overlay("deferred", "interpretation", "rate_limited", "the provider asks to wait", when)
    store.commit(store.latest(case_id), Change("interpretation_deferred", overlay=overlay))


def _tick(home: Path, instance: dg.DagsterInstance) -> list[dg.RunRequest]:
    result = due_retries(
        dg.build_sensor_context(instance=instance, resources={"viano": VianoResource(home=str(home))})
    )
    assert isinstance(result, dg.SensorResult)
    return list(result.run_requests or [])


def _run(instance: dg.DagsterInstance, home: Path, request: dg.RunRequest) -> dg.DagsterRun:
    """Store the requested run as the daemon does, without launching it."""
    job = build_defs(viano=VianoResource(home=str(home))).resolve_job_def("analyse_case")
    return instance.create_run_for_job(job, tags=dict(request.tags))


def test_a_due_case_is_dispatched_once_until_its_run_is_over(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    home = tmp_path / "home"
    due = _deferred(home, "A-1", NOW - timedelta(minutes=1))
    later = _deferred(home, "B-2", NOW + timedelta(hours=1))
    plain = small_case(home, "C-3")
    assert _tick(home, instance) == [], "keys that Dagster does not know are left to register_cases"
    instance.add_dynamic_partitions(PARTITION_SET, [due, later, plain])
    (request,) = _tick(home, instance)
    assert request.partition_key == due
    run = _run(instance, home, request)
    assert _tick(home, instance) == []
    instance.report_run_failed(run)
    assert _tick(home, instance) == [], "the next attempt at the same generation waits"


def test_a_clock_put_back_holds_no_case(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    home = tmp_path / "home"
    key = small_case(home, "A-1")
    tomorrow = NOW + timedelta(days=1)
    _defer(home, "A-1", tomorrow + timedelta(minutes=5), CheckpointStore(home, clock=SetClock(tomorrow)))
    instance.add_dynamic_partitions(PARTITION_SET, [key])
    assert [request.partition_key for request in _tick(home, instance)] == [key]


def test_the_next_attempt_follows_after_a_pause_under_a_new_key(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    home = tmp_path / "home"
    instance.add_dynamic_partitions(PARTITION_SET, [_deferred(home, "A-1", NOW - timedelta(minutes=1))])
    (request,) = _tick(home, instance)
    run = _run(instance, home, request)
    instance.report_run_failed(run)
    base = request.tags[RETRY_TAG].removesuffix(":attempt1")
    now = datetime.now(UTC)
    assert next_run_key(instance, base, now + timedelta(seconds=50)) is None
    assert next_run_key(instance, base, now + timedelta(seconds=70)) == f"{base}:attempt2"


def test_a_restart_loses_no_due_case_and_dispatches_none_twice(tmp_path: Path) -> None:
    home, place = tmp_path / "home", str(tmp_path)
    with dg.instance_for_test(temp_dir=place) as instance:
        instance.add_dynamic_partitions(PARTITION_SET, [small_case(home, "A-1")])
        due = datetime.now(UTC) + timedelta(seconds=5)
        _defer(home, "A-1", due)
        assert _tick(home, instance) == []
    time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()) + 0.1)
    with dg.instance_for_test(temp_dir=place) as instance:
        (request,) = _tick(home, instance)
        _run(instance, home, request)
    with dg.instance_for_test(temp_dir=place) as instance:
        assert _tick(home, instance) == []


def test_a_case_that_somebody_works_on_is_not_dispatched(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    home = tmp_path / "home"
    instance.add_dynamic_partitions(PARTITION_SET, [_deferred(home, "A-1", NOW - timedelta(minutes=1))])
    with CheckpointStore(home).lock("A-1"):
        assert _tick(home, instance) == []
    assert len(_tick(home, instance)) == 1


def test_heads_are_seen_anew_after_a_commit_and_damage_stops_nobody(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for case_id in ("A-1", "B-2"):
        small_case(home, case_id)
    store = CheckpointStore(home)
    assert [head.generation for head in newest_heads(store)] == [2, 2]
    store.commit(store.latest("A-1"), Change("noted"))
    damaged = home / "cases" / "B-2" / "gens" / "g00000002.zip"
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert [(head.case_id, head.generation) for head in newest_heads(store)] == [("A-1", 3)]


def test_the_reaper_ends_the_run_of_a_killed_worker_and_no_other(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    runs = []
    job = build_defs(viano=VianoResource(home=str(home))).resolve_job_def("analyse_case")
    for _ in range(2):
        run = instance.create_run_for_job(job)
        _start(instance, run)
        runs.append(run)
    dead, alive = runs
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, instance.root_directory, run.run_id],
            stdout=subprocess.PIPE,
            text=True,
        )
        for run in runs
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        os.kill(workers[0].pid, signal.SIGKILL)
        workers[0].wait()
        reap_dead_runs(dg.build_sensor_context(instance=instance))
        after = {run.run_id: instance.get_run_by_id(run.run_id) for run in runs}
        assert after[dead.run_id].status is dg.DagsterRunStatus.FAILURE  # type: ignore[union-attr]
        assert after[alive.run_id].status is dg.DagsterRunStatus.STARTED  # type: ignore[union-attr]
        assert [path.name for path in lock_folder(instance.root_directory).iterdir()] == [alive.run_id]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def _start(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    event = dg.DagsterEvent(event_type_value=dg.DagsterEventType.RUN_START.value, job_name=run.job_name)
    instance.report_dagster_event(event, run.run_id)
