"""The chain as Dagster runs it: one key, a range, failures isolated, checks per partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from tests.support.graph import blind_case, materialise, small_case
from viano_assets.assets.specs import ASSET_OF_PHASE, CASE, CHECKS
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.diagnosis.places import view_places
from viano_assets.phases.diagnosis.summary import location_text
from viano_assets.phases.diagnosis.view import case_view
from viano_assets.phases.protocols import Phase

pytestmark = pytest.mark.filterwarnings("ignore::dagster.PreviewWarning", "ignore::dagster.BetaWarning")

DIAGNOSIS = ASSET_OF_PHASE[Phase.DIAGNOSIS]
HYPOTHESES = ASSET_OF_PHASE[Phase.HYPOTHESES]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def _materialised(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[str]:
    return instance.get_materialized_partitions(asset)


def test_one_partition_passes_all_phases_with_readable_metadata(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    key = small_case(tmp_path / "home", "CRANE-17")
    result = materialise(tmp_path / "home", instance, [key])
    assert result.success
    for asset in (CASE, *list(ASSET_OF_PHASE.values())[:4]):
        assert _materialised(instance, asset) == {key}, asset
    event = instance.get_latest_materialization_event(DIAGNOSIS)
    assert event is not None
    materialization = event.asset_materialization
    assert materialization is not None
    assert materialization.tags is not None
    assert len(materialization.tags["dagster/data_version"]) == 64
    assert {"summary", "verdict", "where", "spend"} <= set(materialization.metadata)
    where = materialization.metadata["where"]
    assert isinstance(where, dg.MarkdownMetadataValue)
    assert where.value is not None
    store = CheckpointStore(tmp_path / "home")
    places = view_places(case_view(store, store.latest("CRANE-17"), 1))
    lines = where.value.splitlines()[2:]
    assert [" ".join(line.split()) for line in lines] == [
        " ".join(f"- {place.kind} `{location_text(place.item)}` ({place.item['basis']})".split())
        for place in places
    ]
    assert lines


def test_a_range_succeeds_whole(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """A multi-asset that returned None instead of yielding nothing failed only when every case succeeded."""
    home = tmp_path / "home"
    keys = [small_case(home, f"CRANE-{number}") for number in range(1, 4)]
    assert materialise(home, instance, keys).success
    assert _materialised(instance, DIAGNOSIS) == set(keys)


def test_one_bad_case_never_stops_the_others(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    home = tmp_path / "home"
    keys = [small_case(home, "A-1"), blind_case(home, "B-2"), small_case(home, "C-3")]
    result = materialise(home, instance, keys)
    assert not result.success
    assert _materialised(instance, DIAGNOSIS) == {keys[0], keys[2]}
    assert _materialised(instance, ASSET_OF_PHASE[Phase.INTERPRETATION]) >= {keys[0], keys[2]}
    failure = next(e for e in result.all_events if e.is_step_failure)
    assert failure.step_failure_data.user_failure_data is not None
    assert "failed" in failure.step_failure_data.user_failure_data.metadata


def test_an_inconclusive_case_is_materialised_with_a_warning_and_fails_no_run(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """The change request of an inconclusive case once turned its whole run red."""
    key = small_case(tmp_path / "home", "CRANE-17", source=False)
    assert materialise(tmp_path / "home", instance, [key]).success
    head = CheckpointStore(tmp_path / "home").latest("CRANE-17")
    assert head.manifest.lifecycle == "FAILED_TO_ANALYZE"
    assert _materialised(instance, DIAGNOSIS) == {key}
    assert _materialised(instance, ASSET_OF_PHASE[Phase.CHANGE_REQUEST]) == set()
    (record,) = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(DIAGNOSIS, "conclusive"), limit=5
    )
    assert record.event is not None
    assert record.event.dagster_event is not None
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.WARN


def test_a_damaged_case_is_counted_and_named(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    home = tmp_path / "home"
    keys = [small_case(home, "A-1"), small_case(home, "B-2")]
    head = home / "cases" / "B-2" / "gens" / "g00000002.zip"
    head.chmod(0o600)
    head.write_bytes(head.read_bytes()[:-1])
    result = materialise(home, instance, keys)
    assert not result.success
    assert _materialised(instance, DIAGNOSIS) == {keys[0]}


def test_checks_of_a_range_are_evaluated_per_partition(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """A partitioned `@asset_check` stays PLANNED for ever in a ranged run; logged evaluations do not."""
    home = tmp_path / "home"
    keys = [small_case(home, f"CRANE-{number}") for number in (1, 2)]
    materialise(home, instance, keys)
    for name, (asset, _) in CHECKS.items():
        records = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(asset, name), limit=20
        )
        evaluated = {
            record.partition
            for record in records
            if record.status
            in {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
        }
        assert evaluated == set(keys), name


def test_materialising_again_replays_without_a_model_call(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    home = tmp_path / "home"
    key = small_case(home, "CRANE-17")
    materialise(home, instance, [key])
    before = CheckpointStore(home).latest("CRANE-17")
    assert materialise(home, instance, [key]).success
    assert CheckpointStore(home).latest("CRANE-17").record_sha256 == before.record_sha256


def test_a_phase_without_its_predecessor_refuses(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    home = tmp_path / "home"
    key = small_case(home, "CRANE-17")
    result = materialise(home, instance, [key], selection=["diagnosis_result"])
    assert not result.success
    assert _materialised(instance, DIAGNOSIS) == set()
    assert CheckpointStore(home).latest("CRANE-17").generation == 2
