"""Gold judges only the case it was written for: ids alone make no case a corpus' own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from resources.corpus_runs import CorpusRuns
from resources.session import Session
from tests.support.graph import small_case
from tests.support.small_corpus import build_small, run_small, write_corpus
from viano_assets.errors import InputError
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder, read_bugs
from viano_assets.evaluation.stored import CorpusFolder, read_document
from viano_assets.package.store import CheckpointStore


def test_a_users_own_case_of_the_same_id_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "CRANE-2", report="# My own\n\nThe door sticks.\n")
    store = CheckpointStore(home)
    mine = store.latest("CRANE-2").record_sha256
    chosen = corpus_of_folder("small", write_corpus(tmp_path / "bugs"))
    built = build_corpus(store, home, chosen, cache=tmp_path)
    assert (built.imported, [(bug, code) for bug, code, _ in built.skipped]) == (
        2, [("CRANE-2", "case_not_of_corpus")],
    )  # fmt: skip
    run = CorpusFolder(home, "small").run_document(run_small(home))
    assert set(run["cases"]) == {"CRANE-1", "CRANE-3"}
    assert store.latest("CRANE-2").record_sha256 == mine


def test_two_corpora_share_a_case_only_when_its_inputs_are_the_same(tmp_path: Path) -> None:
    home = tmp_path / "home"
    build_small(home, tmp_path / "bugs")
    build_small(home, tmp_path / "same", "again")
    other = write_corpus(tmp_path / "other")
    (other / "CRANE-1" / "source" / "main.cpp").write_text("int main() { return 1; }\n", encoding="utf-8")
    built = build_corpus(CheckpointStore(home), home, corpus_of_folder("other", other), cache=tmp_path)
    assert built.present == 2
    assert [(bug, code) for bug, code, _ in built.skipped] == [("CRANE-1", "case_not_of_corpus")]


def test_an_import_that_was_not_recorded_is_taken_up(tmp_path: Path) -> None:
    """The process died between the import of a case and its entry in the corpus."""
    home = tmp_path / "home"
    folder = build_small(home, tmp_path / "bugs")
    (folder.root / "corpus.json").unlink()
    chosen = corpus_of_folder("small", tmp_path / "bugs")
    built = build_corpus(CheckpointStore(home), home, chosen, cache=tmp_path)
    assert (built.imported, built.present, built.skipped) == (0, 3, ())


def test_a_case_that_was_replaced_after_the_build_is_not_judged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = build_small(home, tmp_path / "bugs", count=2)
    early = CorpusRuns(Session.open(home), "small")
    first = early.start()
    early.work(first)
    shutil.rmtree(Path(early.session.store.paths("CRANE-1").generations).parent)
    small_case(home, "CRANE-1", report="# My own\n\nThe door sticks.\n")
    runs = CorpusRuns(Session.open(home), "small")
    assert runs.judge(first)["failed"] == 1
    second = runs.start()
    assert runs.run(second)["unreadable"] == {"CRANE-1": "case_not_of_corpus"}
    runs.judge(second, runs.work(second))
    for run_id in (first, second):
        rows = read_document(folder.run(run_id, "scores.json"))["rows"]
        own = {row["bug_id"]: row for row in rows if row["predictor"] == "viano"}
        assert own["CRANE-1"]["error_code"] == "case_not_of_corpus"
        assert own["CRANE-1"]["file_any_1"] is False
        assert own["CRANE-2"]["error_code"] is None


@pytest.mark.parametrize("ids", [("a|b", "a b"), ("same", "same"), ("Crane", "crane")])
def test_bugs_that_would_be_one_case_are_refused(tmp_path: Path, ids: tuple[str, str]) -> None:
    folder = write_corpus(tmp_path / "bugs")
    for number, bug_id in enumerate(ids, 1):
        path = folder / f"CRANE-{number}" / "bug.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f'"CRANE-{number}"', f'"{bug_id}"'), encoding="utf-8")
    with pytest.raises(InputError, match="duplicate_bug") as refused:
        read_bugs(corpus_of_folder("small", folder))
    assert all(repr(bug_id) in refused.value.message for bug_id in ids)
