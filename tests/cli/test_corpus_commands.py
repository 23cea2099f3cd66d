"""`viano corpus` as a user meets it: what it says, refuses, goes on with and how it ends."""

from __future__ import annotations

import errno
import json
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from resources.corpus_runs import CorpusRuns, _failed
from resources.session import Session
from tests.support.analyst_server import SETTINGS, AnalystServer
from tests.support.commands import COMMAND, started, viano
from tests.support.damage import cut_largest
from tests.support.small_corpus import build_small, run_small, write_corpus
from tests.support.small_disk import on_a_small_disk
from viano_assets.evaluation.owner import Owner
from viano_assets.evaluation.stored import CorpusFolder, read_document
from viano_assets.package.store import CheckpointStore


@pytest.fixture
def folder(tmp_path: Path) -> CorpusFolder:
    """A home with a corpus of two bugs."""
    return build_small(tmp_path / "home", tmp_path / "bugs", count=2)


@pytest.fixture
def home(folder: CorpusFolder, tmp_path: Path) -> Path:
    del folder
    return tmp_path / "home"


def codes(folder: CorpusFolder, run_id: str) -> dict[str, str | None]:
    rows = read_document(folder.run(run_id, "scores.json"))["rows"]
    return {row["bug_id"]: row["error_code"] for row in rows if row["predictor"] == "viano"}


def test_a_case_without_diagnosis_is_named_and_ends_in_status_3(home: Path, folder: CorpusFolder) -> None:
    cut_largest(home, "CRANE-2")
    answer = viano(home, "corpus", "run", "small")
    assert answer.status == 3
    code = codes(folder, "small.r0001")["CRANE-2"]
    assert code
    assert f"left out  CRANE-2                      {code}" in answer.err
    assert "judging small.r0001 …" in answer.err
    assert "2 of 2 judged CRANE-2" in answer.err
    assert viano(home, "corpus", "run", "small", "--only", "CRANE-1").status == 0


def test_an_unknown_bug_is_refused_before_anything_is_begun(home: Path, folder: CorpusFolder) -> None:
    answer = viano(home, "corpus", "run", "small", "--only", "nosuch")
    assert (answer.status, answer.error, folder.run_ids()) == (2, "unknown_bug", [])


def test_a_partial_run_says_so(home: Path) -> None:
    answer = viano(home, "corpus", "run", "small", "--only", "CRANE-1")
    assert "(partial: 1 of 2 cases)" in answer.err
    assert "(partial run)" in answer.out


def test_a_run_goes_on_with_its_provider_and_its_cases(home: Path, folder: CorpusFolder) -> None:
    """The configured provider would answer nothing; the run was begun offline with one case."""
    (home / "config").mkdir()
    settings = SETTINGS.format(url="http://127.0.0.1:9/v1")
    (home / "config" / "llm.local.toml").write_text(settings, encoding="utf-8")
    CorpusRuns(Session.open(home, provider="offline"), "small").start(only=["CRANE-1"])
    for asked in (("--provider", "counted"), ("--only", "CRANE-2")):
        refused = viano(home, "corpus", "run", "small", *asked)
        assert (refused.status, refused.error) == (2, "corpus_run_differs")
        assert "--new" in refused.err
    answer = viano(home, "corpus", "run", "small", "--json")
    assert answer.status == 0
    assert "Continuing small.r0001 with provider offline (partial: 1 of 2 cases)" in answer.err
    assert "note: " not in answer.err
    assert (answer.document["provider"], answer.document["cases"]) == ("offline", 1)
    CorpusRuns(Session.open(home, provider="offline"), "small").start(only=["CRANE-1"])
    (home / "config" / "analysis.local.toml").write_text(
        "[hypotheses]\ninitial_budget = 90\n", encoding="utf-8"
    )
    noted = viano(home, "corpus", "run", "small")
    assert "note: prompts, settings or code are others than when it began" in noted.err
    CorpusRuns(Session.open(home, provider="offline"), "small").start(only=["CRANE-1"])
    other = viano(home, "corpus", "run", "small", "--provider", "offline", "--only", "CRANE-2", "--new")
    assert other.status == 0
    assert set(codes(folder, "small.r0004")) == {"CRANE-2"}


def test_a_second_command_is_told_that_the_run_is_owned(home: Path, folder: CorpusFolder) -> None:
    with Owner(folder).held():
        answer = viano(home, "corpus", "run", "small")
    assert (answer.status, answer.error) == (3, "corpus_busy")


def test_a_dead_owner_blocks_nobody(home: Path, folder: CorpusFolder) -> None:
    with AnalystServer(delay_s=30) as server:
        server.configure(home)
        process = started(home, "corpus", "run", "small")
        try:
            end = time.monotonic() + 60
            while server.count() == 0 and time.monotonic() < end:
                time.sleep(0.05)
            assert server.count() > 0
            assert viano(home, "corpus", "run", "small").error == "corpus_busy"
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
            process.communicate()
    with AnalystServer(delay_s=0) as server:
        server.configure(home)
        (run_id,) = folder.run_ids()
        refused = viano(home, "corpus", "run", "small", "--provider", "offline")
        assert refused.error == "corpus_run_differs"
        assert viano(home, "corpus", "judge", "small", "--run", run_id).refusal == "corpus_run_open"


def test_cases_that_a_provider_put_off_are_waited_for(home: Path, folder: CorpusFolder) -> None:
    with AnalystServer(delay_s=0, refusals=[(429, {"retry-after": "3600"})] * 2) as server:
        server.configure(home)
        answer = viano(home, "corpus", "run", "small", "--threads", "1")
        assert (answer.status, answer.refusal) == (3, "corpus_run_waits")
        assert "waits until 20" in answer.err
        assert folder.judged_ids() == []
        again = viano(home, "corpus", "run", "small", "--threads", "1")
        assert (again.status, again.refusal) == (3, "corpus_run_waits")
        assert "Continuing small.r0001" in again.err
        refused = viano(home, "corpus", "judge", "small")
        assert (refused.status, refused.refusal) == (3, "corpus_run_open")
        judged = viano(home, "corpus", "judge", "small", "--as-it-stands", "--json")
    assert judged.status == 3
    waited = [bug for bug, code in codes(folder, "small.r0001").items() if code is not None]
    assert judged.document["unfinished"] == waited
    assert waited
    for bug_id in waited:
        overlay = CheckpointStore(home).latest(bug_id).manifest.overlay
        assert overlay is not None
        assert codes(folder, "small.r0001")[bug_id] == overlay.code


def test_patience_ends_and_the_run_is_judged_without_them(home: Path, folder: CorpusFolder) -> None:
    with AnalystServer(delay_s=0, refusals=[(429, {"retry-after": "3600"})] * 2) as server:
        server.configure(home)
        settings = "[reprocessing]\npatience_hours = 0\n"
        (home / "config" / "corpus.local.toml").write_text(settings, encoding="utf-8")
        answer = viano(home, "corpus", "run", "small", "--threads", "1")
    assert answer.status == 3
    assert folder.judged_ids() == ["small.r0001"]


@pytest.mark.parametrize(
    "content",
    ["[]", "{", "3", '{"bugs": 3}', '{"corpus": "odd", "sha256": "x", "bugs": [{}]}', "[" * 100_000],
)
def test_one_odd_corpus_stops_no_other(home: Path, content: str) -> None:
    for name in ("odd", "No Name"):
        (home / "corpora" / name).mkdir()
        (home / "corpora" / name / "corpus.json").write_text(content, encoding="utf-8")
    (home / "corpora" / "stray").write_text("x", encoding="utf-8")
    (home / "corpora" / "small" / "runs").mkdir()
    (home / "corpora" / "small" / "runs" / "notes.txt").write_text("x", encoding="utf-8")
    (home / "corpora" / "small" / "runs" / "copy of r1").mkdir()
    (home / "corpora" / "small" / "runs" / "copy of r1" / "run.json").write_text("{}", encoding="utf-8")
    config = home / "config" / "corpora"
    config.mkdir(parents=True)
    (config / "bad.toml").write_bytes(b"\xff\xfe")
    (config / "worse.toml").write_text("kind = 3", encoding="utf-8")
    (config / "folder.toml").mkdir()
    (config / "Big Name.toml").write_text('kind = "folder"\nfolder = "x"\n', encoding="utf-8")
    answer = viano(home, "corpus", "list", "--json")
    assert answer.status == 0
    assert {item["corpus"] for item in answer.document["left_out"]} == {
        "odd", "No Name", "bad", "worse", "folder", "Big Name",
    }  # fmt: skip
    assert {item["corpus"] for item in answer.document["corpora"]} == {"small", "pypi-bugs"}
    assert "left out: odd: " in answer.err
    for command in ("run", "build"):
        refused = viano(home, "corpus", command, "bad" if command == "build" else "odd")
        assert refused.error in {"corpus_invalid", "evaluation_damaged"}
    if content == "[]":
        assert viano(home, "corpus", "run", "small", "--only", "CRANE-1").status == 0


def test_what_is_damaged_within_a_corpus_is_named(home: Path, folder: CorpusFolder) -> None:
    run_id = run_small(home)
    folder.run(run_id, "scores.json").write_text("[]", encoding="utf-8")
    answer = viano(home, "corpus", "list", "--json")
    (small,) = [item for item in answer.document["corpora"] if item["corpus"] == "small"]
    assert str(folder.run(run_id, "scores.json")) in small["problems"][0]


def test_a_missing_report_is_written_again(home: Path, folder: CorpusFolder) -> None:
    run_id = run_small(home)
    text = folder.run(run_id, "report.md").read_text(encoding="utf-8")
    folder.run(run_id, "report.md").unlink()
    refused = viano(home, "corpus", "report", "small")
    assert (refused.status, refused.error) == (2, "no_report")
    assert f"viano corpus judge small --run {run_id}" in refused.err
    assert viano(home, "corpus", "judge", "small", "--run", run_id).status == 0
    assert folder.run(run_id, "report.md").read_text(encoding="utf-8") == text
    assert viano(home, "corpus", "judge", "small", "--run", "../x").error == "unknown_run"


def test_a_full_disk_is_told_and_leaves_the_run_open(tmp_path: Path) -> None:
    """It once ended the case as `defect`, which looked like an answer, and the run was judged."""
    bugs, disk = write_corpus(tmp_path / "bugs"), tmp_path / "disk"
    script = (
        f"corpus build small --folder {bugs};corpus run small --threads 1;corpus judge small;"
        "corpus run small --threads 1"
    )
    commands = " ; ".join(
        f'"$0" -c "$1" {line} --home {disk}/home' for line in script.split(";")
    )  # fmt: skip
    said = on_a_small_disk("700k", disk, "sh", "-c", commands, COMMAND[0], COMMAND[2])
    first, _, rest = said.partition("judging small.r0001")
    assert "error[storage_full]: " in first
    assert "viano corpus run small then goes on" in first
    assert "error[corpus_run_open]: " in rest
    assert "Continuing small.r0001" in rest
    assert "small.r0002" not in said
    assert "defect" not in said


def test_the_hint_of_a_run_that_is_not_finished_fits_what_the_command_does(
    home: Path, folder: CorpusFolder
) -> None:
    runs = CorpusRuns(Session.open(home), "small")
    run_id = runs.start()
    assert "continue it: viano corpus run small" in viano(home, "corpus", "judge", "small").err
    runs.judge(run_id, as_it_stands=True)
    refused = viano(home, "corpus", "judge", "small", "--run", run_id)
    assert refused.refusal == "corpus_run_open"
    assert "continue it" not in refused.err, "the command would begin another run"


def test_what_ends_a_case_is_called_by_its_cause() -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    outcomes = [_failed("B", "B@r1", error) for error in (full, OSError(errno.ENOSPC, "full"), KeyError("x"))]
    assert [item.code for item in outcomes] == ["storage_full", "storage_full", "internal_error"]
    assert [item.is_failed for item in outcomes] == [False, False, True]


def test_one_bad_bug_stops_no_other_and_is_named(tmp_path: Path) -> None:
    """A slip in one bug once stopped the whole build; a folder without bug.toml was passed over silently."""
    bugs, home = write_corpus(tmp_path / "bugs"), tmp_path / "home"
    (bugs / "CRANE-1" / "bug.toml").write_text("id = ", encoding="utf-8")
    (bugs / "CRANE-2" / "gold.json").write_text('{"verdict": "defect", "location": []}', encoding="utf-8")
    (bugs / "notes\x1b[31m").mkdir()
    (bugs / ".git").mkdir()
    answer = viano(home, "corpus", "build", "small", "--folder", str(bugs), "--json")
    assert answer.status == 3
    assert answer.document["imported"] == 1
    assert [(item["bug_id"], item["code"]) for item in answer.document["skipped"]] == [
        ("CRANE-1", "bug_invalid"), ("CRANE-2", "gold_invalid"), ("notes\x1b[31m", "bug_invalid"),
    ]  # fmt: skip
    assert "there is no bug.toml" in answer.err
    assert "unknown key 'location'" in answer.err
    assert "\x1b" not in answer.err
    missing = viano(home, "corpus", "build", "small", "--folder", str(tmp_path / "nowhere"))
    assert (missing.status, "FileNotFoundError" in missing.err) == (2, False)


@pytest.mark.parametrize("command", ["run", "judge", "report"])
def test_a_corpus_that_was_never_built_is_refused_and_leaves_no_folder(home: Path, command: str) -> None:
    answer = viano(home, "corpus", command, "nope")
    assert (answer.status, answer.error) == (2, "corpus_not_built")
    assert "viano corpus build nope" in answer.err
    assert not (home / "corpora" / "nope").exists()


def test_the_hint_about_a_damaged_file_is_the_one_that_helps(home: Path, folder: CorpusFolder) -> None:
    run_id = run_small(home)
    folder.run(run_id, "run.json").write_text("[]", encoding="utf-8")
    answer = viano(home, "corpus", "judge", "small")
    assert answer.error == "evaluation_damaged"
    assert "move its folder away" in answer.err


HOSTILE = "x|y <img src=x onerror=alert(1)> ![p](http://a.example/p) [l](http://a.example) `c` # h"


def test_texts_of_bugs_are_literal_in_the_report(tmp_path: Path) -> None:
    bugs, home = write_corpus(tmp_path / "bugs"), tmp_path / "home"
    for path in bugs.glob("*/bug.toml"):
        text = path.read_text(encoding="utf-8").replace('kind = "code"', f"kind = {json.dumps(HOSTILE)}")
        path.write_text(text + f"clue = {json.dumps(HOSTILE)}\n", encoding="utf-8")
    told = viano(home, "corpus", "build", "small", "--folder", str(bugs), "--json")
    assert told.status == 0
    run_small(home)
    report = viano(home, "corpus", "report", "small").out
    assert "onerror" in report
    lines = [line for line in report.splitlines() if "onerror" in line]
    widths = {_cells(line) for line in lines}
    assert widths == {8}
    assert not [
        line for line in lines if "<img" in line.replace("\\<", "") or "](" in line.replace("\\]", "")
    ]


def _cells(line: str) -> int:
    return len(line.replace("\\\\", "").replace("\\|", "").strip("|").split("|"))
