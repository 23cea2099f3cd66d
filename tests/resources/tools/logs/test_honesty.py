# ruff: noqa: E501 - one case a line
"""What logs hide: other encodings, zeros of a crash, files that are no text, clocks that turn back."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resources.tools.logs.capability import level_of
from resources.tools.logs.files import TextFile
from resources.tools.logs.ranges import between, bounds_of, covers, first_at, sampled
from resources.tools.logs.times import parse, parse_bound
from resources.tools.registry import ToolBoxFactory
from tests.resources.tools.logs.test_logs import LOG, excerpts, listing, tools
from viano_assets.case.intake import import_case
from viano_assets.evidence.model import Completeness
from viano_assets.package.store import CheckpointStore

LATIN = "2031-04-01 10:00:00 Größe 7\n2031-04-01 10:00:01 für GRÖSSE 8\n".encode("cp1252")


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"pattern": "Gr.{1,2}e", "regex": True}, [1]),
        ({"pattern": "Gr[öo]ße", "regex": True}, [1]),
        ({"pattern": "GRÖßE", "ignore_case": True}, [1]),
        ({"pattern": "größe|grösse", "regex": True, "ignore_case": True}, [1, 2]),
        ({"pattern": r"f\w+r", "regex": True}, [2]),
    ],
)
@pytest.mark.parametrize("rest", [b"", "2031-04-01 10:00:02 Brücke\n".encode() * 9])
def test_patterns_meet_the_letters_of_windows_1252(
    tmp_path: Path, asked: dict[str, Any], lines: list[int], rest: bytes
) -> None:
    box = tools(tmp_path, {"a.log": LATIN + rest, "b.log": b"nothing\n"}, {} if rest else {"a.log": "cp1252"})
    found = box.run("log.search", {**asked, "context": 0})
    assert [(entry["file"], entry["line"]) for entry in listing(found)] == [("a.log", n) for n in lines]
    assert "Größe 7" in excerpts(found)[0] or lines == [2]


def test_the_zeros_of_a_crash_hide_nothing(tmp_path: Path) -> None:
    raw = b"2031-04-01 10:00:00 gate up\n" + b"\0" * 4096 + b"2031-04-01 10:00:05 gate down\n" + b"\0" * 64
    box = tools(tmp_path, {"Server.log": raw})
    assert listing(box.run("log.search", {"pattern": "gate down"}))[0]["line"] == 2
    merged = box.run("log.timeline", {"since": "2031-04-01 10:00:03", "until": "2031-04-01 10:00:09"})
    assert [entry["line"] for entry in listing(merged)] == [2]
    assert box.run("log.search", {"pattern": "never"}).cause == "log_cut"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("log.search", {"pattern": "x", "files": ["*.sqlite"]}),
        ("log.search", {"pattern": "x", "files": ["state.sqlite"]}),
        ("log.window", {"file": "db/state.sqlite"}),
        ("log.window", {"file": "state.sqlite", "line": 3}),
        ("log.templates", {"file": "state.sqlite"}),
        ("log.timeline", {"since": "10:00", "until": "11:00", "files": ["db/*"]}),
        ("log.entity", {"id": "x", "files": ["db/*"]}),
        ("log.capability", {"file": "state.sqlite"}),
    ],
)
def test_a_file_that_is_no_text_is_not_called_missing(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    box = tools(tmp_path, {"Server.log": LOG}, unread=("db/state.sqlite", "Server.log"))
    result = box.run(tool, arguments)
    assert (result.empty, result.completeness, result.cause) == (
        True,
        Completeness.UNAVAILABLE,
        "file_not_read",
    )
    assert "shipped, but not readable as text: db/state.sqlite" in result.drafts[0].content


def test_an_empty_look_beside_an_unread_log_is_partial(tmp_path: Path) -> None:
    files = {"server.conf": b"a = 1\n"}
    assert (
        tools(tmp_path, files, unread=("logo.png",)).run("log.search", {"pattern": "x"}).completeness
        is Completeness.COMPLETE
    )
    result = tools(tmp_path, files, unread=("logs/Server.log",)).run("log.search", {"pattern": "x"})
    assert (result.completeness, result.cause) == (Completeness.PARTIAL, "file_not_read")
    assert result.scope["not_read"] == ["logs/Server.log"]


def test_a_log_too_large_to_be_searched_is_no_absence(tmp_path: Path) -> None:
    box = tools(tmp_path, {"server.conf": b"needle = 1\n"})
    with (tmp_path / "files" / "server.conf").open("r+b") as stream:
        stream.truncate((512 << 20) + 1)
    result = box.run("log.search", {"pattern": "needle"})
    assert (result.empty, result.cause) == (True, "file_too_large")
    assert result.completeness is not Completeness.COMPLETE


def test_members_of_a_case_that_are_no_text_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "diagnostics"
    folder.mkdir()
    (folder / "Server.log").write_bytes(b"2031-04-01 10:00:00 up\n\0\n" + b"2031-04-01 10:00:01 down\n" * 400)
    (folder / "dump.bin").write_bytes(bytes(range(32)) * 40)
    (tmp_path / "r.md").write_text("# It stops\nNothing happens.\n", encoding="utf-8")
    store = CheckpointStore(tmp_path / "home")
    head = import_case(store, case_id="ZEROS", report=tmp_path / "r.md", diagnostics=folder)
    box = ToolBoxFactory(tmp_path / "cache").open(store, head)
    result = box.run("log.search", {"pattern": "x", "files": ["dump.bin"]})
    assert (result.cause, result.completeness) == ("file_not_read", Completeness.UNAVAILABLE)
    assert not box.run("log.search", {"pattern": "down", "files": ["Server.log"]}).empty


ROLL = b"".join(b"Dec 31 23:59:%02d host s: stage %d done\n" % (n, n) for n in range(50, 60))
ROLL += b"".join(b"Jan  1 00:00:%02d host s: stage %d done\n" % (n, n) for n in range(30))
BACK = b"2031-10-26 02:59:59 npc 17\n2031-10-26 02:00:01 npc 18\n2031-10-26 02:30:00 npc 19\n2031-10-26 03:00:00 npc 20\n"
CLOCK = b"23:59:58 one\n23:59:59 two\n00:00:01 three\n00:00:02 four\n"


@pytest.mark.parametrize(
    ("raw", "since", "until", "lines"),
    [
        (ROLL, "2030-12-31 23:59:00", "2031-01-01 00:01:00", list(range(1, 41))),
        (ROLL, "2030-12-31 23:59:58", "2031-01-01 00:00:01", [9, 10, 11, 12]),
        (ROLL, "Dec 31 23:59:58", "Jan 1 00:00:01", [9, 10, 11, 12]),
        (ROLL, "2030-12-31 23:59:58", "Jan 1 00:00:01", [9, 10, 11, 12]),
        (ROLL, "2030-06-01 00:00:00", "2031-06-01 00:00:00", list(range(1, 41))),
        (ROLL, "2031-02-01 00:00:00", "2031-03-01 00:00:00", []),
        (BACK, "2031-10-26 02:00:00", "2031-10-26 02:10:00", [2]),
        (BACK, "2031-10-26 02:00:00", "2031-10-26 03:00:00", [2, 3, 1, 4]),
        (CLOCK, "23:59:59", "00:00:01", [2, 3]),
        (CLOCK, "2031-04-01 23:59:59", "2031-04-02 00:00:01", [2, 3]),
        (CLOCK, "00:00:01", "00:00:02", [3, 4]),
        (b"Feb 29 10:00:00 leap\n", "2032-02-29 09:00:00", "2032-02-29 11:00:00", [1]),
        (b"Feb 29 10:00:00 leap\n", "2031-02-28 09:00:00", "2031-03-01 11:00:00", []),
        (b"1932868800123 a\n1932868801456 b\n", "2031-04-02 04:00:01", "2031-04-02 04:00:02", [2]),
    ],
)
def test_a_range_reaches_over_new_year_midnight_and_a_clock_set_back(
    tmp_path: Path, raw: bytes, since: str, until: str, lines: list[int]
) -> None:
    box = tools(tmp_path, {"a.log": raw})
    merged = box.run("log.timeline", {"since": since, "until": until})
    assert [e["line"] for e in listing(merged)] == lines if lines else merged.empty
    for number in lines:
        hits = listing(
            box.run(
                "log.search", {"pattern": ".", "regex": True, "since": since, "until": until, "limit": 200}
            )
        )
        assert number in [e["line"] for e in hits]
    named = merged.scope.get("undated")
    assert named == (["a.log"] if raw[:4] in {b"Dec ", b"Feb ", b"23:5"} and since[:2] == "20" else None)
    if raw is BACK and len(lines) > 1:
        head = json.loads(merged.drafts[0].content.split("\n")[0])
        assert head["clock_runs_back"] == [{"file": "a.log", "line": 2}]


def test_a_window_over_new_year_finds_its_time(tmp_path: Path) -> None:
    box = tools(tmp_path, {"a.log": ROLL})
    asked = {"file": "a.log", "time": "2031-01-01 00:00:05", "before": 0, "after": 0}
    assert box.run("log.window", asked).drafts[0].content.startswith("Jan  1 00:00:05")


def test_a_large_log_is_read_where_the_range_lies_and_whole_when_its_clock_turns_back(tmp_path: Path) -> None:
    begin = datetime(2031, 4, 1, 10)  # noqa: DTZ001 - the clock of a log
    stamped = [f"{begin + timedelta(seconds=n)} {'x' * 80}\n" for n in range(60_000)]
    late = "".join(stamped[:50_000]) + "2031-04-01 09:00:00 set back\n" * 5000 + "".join(stamped[50_000:])
    for text, expected in (("".join(stamped), 11), (late, 5011)):
        path = tmp_path / "big.log"
        path.write_text(text, encoding="utf-8")
        file = TextFile("big.log", path, "utf-8", data=False, origin=("", ""), exact=True)
        bounds = bounds_of("2031-04-01 09:00:00", "2031-04-01 10:00:10")
        assert not isinstance(bounds, str)
        assert len(between(file, bounds)) == expected
        bound = parse_bound("2031-04-02 02:00:00")
        assert bound is not None
        at = first_at(file, bound)
        assert at is not None
        stamp = parse(file.text(at, at)[0])
        assert stamp is not None
        assert stamp.at >= bound.at
        assert sampled(file, bounds) == (text is not late)


@pytest.mark.parametrize(
    ("raw", "since", "until", "covered"),
    [
        (LOG, "2031-04-01 10:01", "2031-04-01 10:50", True),
        (LOG, "10:01:00", "10:50:00", True),
        (LOG, "Apr 1 10:01:00", "Apr 1 10:50:00", True),
        (ROLL, "Dec 31 23:59:55", "Jan 1 00:00:10", True),
        (ROLL, "2030-12-31 23:59:55", "2031-01-01 00:00:10", False),
        (CLOCK, "2031-04-01 23:59:59", "2031-04-02 00:00:01", False),
        (LOG, "2031-04-01 09:01", "2031-04-01 10:50", False),
    ],
)
def test_a_log_covers_only_what_it_surely_reaches_over(
    tmp_path: Path, raw: bytes, since: str, until: str, *, covered: bool
) -> None:
    (tmp_path / "a.log").write_bytes(raw)
    file = TextFile("a.log", tmp_path / "a.log", "utf-8", data=False, origin=("", ""), exact=True)
    bounds = bounds_of(since, until)
    assert not isinstance(bounds, str)
    assert covers(file, bounds) is covered


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2031-04-01 10:00:00 INFO entering debug mode", "info"),
        ("2031-04-01 10:00:00 entering debug mode", None),
        ("2031-04-01 10:00:00 debug: gate up", "debug"),
        ("2031-04-01 10:00:00 [Debug] gate up", "debug"),
        ("2031-04-01 10:00:00.123 [main] WARN yard.Gate - error in gate", "warn"),
        ("[2031-04-01 10:00:00] <error> gate", "error"),
        ('{"time": "x", "level": "debug", "msg": "no error"}', "debug"),
        ("level=trace msg=x", "trace"),
        ("ERROR gate stuck", "error"),
        ("the word ERROR stands far behind in this line of ERROR", "error"),
        ("a gate had an error", None),
    ],
)
def test_a_level_is_read_where_a_level_stands(line: str, level: str | None) -> None:
    assert level_of(line) == level


def test_a_message_about_debugging_is_no_debug_line(tmp_path: Path) -> None:
    box = tools(tmp_path, {"Server.log": LOG + b"2031-04-01 11:20:00 INFO entering debug mode\n"})
    first = json.loads(box.run("log.capability", {"level": "debug"}).drafts[0].content.split("\n")[0])
    assert first["verdict"] == "unknown"
    info = json.loads(box.run("log.capability", {"level": "info"}).drafts[0].content.split("\n")[0])
    assert info["verdict"] == "written"


def test_lines_about_a_topic_outweigh_a_setting_that_turns_it_off(tmp_path: Path) -> None:
    files = {"Server.log": LOG, "l.conf": b"Logger.stage = 1,Console\nLog.File.stage=no\n"}
    first = json.loads(
        tools(tmp_path, files).run("log.capability", {"topic": "stage"}).drafts[0].content.split("\n")[0]
    )
    assert first["verdict"] == "written"
    assert "60 lines" in first["reasons"][0]
