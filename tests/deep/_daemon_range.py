"""A range of hundreds of partitions in which one case cannot go on, in a real Dagster home."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from tests.deep._daemon_sensors import dagster_home, opened
from tests.support.graph import blind_case, materialise, small_case
from viano_assets.assets.specs import ASSET_OF_PHASE, CHECKS, case_revisions
from viano_assets.phases.protocols import Phase

CASES = int(os.environ.get("DAEMON_CASES", "200"))
READ = ASSET_OF_PHASE[Phase.INTERPRETATION]
LATER = tuple(ASSET_OF_PHASE[phase] for phase in (Phase.HYPOTHESES, Phase.INVESTIGATION, Phase.DIAGNOSIS))


def one_broken(root: Path) -> dict[str, object]:
    """Materialise the range and count the partitions that Dagster shows as failed."""
    home = root / "home"
    bad = CASES // 2
    keys = [(blind_case if n == bad else small_case)(home, f"CASE-{n:04d}") for n in range(CASES)]
    with opened(dagster_home(home)) as instance, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = materialise(home, instance, keys)
        if result.success:
            raise AssertionError("the run did not fail at its end")
        red: set[str] = set()
        for asset in LATER:
            done = instance.get_materialized_partitions(asset)
            if done != set(keys) - {keys[bad]}:
                raise AssertionError(f"{asset}: {len(done)} of {CASES} materialised")
            red |= _failed(instance, asset, keys)
        planned = sum(_planned(instance, asset, name, keys[bad]) for name, (asset, _) in CHECKS.items())
    if red != {keys[bad]}:
        raise AssertionError(f"red are {sorted(red)[:5]}, not {keys[bad]}")
    return {"range_cases": CASES, "range_broken": 1, "range_red": len(red), "checks_planned": planned}


def _failed(instance: dg.DagsterInstance, asset: dg.AssetKey, keys: list[str]) -> set[str]:
    """Return the partitions of an asset that the UI shows in red."""
    known = instance.get_status_by_partition(asset, keys, case_revisions)
    if known is None:
        raise AssertionError(f"{asset}: no partition status")
    return {key for key, status in known.items() if status is AssetPartitionStatus.FAILED}


def _planned(instance: dg.DagsterInstance, asset: dg.AssetKey, name: str, broken: str) -> int:
    """Return how many partitions, the broken one apart, have a check that was never evaluated."""
    records = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(asset, name), limit=10 * CASES
    )
    evaluated = {r.partition for r in records if r.status is not AssetCheckExecutionRecordStatus.PLANNED}
    waiting = {r.partition for r in records if r.status is AssetCheckExecutionRecordStatus.PLANNED}
    return len({key for key in waiting - evaluated if key not in {None, broken}})
