"""Sensors over persisted state: register cases, dispatch due retries, end runs whose worker died.

All state they act on lies in the case store or in the instance; deleting `DAGSTER_HOME` loses none of it.
Each requests at most `PER_TICK` runs a tick. (Annotations are not postponed here: Dagster reads them.)
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from resources.dagster_viano import VianoResource
from resources.run_lock import forget_ended, worker_is_dead
from viano_assets.assets.corpus import CORPORA, built_corpora, corpora
from viano_assets.assets.specs import case_revisions
from viano_assets.automation.heads import newest_heads
from viano_assets.automation.jobs import analyse_case
from viano_assets.case.lifecycle import is_due
from viano_assets.package.model import Head
from viano_assets.partitions import PARTITION_SET, CaseRevision

PER_TICK = 100

RETRY_TAG = "viano/retry"
"""Run tag that names the waiting generation and the attempt at it."""

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 3_600.0
"""Pause between attempts at one waiting generation: 60 s after the first, then doubled, at most an hour."""


@dg.sensor(
    name="register_cases",
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds a partition for every case revision and every built corpus in the home.",
)
def register_cases(context: dg.SensorEvaluationContext, viano: VianoResource) -> dg.SensorResult:
    """Add the keys of new cases and revisions, in the order of case ids, and of new corpora."""
    store = viano.session().store
    known = set(context.instance.get_dynamic_partitions(PARTITION_SET))
    wanted = [
        CaseRevision(head.case_id, number).key
        for head in newest_heads(store)
        for number in range(1, head.revision + 1)
    ]
    new = [key for key in wanted if key not in known]
    judged = set(context.instance.get_dynamic_partitions(CORPORA))
    names = built_corpora(Path(viano.home), besides=judged)
    added = [case_revisions.build_add_request(new)] if new else []
    added += [corpora.build_add_request(names)] if names else []
    if not added:
        return dg.SensorResult(skip_reason="no new case")
    return dg.SensorResult(dynamic_partitions_requests=added)


@dg.sensor(
    name="due_retries",
    job=analyse_case,
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Dispatches cases again whose provider round was put off and is due now.",
)
def due_retries(context: dg.SensorEvaluationContext, viano: VianoResource) -> dg.SensorResult:
    """Request one run per due case; the run key names the generation that is waiting."""
    store = viano.session().store
    now = datetime.now(UTC)
    known = set(context.instance.get_dynamic_partitions(PARTITION_SET))
    requests = []
    for head in _due(newest_heads(store), now):
        key = CaseRevision(head.case_id, head.revision).key
        if key not in known or store.in_work(head.case_id):
            continue
        run_key = next_run_key(context.instance, f"{key}:g{head.generation}", now)
        if run_key is not None:
            requests.append(dg.RunRequest(run_key=run_key, partition_key=key, tags={RETRY_TAG: run_key}))
        if len(requests) == PER_TICK:
            break
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else "nothing due")


def _due(heads: Iterator[Head], now: datetime) -> Iterator[Head]:
    """Yield the waiting cases whose time has come."""
    for head in heads:
        overlay = head.manifest.overlay
        if overlay is None or overlay.kind != "deferred" or overlay.not_before is None:
            continue
        if is_due(head, overlay.not_before, now):
            yield head


def next_run_key(instance: dg.DagsterInstance, base: str, now: datetime) -> str | None:
    """Return the run key of the next attempt at `base`; None while one is in flight or just over."""
    pause = FIRST_PAUSE_S
    for attempt in range(1, 100):
        run_key = f"{base}:attempt{attempt}"
        records = instance.get_run_records(filters=dg.RunsFilter(tags={RETRY_TAG: run_key}), limit=1)
        if not records:
            return run_key
        record = records[0]
        over_since = now - record.update_timestamp.replace(tzinfo=UTC)
        if not record.dagster_run.is_finished or over_since < timedelta(seconds=pause):
            return None
        pause = min(2 * pause, LONGEST_PAUSE_S)
    return None


@dg.sensor(
    name="reap_dead_runs",
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Ends runs whose worker process died, so that they hold no run slot.",
)
def reap_dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Report started runs as failed when the kernel has freed their worker's lock."""
    instance = context.instance
    root = instance.root_directory
    statuses = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    reaped = []
    records = instance.get_run_records(filters=dg.RunsFilter(statuses=statuses))
    for record in records:
        run = record.dagster_run
        started = record.start_time or record.create_timestamp.replace(tzinfo=UTC).timestamp()
        if worker_is_dead(root, run.run_id, started):
            instance.report_run_failed(
                run,
                message="The worker process of this run died. Materialise the partition again to continue.",
            )
            reaped.append(run.run_id)
    forget_ended(root, {record.dagster_run.run_id for record in records} - set(reaped))
    return dg.SkipReason(f"ended {len(reaped)} dead runs: {', '.join(reaped)}" if reaped else "no dead run")


SENSORS = [register_cases, due_retries, reap_dead_runs]
