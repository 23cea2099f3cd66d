"""Sensors over persisted state: register cases, dispatch due retries, end runs whose worker died.

All state they act on lies in the case store or in the instance; deleting `DAGSTER_HOME` loses none of it.
Each requests at most `PER_TICK` runs a tick. (Annotations are not postponed here: Dagster reads them.)
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from resources.dagster_viano import VianoResource
from resources.run_lock import worker_is_dead
from viano_assets.assets.specs import case_revisions
from viano_assets.automation.jobs import analyse_case
from viano_assets.errors import VianoError
from viano_assets.package.model import Head
from viano_assets.partitions import PARTITION_SET, CaseRevision
from viano_assets.phases.protocols import Store

PER_TICK = 100


def case_heads(store: Store, case_ids: list[str]) -> Iterator[Head]:
    """Yield the heads of the cases that can be read; a damaged one stops nobody else."""
    for case_id in case_ids:
        try:
            yield store.latest(case_id)
        except VianoError:
            continue


@dg.sensor(
    name="register_cases",
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds a partition for every case revision in the home.",
)
def register_cases(context: dg.SensorEvaluationContext, viano: VianoResource) -> dg.SensorResult:
    """Add the keys of new cases and revisions, in the order of case ids."""
    store = viano.session().store
    known = set(context.instance.get_dynamic_partitions(PARTITION_SET))
    wanted = [
        CaseRevision(head.case_id, number).key
        for head in case_heads(store, store.case_ids())
        for number in range(1, head.revision + 1)
    ]
    new = [key for key in wanted if key not in known]
    if not new:
        return dg.SensorResult(skip_reason="no new case")
    return dg.SensorResult(dynamic_partitions_requests=[case_revisions.build_add_request(new)])


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
    for head in case_heads(store, store.case_ids()):
        overlay = head.manifest.overlay
        key = CaseRevision(head.case_id, head.revision).key
        if overlay is None or overlay.kind != "deferred" or overlay.not_before is None or key not in known:
            continue
        if datetime.fromisoformat(overlay.not_before) > now:
            continue
        run_key = _next_run_key(context.instance, f"{key}:g{head.generation}")
        if run_key is not None:
            requests.append(dg.RunRequest(run_key=run_key, partition_key=key, tags={"viano/retry": run_key}))
    return dg.SensorResult(run_requests=requests[:PER_TICK], skip_reason=None if requests else "nothing due")


def _next_run_key(instance: dg.DagsterInstance, base: str) -> str | None:
    """Return the run key of the next attempt at `base`, or None while one is in flight."""
    for attempt in range(1, 100):
        run_key = f"{base}:attempt{attempt}"
        runs = instance.get_runs(filters=dg.RunsFilter(tags={"viano/retry": run_key}), limit=1)
        if not runs:
            return run_key
        if not runs[0].is_finished:
            return None
    return None


@dg.sensor(
    name="reap_dead_runs",
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Ends runs whose worker process died, so that they hold no run slot.",
)
def reap_dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Report started runs as failed when the kernel has freed their worker's lock."""
    reaped = []
    for run in context.instance.get_runs(filters=dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        if worker_is_dead(context.instance.root_directory, run.run_id):
            context.instance.report_run_failed(
                run,
                message="The worker process of this run died. Materialise the partition again to continue.",
            )
            reaped.append(run.run_id)
    return dg.SkipReason(f"ended {len(reaped)} dead runs: {', '.join(reaped)}" if reaped else "no dead run")


SENSORS = [register_cases, due_retries, reap_dead_runs]
