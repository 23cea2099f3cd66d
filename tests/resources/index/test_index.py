"""The evidence index: what counts, merging, many writers and readers, rebuilding, copies."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from resources.evidence_index import EvidenceIndex
from resources.index import asking, layout
from resources.index.layout import Current, Layout
from resources.index.merging import fold_journal, merge_segments
from resources.index.tables import TABLES
from resources.session import Session
from tests.support.graph import small_case
from tests.support.index_units import WHOLE, unit, unit_rows
from viano_assets.errors import InputError, PackageError


def contents(index: EvidenceIndex) -> dict[str, int]:
    """Return mark by case, after checking that every case is whole."""
    found = {}
    for case_id, mark, said, count, least, most in index.query(WHOLE, limit=100_000).rows:
        assert (said, least, most) == (count, mark, mark)
        found[case_id] = mark
    return found


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("index") / "home"
    for number in (1, 2):
        small_case(home, f"BUG-{number}")
        asyncio.run(Session.open(home).run(f"BUG-{number}"))
    return home


def all_rows(index: EvidenceIndex, copy: Path) -> dict[str, list[str]]:
    with duckdb.connect(index.snapshot(copy), read_only=True) as connection:
        return {
            table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}").fetchall()))
            for table in TABLES
        }


def test_rebuilding_gives_the_rows_that_the_publications_gave(analysed: Path, tmp_path: Path) -> None:
    index = EvidenceIndex(analysed)
    before = all_rows(index, tmp_path / "before")
    counts = index.rebuild(Session.open(analysed).store)
    assert all_rows(index, tmp_path / "after") == before
    assert counts["cases"] == 2
    assert counts["sources"] > 2
    assert counts["model_calls"] > 2


def test_an_index_that_was_never_written_has_all_tables_with_their_columns(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    assert {row[0] for row in index.query("SHOW TABLES").rows} == set(TABLES)
    assert index.query("DESCRIBE calibration").rows[0][0] == "snapshot_id"
    assert set(index.counts().values()) == {0}


def test_attempts_are_calls_and_the_cached_share_is_of_the_input(analysed: Path) -> None:
    session = Session.open(analysed)
    detail = next(
        c.detail for c in session.store.latest("BUG-1").checkpoints if c.event == "model_round_recorded"
    )
    row = (
        EvidenceIndex(analysed)
        .query(
            "SELECT attempts, tokens_in, cached_share FROM model_calls "
            "WHERE case_id = 'BUG-1' ORDER BY called_at, path LIMIT 1"
        )
        .rows[0]
    )
    spend = detail["spend"]
    share = spend["tokens_cached"] / spend["tokens_in"] if spend["tokens_in"] else None
    assert row == [spend["calls"], spend["tokens_in"], share]


@pytest.mark.parametrize("seed", range(2))
def test_merging_changes_no_answer(tmp_path: Path, seed: int) -> None:
    """Random publications, foldings and merges against a dictionary; a unit without rows disappears."""
    rng = random.Random(seed)
    index = EvidenceIndex(tmp_path)
    model: dict[str, int] = {}
    marks: dict[str, int] = {}
    for _ in range(100):
        case_id = f"C{rng.randrange(25)}"
        marks[case_id] = mark = marks.get(case_id, 0) + 1
        if rng.random() < 0.1:
            index.publish(unit(case_id), mark, {})
            model.pop(case_id, None)
        else:
            index.publish(unit(case_id), mark, unit_rows(case_id, mark, evidence=rng.randrange(4)))
            model[case_id] = mark
        if rng.random() < 0.15:
            index.compact()
    assert contents(index) == model
    index.compact()
    assert contents(index) == model
    assert len(index.layout.current().segments) < 8


def test_an_older_generation_replaces_nothing(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 7, unit_rows("A", 7))
    index.publish(unit("A"), 6, unit_rows("A", 6))
    assert contents(index) == {"A": 7}


def test_a_merge_that_was_overtaken_keeps_the_newer_rows(tmp_path: Path) -> None:
    """A unit that is published again while two segments are being merged is not brought back by them."""
    index = EvidenceIndex(tmp_path)
    for mark, names in enumerate((("A", "B"), ("A", "C")), 1):
        for name in names:
            index.publish(unit(name), mark, unit_rows(name, mark))
        with index.layout.lock():
            fold_journal(index.layout)

    class Overtaken(Layout):
        """Publishes just before the merged segment takes its place."""

        done = False

        def lock(self, name: str = "lock", *, wait: bool = True):  # type: ignore[no-untyped-def]  # noqa: ANN202
            if not self.done:
                self.done = True
                index.publish(unit("A"), 9, unit_rows("A", 9))
                with index.layout.lock():
                    fold_journal(index.layout)
            return super().lock(name, wait=wait)

    assert merge_segments(Overtaken(index.layout.root))
    assert contents(index) == {"A": 9, "B": 1, "C": 2}
    index.compact()
    assert contents(index) == {"A": 9, "B": 1, "C": 2}


def test_a_line_that_a_dying_writer_left_half_is_not_counted(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 1, unit_rows("A", 1))
    journal = index.layout.root / index.layout.current().journal
    with journal.open("ab") as file:
        file.write(b'{"unit": "B@r1", "gener')
    assert contents(index) == {"A": 1}
    index.publish(unit("C"), 1, unit_rows("C", 1))
    assert contents(index) == {"A": 1, "C": 1}


def test_a_reader_whose_files_were_removed_takes_a_new_view(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 1, unit_rows("A", 1))

    def overtake() -> None:
        index.publish(unit("A"), 2, unit_rows("A", 2))
        index.compact()
        for name, _ in index.layout.current().trash:
            (index.layout.root / name).unlink(missing_ok=True)

    calls = [overtake]

    def between() -> None:
        if calls:
            calls.pop()()

    answer = asking.ask(index.layout, "SELECT generation FROM cases", limit=9, between=between)
    assert answer.rows == [[2]]


def test_a_lost_file_is_named_and_a_rebuild_heals(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 1, unit_rows("A", 1))
    lost = next(iter(index.layout.root.glob("parts/*/*-evidence.parquet")))
    lost.unlink()
    with pytest.raises(PackageError, match="index_damaged") as caught:
        index.query("SELECT * FROM evidence")
    assert lost.name in caught.value.where
    index.rebuild(Session.open(tmp_path).store)
    assert index.counts()["cases"] == 0


def test_superseded_files_go_after_their_grace(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    for mark in range(1, 4):
        index.publish(unit("A"), mark, unit_rows("A", mark))
    index.compact()
    with index.layout.lock():
        current = index.layout.current()
        old = tuple((name, time.time() - layout.GRACE_S - 1) for name, _ in current.trash)
        index.layout.flip(Current(current.number + 1, current.segments, old))
    index.publish(unit("A"), 4, unit_rows("A", 4))
    index.compact()
    parts = list(index.layout.root.glob("parts/*/*.parquet"))
    assert {path.name.split("-")[1] for path in parts} == {"00000004"}
    assert contents(index) == {"A": 4}


def test_an_index_of_other_columns_asks_for_a_rebuild(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 1, unit_rows("A", 1))
    with index.layout.lock():
        index.layout.flip(index.layout.current()._replace(tables="other", number=9))
    with pytest.raises(PackageError, match="index_outdated"):
        index.query("SELECT 1")
    index.rebuild(Session.open(tmp_path).store)
    assert index.query("SELECT 1").rows == [[1]]


def test_publications_during_a_rebuild_are_kept(analysed: Path, tmp_path: Path) -> None:
    """The rebuild reads packages for a while; what others publish meanwhile must not be lost."""
    index = EvidenceIndex(analysed)
    store = Session.open(analysed).store

    class Meanwhile(type(store)):  # type: ignore[misc]
        """A store during whose reading another writer publishes."""

        def case_ids(self) -> list[str]:
            index.publish(unit("LATE"), 1, unit_rows("LATE", 1))
            return list(super().case_ids())

    index.rebuild(Meanwhile(analysed))
    assert index.query("SELECT count(*) FROM cases WHERE case_id = 'LATE'").rows == [[1]]
    index.publish(unit("LATE"), 2, {})


def test_a_damaged_file_of_scores_keeps_nothing_else_out_and_costs_no_rebuild(analysed: Path) -> None:
    store = Session.open(analysed).store
    index = EvidenceIndex(analysed)
    index.rebuild(store)
    bug = {"run_id": "known.r0002", "corpus": "known", "bug_id": "P1", "predictor": "viano"}
    stored = {"known.r0001": b"[1, 2", "known.r0002": json.dumps({"rows": [bug]}).encode()}
    for run_id, scores in stored.items():
        folder = analysed / "corpora" / "known" / "runs" / run_id
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}")
        (folder / "scores.json").write_bytes(scores)
    done = index.complete(store)
    assert done is not None
    assert (done.added["run"], done.unreadable, done.remade) == (1, ["known.r0001"], False)
    assert index.query("SELECT bug_id FROM evaluations").rows == [["P1"]]
    before = index.layout.view().current
    done = index.complete(store)
    assert done is not None
    assert (set(done.added.values()), done.unreadable) == ({0}, ["known.r0001"])
    assert index.layout.view().current == before
    index.rebuild(store)
    assert index.query("SELECT bug_id FROM evaluations").rows == [["P1"]]
    shutil.rmtree(analysed / "corpora")
    index.rebuild(store)


def test_a_copy_opens_anywhere_and_never_overwrites(analysed: Path, tmp_path: Path) -> None:
    index = EvidenceIndex(analysed)
    target = index.snapshot(tmp_path / "copy.duckdb")
    moved = target.rename(tmp_path / "moved.duckdb")
    code = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True);"
        "print(c.execute('SELECT count(*) FROM sources').fetchone()[0])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(moved)], check=True, capture_output=True, text=True
    ).stdout
    assert int(shown) == index.counts()["sources"]
    with pytest.raises(InputError, match="target_exists"):
        index.snapshot(moved)
    with pytest.raises(InputError, match="target_not_writable"):
        index.snapshot(tmp_path / "nowhere" / "copy.duckdb")
    assert [path.name for path in tmp_path.iterdir()] == ["moved.duckdb"]


def test_a_dashboard_reads_calibration_while_it_is_appended(tmp_path: Path) -> None:
    """A database file locked by the job once failed the dashboard; here both go on, and no row is half."""
    index = EvidenceIndex(tmp_path)
    stop = threading.Event()
    sql = "SELECT snapshot_id, count(*), min(n), max(n) FROM calibration GROUP BY snapshot_id"

    def append() -> int:
        mark = 0
        while mark < 5 or not stop.is_set():
            mark += 1
            rows = [{"snapshot_id": f"s{mark % 9}", "level": name, "n": mark} for name in ("a", "b", "c")]
            index.publish(f"s{mark % 9}", mark, {"calibration": rows})
        return mark

    with ThreadPoolExecutor(1) as pool:
        appended = pool.submit(append)
        answers = [index.query(sql).rows for _ in range(6)]
        stop.set()
        assert appended.result() >= 5
    assert all(count == 3 and least == most for rows in answers for _, count, least, most in rows)
    assert index.query(sql).rows


def test_writers_and_readers_at_once(tmp_path: Path) -> None:
    """Writers, a reader and a death: no error, nothing torn, nothing lost (longer: test-deep NAME=index)."""
    stop = tmp_path / "stop"
    home = tmp_path / "home"

    def start(role: str, number: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.index_worker", role, str(home), str(number), str(stop)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    victim = start("write", 9)
    workers = [start("write", number) for number in range(2)]
    readers = [start("read", 0)]
    end = time.monotonic() + 60
    while time.monotonic() < end and not (home / "index" / "current.json").exists():
        time.sleep(0.1)
    time.sleep(1)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    time.sleep(1)
    stop.touch()
    results = []
    for process in [*workers, *readers]:
        output, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        results.append(json.loads(output))
    assert all(item.get("torn", 0) == item.get("lost", 0) == 0 for item in results)
    assert sum(item.get("reads", 0) for item in results) >= 1
    published = sum(item.get("published", 0) for item in results)
    assert published > 20
    assert len(contents(EvidenceIndex(home))) <= 15
