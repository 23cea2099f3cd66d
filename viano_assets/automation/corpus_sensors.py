"""The fingerprint sensor of known-bug corpora, and the nightly upkeep of the evidence index.

All state lies in the home: the last run's fingerprint, and the run that is under way. Deleting
`DAGSTER_HOME` repeats nothing that is finished. (Annotations are not postponed here: Dagster reads them.)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from resources.dagster_viano import VianoResource
from resources.session import Session
from viano_assets.assets.corpus import EVALUATION
from viano_assets.automation.jobs import analyse_case
from viano_assets.automation.sync import add_keys
from viano_assets.errors import VianoError
from viano_assets.evaluation.gate import ReprocessingConfig, changed, refusal
from viano_assets.partitions import PARTITION_SET, parse_key

if TYPE_CHECKING:
    from resources.corpus_runs import CorpusRuns

CORPUS_RUN = "viano/corpus_run"
"""Tag of the runs that work on a corpus run."""

MAX_ATTEMPTS = 3
"""Times the range of a corpus run is dispatched before it is judged as it stands."""

judge_corpus = dg.define_asset_job(
    "judge_corpus",
    selection=dg.AssetSelection.assets(EVALUATION),
    description="Judge the last run of a known-bug corpus.",
    executor_def=dg.in_process_executor,
)


@dg.op(description="Merge the small files of the evidence index.")
def compact_index(context: dg.OpExecutionContext, viano: VianoResource) -> None:
    """Merge what publications left."""
    from resources.evidence_index import EvidenceIndex  # noqa: PLC0415  # loads duckdb only when it runs

    EvidenceIndex(Path(viano.home)).compact()
    context.log.info("the evidence index is compact")


@dg.job(executor_def=dg.in_process_executor, description="Nightly upkeep of the evidence index.")
def maintain_index() -> None:
    """Compact the evidence index."""
    compact_index()


nightly_index = dg.ScheduleDefinition(
    name="nightly_index",
    job=maintain_index,
    cron_schedule="30 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)


def contiguous(keys: Sequence[str], order: Sequence[str]) -> list[tuple[str, str]]:
    """Return the ranges (first, last) in the order of the partitions that hold exactly `keys`."""
    at = {key: number for number, key in enumerate(order)}
    ranges: list[tuple[int, int]] = []
    for number in sorted(at[key] for key in keys):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return [(order[first], order[last]) for first, last in ranges]


@dg.sensor(
    name="corpus_reprocess",
    jobs=[analyse_case, judge_corpus],
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Reprocesses and judges a built corpus when prompts, settings, provider or code changed.",
)
def corpus_reprocess(context: dg.SensorEvaluationContext, viano: VianoResource) -> dg.SensorResult:
    """Mint the revisions of a changed corpus, dispatch them as ranges, judge the run when it has settled."""
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415  # loads duckdb and scipy only when it runs

    session = viano.session()
    requests: list[dg.RunRequest] = []
    notes: list[str] = []
    folder = Path(viano.home) / "corpora"
    for path in sorted(folder.glob("*/corpus.json")):
        runs = CorpusRuns(session, path.parent.name)
        found, note = _next(context.instance, session, runs)
        requests += found
        notes.append(f"{path.parent.name}: {note}")
    reason = None if requests else "; ".join(notes) or "no corpus is built"
    return dg.SensorResult(run_requests=requests, skip_reason=reason)


def _next(
    instance: dg.DagsterInstance, session: Session, runs: "CorpusRuns"
) -> tuple[list[dg.RunRequest], str]:
    from resources.corpus_runs import fingerprint  # noqa: PLC0415

    run_id = runs.open_run()
    config = ReprocessingConfig.load(session.config / "corpus.local.toml")
    if run_id is None:
        if not changed(runs.folder, runs.built, fingerprint(session)):
            return [], "unchanged"
        remote = any(link.provider.remote for link in session.gateway.links)
        reason = refusal(runs.folder, config, remote=remote)
        if reason is not None:
            return [], reason
        run_id = runs.start()
    attempts = instance.get_runs(filters=dg.RunsFilter(tags={CORPUS_RUN: run_id}))
    if any(not run.is_finished for run in attempts):
        return [], f"{run_id} is under way"
    number = len({run.tags.get("viano/attempt") for run in attempts}) + 1
    left = [key for key in runs.run(run_id)["cases"].values() if not _settled(session, key)]
    if left and number <= MAX_ATTEMPTS:
        return _dispatch(instance, run_id, left, number, config.threads), f"{run_id} dispatched"
    judging = {
        "ops": {
            EVALUATION.to_python_identifier(): {"config": {"corpus": runs.folder.corpus, "run_id": run_id}}
        }
    }
    request = dg.RunRequest(run_key=f"{run_id}:judge", job_name="judge_corpus", run_config=judging)
    return [request], f"{run_id} is judged"


def _settled(session: Session, key: str) -> bool:
    case_id, revision = parse_key(key)
    try:
        head = session.store.latest(case_id)
    except VianoError:
        return True
    return head.revision > revision or any(
        c.revision == revision and c.event == "diagnosis_published" for c in head.checkpoints
    )


def _dispatch(
    instance: dg.DagsterInstance, run_id: str, keys: list[str], number: int, threads: int
) -> list[dg.RunRequest]:
    add_keys(instance, keys)
    order = instance.get_dynamic_partitions(PARTITION_SET)
    return [
        dg.RunRequest(
            run_key=f"{run_id}:{number}:{first}",
            job_name="analyse_case",
            run_config={"ops": {"case_chain": {"config": {"threads": threads}}}},
            tags={
                CORPUS_RUN: run_id,
                "viano/attempt": str(number),
                "dagster/asset_partition_range_start": first,
                "dagster/asset_partition_range_end": last,
            },
        )
        for first, last in contiguous(keys, order)
    ]


CORPUS_SENSORS = [corpus_reprocess]
CORPUS_JOBS: list[dg.JobDefinition | UnresolvedAssetJobDefinition] = [judge_corpus, maintain_index]
CORPUS_SCHEDULES = [nightly_index]
