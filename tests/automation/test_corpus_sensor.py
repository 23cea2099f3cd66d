"""The corpus sensor: one minted range on a change, a judged run, nothing when nothing changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from resources.dagster_viano import VianoResource
from tests.support.graph import materialise
from tests.support.small_corpus import write_corpus
from viano_assets.assets.corpus import EVALUATION, corpus_calibration, corpus_evaluation
from viano_assets.automation.corpus_sensors import contiguous, corpus_reprocess
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder
from viano_assets.evaluation.stored import CorpusFolder
from viano_assets.package.store import CheckpointStore

RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def tick(instance: dg.DagsterInstance, home: Path) -> dg.SensorResult:
    context = dg.build_sensor_context(instance=instance, resources={"viano": VianoResource(home=str(home))})
    result = corpus_reprocess(context)
    assert isinstance(result, dg.SensorResult)
    return result


def test_a_changed_setting_mints_one_range_and_is_judged(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    store = CheckpointStore(home)
    build_corpus(store, home, corpus_of_folder("small", write_corpus(tmp_path / "bugs")), cache=tmp_path)
    old: dict[str, str] = {}
    for revision in (1, 2):
        if revision == 2:
            assert "unchanged" in str(tick(instance, home).skip_reason)
            before = store.latest("CRANE-1")
            old = {p: e.sha256 for p, e in before.files.items()}
            (home / "config").mkdir()
            (home / "config" / "analysis.local.toml").write_text(
                "[hypotheses]\ninitial_budget = 90\n", encoding="utf-8"
            )
        requests = list(tick(instance, home).run_requests or [])
        keys = [f"CRANE-{number}@r{revision}" for number in (1, 2, 3)]
        assert [tuple(r.tags[name] for name in RANGE) for r in requests] == [(keys[0], keys[-1])]
        materialise(home, instance, keys)
        (judging,) = tick(instance, home).run_requests or []
        assert judging.job_name == "judge_corpus"
        done = judged(instance, home, judging)
        (made,) = done.asset_materializations_for_node("corpus_evaluation")
        assert made.metadata["cases"].value == 3
        assert_strict(home, made.metadata)
        assert {c.check_name: c.passed for c in done.get_asset_check_evaluations()} == {
            "not_worse": True, "calibration_holds": True, "grounded": True,
        }  # fmt: skip
    head = store.latest("CRANE-1")
    assert {p: head.files[p].sha256 for p in old} == old
    assert head.revision == 2
    assert EVALUATION.to_user_string() == "corpus_evaluation"


def judged(
    instance: dg.DagsterInstance, home: Path, judging: dg.RunRequest, *, raises: bool = True
) -> dg.ExecuteInProcessResult:
    """Carry a requested judging out as the daemon does."""
    return dg.materialize(
        [corpus_evaluation, corpus_calibration],
        instance=instance,
        resources={"viano": VianoResource(home=str(home))},
        partition_key=judging.partition_key,
        run_config=judging.run_config,
        tags=dict(judging.tags),
        raise_on_error=raises,
    )


def assert_strict(home: Path, metadata: Mapping[str, dg.MetadataValue[Any]]) -> None:
    """Levels without a case are 0 of 0; one NaN of such a bin once blanked a page."""
    runs = CorpusFolder(home, "small")
    empty = [i for i in runs.snapshots()[-1]["subjects"]["diagnosis"]["levels"] if i["n"] == 0]
    assert empty
    assert {item["rate"] for item in empty} == {None}
    json.dumps({name: entry.value for name, entry in metadata.items()}, allow_nan=False)
    for path in sorted((home / "corpora").rglob("*.json")):
        json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_keys_that_lie_apart_become_several_ranges() -> None:
    order = ["A@r1", "B@r1", "X@r1", "C@r1", "D@r1"]
    assert contiguous(["D@r1", "A@r1", "B@r1", "C@r1"], order) == [("A@r1", "B@r1"), ("C@r1", "D@r1")]
