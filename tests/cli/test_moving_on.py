"""The commands that hints print lead on: after a wrong key, to another provider, after a signal."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.support.analyst_server import PROVIDER, AnalystServer
from tests.support.commands import Answer, started, viano, viano_process
from tests.support.graph import small_case
from viano_assets.package.store import CheckpointStore

KEYED = f"""[providers.remote]
api_key_env = "CASE_KEY"
{PROVIDER}"""


def follow(text: str, **environment: str) -> list[Answer]:
    """Carry out the commands of a hint exactly as they are printed, until one fails."""
    found = re.search(r"viano (?:case|run) .*", text)
    assert found is not None, text
    answers: list[Answer] = []
    for command in found[0].split(" && "):
        program, *arguments = shlex.split(command)
        assert program == "viano"
        answers.append(viano_process(Path("/nonexistent/home"), *arguments, **environment))
        if answers[-1].status:
            break
    return answers


def keyed(home: Path, url: str) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "llm.local.toml").write_text(KEYED.format(url=url), encoding="utf-8")


@pytest.mark.parametrize("shown_by", ["run", "show", "resume", "run after resume"])
def test_after_a_wrong_key_the_printed_commands_lead_to_a_finished_case(
    tmp_path: Path, shown_by: str
) -> None:
    """A right key is no other configuration, so that resuming alone showed the old refusal for ever."""
    home = tmp_path / "the home"
    small_case(home, "A-1")
    with AnalystServer(delay_s=0, refusals=[(401, {})]) as server:
        keyed(home, server.url("v1"))
        told = viano_process(home, "run", "A-1", "--provider", "remote", CASE_KEY="wrong")
        assert (told.status, server.count()) == (3, 1)
        said = told.err
        if shown_by == "show":
            said = viano(home, "case", "show", "A-1").out.splitlines()[-1]
        elif shown_by == "run after resume":
            assert viano(home, "case", "resume", "A-1").status == 0
            again = viano_process(home, "run", "A-1", "--provider", "remote", CASE_KEY="right")
            assert again.status == 3
            assert "nothing was sent" in again.err
            said = again.err
        elif shown_by == "resume":
            said = viano(home, "case", "resume", "A-1").out
        assert server.count() == 1
        run = follow(said, CASE_KEY="right")[-1]
        assert run.status == 0, run.err
        assert server.count() > 1
    assert CheckpointStore(home).latest("A-1").pointer("diagnosis") is not None
    assert {
        answer["provider"] for answer in viano(home, "case", "show", "A-1", "--json").document["answered_by"]
    } == {"remote"}


def test_a_second_wrong_key_gets_another_retry_id(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    with AnalystServer(delay_s=0, refusals=[(401, {}), (401, {})]) as server:
        keyed(home, server.url("v1"))
        first = viano_process(home, "run", "A-1", "--provider", "remote", CASE_KEY="wrong")
        assert "--retry-id retry-1" in first.err
        second = follow(first.err, CASE_KEY="also-wrong")[-1]
        assert (second.status, server.count()) == (3, 2)
        assert "--retry-id retry-2" in second.err


def test_a_case_that_another_provider_finished_says_so_and_how_to_ask_this_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    with AnalystServer(delay_s=0) as server:
        keyed(home, server.url("v1"))
        plain = viano(home, "run", "A-1", "--json").document
        assert (plain["replayed"], plain["note"]) == (False, None)
        assert [answer["provider"] for answer in plain["answered_by"]] == ["offline"]
        replay = viano_process(home, "run", "A-1", "--provider", "remote", "--json", CASE_KEY="k")
        assert replay.status == 0
        assert replay.document["replayed"] is True
        assert replay.document["answered_by"] == plain["answered_by"]
        assert replay.document["note"] in replay.err
        text = viano_process(home, "run", "A-1", "--provider", "remote", CASE_KEY="k")
        assert "Answered by offline; replayed, nothing was asked." in text.out
        assert "remote was not asked" in text.err
        assert server.count() == 0
        reopened, run = follow(text.err, CASE_KEY="k")
        assert (reopened.status, run.status) == (0, 0), run.err
        assert "Answered by remote." in run.out
        assert server.count() > 0
    old = viano(home, "case", "show", "A-1", "--revision", "1", "--json").document
    assert old["answered_by"] == plain["answered_by"]


def test_reopening_without_anything_new_names_the_way(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    refused = viano(home, "case", "reopen", "A-1")
    assert (refused.status, refused.error) == (2, "nothing_new")
    assert "viano case reopen A-1 --again" in refused.err
    again = viano(home, "case", "reopen", "A-1", "--again", "--json")
    assert again.document["analysis_revision"] == 2


def test_the_home_may_stand_before_the_command(tmp_path: Path) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    small_case(here, "A-1")
    before = viano_process(other, "--home", str(here), "--json", "case", "list")
    assert [row["case_id"] for row in before.document["cases"]] == ["A-1"]
    after = viano_process(other, "--home", str(other), "case", "list", "--home", str(here), "--json")
    assert after.document == before.document


def test_the_doctor_refuses_an_unknown_provider_as_every_command_does(tmp_path: Path) -> None:
    answer = viano(tmp_path, "doctor", "--provider", "nobody")
    assert (answer.status, answer.error) == (2, "unknown_provider")


def test_the_doctor_counts_in_words(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "llm.local.toml").write_text("nothing = 1\n", encoding="utf-8")
    answer = viano(tmp_path, "doctor")
    assert (answer.status, answer.out.splitlines()[-1]) == (1, "1 thing needs attention.")


def test_egress_says_for_whom_and_how_to_name_another(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    keyed(home, "http://127.0.0.1:9/v1")
    shown = viano(home, "case", "egress", "A-1", "--phase", "interpretation")
    assert "profile offline (the configured default; --provider NAME shows another: remote)" in shown.out
    named = viano(
        home, "case", "egress", "A-1", "--phase", "interpretation", "--provider", "remote", "--json"
    )
    assert named.document["profile"] == "remote"
    assert viano(home, "run", "A-1").status == 0
    done = viano(home, "case", "egress", "A-1", "--phase", "interpretation")
    assert (done.status, done.error) == (2, "no_model_call")
    assert "answered by offline" in done.err
    assert "viano case reopen A-1" in done.err
    assert "--provider NAME" in done.err


SCRIPT = """
import signal
from viano_assets.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
HEARING = (sys.executable, "-c", SCRIPT)
"""The command as from a terminal: in the background of a shell it would inherit that SIGINT is ignored."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_a_run_between_two_dispatches(tmp_path: Path, number: signal.Signals) -> None:
    """The offline analyst never suspends, so that a signal was heard when everything was done."""
    home, whole = tmp_path / "home", tmp_path / "whole"
    small_case(home, "A-1")
    shutil.copytree(home, whole)
    with started(home, "run", "A-1", command=HEARING) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(number)
        out, err = process.communicate()
    head = CheckpointStore(home).latest("A-1")
    assert (process.returncode, out) == (3, ""), first + err
    assert "error[interrupted]" in err
    assert "nothing published is lost" in err
    assert head.pointer("diagnosis") is None
    assert viano_process(home, "run", "A-1").status == 0
    assert viano_process(whole, "run", "A-1").status == 0
    assert results(home) == results(whole)
    assert any(path.endswith("diagnosis_result.md") for path in results(home))


def results(home: Path) -> dict[str, str]:
    """Return the hashes of every answer, report and input; JSON artifacts bind records that hold times."""
    head = CheckpointStore(home).latest("A-1")
    return {path: entry.sha256 for path, entry in head.files.items() if not path.endswith(".json")}
