"""Corpora from folder to report: built, run, continued, judged, compared, quoted by new diagnoses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resources.corpus_runs import CorpusRuns
from resources.evidence_index import EvidenceIndex
from resources.session import Session
from tests.support.damage import cut_largest
from tests.support.small_corpus import write_corpus
from viano_assets.cli.corpus import corpus
from viano_assets.errors import InputError
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder, find_corpora, read_bugs
from viano_assets.evaluation.stored import CorpusFolder, quoted_snapshot, read_document
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.diagnosis.view import case_view


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the small corpus, one run of it judged."""
    place = tmp_path_factory.mktemp("corpus")
    folder = write_corpus(place / "bugs")
    made = command(place / "home", "build", "small", "--folder", str(folder))
    assert made["imported"] == 3
    command(place / "home", "run", "small", "--threads", "1")
    return place / "home"


def command(home: Path, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(corpus, [*arguments, "--home", str(home), "--json"])
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def test_the_shipped_recipe_is_a_corpus() -> None:
    assert len(read_bugs(find_corpora()["pypi-bugs"])) == 45


def test_a_run_is_judged_and_reported(home: Path) -> None:
    figures = command(home, "report", "small")
    assert (figures["cases"], figures["defects"], figures["controls"], figures["failed"]) == (3, 2, 1, 0)
    assert (figures["overclaims"], figures["not_grounded"]) == (0, 0)
    folder = home / "corpora" / "small" / "runs" / "small.r0001"
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "| bm25 | any |" in text
    assert "| shuffled | all |" in text
    assert (folder / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert command(home, "list")["corpora"][-1]["runs"] == ["small.r0001"]


def test_rows_of_the_run_stand_in_the_index_and_a_rebuild_gives_them_again(home: Path) -> None:
    index = EvidenceIndex(home)
    before = index.counts()
    assert before["known_bugs"] == 3
    assert before["evaluations"] == 4 * 3
    assert before["calibration"] == 3 * 5
    assert index.rebuild(CheckpointStore(home)) == before


def test_the_gold_is_in_no_package(home: Path) -> None:
    session = Session.open(home)
    head = session.store.latest("CRANE-1")
    assert not [path for path in head.files if "gold" in path]


def test_a_diagnosis_quotes_the_snapshot_that_applied(home: Path) -> None:
    """The first run could quote nothing; the snapshot it left is quoted by the next one."""
    session = Session.open(home)
    first = case_view(session.store, session.store.latest("CRANE-1"), 1)
    assert first["calibration"]["status"] == "not measured"
    quoted = quoted_snapshot(home, "offline")
    assert quoted is not None
    assert quoted["snapshot_id"].startswith("small.c")


def test_an_interrupted_run_goes_on_and_repeats_nothing(home: Path) -> None:
    runs = CorpusRuns(Session.open(home), "small")
    old = {p: p.read_bytes() for p in (home / "corpora" / "small" / "calibration").iterdir()}
    run_id = runs.start()
    assert set(runs.run(run_id)["cases"].values()) == {"CRANE-1@r2", "CRANE-2@r2", "CRANE-3@r2"}
    runs._one("CRANE-1", "CRANE-1@r2")
    again = CorpusRuns(Session.open(home), "small")
    assert again.open_run() == run_id
    outcomes = again.work(run_id)
    assert [item.repeated for item in outcomes] == [False, True, True]
    assert {item.code for item in outcomes} == {""}
    figures = again.judge(run_id, outcomes)
    assert figures["compared_with"] == "small.r0001"
    assert figures["worse"] == []
    assert again.open_run() is None
    view = case_view(again.session.store, again.session.store.latest("CRANE-2"), 2)
    assert view["calibration"]["snapshot_id"].startswith("small.c")
    assert all(path.read_bytes() == data for path, data in old.items())


def test_an_interrupt_begins_no_further_case(tmp_path: Path) -> None:
    """Ctrl-C once waited until every case of the corpus was done."""
    home = tmp_path / "home"
    chosen = corpus_of_folder("small", write_corpus(tmp_path / "bugs"))
    store = CheckpointStore(home)
    build_corpus(store, home, chosen, cache=tmp_path)
    runs = CorpusRuns(Session.open(home), "small")
    run_id = runs.start()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.work(run_id, threads=1, told=interrupted)
    untouched = [n for n in store.case_ids() if store.latest(n).manifest.lifecycle == "ASSEMBLED"]
    assert untouched
    assert {item.code for item in runs.work(run_id)} == {""}


def test_a_damaged_case_is_counted_and_stops_nobody(tmp_path: Path) -> None:
    home = tmp_path / "home"
    chosen = corpus_of_folder("small", write_corpus(tmp_path / "bugs"))
    store = CheckpointStore(home)
    build_corpus(store, home, chosen, cache=tmp_path)
    cut_largest(home, "CRANE-2")
    runs = CorpusRuns(Session.open(home), "small")
    run_id = runs.start(only=["CRANE-1", "CRANE-2"])
    outcomes = runs.work(run_id)
    figures = runs.judge(run_id, outcomes)
    assert (figures["cases"], figures["failed"]) == (2, 1)
    rows = read_document(runs.folder.run(run_id, "scores.json"))["rows"]
    codes = {row["bug_id"]: row["error_code"] for row in rows if row["predictor"] == "viano"}
    assert codes["CRANE-1"] is None
    assert codes["CRANE-2"]
    assert "None" not in runs.folder.run(run_id, "report.md").read_text(encoding="utf-8")


def test_a_mended_gold_is_taken_over_and_a_removed_bug_leaves(tmp_path: Path) -> None:
    """Only other inputs make another bug; a file of the desktop makes none, and the case of a bug stays."""
    home, folder = tmp_path / "home", write_corpus(tmp_path / "bugs")
    store, chosen = CheckpointStore(home), corpus_of_folder("small", folder)
    first = build_corpus(store, home, chosen, cache=tmp_path)
    (folder / "CRANE-1" / ".DS_Store").write_bytes(b"x")
    assert build_corpus(store, home, chosen, cache=tmp_path).sha256 == first.sha256
    toml = folder / "CRANE-1" / "bug.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace("Crane stops", "Crane halts"), encoding="utf-8")
    gold = {"verdict": "defect", "locations": [{"path": "main.cpp"}]}
    (folder / "CRANE-1" / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    shutil.rmtree(folder / "CRANE-3")
    said: list[str] = []
    again = build_corpus(store, home, chosen, cache=tmp_path, told=said.append)
    assert (again.imported, again.present, again.skipped) == (0, 2, ())
    assert again.sha256 != first.sha256
    built = CorpusFolder(home, "small").built() or {}
    assert [(bug["bug_id"], bug["title"]) for bug in built["bugs"]] == [
        ("CRANE-1", "Crane halts"),
        ("CRANE-2", "Crane stops"),
    ]
    assert [place["path"] for place in built["bugs"][0]["locations"]] == ["main.cpp"]
    assert said == ["CRANE-3 is no longer part of the corpus; its case stays"]
    assert "CRANE-3" in store.case_ids()


def test_what_cannot_be_built_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = write_corpus(tmp_path / "bugs")
    (folder / "CRANE-2" / "report.md").write_text("", encoding="utf-8")
    store = CheckpointStore(home)
    built = build_corpus(store, home, corpus_of_folder("small", folder), cache=tmp_path)
    assert built.imported == 2
    assert [(bug, code) for bug, code, _ in built.skipped] == [("CRANE-2", "empty_report")]
    (folder / "CRANE-1" / "report.md").write_text("# Other\n\nIt stops.\n", encoding="utf-8")
    again = build_corpus(store, home, corpus_of_folder("small", folder), cache=tmp_path)
    assert ("CRANE-1", "bug_changed") in [(bug, code) for bug, code, _ in again.skipped]
    with pytest.raises(InputError, match="unknown_bug"):
        build_corpus(store, home, corpus_of_folder("small", folder), cache=tmp_path, only=["X"])
    with pytest.raises(InputError, match="invalid_corpus_name"):
        corpus_of_folder("../x", folder)
    with pytest.raises(InputError, match="corpus_not_built"):
        CorpusRuns(Session.open(tmp_path / "other"), "small")
