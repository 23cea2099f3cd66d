"""The store is the truth: what Dagster shows can be made again from it."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from resources.dagster_viano import VianoResource
from tests.support.graph import materialise, small_case
from viano_assets.assets.specs import ASSET_OF_PHASE, CASE
from viano_assets.automation.sensors import register_cases
from viano_assets.automation.sync import sync_home
from viano_assets.partitions import PARTITION_SET

pytestmark = pytest.mark.filterwarnings("ignore::dagster.PreviewWarning", "ignore::dagster.BetaWarning")


def _state(instance: dg.DagsterInstance) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for asset in (CASE, *ASSET_OF_PHASE.values()):
        records = instance.fetch_materializations(asset, limit=50).records
        found[asset.to_user_string()] = sorted(
            (str(r.partition_key), str((r.asset_materialization.tags or {})["dagster/data_version"]))
            for r in records
            if r.asset_materialization is not None
        )
    return found


def test_a_new_dagster_home_shows_the_same_state(tmp_path: Path) -> None:
    home = tmp_path / "home"
    keys = [small_case(home, "A-1"), small_case(home, "B-2")]
    with dg.DagsterInstance.ephemeral() as first:
        materialise(home, first, keys)
        state = _state(first)
    with dg.DagsterInstance.ephemeral() as second:
        counts = sync_home(home, second)
        assert counts["added"] == 2
        assert set(second.get_dynamic_partitions(PARTITION_SET)) == set(keys)
        assert _state(second) == state
        assert sync_home(home, second) == {"partitions": 2, "added": 0, "reported": 0}


def test_new_cases_become_partitions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key = small_case(home, "A-1")
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(
            instance=instance, resources={"viano": VianoResource(home=str(home))}
        )
        result = register_cases(context)
        assert isinstance(result, dg.SensorResult)
        assert result.dynamic_partitions_requests is not None
        assert list(result.dynamic_partitions_requests[0].partition_keys) == [key]
