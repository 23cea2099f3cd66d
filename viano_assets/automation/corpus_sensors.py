"""Reprocessing of known-bug corpora: the fingerprint sensor, the nightly job, the upkeep of the index.

All state lies in the home: the last run's fingerprint, and the run that is under way. Deleting
`DAGSTER_HOME` repeats nothing that is finished. (Annotations are not postponed here: Dagster reads them.)
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from resources.corpus_standing import Stage
from resources.dagster_viano import VianoResource
from resources.run_lock import run_lock
from resources.session import Session
from viano_assets.assets.corpus import (
    BUSY,
    CALIBRATION,
    EVALUATION,
    calibration_event,
    check_events,
    evaluation_event,
)
from viano_assets.assets.metadata import to_metadata
from viano_assets.assets.run_types import CORPUS_RUN
from viano_assets.automation.jobs import analyse_case
from viano_assets.automation.sensors import FIRST_PAUSE_S, LONGEST_PAUSE_S
from viano_assets.automation.sync import add_corpus, add_keys, sync_home
from viano_assets.errors import BusyError, VianoError
from viano_assets.evaluation.gate import ReprocessingConfig, changed, patience_ends, refusal
from viano_assets.evaluation.owner import Owner
from viano_assets.evaluation.stored import CorpusFolder
from viano_assets.partitions import PARTITION_SET

if TYPE_CHECKING:
    from resources.corpus_runs import CorpusRuns

ATTEMPT = "viano/attempt"
"""Tag that numbers the dispatches of a corpus run."""

JUDGING = "viano/judging"
"""Tag that numbers the judgings of a corpus run."""

MAX_ATTEMPTS = 3
"""Times the unfinished cases of a corpus run are dispatched; cases that a provider put off go on longer."""

MAX_JUDGINGS = 3
"""Times the judging of a corpus run is requested; a person looks at what fails that often."""

judge_corpus = dg.define_asset_job(
    "judge_corpus",
    selection=dg.AssetSelection.assets(EVALUATION, CALIBRATION),
    description="Judge a run of a known-bug corpus.",
    executor_def=dg.in_process_executor,
)


@dg.op(description="Merge the small files of the evidence index.")
def compact_index(context: dg.OpExecutionContext, viano: VianoResource) -> None:
    """Merge what publications left."""
    from resources.evidence_index import EvidenceIndex  # noqa: PLC0415  # loads duckdb only when it runs

    with run_lock(context.instance.root_directory, context.run_id):
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
    """Mint the revisions of a changed corpus, dispatch them as ranges, judge the run when it has settled.

    What is wrong with one corpus is said and stops no other.
    """
    session = viano.session()
    requests: list[dg.RunRequest] = []
    notes: list[str] = []
    folder = Path(viano.home) / "corpora"
    for path in sorted(folder.glob("*/corpus.json")):
        name = path.parent.name
        try:
            found, note = _Reprocessing(context.instance, viano, session, name).next()
        except Exception as error:  # noqa: BLE001 - one odd corpus stops no other
            found, note = [], told(error)
        requests += found
        notes.append(f"{name}: {note}")
        context.log.info("%s: %s", name, note)
    reason = None if requests else "; ".join(notes) or "no corpus is built"
    return dg.SensorResult(run_requests=requests, skip_reason=reason)


def told(error: Exception) -> str:
    """Return what went wrong with a corpus in words."""
    return str(error) if isinstance(error, VianoError) else f"defect: {type(error).__name__}: {error}"


Next = tuple[list[dg.RunRequest], str]
"""What to request now, and in words what the corpus is at."""


class _Reprocessing:
    """One look at one corpus.

    Raises:
        VianoError: the corpus is not built, damaged, or another process works on it.
    """

    def __init__(
        self, instance: dg.DagsterInstance, viano: VianoResource, session: Session, name: str
    ) -> None:
        from resources.corpus_runs import CorpusRuns  # noqa: PLC0415  # loads duckdb and scipy

        self.instance = instance
        self.viano = viano
        self.session = session
        self.runs = CorpusRuns(session, name)
        self.config = ReprocessingConfig.load(session.config / "corpus.local.toml")

    def next(self) -> Next:
        """Return what to request now."""
        run_id = self.runs.open_run()
        if run_id is not None and self._under_way(run_id):
            return [], f"{run_id} is under way"
        with self.runs.owner.held():
            run_id = self.runs.open_run()
            if run_id is None:
                reason = unwanted(self.runs, self.config)
                if reason is not None:
                    return [], reason
                run_id = self.runs.start()
            return self._go_on(run_id)

    def _records(self, run_id: str) -> Sequence[dg.RunRecord]:
        return self.instance.get_run_records(filters=dg.RunsFilter(tags={CORPUS_RUN: run_id}))

    def _under_way(self, run_id: str) -> bool:
        return any(not record.dagster_run.is_finished for record in self._records(run_id))

    def _go_on(self, run_id: str) -> Next:
        run = self.runs.run(run_id)
        now = datetime.now(UTC)
        stages = self.runs.standings(run, now)
        records = self._records(run_id)
        if any(not record.dagster_run.is_finished for record in records):
            return [], f"{run_id} is under way"
        attempts = [record for record in records if ATTEMPT in record.dagster_run.tags]
        number = len({record.dagster_run.tags[ATTEMPT] for record in attempts}) + 1
        patience = patience_ends(run, self.config)
        put_off = [s for s in stages.values() if s.stage in {Stage.WAITING, Stage.DUE}]
        ready = {Stage.OPEN, Stage.DUE} if number <= MAX_ATTEMPTS else set[Stage]()
        if now < patience and now >= _paused_until(attempts, number):
            ready.add(Stage.DUE)
        keys = [run["cases"][bug_id] for bug_id, s in stages.items() if s.stage in ready]
        if keys:
            return self._dispatch(run, keys, number)
        if put_off and now < patience:
            due = min(s.not_before or "" for s in put_off)
            return [], f"{run_id}: {len(put_off)} cases wait, the first until {due}; judged at {patience}"
        settled = all(s.is_settled for s in stages.values())
        return self._judging(run_id, records, as_it_stands=not settled)

    def _dispatch(self, run: Mapping[str, Any], keys: Sequence[str], number: int) -> Next:
        reason = gate(self.runs, self.config, run["provider"], len(keys), self.viano)
        if reason is not None:
            name = self.runs.folder.corpus
            return [], f"{run['run_id']} is not continued: {reason}; viano corpus run {name} continues it"
        add_keys(self.instance, keys)
        order = self.instance.get_dynamic_partitions(PARTITION_SET)
        settings = {"threads": self.config.threads, "provider": run["provider"]}
        requests = [
            dg.RunRequest(
                run_key=f"{run['run_id']}:{number}:{first}",
                job_name="analyse_case",
                run_config={"ops": {"case_chain": {"config": settings}}},
                tags={
                    CORPUS_RUN: run["run_id"],
                    ATTEMPT: str(number),
                    "dagster/asset_partition_range_start": first,
                    "dagster/asset_partition_range_end": last,
                },
            )
            for first, last in contiguous(keys, order)
        ]
        return requests, f"{run['run_id']} dispatched"

    def _judging(self, run_id: str, records: Sequence[dg.RunRecord], *, as_it_stands: bool) -> Next:
        """Request the judging under a key of its own each time: a used key requests nothing.

        One that met another owner of the run has not failed.
        """
        name = self.runs.folder.corpus
        before = [r.dagster_run for r in records if JUDGING in r.dagster_run.tags]
        failed = [run for run in before if BUSY not in run.tags]
        if len(failed) >= MAX_JUDGINGS:
            return [], (
                f"judging {run_id} failed {len(failed)} times, last in run {failed[0].run_id}; "
                f"when the cause is mended: viano corpus judge {name}"
            )
        number = str(len(before) + 1)
        add_corpus(self.instance, name)
        config = {"run_id": run_id, "as_it_stands": as_it_stands}
        request = dg.RunRequest(
            run_key=f"{run_id}:judge:{number}",
            job_name="judge_corpus",
            partition_key=name,
            run_config={"ops": {EVALUATION.to_python_identifier(): {"config": config}}},
            tags={CORPUS_RUN: run_id, JUDGING: number},
        )
        return [request], f"{run_id} is judged"


def _paused_until(attempts: Sequence[dg.RunRecord], number: int) -> datetime:
    """Return when cases that were put off may be dispatched again: soon at first, then ever later."""
    if number <= MAX_ATTEMPTS or not attempts:
        return datetime.min.replace(tzinfo=UTC)
    pause = min(FIRST_PAUSE_S * 2.0 ** min(number - MAX_ATTEMPTS, 10), LONGEST_PAUSE_S)
    return max(r.update_timestamp.replace(tzinfo=UTC) for r in attempts) + timedelta(seconds=pause)


def unwanted(runs: "CorpusRuns", config: ReprocessingConfig) -> str | None:
    """Return why no new run of a corpus is to be started by itself, None when one is."""
    from resources.corpus_runs import fingerprint  # noqa: PLC0415

    provider = runs.session.gateway.profile
    if not changed(runs.folder, runs.built, provider, fingerprint(runs.session)):
        return "unchanged"
    return gate(runs, config, provider, len(runs.built["bugs"]), None)


def gate(
    runs: "CorpusRuns", config: ReprocessingConfig, provider: str, cases: int, viano: VianoResource | None
) -> str | None:
    """Return why a provider may not work on so many cases by itself; `viano` opens it when it is not open."""
    session = runs.session
    if provider != session.gateway.profile and viano is not None:
        session = viano.session(provider=provider)
    remote = any(link.provider.remote for link in session.gateway.links)
    return refusal(runs.folder, config, remote=remote, provider=provider, cases=cases)


@dg.op(description="Reprocess and judge every built corpus that changed, within this run.")
def reprocess(context: dg.OpExecutionContext, viano: VianoResource) -> None:
    """Carry each corpus as far as it goes; what is wrong with one is said and stops no other."""
    failed: dict[str, str] = {}
    with run_lock(context.instance.root_directory, context.run_id):
        session = viano.session()
        for path in sorted((Path(viano.home) / "corpora").glob("*/corpus.json")):
            name = path.parent.name
            try:
                note = _reprocessed(context, viano, session, name)
            except BusyError as error:
                note = str(error)
            except Exception as error:  # noqa: BLE001 - one odd corpus stops no other
                note = failed[name] = told(error)
            context.log.info("%s: %s", name, note)
        sync_home(Path(viano.home), context.instance, corpora=False)
    if failed:
        raise dg.Failure(
            f"{len(failed)} corpora could not go on", metadata=to_metadata(failed), allow_retries=False
        )


def _reprocessed(context: dg.OpExecutionContext, viano: VianoResource, session: Session, name: str) -> str:
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415  # loads duckdb and scipy only when it runs

    config = ReprocessingConfig.load(session.config / "corpus.local.toml")
    folder = CorpusFolder(Path(viano.home), name)
    owner = Owner(folder)
    with owner.held():
        open_ = folder.open_run()
        begun = None if open_ is None else folder.run_document(open_)
        own = session if begun is None else viano.session(provider=begun["provider"])
        runs = CorpusRuns(own, name, owner)
        if begun is None:
            reason = unwanted(runs, config)
        else:
            reason = gate(runs, config, begun["provider"], len(begun["cases"]), None)
        if reason is not None:
            return reason
        run_id = open_ or runs.start()
        outcomes = runs.work(
            run_id,
            threads=config.threads,
            told=lambda item, done, total: context.log.info(
                "%d of %d  %s  %s", done, total, item.key, item.code or item.status
            ),
        )
        as_it_stands = datetime.now(UTC) >= patience_ends(runs.run(run_id), config)
        waiting = [item for item in outcomes if item.waits]
        if waiting and not as_it_stands:
            return f"{run_id}: {len(waiting)} cases wait, the first until {waiting[0].not_before}"
        figures = runs.judge(run_id, outcomes, as_it_stands=as_it_stands, told=context.log.info)
    add_corpus(context.instance, name)
    context.log_event(evaluation_event(folder, figures))
    for found in check_events(folder, figures):
        context.log_event(found)  # type: ignore[arg-type]  # it takes check evaluations too
    calibration = calibration_event(folder)
    if calibration is not None:
        context.log_event(calibration)
    return f"{run_id} judged: {figures['cases']} cases, {figures['failed']} without diagnosis"


@dg.job(executor_def=dg.in_process_executor, description="Reprocess and judge the corpora that changed.")
def reprocess_corpora() -> None:
    """Reprocess every corpus that changed."""
    reprocess()


nightly_corpora = dg.ScheduleDefinition(
    name="nightly_corpora",
    job=reprocess_corpora,
    cron_schedule="0 1 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
)


CORPUS_SENSORS = [corpus_reprocess]
CORPUS_JOBS: list[dg.JobDefinition | UnresolvedAssetJobDefinition] = [
    judge_corpus,
    maintain_index,
    reprocess_corpora,
]
CORPUS_SCHEDULES = [nightly_index, nightly_corpora]
