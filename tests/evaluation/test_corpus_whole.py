"""What counts as a measurement: whole runs, of one provider, settled, and judged again when they were not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from resources.corpus_runs import CorpusRuns, fingerprint
from resources.evidence_index import EvidenceIndex
from resources.session import Session
from tests.support.analyst_server import SETTINGS
from tests.support.small_corpus import build_small, run_small
from viano_assets.errors import BlockedError, BusyError, InputError
from viano_assets.evaluation.gate import changed
from viano_assets.evaluation.owner import Owner
from viano_assets.evaluation.stored import CHOSEN, CorpusFolder, quoted_snapshot, read_document


@pytest.fixture
def folder(tmp_path: Path) -> CorpusFolder:
    """A home with a corpus of two bugs."""
    return build_small(tmp_path / "home", tmp_path / "bugs", count=2)


@pytest.fixture
def home(folder: CorpusFolder, tmp_path: Path) -> Path:
    del folder
    return tmp_path / "home"


def summary(folder: CorpusFolder, run_id: str) -> dict[str, Any]:
    return read_document(folder.run(run_id, "summary.json"))


def report(folder: CorpusFolder, run_id: str) -> str:
    return folder.run(run_id, "report.md").read_text(encoding="utf-8")


def test_a_partial_run_measures_nothing_for_others(home: Path, folder: CorpusFolder) -> None:
    whole = run_small(home)
    quoted = quoted_snapshot(home, "offline")
    partial = run_small(home, only=["CRANE-2"])
    assert quoted_snapshot(home, "offline") == quoted
    assert (summary(folder, partial)["whole"], summary(folder, partial)["snapshot_id"]) == (False, None)
    assert "Partial run" in report(folder, partial)
    assert "Partial run" not in report(folder, whole)
    again = run_small(home)
    assert summary(folder, again)["compared_with"] == whole
    session = Session.open(home)
    built = CorpusRuns(session, "small").built
    assert not changed(folder, built, "offline", fingerprint(session))
    with pytest.raises(InputError, match="unknown_bug"):
        CorpusRuns(session, "small").start(only=["nosuch"])
    assert folder.run_ids() == [whole, partial, again]
    runs = (
        EvidenceIndex(home).query("SELECT DISTINCT run_id, whole_run FROM evaluations ORDER BY run_id").rows
    )
    assert runs == [[whole, True], [partial, False], [again, True]]


def test_a_partial_run_alone_leaves_the_corpus_to_be_run(home: Path, folder: CorpusFolder) -> None:
    run_small(home, only=["CRANE-2"])
    assert quoted_snapshot(home, "offline") is None
    session = Session.open(home)
    assert changed(folder, CorpusRuns(session, "small").built, "offline", fingerprint(session))


def test_a_run_is_compared_with_the_last_of_its_own_provider(home: Path, folder: CorpusFolder) -> None:
    first = run_small(home)
    (home / "config").mkdir()
    settings = SETTINGS.format(url="http://127.0.0.1:9/v1")
    (home / "config" / "llm.local.toml").write_text(settings, encoding="utf-8")
    runs = CorpusRuns(Session.open(home), "small")
    other = runs.start()
    assert runs.judge(other, as_it_stands=True)["compared_with"] is None
    last = run_small(home, provider="offline")
    assert summary(folder, last)["compared_with"] == first
    assert f"## Against {first}" in report(folder, last)
    assert quoted_snapshot(home, "offline") != quoted_snapshot(home, "counted")


def test_an_unfinished_run_is_not_judged_unless_asked_and_then_judged_again(
    home: Path, folder: CorpusFolder
) -> None:
    runs = CorpusRuns(Session.open(home), "small")
    run_id = runs.start()
    runs._one("CRANE-1", runs.run(run_id)["cases"]["CRANE-1"])
    with pytest.raises(BlockedError, match="1 of 2 cases are not finished: CRANE-2"):
        runs.judge(run_id)
    assert runs.open_run() == run_id
    early = runs.judge(run_id, as_it_stands=True)
    assert (early["failed"], early["unfinished"]) == (1, ["CRANE-2"])
    assert "not finished: CRANE-2." in report(folder, run_id)
    runs.work(run_id)
    late = runs.judge(run_id)
    assert (late["failed"], late["unfinished"]) == (0, [])
    assert late["snapshot_id"] != early["snapshot_id"] or late["confirmed"] == early["confirmed"]


def test_a_case_in_work_is_waited_for_whatever_is_asked(home: Path) -> None:
    runs = CorpusRuns(Session.open(home), "small")
    run_id = runs.start()
    with (
        Session.open(home).store.lock("CRANE-2"),
        pytest.raises(BlockedError, match="1 of 2 cases are not finished: CRANE-2"),
    ):
        runs.judge(run_id, as_it_stands=True)


def test_one_owner_at_a_time_works_on_a_run(home: Path, folder: CorpusFolder) -> None:
    runs = CorpusRuns(Session.open(home), "small")
    with Owner(folder).held():
        for attempt in (
            runs.start,
            lambda: runs.work("small.r0001"),
            lambda: Owner(folder).held().__enter__(),
        ):
            with pytest.raises(BusyError, match="corpus_busy"):
                attempt()
    assert folder.run_ids() == []
    shared = Owner(folder, shared=True)
    with shared.held(), Owner(folder, shared=True).held(), pytest.raises(BusyError):
        runs.start()
    runs.start()


def test_scores_are_written_last_so_that_a_failed_judging_is_repeated(
    home: Path, folder: CorpusFolder
) -> None:
    runs = CorpusRuns(Session.open(home), "small")
    run_id = runs.start()
    outcomes = runs.work(run_id)
    folder.run(run_id, "summary.json").mkdir()
    with pytest.raises(OSError, match="summary"):
        runs.judge(run_id, outcomes)
    assert runs.open_run() == run_id
    folder.run(run_id, "summary.json").rmdir()
    runs.judge(run_id, outcomes)
    assert runs.open_run() is None


@pytest.mark.parametrize(
    ("scores", "other"), [("[]", "{"), ('{"rows": [{"bug_id": "a", "predictor": "viano"}]}', '{"rows": [3]}')]
)
def test_what_is_damaged_from_before_loses_no_run(tmp_path: Path, scores: str, other: str) -> None:
    home = tmp_path / "home"
    folder = build_small(home, tmp_path / "bugs", count=1)
    first, second = run_small(home), run_small(home)
    folder.run(second, "scores.json").write_text(scores, encoding="utf-8")
    (home / "corpora" / CHOSEN).write_text(other, encoding="utf-8")
    for path in (folder.root / "baselines").iterdir():
        path.write_text(other, encoding="utf-8")
    third = run_small(home)
    assert summary(folder, third)["compared_with"] == first
    rows = read_document(folder.run(third, "scores.json"))["rows"]
    old = read_document(folder.run(first, "scores.json"))["rows"]
    assert [r["file_any_1"] for r in rows if r["predictor"] == "bm25"] == [
        r["file_any_1"] for r in old if r["predictor"] == "bm25"
    ]
    quoted = quoted_snapshot(home, "offline")
    assert quoted is not None
    assert quoted["snapshot_id"] == summary(folder, third)["snapshot_id"]


def test_a_damaged_list_of_quotes_keeps_those_of_other_providers(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = build_small(home, tmp_path / "bugs", count=1)
    run_small(home)
    path = max((folder.root / "calibration").iterdir())
    other = json.loads(path.read_text(encoding="utf-8")) | {
        "provider": "other",
        "snapshot_id": "small.cother",
    }
    path.with_name("small.cother.json").write_text(json.dumps(other), encoding="utf-8")
    (home / "corpora" / CHOSEN).write_text("[1]", encoding="utf-8")
    run_small(home)
    assert set(read_document(home / "corpora" / CHOSEN)) == {"offline", "other"}


def test_judging_an_old_run_again_takes_no_quote_back_and_forgets_nothing(
    home: Path, folder: CorpusFolder
) -> None:
    """The quote once went back to the older run, and what had been verified became unknown, reported as 0."""
    first = run_small(home)
    second = run_small(home)
    newest = read_document(home / "corpora" / CHOSEN)
    rows = read_document(folder.run(first, "scores.json"))["rows"]
    runs = CorpusRuns(Session.open(home), "small")
    assert runs.judge(first)["not_verified"] == 0
    assert read_document(folder.run(first, "scores.json"))["rows"] == rows
    assert read_document(home / "corpora" / CHOSEN) == newest
    assert folder.snapshots()[-1]["run_id"] == second
    assert runs.judge(second)["not_verified"] == 0
    assert read_document(home / "corpora" / CHOSEN) == newest
    (home / "corpora" / CHOSEN).write_text("{", encoding="utf-8")
    runs.judge(first)
    assert read_document(home / "corpora" / CHOSEN) == newest
    folder.run(first, "scores.json").unlink()
    assert runs.judge(first)["not_verified"] == 2
    assert "evidence that does not verify: 0; not verified, since" in report(folder, first)


def test_a_rebuild_gives_the_rows_of_a_run_that_was_judged_again(
    home: Path, folder: CorpusFolder, tmp_path: Path
) -> None:
    """The index once got the time of the second judging, the kept snapshot held that of the first."""
    run_id = run_small(home)
    (made_at,) = {item["made_at"] for item in folder.snapshots()}
    time.sleep(1.1)
    runs = CorpusRuns(Session.open(home), "small")
    runs.judge(run_id)
    index = EvidenceIndex(home)
    question = "SELECT * FROM calibration ORDER BY ALL"
    before = index.query(question)
    assert {dict(zip(before.columns, row, strict=True))["made_at"] for row in before.rows} == {made_at}
    index.rebuild(runs.session.store)
    assert index.query(question) == before


def test_a_report_says_what_it_lacks_in_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = build_small(home, tmp_path / "bugs")
    partial = run_small(home, only=["CRANE-3"])
    text = report(folder, partial)
    assert "1 case (0 defects, 1 control)" in text
    assert "no calibration kept" in text
    assert "there is no defect to confirm" in text
    runs = CorpusRuns(Session.open(home), "small")
    run_id = runs.start(only=["CRANE-1"])
    runs.judge(run_id, as_it_stands=True)
    text = report(folder, run_id)
    assert "| CRANE-1 | defect | not\\_finished | – | no | no | – | 0 |" in text
    assert "controls: there are none" in text
