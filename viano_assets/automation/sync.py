"""Tells a Dagster instance what the case store already knows: keys, materialisations, checks.

The store is the truth. After `DAGSTER_HOME` was deleted, or a case was run on the command line, `sync_home`
brings the UI to the same state; what Dagster knows with the same data version is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.instance.utils import RUNLESS_JOB_NAME

from resources.session import Session
from viano_assets.assets.corpus import (
    CALIBRATION,
    CORPORA,
    EVALUATION,
    calibration_event,
    check_events,
    evaluation_event,
    evaluation_version,
)
from viano_assets.assets.events import DATA_VERSION_TAG, evaluations, materialisation
from viano_assets.assets.reports import MAIN, case_report, phase_report
from viano_assets.assets.run_types import PhaseReport
from viano_assets.assets.specs import ASSET_OF_PHASE, CASE
from viano_assets.case.assembler import case_path
from viano_assets.errors import VianoError
from viano_assets.evaluation.stored import CorpusFolder, read_document, stored_corpora
from viano_assets.package.model import Head
from viano_assets.partitions import PARTITION_SET, CaseRevision
from viano_assets.phases.common import artifact_path

KNOWN = 1_000
"""Most materialisations of a corpus that are looked through for a judged run."""


def sync_home(home: Path, instance: dg.DagsterInstance, *, corpora: bool = True) -> dict[str, int]:
    """Bring Dagster up to date with the cases and, unless told not to, the judged corpus runs of `home`.

    Returns:
        `partitions`: case revisions in the store; `added`: keys that were new to Dagster; `reported`:
        phases and judged runs reported.
    """
    session = Session.open(home)
    heads = list(_heads(session))
    keys = [CaseRevision(h.case_id, n).key for h in heads for n in range(1, h.revision + 1)]
    added = add_keys(instance, keys)
    reported = 0
    for head in heads:
        for number in range(1, head.revision + 1):
            for report in _unknown(session, head, number, instance):
                instance.report_runless_asset_event(materialisation(report))
                for evaluation in evaluations(report):
                    instance.report_runless_asset_event(evaluation)
                reported += 1
    if corpora:
        reported += sum(_report_judged(folder, instance) for folder in stored_corpora(home))
    return {"partitions": len(keys), "added": added, "reported": reported}


def add_keys(instance: dg.DagsterInstance, keys: Sequence[str]) -> int:
    """Add the partition keys that Dagster does not know yet, and return how many."""
    known = set(instance.get_dynamic_partitions(PARTITION_SET))
    new = [key for key in keys if key not in known]
    if new:
        instance.add_dynamic_partitions(PARTITION_SET, new)
    return len(new)


def add_corpus(instance: dg.DagsterInstance, name: str) -> None:
    """Make a corpus a partition unless it is one."""
    if name not in instance.get_dynamic_partitions(CORPORA):
        instance.add_dynamic_partitions(CORPORA, [name])


def _report_judged(folder: CorpusFolder, instance: dg.DagsterInstance) -> int:
    """Report the judged runs that Dagster does not know, oldest first, and return how many.

    A run counts as known with the scores it was last judged with; one that is damaged is passed over.
    """
    judged = folder.judged_ids()
    if not judged:
        return 0
    known = _known_versions(instance, EVALUATION, folder.corpus)
    seen = {judged.index(run_id) for run_id in (v.rpartition("-")[0] for v in known) if run_id in judged}
    reported: list[dg.AssetMaterialization] = []
    checks: list[dg.AssetCheckEvaluation] = []
    for run_id in judged[max(seen, default=0) :]:
        try:
            if evaluation_version(folder, run_id) in known:
                continue
            figures = read_document(folder.run(run_id, "summary.json"))
            event, checks = evaluation_event(folder, figures), check_events(folder, figures)
        except (VianoError, OSError, KeyError, TypeError):
            continue
        add_corpus(instance, folder.corpus)
        instance.report_runless_asset_event(event)
        reported.append(event)
    if reported:
        for check in checks:
            _report_check(check, instance, (reported[-1].tags or {})[DATA_VERSION_TAG])
        _report_calibration(folder, instance)
    return len(reported)


def _report_check(found: dg.AssetCheckEvaluation, instance: dg.DagsterInstance, version: str) -> None:
    """Report a check of the newest judged run.

    Dagster keeps one evaluation without a run a check and partition; further ones go under ids of their own.
    """
    history = instance.event_log_storage.get_asset_check_execution_history(
        found.asset_check_key, limit=KNOWN, partition_filter=PartitionKeyFilter(key=found.partition)
    )
    if not any(record.run_id == "" for record in history):
        instance.report_runless_asset_event(found)
        return
    event = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_CHECK_EVALUATION.value,
        event_specific_data=found,
        job_name=RUNLESS_JOB_NAME,
    )
    instance.report_dagster_event(event, run_id=f"judged-{version}")


def _report_calibration(folder: CorpusFolder, instance: dg.DagsterInstance) -> None:
    event = calibration_event(folder)
    known = _known_version(instance, CALIBRATION, folder.corpus)
    if event is not None and (event.tags or {}).get(DATA_VERSION_TAG) != known:
        instance.report_runless_asset_event(event)


def _heads(session: Session) -> Iterator[Head]:
    for case_id in session.store.case_ids():
        try:
            yield session.store.latest(case_id)
        except VianoError:
            continue


def _unknown(
    session: Session, head: Head, revision: int, instance: dg.DagsterInstance
) -> Iterator[PhaseReport]:
    """Yield the reports of published phases that Dagster does not know, or knows with another version."""
    key = CaseRevision(head.case_id, revision).key
    if _known_version(instance, CASE, key) != head.files[case_path(revision)].sha256:
        yield case_report(session, head, key, revision)
    for phase, (main, _) in MAIN.items():
        path = artifact_path(phase, revision, main)
        if path not in head.files:
            continue
        if _known_version(instance, ASSET_OF_PHASE[phase], key) != head.files[path].sha256:
            yield phase_report(session, head, key, revision, phase)


def _known_version(instance: dg.DagsterInstance, asset: dg.AssetKey, key: str) -> str | None:
    return next(iter(_known_versions(instance, asset, key, limit=1)), None)


def _known_versions(
    instance: dg.DagsterInstance, asset: dg.AssetKey, key: str, *, limit: int = KNOWN
) -> list[str]:
    """Return the data versions that were reported for a partition, newest first."""
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[key]), limit=limit
    ).records
    made = [record.asset_materialization for record in records]
    tags = [(event.tags or {}).get(DATA_VERSION_TAG) for event in made if event is not None]
    return [tag for tag in tags if tag is not None]
