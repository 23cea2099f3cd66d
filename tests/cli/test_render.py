"""What a person reads at the terminal: words before names, each thing once, no blanks at line ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from viano_assets.case.lifecycle import Lifecycle
from viano_assets.cli.options import counted
from viano_assets.cli.render import STATES, print_case, print_case_list, state_words
from viano_assets.cli.sql import _print_table

LONG = "The queue is never woken when a berth is released, because nothing calls it. " * 3


def view(**changed: Any) -> dict[str, Any]:
    record = {
        "evidence_id": "E1",
        "tool": "source.read",
        "kind": "source",
        "path": "src/berth.cpp",
        "line_start": 11,
        "line_end": 30,
        "symbol": "Berth::release",
        "table": None,
        "key": None,
        "column": None,
        "excerpt": "\n".join(f"line {number}" for number in range(13)),
        "completeness": "complete",
        "cited": True,
    }
    hypothesis = {
        "id": "H1",
        "title": "Code: " + LONG,
        "status": "finished",
        "effective_confidence": "supported",
        "verdict": "supported",
        "reason": LONG,
        "support": ["E1"],
        "against": [],
        "countercheck": None,
    }
    place = {"path": "src/berth.cpp", "symbol": "Berth::release", "line_start": 11, "line_end": 30}
    return {
        "case_id": "CRANE-17",
        "analysis_revision": 1,
        "partition_key": "CRANE-17@r1",
        "state": "FAILED_TO_ANALYZE",
        "overlay": None,
        "diagnosis": {
            "status": "inconclusive",
            "inconclusive_kind": "undecided",
            "confidence": "plausible",
            "requested_confidence": "plausible",
            "root_cause": None,
            "remaining_uncertainty": [LONG],
            "review_actions": [LONG],
            "final_reason": LONG,
        },
        "localisation": {"symbols": [{**place, "basis": "cited"}], "files": [], "rows": []},
        "evidence": [record],
        "hypotheses": [hypothesis],
        "not_examined": ["H1 was never judged by evidence", "db.id was never asked", LONG],
        "spend": {"units": 1, "tokens_in": 0, "tokens_out": 0, "cost": 0.0, "seconds": 0.0},
        "deciding_question": LONG,
        **changed,
    }


def printed(capsys: pytest.CaptureFixture[str], **changed: Any) -> str:
    print_case(view(**changed), home=Path("home"))
    return capsys.readouterr().out


def test_an_open_result_is_called_inconclusive_and_its_state_stands_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = printed(capsys).split("\n")[1]
    assert first.index("inconclusive") < first.index("FAILED_TO_ANALYZE")


def test_a_halt_is_named_first(capsys: pytest.CaptureFixture[str]) -> None:
    overlay = {"kind": "blocked", "message": "no key", "code": "no_credential"}
    text = printed(capsys, state="INVESTIGATING_HYPOTHESES", overlay=overlay)
    assert "blocked, in investigation   INVESTIGATING_HYPOTHESES" in text
    assert "blocked: no key (no_credential)" in text


def test_every_state_has_words() -> None:
    assert {state.value for state in Lifecycle} <= set(STATES)
    assert state_words("SOMETHING_NEW") == "something new"


def test_no_line_ends_in_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys).splitlines()
    assert any(line.startswith("    ") for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


def test_wrapped_lines_stand_under_their_bullet(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys).splitlines()
    number = next(n for n, line in enumerate(lines) if line.startswith("  • The queue"))
    assert lines[number + 1].startswith("    ")
    assert " ".join(line.strip(" •") for line in lines[number : number + 3]).startswith(LONG.strip()[:150])


def test_verdict_and_confidence_are_said_once_when_equal(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert "supported, supported" not in text
    assert text.count("supported") == 1


def test_one_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert "1 investigation unit," in text
    assert "… 1 more line\n" in text
    assert counted(1, "row", "rows") == "1 row"
    assert counted(0, "row", "rows") == "0 rows"


def test_one_row_of_an_answer_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    _print_table(["n"], [[1]])
    assert capsys.readouterr().out.splitlines()[-1] == "1 row"


def test_places_name_the_evidence_that_stands_there(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert "Where to look first (a ranking, not a claim)" in text
    assert "symbol  src/berth.cpp:11-30  Berth::release  cited  E1" in text


def test_limits_agree_with_the_final_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert "never judged by evidence" not in text
    assert "the final evaluation cites E1" in text
    assert "tools never asked: db.id" in text


def test_a_list_of_cases_says_states_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"case_id": "A-1", "state": "FAILED_TO_ANALYZE", "routing": "review"},
        {"case_id": "B-2", "state": "OUTPUT_READY", "overlay": None},
        {"case_id": "C-3", "state": "INTERPRETING", "overlay": "deferred"},
        {"case_id": "D-4", "state": "DAMAGED"},
    ]
    print_case_list(rows, Path("home"))
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if "-" in line}
    for name, words in (
        ("A-1", "inconclusive"),
        ("B-2", "finished"),
        ("C-3", "deferred, in interpretation"),
        ("D-4", "damaged"),
    ):
        assert words in lines[name]
    assert lines["A-1"].rstrip().endswith("FAILED_TO_ANALYZE")
