"""The corpus sensor: one minted range on a change, a judged run, nothing when nothing changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.event_api import PartitionKeyFilter

from resources.corpus_runs import CorpusRuns
from resources.dagster_viano import VianoResource
from resources.session import Session
from tests.support.analyst_server import SETTINGS
from tests.support.graph import materialise
from tests.support.small_corpus import build_small, run_small, write_corpus
from viano_assets.assets.corpus import (
    CALIBRATION,
    CORPORA,
    EVALUATION,
    PLOTS,
    built_corpora,
    corpus_calibration,
    corpus_evaluation,
    run_checks,
)
from viano_assets.assets.run_types import CORPUS_RUN
from viano_assets.assets.specs import ASSET_OF_PHASE
from viano_assets.automation.corpus_sensors import (
    MAX_ATTEMPTS,
    MAX_JUDGINGS,
    contiguous,
    corpus_reprocess,
    nightly_corpora,
)
from viano_assets.automation.sensors import register_cases
from viano_assets.automation.sync import sync_home
from viano_assets.definitions import build_defs
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder
from viano_assets.evaluation.owner import Owner
from viano_assets.evaluation.stored import CorpusFolder, read_document
from viano_assets.package.model import Change, Overlay
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import Phase

pytestmark = pytest.mark.filterwarnings("ignore::dagster.PreviewWarning", "ignore::dagster.BetaWarning")

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


@pytest.fixture
def folder(tmp_path: Path) -> CorpusFolder:
    """A home with a corpus of one bug."""
    return build_small(tmp_path / "home", tmp_path / "bugs", count=1)


def noted(instance: dg.DagsterInstance, home: Path) -> str:
    """Return what a tick says that requests nothing."""
    result = tick(instance, home)
    assert not result.run_requests
    return str(result.skip_reason)


def put_off(home: Path, due: datetime) -> None:
    store = CheckpointStore(home)
    overlay = Overlay("deferred", "interpretation", "rate_limited", "wait", f"{due:%Y-%m-%dT%H:%M:%S.%fZ}")
    store.commit(store.latest("CRANE-1"), Change("interpretation_deferred", overlay=overlay))


def launched(instance: dg.DagsterInstance, home: Path, request: dg.RunRequest, job: str) -> dg.DagsterRun:
    """Store a requested run as the daemon does, and end it as failed."""
    definition = build_defs(viano=VianoResource(home=str(home))).resolve_job_def(job)
    run = instance.create_run_for_job(definition, tags=dict(request.tags))
    instance.report_run_failed(run)
    return run


def test_what_a_provider_put_off_is_waited_for_and_dispatched_when_due(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    """Three dispatches of a minute each once used the whole patience up."""
    home = tmp_path / "home"
    for _ in range(MAX_ATTEMPTS):
        (request,) = tick(instance, home).run_requests or []
        launched(instance, home, request, "analyse_case")
        put_off(home, datetime.now(UTC) - timedelta(minutes=1))
    assert "1 cases wait, the first until 20" in noted(instance, home), "the fourth dispatch pauses"
    put_off(home, datetime.now(UTC) + timedelta(hours=1))
    assert "1 cases wait, the first until 20" in noted(instance, home)
    (home / "config").mkdir()
    settings = home / "config" / "corpus.local.toml"
    settings.write_text("[reprocessing]\npatience_hours = 0\n", encoding="utf-8")
    (judging,) = tick(instance, home).run_requests or []
    assert judging.job_name == "judge_corpus"
    assert judged(instance, home, judging).success
    rows = read_document(folder.run("small.r0001", "scores.json"))["rows"]
    assert [row["error_code"] for row in rows if row["predictor"] == "viano"] == ["rate_limited"]


def test_a_case_that_a_person_must_resume_is_judged_with_its_code(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    home = tmp_path / "home"
    assert tick(instance, home).run_requests
    store = CheckpointStore(home)
    overlay = Overlay("blocked", "interpretation", "quota_exhausted", "nothing left")
    store.commit(store.latest("CRANE-1"), Change("interpretation_blocked", overlay=overlay))
    (judging,) = tick(instance, home).run_requests or []
    assert judged(instance, home, judging).success
    rows = read_document(folder.run("small.r0001", "scores.json"))["rows"]
    assert [row["error_code"] for row in rows if row["predictor"] == "viano"] == ["quota_exhausted"]


def test_a_judging_that_failed_is_requested_again_under_another_key(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    home = tmp_path / "home"
    assert tick(instance, home).run_requests
    materialise(home, instance, ["CRANE-1@r1"])
    folder.run("small.r0001", "summary.json").mkdir()
    keys = set()
    for _ in range(MAX_JUDGINGS):
        (judging,) = tick(instance, home).run_requests or []
        keys.add(judging.run_key)
        assert not judged(instance, home, judging, raises=False).success
    assert len(keys) == MAX_JUDGINGS
    assert "judging small.r0001 failed 3 times" in noted(instance, home)
    folder.run("small.r0001", "summary.json").rmdir()
    with dg.DagsterInstance.ephemeral() as other:
        (judging,) = tick(other, home).run_requests or []
        assert judged(other, home, judging).success
    assert "unchanged" in noted(instance, home)


def test_one_damaged_corpus_stops_no_other(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    home = tmp_path / "home"
    entry = {"bug_id": "B", "case_id": "B", "sha256": "x", "verdict": "defect", "locations": [3]}
    odd = json.dumps({"corpus": "odd", "sha256": "x", "bugs": [entry]})
    for name, content in (("aaa", "[]"), ("No Name", "{}"), ("odd", odd), ("zzz", '{"bugs": 3}')):
        (home / "corpora" / name).mkdir()
        (home / "corpora" / name / "corpus.json").write_text(content, encoding="utf-8")
    (request,) = tick(instance, home).run_requests or []
    assert request.tags[CORPUS_RUN] == "small.r0001"
    launched(instance, home, request, "analyse_case")
    materialise(home, instance, ["CRANE-1@r1"])
    (judging,) = tick(instance, home).run_requests or []
    assert judged(instance, home, judging).success
    said = noted(instance, home)
    assert all(f"{name}: " in said for name in ("aaa", "No Name", "odd", "zzz", "small"))
    assert folder.judged_ids() == ["small.r0001"]
    assert built_corpora(home) == ["odd", "small"]


def test_an_open_run_goes_on_with_its_own_provider_and_under_the_gate(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    """A paid run that a person began and stopped once was carried on by the sensor, unasked."""
    home = tmp_path / "home"
    (home / "config").mkdir()
    settings = SETTINGS.format(url="http://127.0.0.1:9/v1").replace('default_profile = "counted"', "")
    (home / "config" / "llm.local.toml").write_text(settings, encoding="utf-8")
    remote = settings.replace("http://127.0.0.1:9", "https://models.example.org").replace(
        "allow_loopback = true", ""
    )
    (home / "config" / "llm.local.toml").write_text(remote, encoding="utf-8")
    run_id = CorpusRuns(Session.open(home, provider="counted"), "small").start()
    assert "max_tokens is 0" in noted(instance, home)
    (home / "config" / "corpus.local.toml").write_text("[reprocessing]\nmax_tokens = -1\n", encoding="utf-8")
    (request,) = tick(instance, home).run_requests or []
    assert request.tags[CORPUS_RUN] == run_id
    assert request.run_config["ops"]["case_chain"]["config"]["provider"] == "counted"
    assert folder.run_ids() == [run_id]


def test_the_graph_and_the_commands_own_a_run_in_turn(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    home = tmp_path / "home"
    with Owner(folder).held():
        assert "corpus_busy" in noted(instance, home) or "another process works" in noted(instance, home)
        done = materialise(home, instance, ["CRANE-1@r1"], tags={CORPUS_RUN: "small.r0001"})
        assert not done.success
    assert materialise(home, instance, ["CRANE-1@r1"], tags={CORPUS_RUN: "small.r0001"}).success


def test_a_judging_that_meets_another_owner_is_no_failure(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    """`viano corpus run` that began between a tick and its judging once left the judging failed."""
    home = tmp_path / "home"
    assert tick(instance, home).run_requests
    materialise(home, instance, ["CRANE-1@r1"])
    for _ in range(MAX_JUDGINGS + 1):
        (judging,) = tick(instance, home).run_requests or []
        with Owner(folder).held():
            met = judged(instance, home, judging, raises=False)
        assert met.asset_materializations_for_node("corpus_evaluation") == []
    (judging,) = tick(instance, home).run_requests or []
    assert judged(instance, home, judging).asset_materializations_for_node("corpus_evaluation")
    assert folder.judged_ids() == ["small.r0001"]


def test_each_corpus_has_a_partition_with_all_plots_and_no_broken_picture(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    home = tmp_path / "home"
    build_small(home, tmp_path / "same", "again", count=1)
    resources = {"viano": VianoResource(home=str(home))}
    found = register_cases(dg.build_sensor_context(instance=instance, resources=resources))
    assert isinstance(found, dg.SensorResult)
    added = {
        item.partitions_def_name: item.partition_keys for item in found.dynamic_partitions_requests or []
    }
    assert added[CORPORA] == ["again", "small"]
    instance.add_dynamic_partitions(CORPORA, added[CORPORA])
    for name in added[CORPORA]:
        run_small(home, name)
        done = dg.materialize(
            [corpus_evaluation, corpus_calibration],
            instance=instance,
            resources=resources,
            partition_key=name,
        )
        (made,) = done.asset_materializations_for_node("corpus_evaluation")
        assert "![" not in str(made.metadata["report"].value)
        for plot in PLOTS.values():
            assert str(made.metadata[plot].value).startswith("![plot](data:image/png;base64,")
        (shown,) = done.asset_materializations_for_node("corpus_calibration")
        assert shown.metadata["provider"].value == "offline"
        assert (made.partition, shown.partition) == (name, name)
    assert instance.get_materialized_partitions(EVALUATION) == {"again", "small"}
    assert folder.judged_ids() == ["small.r0001"]


def checks(instance: dg.DagsterInstance) -> dict[str, bool]:
    """Return what the last evaluation of each check of the corpus said."""
    keys = [dg.AssetCheckKey(EVALUATION, n) for n in ("not_worse", "calibration_holds", "grounded")]
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        keys, PartitionKeyFilter(key="small")
    )
    events = [(key.name, record.event) for key, record in found.items()]
    return {
        name: event.dagster_event.asset_check_evaluation_data.passed
        for name, event in events
        if event is not None and event.dagster_event is not None
    }


def reported(instance: dg.DagsterInstance) -> list[str]:
    """Return the runs whose judging Dagster knows, newest first."""
    records = instance.fetch_materializations(EVALUATION, limit=50).records
    made = [record.asset_materialization for record in records]
    return [str(event.metadata["run_id"].value) for event in made if event is not None]


def test_what_the_command_line_judged_stands_on_the_page(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    home = tmp_path / "home"
    runs = [run_small(home), run_small(home)]
    folder.run(runs[0], "units.png").unlink()
    assert sync_home(home, instance)["reported"] == len(runs) + 2 * 5
    assert reported(instance) == [runs[1], runs[0]]
    assert checks(instance) == dict.fromkeys(("not_worse", "calibration_holds", "grounded"), True)
    assert instance.get_dynamic_partitions(CORPORA) == ["small"]
    (shown,) = instance.fetch_materializations(CALIBRATION, limit=5).records
    assert shown.asset_materialization is not None
    table = str(shown.asset_materialization.metadata["diagnosis"].value)
    assert table.startswith("### diagnosis\n\n| subject | level |")
    assert sync_home(home, instance)["reported"] == 0
    CorpusRuns(Session.open(home), "small").judge(runs[0])
    assert sync_home(home, instance)["reported"] == 0, "an older run judged again does not become the newest"
    later = [run_small(home), run_small(home)]
    folder.run(later[0], "summary.json").write_text("{", encoding="utf-8")
    assert sync_home(home, instance)["reported"] == 1 + 2 * 5
    assert reported(instance) == [later[1], runs[1], runs[0]]
    assert checks(instance) == dict.fromkeys(("not_worse", "calibration_holds", "grounded"), True)
    assert sync_home(home, instance)["reported"] == 0


def test_what_could_not_be_verified_passes_no_check(tmp_path: Path, folder: CorpusFolder) -> None:
    run_id = run_small(tmp_path / "home")
    figures = read_document(folder.run(run_id, "summary.json"))
    found = {item.name: item for item in run_checks(folder, figures | {"not_verified": 1})}
    assert (found["grounded"].passed, found["grounded"].severity) == (False, dg.AssetCheckSeverity.WARN)
    found = {item.name: item for item in run_checks(folder, figures | {"not_grounded": 1})}
    assert (found["grounded"].passed, found["grounded"].severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found["not_worse"].metadata == {"columns that got worse": "none"}


def test_the_nightly_job_reprocesses_what_changed_and_tells_the_page(
    instance: dg.DagsterInstance, tmp_path: Path, folder: CorpusFolder
) -> None:
    home = tmp_path / "home"
    (home / "corpora" / "aaa").mkdir()
    (home / "corpora" / "aaa" / "corpus.json").write_text("[]", encoding="utf-8")
    job = build_defs(viano=VianoResource(home=str(home))).resolve_job_def("reprocess_corpora")
    for _ in range(2):
        done = job.execute_in_process(instance=instance, raise_on_error=False)
        assert not done.success, "the damaged corpus is reported"
        assert folder.judged_ids() == ["small.r0001"], "the second night finds nothing changed"
    assert instance.get_materialized_partitions(EVALUATION) == {"small"}
    assert instance.get_materialized_partitions(CALIBRATION) == {"small"}
    assert checks(instance) == dict.fromkeys(("not_worse", "calibration_holds", "grounded"), True)
    assert len(reported(instance)) == 1
    assert sync_home(home, instance)["reported"] == 0
    assert instance.get_materialized_partitions(ASSET_OF_PHASE[Phase.DIAGNOSIS]) == {"CRANE-1@r1"}
    assert nightly_corpora.default_status is dg.DefaultScheduleStatus.STOPPED
