"""A damaged index stops no work, is noticed, and is made again; a part that is lacking is found by name."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from resources.evidence_index import EvidenceIndex
from resources.index.merging import JOURNAL_LIMIT
from resources.index.tables import TABLES
from resources.session import Session
from tests.support.graph import small_case
from tests.support.index_units import unit, unit_rows
from viano_assets.case.reopening import new_revision
from viano_assets.cli.sql import index as index_commands
from viano_assets.cli.sql import sql
from viano_assets.errors import PackageError
from viano_assets.evaluation.snapshot import keep_snapshot, make_snapshot
from viano_assets.evaluation.stored import write_document
from viano_assets.phases.protocols import Phase

STATES = "SELECT partition_key, state FROM cases ORDER BY ALL"


def reopened(home: Path, case_id: str) -> None:
    session = Session.open(home)
    with session.store.lock(case_id):
        new_revision(session.store, case_id, reason="again", prior_generations="exclude")


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a case of three revisions, one that was not run, and a corpus with a run and snapshots."""
    home = tmp_path_factory.mktemp("seed") / "home"
    small_case(home, "BUG-1")
    asyncio.run(Session.open(home).run("BUG-1"))
    for until in (Phase.HYPOTHESES, Phase.INTERPRETATION):
        reopened(home, "BUG-1")
        asyncio.run(Session.open(home).run("BUG-1", until=until))
    small_case(home, "BUG-2")
    bug: dict[str, Any] = {
        "bug_id": "B", "case_id": "BUG-1", "sha256": "2" * 64, "verdict": "defect",
        "locations": [{"path": "crane.cpp"}],
    }  # fmt: skip
    corpus = home / "corpora" / "known"
    write_document(
        corpus / "corpus.json",
        {"schema": "corpus-v1", "corpus": "known", "sha256": "0" * 64, "bugs": [bug], "unavailable": []},
    )
    run = {
        "run_id": "known.r0001", "corpus": "known", "corpus_sha256": "0" * 64, "provider": "offline",
        "prompts_sha256": "1" * 64, "code_version": "1", "fingerprint": "f", "started_at": "2026-01-01",
        "cases": {}, "unreadable": {},
    }  # fmt: skip
    write_document(corpus / "runs" / "known.r0001" / "run.json", run)
    row = {"run_id": "known.r0001", "corpus": "known", "bug_id": "B", "predictor": "viano"}
    write_document(corpus / "runs" / "known.r0001" / "scores.json", {"rows": [row]})
    for right in (True, False):
        scores = [{"confirmed": True, "effective_confidence": "supported", "root_cause_correct": right}]
        keep_snapshot(home, make_snapshot(run, scores, {}, f"2026-01-0{1 + right}T00:00:00+00:00"))
    EvidenceIndex(home).complete(Session.open(home).store)
    return home


@pytest.fixture(scope="module")
def merged(seed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same home; its index has segments and a journal."""
    home = Path(shutil.copytree(seed, tmp_path_factory.mktemp("merged") / "home"))
    store = Session.open(home).store
    EvidenceIndex(home).rebuild(store)
    EvidenceIndex(home).update(store, store.latest("BUG-1"))
    return home


@pytest.fixture
def home(merged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(merged, tmp_path / "home"))


@pytest.fixture(scope="module")
def whole(seed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Return the rows per table of an index made from nothing."""
    other = tmp_path_factory.mktemp("whole") / "home"
    shutil.copytree(seed, other, ignore=shutil.ignore_patterns("index"))
    return EvidenceIndex(other).rebuild(Session.open(other).store)


def state(root: Path) -> Path:
    return root / "current.json"


def journal(root: Path) -> Path:
    return max(root.glob("journal-*.jsonl"))


def spoil(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def spoil_segments(root: Path) -> None:
    for path in root.rglob("*.parquet"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)


def forged_number(root: Path) -> None:
    document = json.loads(state(root).read_text())
    document["segments"] = [{"name": 5, "units": "many", "dead": 1, "files": [], "sums": {}}]
    state(root).write_text(json.dumps(document))


def each(damage: Callable[[Path], object], *paths: Path) -> None:
    for path in paths:
        damage(path)


def as_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def as_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("x")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "half a state": lambda root: spoil(state(root), b"{"),
    "an empty state": lambda root: spoil(state(root), b""),
    "a state of another kind": lambda root: spoil(state(root), b"[[]]"),
    "a state nested too deeply": lambda root: spoil(state(root), b"[" * 200_000),
    "a state with other types": forged_number,
    "a state that is a folder": lambda root: as_folder(state(root)),
    "no state": lambda root: state(root).unlink(),
    "garbage in the journal": lambda root: spoil(journal(root), b"\x00\xff\n" + journal(root).read_bytes()),
    "a journal line of another kind": lambda root: spoil(journal(root), b'{"unit": 1}\nnull\n'),
    "no journal": lambda root: journal(root).unlink(),
    "a journal that is a folder": lambda root: as_folder(journal(root)),
    "flipped bits": spoil_segments,
    "no files": lambda root: each(shutil.rmtree, root / "parts", root / "segments"),
    "files that are no folders": lambda root: each(as_file, root / "parts", root / "segments"),
    "locks that are folders": lambda root: each(as_folder, root / "lock", root / "compaction"),
    "an index that is a file": as_file,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_is_damaged_a_case_goes_on_and_a_rebuild_heals(
    home: Path, damage: str, whole: dict[str, int]
) -> None:
    DAMAGES[damage](home / "index")
    result = asyncio.run(Session.open(home).run("BUG-2", until=Phase.INTERPRETATION))
    assert result.head.manifest.lifecycle == "INTERPRETING"
    done = CliRunner().invoke(index_commands, ["rebuild", "--home", str(home), "--json"])
    assert done.exit_code == 0, done.output
    counts = json.loads(done.stdout)
    for table in ("statements", "model_calls", "cases"):
        assert counts.pop(table) >= whole[table]
    assert counts == {table: whole[table] for table in counts}


@pytest.mark.parametrize(
    "damage",
    [
        "half a state",
        "garbage in the journal",
        "flipped bits",
        "no files",
        "no state",
        "an index that is a file",
    ],
)
def test_the_next_question_makes_a_damaged_index_again(
    home: Path, damage: str, whole: dict[str, int]
) -> None:
    expected = EvidenceIndex(home).query(STATES).rows
    DAMAGES[damage](home / "index")
    done = CliRunner().invoke(sql, ["--home", str(home), "--json", STATES])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == expected
    assert done.stderr.startswith("note: ")
    assert EvidenceIndex(home).counts() == whole


def test_a_damaged_file_found_while_merging_costs_nothing_that_is_published(tmp_path: Path) -> None:
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 1, unit_rows("A", 1))
    spoil_segments(index.layout.root)
    for number in range(2 * JOURNAL_LIMIT):
        index.publish(unit(f"B{number}"), 1, unit_rows(f"B{number}", 1))
    assert index.query("SELECT count(*) FROM cases WHERE case_id = 'A'").rows == [[0]]
    last = f"B{2 * JOURNAL_LIMIT - 1}"
    assert index.query(f"SELECT count(*) FROM cases WHERE case_id = '{last}'").rows == [[1]]


def test_names_that_lead_out_of_the_index_are_damage(tmp_path: Path) -> None:
    """What the state calls superseded is deleted one day: a name must not reach other files."""
    outside = tmp_path / "precious.parquet"
    outside.write_text("x")
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 1, unit_rows("A", 1))
    document = json.loads(state(index.layout.root).read_text())
    document["trash"] = [["../precious.parquet", 0.0]]
    state(index.layout.root).write_text(json.dumps(document))
    index.compact()
    index.publish(unit("B"), 1, unit_rows("B", 1))
    index.compact()
    assert outside.exists()
    assert index.query("SELECT case_id FROM cases").rows == [["B"]]


def test_flipped_bits_are_named_not_answered(tmp_path: Path) -> None:
    """One bit in a stored value would still be Parquet, and another value."""
    index = EvidenceIndex(tmp_path)
    index.publish(unit("A"), 1, unit_rows("A", 1))
    path = next(iter(index.layout.root.glob("parts/*/*-cases.parquet")))
    data = path.read_bytes()
    sql = "SELECT title, generation FROM cases"
    answer = index.query(sql).rows
    wrong = 0
    for at in range(4, len(data) - 8, 97):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(PackageError, match="index_damaged") as caught:
            index.query(sql)
        wrong += caught.value.where == str(path)
    assert wrong > 5
    path.write_bytes(data)
    assert index.query(sql).rows == answer
    assert index.query("SELECT count(*) FROM evidence").rows == [[3]]


def test_everything_that_a_deleted_index_had_comes_back(home: Path, whole: dict[str, int]) -> None:
    """Earlier revisions, known bugs, runs and snapshots were missing when work came before a question."""
    shutil.rmtree(home / "index")
    EvidenceIndex(home).update(store := Session.open(home).store, store.latest("BUG-1"))
    done = CliRunner().invoke(sql, ["--home", str(home), "--json", "SELECT 1"])
    assert "lacked 3 case revisions, 1 corpus, 2 calibration snapshots, 1 run of this home" in done.stderr
    assert EvidenceIndex(home).counts() == whole
    assert whole["known_bugs"] == whole["evaluations"] == 1
    assert whole["cases"] == 4
    assert EvidenceIndex(home).complete(store) is None


def test_many_lacking_units_come_as_one_segment_and_none_twice(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for number in range(60):
        small_case(home, f"BUG-{number}")
    store = Session.open(home).store
    index = EvidenceIndex(home)
    index.update(store, store.latest("BUG-7"))
    before = len(index.layout.current().segments)
    done = index.complete(store)
    assert done is not None
    assert done.added["case revision"] == 59
    assert len(index.layout.current().segments) == before + 1
    assert index.counts()["cases"] == 60
    assert index.complete(store) is None


def test_one_damaged_snapshot_hides_no_other(home: Path) -> None:
    spoiled, kept = sorted((home / "corpora" / "known" / "calibration").glob("*.json"))
    spoiled.write_text("{")
    index = EvidenceIndex(home)
    index.rebuild(Session.open(home).store)
    assert index.query("SELECT DISTINCT snapshot_id FROM calibration").rows == [[kept.stem]]


@pytest.mark.parametrize("rows", [5, [{"run_id": "known.r0001", "units": "many"}], [{"run_id": "other"}]])
def test_scores_of_another_form_keep_nothing_else_out(home: Path, rows: object) -> None:
    scores = home / "corpora" / "known" / "runs" / "known.r0001" / "scores.json"
    scores.write_text(json.dumps({"rows": rows}))
    counts = EvidenceIndex(home).rebuild(Session.open(home).store)
    assert (counts["evaluations"], counts["known_bugs"], counts["cases"]) == (0, 1, 4)


def test_a_rebuild_gives_every_row_of_every_revision_again(seed: Path, tmp_path: Path) -> None:
    """Rows of an earlier revision said what the newest generation knew, not what their own last one did."""
    home = Path(shutil.copytree(seed, tmp_path / "home"))
    index = EvidenceIndex(home)
    before = index.snapshot(tmp_path / "before.duckdb")
    index.rebuild(Session.open(home).store)
    after = index.snapshot(tmp_path / "after.duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{before}' AS old (READ_ONLY)")
        connection.execute(f"ATTACH '{after}' AS new (READ_ONLY)")
        for table in TABLES:
            for one, two in (("old", "new"), ("new", "old")):
                text = f"SELECT * FROM {one}.{table} EXCEPT ALL SELECT * FROM {two}.{table}"
                assert connection.execute(text).fetchall() == [], table
        found = connection.execute("SELECT count(*) FROM new.cases WHERE case_id = 'BUG-1'").fetchall()
    assert found == [(3,)]


def test_an_index_that_cannot_be_written_stops_no_case(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    if os.getuid() == 0:
        shutil.rmtree(home / "index")
        (home / "index").symlink_to("/proc/nowhere")
    else:
        (home / "index").chmod(0o500)
    with caplog.at_level(logging.WARNING, logger="viano.index"):
        result = asyncio.run(Session.open(home).run("BUG-2", until=Phase.INTERPRETATION))
    (home / "index").unlink() if os.getuid() == 0 else (home / "index").chmod(0o700)
    assert result.head.manifest.lifecycle == "INTERPRETING"
    assert "BUG-2" in caplog.text
