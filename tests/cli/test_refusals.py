"""Bad input: a two-line error with a code and a remedy, the promised exit status, nothing left behind."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import tree, viano, viano_process
from tests.support.graph import REPORT, small_case
from tests.support.model_server import ModelServer, fails
from viano_assets.package.store import CheckpointStore


def _broken_zip(folder: Path) -> Path:
    path = folder / "broken.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.log", "line\n" * 10_000)
    path.write_bytes(path.read_bytes()[:-200])
    return path


def _empty(folder: Path) -> Path:
    (folder / "empty.md").write_bytes(b"")
    return folder / "empty.md"


def _report(folder: Path) -> Path:
    (folder / "report.md").write_text(REPORT, encoding="utf-8")
    return folder / "report.md"


Inputs = Callable[[Path], list[str]]

FORMS = {"text": [], "json": ["--json"]}

IMPORTS: dict[str, tuple[Inputs, str]] = {
    "missing report": (lambda f: ["--case-id", "A-1", "--report", str(f / "no.md")], "missing_input"),
    "missing source": (
        lambda f: ["--case-id", "A-1", "--report", str(_report(f)), "--source", str(f / "no")],
        "missing_input",
    ),
    "missing diagnostics": (
        lambda f: ["--case-id", "A-1", "--report", str(_report(f)), "--diagnostics", str(f / "no.zip")],
        "missing_input",
    ),
    "empty report": (lambda f: ["--case-id", "A-1", "--report", str(_empty(f))], "empty_report"),
    "broken archive": (
        lambda f: ["--case-id", "A-1", "--report", str(_report(f)), "--diagnostics", str(_broken_zip(f))],
        "archive_truncated",
    ),
    "case id with a slash": (
        lambda f: ["--case-id", "BUG/17", "--report", str(_report(f))],
        "invalid_case_id",
    ),
    "case id that leaves the home": (
        lambda f: ["--case-id", "../x", "--report", str(_report(f))],
        "invalid_case_id",
    ),
    "absolute path as case id": (
        lambda f: ["--case-id", str(_report(f)), "--report", str(_report(f))],
        "invalid_case_id",
    ),
    "no report named": (lambda _: ["--case-id", "A-1"], "usage"),
    "unknown option": (lambda _: ["--colour", "red"], "usage"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", IMPORTS)
def test_a_bad_import_is_refused_and_leaves_nothing(tmp_path: Path, name: str, form: str) -> None:
    arguments, code = IMPORTS[name]
    inputs, home = tmp_path / "inputs", tmp_path / "home"
    inputs.mkdir()
    given = arguments(inputs)
    before = {path: (inputs / path).read_bytes() for path in tree(inputs)}
    answer = viano(home, "case", "import", *given, *FORMS[form])
    assert answer.status == 2
    assert answer.out == ""
    assert answer.refusal == code
    assert {path: (inputs / path).read_bytes() for path in tree(inputs)} == before
    assert set(tree(home)) <= {"cases", "cases/.lock"}
    assert tree(tmp_path / "x") == []


def test_a_second_case_of_the_same_name_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    (tmp_path / "other.md").write_text(REPORT, encoding="utf-8")
    before = tree(home)
    answer = viano(home, "case", "import", "--case-id", "a-1", "--report", str(tmp_path / "other.md"))
    assert (answer.status, answer.error) == (2, "case_exists")
    assert tree(home) == before


@pytest.mark.parametrize("command", [["run"], ["case", "show"], ["case", "verify"], ["case", "export"]])
def test_an_unknown_case_is_refused(tmp_path: Path, command: list[str]) -> None:
    answer = viano(tmp_path / "home", *command, "NO-1", "--json")
    assert (answer.status, answer.error, answer.out) == (2, "case_not_found", "")


@pytest.mark.parametrize("form", FORMS)
def test_an_unknown_provider_is_refused_before_anything_happens(tmp_path: Path, form: str) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    before = tree(home)
    answer = viano(home, "run", "A-1", "--provider", "nobody", *FORMS[form])
    assert (answer.status, answer.error, answer.out) == (2, "unknown_provider", "")
    assert tree(home) == before
    assert CheckpointStore(home).latest("A-1").generation == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_key_blocks_with_two_lines_and_without_the_key(tmp_path: Path, form: str) -> None:
    home, key = tmp_path / "home", "sk-wrong-0f3c9a7712"
    small_case(home, "A-1")
    body = f'{{"error": {{"message": "Incorrect API key provided: {key}"}}}}'.encode()
    with ModelServer({"v1": fails(401, body)}) as server:
        (home / "config").mkdir()
        (home / "config" / "llm.local.toml").write_text(
            f'default_profile = "local"\n[providers.local]\ntype = "openai_compatible"\nmodel = "m"\n'
            f'base_url = "{server.url("v1")}"\napi_key_env = "WRONG_KEY"\nallow_loopback = true\n'
        )
        answer = viano_process(home, "run", "A-1", *FORMS[form], WRONG_KEY=key)
        assert server.count() == 1
    assert answer.status == 3
    assert answer.refusal
    assert key not in answer.out + answer.err
    overlay = CheckpointStore(home).latest("A-1").manifest.overlay
    assert overlay is not None
    assert overlay.kind == "blocked"
    assert form == "text" or answer.document["overlay"]["kind"] == "blocked"
    assert not [path for path in home.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def test_a_busy_case_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    with CheckpointStore(home).lock("A-1"):
        answer = viano(home, "run", "A-1")
    assert (answer.status, answer.error) == (3, "case_busy")


def test_a_damaged_package_is_told_from_bad_input(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    path = home / "cases" / "A-1" / "gens" / "g00000002.zip"
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    answer = viano(home, "case", "show", "A-1", "--json")
    assert (answer.status, answer.out) == (1, "")
    assert answer.error
    listed = viano(home, "case", "list", "--json")
    assert listed.document["cases"][0]["state"] == "DAMAGED"
