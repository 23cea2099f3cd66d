"""The kept connections change nothing about what Dagster stores, and everybody can still read along.

(Annotations are not postponed here: Dagster reads those of an op.)
"""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import dagster as dg
import pytest

from resources.dagster_storage import OPEN_DATABASES, KeptSqliteEventLog
from viano_assets.data_files import CONFIG

ASSET = dg.AssetKey("lifted")
Opener = Callable[[str], dg.DagsterInstance]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Open an instance on one home, with the shipped settings or with Dagster's own storage."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    made: list[dg.DagsterInstance] = []

    def open_(kind: str) -> dg.DagsterInstance:
        settings = tmp_path / "dagster.yaml"
        shutil.copyfile(CONFIG / "dagster.yaml", settings)
        if kind == "own":
            text = settings.read_text(encoding="utf-8")
            start, end = text.index("storage:"), text.index("run_monitoring:")
            settings.write_text(text[:start] + text[end:], encoding="utf-8")
        made.append(dg.DagsterInstance.get())
        return made[-1]

    yield open_
    for instance in made:
        instance.dispose()


def lift(instance: dg.DagsterInstance, partition: str) -> str:
    """Materialise the asset for one partition in a run of its own and return the run's id."""

    @dg.op
    def lifted(context: dg.OpExecutionContext) -> None:
        context.log_event(dg.AssetMaterialization(ASSET, partition=partition))

    @dg.job
    def lifting() -> None:
        lifted()

    result = lifting.execute_in_process(instance=instance)
    assert result.success
    return result.run_id


def open_files() -> set[Path]:
    found = set()
    for number in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):
            found.add(number.readlink())
    return found


def test_the_shipped_settings_keep_connections(opened: Opener) -> None:
    assert isinstance(opened("kept").event_log_storage, KeptSqliteEventLog)
    assert not isinstance(opened("own").event_log_storage, KeptSqliteEventLog)


def test_each_class_reads_what_the_other_wrote(opened: Opener) -> None:
    ours, own = opened("kept"), opened("own")
    first, second = lift(ours, "A@r1"), lift(own, "B@r1")
    for instance in (ours, own, opened("kept")):
        assert instance.get_materialized_partitions(ASSET) == {"A@r1", "B@r1"}
        kinds = [[e.dagster_event_type for e in instance.all_logs(run)] for run in (first, second)]
        assert kinds[0] == kinds[1]
        assert dg.DagsterEventType.RUN_SUCCESS in kinds[0]


def test_a_viewer_hears_of_events_while_the_run_goes_on(opened: Opener) -> None:
    """A commit to the write-ahead log leaves the watched file as it was."""
    viewer, ours = opened("own"), opened("kept")
    run = lift(ours, "A@r1")
    heard: list[str] = []

    def hear(entry: dg.EventLogEntry, _: str) -> None:
        heard.append(entry.message)

    viewer.watch_event_logs(run, None, hear)
    ours.report_engine_event("the second lift", ours.get_run_by_id(run))
    end = time.monotonic() + 20
    while not any("the second lift" in text for text in heard) and time.monotonic() < end:
        time.sleep(0.05)
    viewer.end_watch_event_logs(run, hear)
    assert any("the second lift" in text for text in heard)


def test_only_few_databases_stay_open(opened: Opener) -> None:
    ours = opened("kept")
    runs = [lift(ours, f"A@r{number}") for number in range(OPEN_DATABASES + 2)]
    assert 0 < len({file.stem for file in open_files() if file.suffix == ".db"} & set(runs)) <= OPEN_DATABASES
    assert all(ours.all_logs(run) for run in runs)


def test_wiping_leaves_a_log_that_works(opened: Opener) -> None:
    ours = opened("kept")
    lift(ours, "A@r1")
    ours.wipe()
    assert ours.get_materialized_partitions(ASSET) == set()
    assert ours.all_logs(lift(ours, "B@r1"))
    assert ours.get_materialized_partitions(ASSET) == {"B@r1"}


WRITER = """
import dagster as dg
from tests.resources.test_dagster_storage import lift
with dg.DagsterInstance.get() as instance:
    for number in range(1, 1000):
        lift(instance, f"K@r{number}")
        print(number, flush=True)
"""


def test_events_of_a_killed_process_are_all_there(opened: Opener) -> None:
    opened("kept")
    process = subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert told == ["1\n", "2\n", "3\n"]
    ours = opened("kept")
    assert ours.get_materialized_partitions(ASSET) >= {"K@r1", "K@r2", "K@r3"}
    lift(ours, "L@r1")
    assert "L@r1" in ours.get_materialized_partitions(ASSET)
