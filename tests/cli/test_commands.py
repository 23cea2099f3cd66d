"""The commands of a case's life: one JSON document on standard output, progress elsewhere."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.analyst_server import AnalystServer
from tests.support.commands import started, tree, viano, viano_process
from tests.support.graph import REPORT, SOURCE, small_case
from viano_assets.case.intake import import_case
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore

VIEW = {
    "case_id", "package_id", "analysis_revision", "partition_key", "generation", "state", "diagnosis",
    "localisation", "hypotheses", "evidence", "spend", "not_examined", "deciding_question",
}  # fmt: skip


def test_a_case_from_import_to_a_copy_elsewhere(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "crane.cpp").write_text(SOURCE, encoding="utf-8")
    given = ["--case-id", "A-1", "--report", str(tmp_path / "report.md"), "--source", str(tmp_path / "src")]
    imported = viano(home, "case", "import", *given, "--json")
    assert imported.status == 0
    assert imported.document["partition_key"] == "A-1@r1"
    run = viano(home, "run", "A-1", "--json")
    assert run.status == 0, run.err
    assert run.document.keys() >= VIEW
    shown = viano(home, "case", "show", "A-1", "--json").document
    assert {name: shown[name] for name in VIEW} == {name: run.document[name] for name in VIEW}
    assert shown["interrupted"] is None
    text = viano(home, "case", "show", "A-1@r1")
    assert text.status == 0
    assert "Diagnosis" in text.out
    exported = viano(home, "case", "export", "A-1", "-o", str(tmp_path / "A-1.zip"), "--json")
    assert exported.document["bytes"] == (tmp_path / "A-1.zip").stat().st_size
    again = viano(home, "case", "export", "A-1", "-o", str(tmp_path / "A-1.zip"))
    assert (again.status, again.error) == (2, "output_exists")
    copied = viano(elsewhere, "case", "import-package", str(tmp_path / "A-1.zip"), "--json")
    assert copied.document["generation"] == run.document["generation"]
    assert viano(elsewhere, "case", "verify", "A-1", "--json").document["problems"] == []
    assert viano(elsewhere, "case", "import-package", str(tmp_path / "A-1.zip")).error == "case_exists"
    assert viano(elsewhere, "case", "import-package", str(tmp_path / "report.md")).status == 2


def test_an_import_names_the_folders_it_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")
    for folder in (".git", "node_modules", "code"):
        (tmp_path / "src" / folder).mkdir(parents=True)
        (tmp_path / "src" / folder / "crane.cpp").write_text(SOURCE, encoding="utf-8")
    given = ["--report", str(tmp_path / "report.md"), "--source", str(tmp_path / "src")]
    imported = viano(tmp_path / "home", "case", "import", "--case-id", "A-1", *given)
    assert "Left out of the source folder: .git, node_modules. An archive that holds .git" in imported.out
    told = viano(tmp_path / "home", "case", "import", "--case-id", "A-2", *given, "--json")
    assert told.document["left_out"] == [".git", "node_modules"]


def test_what_no_tool_reads_is_said_not_examined(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")
    (tmp_path / "diag").mkdir()
    (tmp_path / "diag" / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (tmp_path / "diag" / "state.sql").write_text("CREATE TABLE a(b INT);\nCALL refill();\n", encoding="utf-8")
    given = ["--report", str(tmp_path / "report.md"), "--diagnostics", str(tmp_path / "diag")]
    assert viano(tmp_path / "home", "case", "import", "--case-id", "A-1", *given).status == 0
    run = viano(tmp_path / "home", "run", "A-1", "--json")
    assert run.status == 0, run.err
    said = " ".join(map(str, run.document["not_examined"]))
    assert "read neither as text nor as tables: shot.png" in said
    assert "statements of the dumps that were not applied: 1" in said
    assert viano(tmp_path / "home", "case", "verify", "A-1").status == 0


def test_the_installed_command_answers_like_the_function(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    process = viano_process(home, "case", "show", "A-1", "--json")
    assert process.document == viano(home, "case", "show", "A-1", "--json").document
    assert viano_process(home, "case", "show", "NO-1").error == "case_not_found"


def test_garbage_is_shown_before_it_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    assert viano(home, "case", "gc", "A-1", "--json").document["objects"] == 0
    left = home / "cases" / "A-1" / "objects" / ("a" * 64)
    left.write_bytes(b"left by a dead writer")
    found = viano(home, "case", "gc", "A-1", "--json").document
    assert found == {"case_id": "A-1", "objects": 1, "bytes": 21, "removed": False}
    assert left.exists()
    assert viano(home, "case", "gc", "A-1", "--delete", "--json").document["removed"] is True
    assert not left.exists()


def test_egress_shows_what_would_leave_and_sends_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    with AnalystServer() as server:
        server.configure(home)
        shown = viano(home, "case", "egress", "A-1", "--phase", "interpretation", "--json").document
        (preview,) = shown["previews"]
        assert preview["url"].startswith(server.url("v1"))
        assert "Crane 17 stops after the second lift" in preview["body"]
        assert preview["bytes"] == len(preview["body"].encode())
        assert server.count() == 0
        early = viano(home, "case", "egress", "A-1", "--phase", "diagnosis")
        assert (early.status, early.error) == (3, "phase_missing")
        assert viano(home, "run", "A-1", "--until", "interpretation", "--json").status == 0
        assert server.requests[0].body.decode() == preview["body"]
        done = viano(home, "case", "egress", "A-1", "--phase", "interpretation")
    assert (done.status, done.error) == (2, "no_model_call")


def test_an_import_that_died_half_way_is_shown_and_completed_by_a_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")
    child = os.fork()
    if child == 0:  # dies between the two generations of the import
        store = _Dying(home)
        import_case(store, case_id="A-1", report=tmp_path / "report.md")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    shown = viano(home, "case", "show", "A-1", "--json").document
    assert shown["state"] == "RECEIVED"
    assert "viano run A-1" in shown["interrupted"]
    assert viano(home, "run", "A-1", "--until", "interpretation", "--json").document["state"] != "RECEIVED"
    store_now = CheckpointStore(home)
    events = [checkpoint.event for checkpoint in store_now.latest("A-1").checkpoints]
    assert events.count("case_assembled") == 1


class _Dying(CheckpointStore):
    """A store whose process is killed before its second commit."""

    def commit(self, head: Head, change: Change) -> Head:
        del head, change
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


@pytest.mark.timeout(180)
def test_a_killed_run_is_shown_as_interrupted_and_continues(tmp_path: Path) -> None:
    """A worker killed during a model call once left its case under way for ever."""
    home = tmp_path / "home"
    small_case(home, "A-1")
    with AnalystServer(delay_s=60) as server:
        server.configure(home)
        with started(home, "run", "A-1") as process:
            while not server.asked:
                time.sleep(0.02)
            assert viano(home, "case", "show", "A-1", "--json").document["interrupted"] is None
            process.kill()
        shown = viano(home, "case", "show", "A-1")
        assert "interrupted: the interpretation phase" in shown.out
        assert "viano run A-1" in shown.out
        server.delay_s = 0
        again = viano(home, "run", "A-1", "--until", "interpretation", "--json")
    assert again.status == 0, again.err
    assert viano(home, "case", "show", "A-1", "--json").document["interrupted"] is None
    assert tree(home / "cases" / "A-1" / "tmp") == []
