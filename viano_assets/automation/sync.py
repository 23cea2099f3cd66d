"""Tells a Dagster instance what the case store already knows: keys, materialisations, checks.

The store is the truth. After `DAGSTER_HOME` was deleted, or a case was run on the command line, `sync_home`
brings the UI to the same state; what Dagster knows with the same data version is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import dagster as dg

from resources.session import Session
from viano_assets.assets.events import DATA_VERSION_TAG, evaluations, materialisation
from viano_assets.assets.reports import MAIN, case_report, phase_report
from viano_assets.assets.run_types import PhaseReport
from viano_assets.assets.specs import ASSET_OF_PHASE, CASE
from viano_assets.case.assembler import case_path
from viano_assets.errors import VianoError
from viano_assets.package.model import Head
from viano_assets.partitions import PARTITION_SET, CaseRevision
from viano_assets.phases.common import artifact_path


def sync_home(home: Path, instance: dg.DagsterInstance) -> dict[str, int]:
    """Bring Dagster up to date with the cases of `home`.

    Returns:
        `partitions`: case revisions in the store; `added`: keys that were new to Dagster; `reported`:
        materialisations reported.
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
    return {"partitions": len(keys), "added": added, "reported": reported}


def add_keys(instance: dg.DagsterInstance, keys: Sequence[str]) -> int:
    """Add the partition keys that Dagster does not know yet, and return how many."""
    known = set(instance.get_dynamic_partitions(PARTITION_SET))
    new = [key for key in keys if key not in known]
    if new:
        instance.add_dynamic_partitions(PARTITION_SET, new)
    return len(new)


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
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[key]), limit=1
    ).records
    if not records or records[0].asset_materialization is None:
        return None
    return (records[0].asset_materialization.tags or {}).get(DATA_VERSION_TAG)
