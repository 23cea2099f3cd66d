"""A home that cannot be written: two lines that say so, and everything that was there stays readable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import tree, viano, viano_without_rights
from tests.support.graph import small_case
from viano_assets.package.model import Change, Overlay
from viano_assets.package.store import CheckpointStore

CASE, FRESH = "A-1", "B-2"


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with a blocked and a fresh case."""
    folder = tmp_path_factory.mktemp("read-only") / "home"
    for case_id in (CASE, FRESH):
        small_case(folder, case_id)
    store = CheckpointStore(folder)
    overlay = Overlay("blocked", "interpretation", "wrong_key", "the provider refused the key")
    store.commit(store.latest(CASE), Change("interpretation_blocked", overlay=overlay))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["case", "resume", CASE],
        ["case", "reopen", CASE, "--comment", "more"],
        ["case", "gc", CASE],
        ["run", FRESH],
        ["demo"],
        ["index", "rebuild"],
        ["sync"],
        ["ui", "--port", "39417"],
    ],
    ids=" ".join,
)
def test_a_command_that_writes_is_refused_in_two_lines(home: Path, command: list[str]) -> None:
    before = tree(home)
    head = CheckpointStore(home).latest(CASE)
    with _read_only(home):
        answer = viano_without_rights(home, *command)
    assert answer.status == 1, answer
    assert answer.refusal == "storage_denied"
    assert tree(home) == before
    assert CheckpointStore(home).latest(CASE).record_sha256 == head.record_sha256


@pytest.mark.parametrize("command", [["case", "show", CASE], ["case", "list"], ["case", "verify", CASE]])
def test_what_is_there_stays_readable(home: Path, command: list[str]) -> None:
    with _read_only(home):
        answer = viano_without_rights(home, *command, "--json")
    assert answer.status == 0, answer.err
    assert answer.document


def test_the_doctor_names_the_home(home: Path) -> None:
    with _read_only(home):
        answer = viano_without_rights(home, "doctor", "--json")
    assert answer.status == 1
    assert answer.err == ""
    (found,) = [check for check in answer.document["checks"] if check["name"] == "home"]
    assert found["state"] == "failed"
    assert "Permission denied" in found["detail"]
    assert found["remedy"]


def test_a_report_file_that_cannot_be_written_costs_no_diagnosis(tmp_path: Path) -> None:
    """The refused copy once ended the run as a defect before a word of the diagnosis was printed."""
    home = tmp_path / "home"
    small_case(home, CASE)
    (home / "reports").mkdir()
    with _read_only(home / "reports"):
        answer = viano_without_rights(home, "run", CASE)
    assert answer.status == 1
    last = answer.err.splitlines()[-2:]
    assert last[0].startswith("error[report_not_written]: ")
    assert f"viano case show {CASE}" in last[1]
    assert "Diagnosis" in answer.out
    assert tree(home / "reports") == []
    assert viano(home, "run", CASE).status == 0
    assert tree(home / "reports") == [f"{CASE}-r1.html"]
