"""The multi-asset that carries case revisions through their phases: one key or hundreds, same code.

Worker threads run cases and never touch Dagster; the op's own thread logs what they report. The run log
shows progress while they work: every step of a few cases, every finished case of many. A case that fails is
counted and the others go on; the run fails at the end with a table of the failed cases. RETRY_PENDING and
DEFERRED materialise nothing and release the worker; the `due_retries` sensor comes back when they are due.
(Annotations are not postponed
here: Dagster reads them when the op is defined.)
"""

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
from pydantic import Field

from resources.dagster_viano import VianoResource
from resources.run_lock import run_lock
from resources.session import Session
from viano_assets.assets.events import asset_of, evaluations, materialisation
from viano_assets.assets.metadata import failing, to_metadata
from viano_assets.assets.partition_run import run_partition
from viano_assets.assets.run_types import CORPUS_RUN, PhaseReport
from viano_assets.assets.specs import ASSET_OF_PHASE, CASE, asset_specs, case_revisions, check_specs
from viano_assets.evaluation.owner import Owner
from viano_assets.evaluation.stored import CorpusFolder
from viano_assets.phases.protocols import Phase, Progress, ProgressSink


class AnalyseConfig(dg.Config):
    """Run configuration of the chain; the seeds' ids pass through unchanged."""

    retry_id: str | None = Field(default=None, description="Reopens an exhausted provider operation.")
    attempt_id: str | None = Field(default=None, description="Stable id of the attempt.")
    provider: str | None = Field(default=None, description="Provider profile instead of the default.")
    threads: int = Field(default=4, ge=1, le=64, description="Cases worked on at once.")


TOLD_IN_FULL = 8
"""Most cases of a run whose every step is told; of more, only that one is finished."""


class _Failed(NamedTuple):
    key: str
    asset: str
    code: str
    message: str
    hint: str


def _selected(context: dg.AssetExecutionContext) -> tuple[bool, list[Phase]]:
    keys = context.selected_asset_keys
    return CASE in keys, [phase for phase, key in ASSET_OF_PHASE.items() if key in keys]


@dg.multi_asset(
    name="case_chain",
    specs=asset_specs(),
    check_specs=check_specs(),
    can_subset=True,
    partitions_def=case_revisions,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def case_chain(
    context: dg.AssetExecutionContext, config: AnalyseConfig, viano: VianoResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Run the selected phases of every selected case revision."""
    with_case, phases = _selected(context)
    keys = list(context.partition_keys)
    with run_lock(context.instance.root_directory, context.run.run_id), _corpus_kept(context, viano):
        failed = _run_all(context, config, viano, keys, with_case=with_case, phases=phases)
    if failed:
        raise dg.Failure(
            f"{len({item.key for item in failed})} of {len(keys)} cases could not go on",
            metadata=to_metadata({"failed": _failed_table(failed)}),
            allow_retries=False,
        )
    yield from ()


def _run_all(
    context: dg.AssetExecutionContext,
    config: AnalyseConfig,
    viano: VianoResource,
    keys: Sequence[str],
    *,
    with_case: bool,
    phases: Sequence[Phase],
) -> list[_Failed]:
    reports: queue.SimpleQueue[PhaseReport | Progress | str] = queue.SimpleQueue()
    failed: list[_Failed] = []
    session = _session(viano, config, reports.put if len(keys) <= TOLD_IN_FULL else None)

    def work(key: str) -> None:
        try:
            for report in run_partition(
                session,
                key,
                with_case=with_case,
                phases=phases,
                retry_id=config.retry_id,
                attempt_id=config.attempt_id,
            ):
                reports.put(report)
        finally:
            reports.put(key)

    with ThreadPoolExecutor(min(config.threads, len(keys)) or 1, thread_name_prefix="case") as pool:
        futures = [pool.submit(work, key) for key in keys]
        working = len(keys)
        try:
            while working:
                item = reports.get()
                if isinstance(item, str):
                    working -= 1
                    context.log.info("%d of %d  %s", len(keys) - working, len(keys), item)
                elif isinstance(item, Progress):
                    context.log.info("%s  %s  %s", item.case_id, item.phase, item.text)
                else:
                    failed += _log(context, item)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for key, future in zip(keys, futures, strict=True):
        error = future.exception()
        if error is not None:
            failed.append(
                _Failed(key, "", "defect", f"{type(error).__name__}: {error}", "report this defect")
            )
    return failed


@contextmanager
def _corpus_kept(context: dg.AssetExecutionContext, viano: VianoResource) -> Iterator[None]:
    """Keep the commands off the corpus run whose cases this run carries, if it does."""
    run_id = context.run.tags.get(CORPUS_RUN)
    if run_id is None:
        yield
        return
    folder = CorpusFolder(Path(viano.home), run_id.rpartition(".r")[0])
    with failing(), Owner(folder, shared=True).held():
        yield


def _session(viano: VianoResource, config: AnalyseConfig, progress: ProgressSink | None) -> Session:
    """Open the one session that all worker threads share, and with it the bounds of its model calls."""
    with failing():
        return viano.session(provider=config.provider, progress=progress)


def _log(context: dg.AssetExecutionContext, report: PhaseReport) -> list[_Failed]:
    asset = asset_of(report)
    if report.published:
        context.log_event(materialisation(report))
        for evaluation in evaluations(report):
            context.log_event(evaluation)
        return []
    text = f"{report.key}  {asset.to_user_string()}: {report.message}"
    if not report.failed:
        context.log.info("%s (due %s)", text, report.not_before or "later")
        return []
    context.log.error("%s", text)
    return [_Failed(report.key, asset.to_user_string(), report.code, report.message, report.hint)]


def _failed_table(failed: Sequence[_Failed]) -> list[dict[str, Any]]:
    return [item._asdict() for item in failed[:200]]
