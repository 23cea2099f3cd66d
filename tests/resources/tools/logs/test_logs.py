# ruff: noqa: E501 - one case a line
"""Logs and configuration: every line searchable, exact, with place and time, honest about what it proves."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from resources.tools.logs.files import TextFile, wide_twin
from resources.tools.logs.templates import mine, shape
from resources.tools.logs.tools import LogTools
from viano_assets.canonical import canonical_json, strict_loads
from viano_assets.evidence.model import Completeness, ToolResult
from viano_assets.evidence.store import EvidenceStore


def tools(
    folder: Path,
    files: dict[str, bytes],
    encodings: dict[str, str] | None = None,
    unread: tuple[str, ...] = (),
) -> LogTools:
    root, twins = folder / "files", folder / "utf8"
    texts = []
    for name, raw in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        encoding = (encodings or {}).get(name, "utf-8")
        if encoding.startswith("utf-16"):
            path = wide_twin(path, encoding, twins, name)
        data = name.endswith(".csv")
        texts.append(
            TextFile(name, path, encoding, data=data, origin=(f"inputs/{name}", "0" * 64), exact=True)
        )
    return LogTools(texts, [root, twins] if twins.is_dir() else [root], unread)


def listing(result: ToolResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.drafts[0].content.split("\n")[1:]]


def excerpts(result: ToolResult) -> list[str]:
    return [d.content for d in result.drafts if d.provenance.kind in {"log", "config"}]


def test_one_bad_byte_does_not_end_the_reading(tmp_path: Path) -> None:
    """A single 0xFF killed a log reader (B17): the line is found, flagged, and offsets stay right."""
    lines = [f"2031-04-01 10:00:{n % 60:02d} tick {n} für".encode() for n in range(999)]
    lines.insert(500, "2031-04-01 10:09:00 Kran überlastet".encode("cp1252"))
    raw = b"\n".join(lines) + b"\n"
    box = tools(tmp_path, {"Server.log": raw})
    found = box.run("log.search", {"pattern": "überlastet", "context": 0})
    (entry,) = listing(found)
    assert (entry["line"], entry["damaged"]) == (501, True)
    assert entry["text"].endswith("Kran überlastet")
    start = found.drafts[1].provenance.byte_start
    assert start is not None
    assert raw[start : start + 35] == lines[500]
    assert len(listing(box.run("log.search", {"pattern": "für", "limit": 200}))) == 200
    assert box.run("log.search", {"pattern": "tick 998 "}).drafts[0].places[0].line_start == 1000


def test_utf16_logs_are_searchable(tmp_path: Path) -> None:
    text = "2031-04-01 10:00:00 Größe\r\n2031-04-01 10:00:01 Ende\r\n"
    box = tools(
        tmp_path,
        {"a.log": b"\xff\xfe" + text.encode("utf-16-le"), "b.log": text.encode("utf-16-be")},
        {"a.log": "utf-16-le", "b.log": "utf-16-be"},
    )
    found = box.run("log.search", {"pattern": "Größe", "context": 1})
    assert [(e["file"], e["line"]) for e in listing(found)] == [("a.log", 1), ("b.log", 1)]
    assert excerpts(found)[0] == "2031-04-01 10:00:00 Größe\n2031-04-01 10:00:01 Ende"


def test_a_match_in_a_line_of_two_megabytes_is_shown_and_called_truncated(tmp_path: Path) -> None:
    """A minified line came back as 649,467 bytes with `truncated: false` (B19)."""
    raw = b"x" * 1_500_000 + b"needle" + b"y" * 500_000
    box = tools(tmp_path, {"one.log": raw})
    found = box.run("log.search", {"pattern": "needle"})
    assert (found.completeness, found.cause) == (Completeness.TRUNCATED, "long_line")
    assert all("needle" in d.content and len(d.content) < 8_192 for d in found.drafts)


def test_decomposed_names_and_text_are_found(tmp_path: Path) -> None:
    """`größe` typed on one system was not found on another, and the answer still said complete (B21)."""
    name, body = (unicodedata.normalize("NFD", text) for text in ("grössen.log", "Größe 7 erreicht\n"))
    box = tools(tmp_path, {name: body.encode()})
    assert listing(box.run("log.search", {"pattern": "Größe"}))[0]["line"] == 1
    assert not box.run("log.window", {"file": "grössen.log"}).empty


def test_tool_output_stays_storable(tmp_path: Path) -> None:
    """NUL and a lone surrogate in a log made a thread unresumable (B18)."""
    raw = b"2031-04-01 10:00:00 a\x00b\n2031-04-01 10:00:01 \xed\xa0\xbd end\n"
    box = tools(tmp_path, {"Server.log": raw})
    store = EvidenceStore()
    store.add(box.run("log.search", {"pattern": "2031"}))
    assert strict_loads(canonical_json([store.shown(r.evidence_id) for r in store.records]))


LOG = b"".join(b"2031-04-01 10:%02d:00 INFO stage %d done\n" % (n, n % 4) for n in range(60))


def test_matches_come_with_exact_lines_and_times(tmp_path: Path) -> None:
    box = tools(tmp_path, {"logs/Server.log": LOG})
    found = box.run("log.search", {"pattern": r"stage [23] done$", "regex": True, "limit": 2, "context": 1})
    assert (found.completeness, found.cause) == (Completeness.TRUNCATED, "limit")
    place = found.drafts[1].provenance
    assert (place.location.path, place.location.line_start, place.location.line_end) == (
        "logs/Server.log",
        2,
        5,
    )
    assert found.drafts[1].content == LOG.decode().split("\n2031-04-01 10:05")[0].split("\n", 1)[1]
    assert place.timestamp == "2031-04-01 10:01:00"


def test_times_bound_a_search(tmp_path: Path) -> None:
    box = tools(tmp_path, {"Server.log": LOG + b"continued without time stage 0 done\n"})
    arguments = {"pattern": "stage 0", "since": "2031-04-01 10:50", "until": "2031-04-01 10:59:59"}
    assert [e["line"] for e in listing(box.run("log.search", arguments))] == [53, 57, 61]
    assert box.run("log.search", {**arguments, "since": "tomorrow"}).cause == "bad_time"


@pytest.mark.parametrize(
    ("files", "arguments", "completeness", "cause"),
    [
        ({"Server.log": LOG}, {"pattern": "never"}, "partial", "line_may_not_be_written"),
        ({"Server.log": LOG[:-1]}, {"pattern": "never"}, "partial", "log_cut"),
        ({"server_tail.log": LOG}, {"pattern": "never"}, "partial", "log_cut"),
        ({"Server.log": b"half a line\n" + LOG}, {"pattern": "never"}, "partial", "log_cut"),
        ({"Server.log": LOG + b"[... 300 lines omitted]\n"}, {"pattern": "never"}, "partial", "log_cut"),
        ({"server.conf": b"a = 1\n"}, {"pattern": "never"}, "complete", None),
        ({"server.conf": b"a = 1\n", "Server.log": LOG}, {"pattern": "never"}, "partial", "line_may_not_be_written"),
        ({"Server.log": LOG}, {"pattern": "stage 3", "since": "2031-04-01 10:08", "until": "2031-04-01 10:10"}, "complete", None),
        ({"Server.log": LOG}, {"pattern": "stage 3", "since": "2031-04-02 10:08", "until": "2031-04-02 10:10"}, "partial", "time_not_covered"),
        ({"Server.log": LOG[:-1]}, {"pattern": "stage 3", "since": "2031-04-01 10:08", "until": "2031-04-01 10:10"}, "partial", "log_cut"),
        ({"Server.log": LOG}, {"pattern": "x", "files": ["nowhere*"]}, "partial", "file_not_shipped"),
        ({"Server.log": LOG}, {"pattern": "(", "regex": True}, "unavailable", "bad_pattern"),
    ],
)  # fmt: skip
def test_a_missing_line_proves_something_only_where_it_would_have_been_written(
    tmp_path: Path, files: dict[str, bytes], arguments: dict[str, Any], completeness: str, cause: str | None
) -> None:
    result = tools(tmp_path, files).run("log.search", arguments)
    assert result.empty
    assert (result.completeness.value, result.cause) == (completeness, cause)
    assert [d.provenance.kind for d in result.drafts] == ["absence"]


def test_a_window_reads_configuration_and_finds_a_time(tmp_path: Path) -> None:
    conf = b"[log]\nLevel = 2\n# note\nMax.Stage = 9\n"
    box = tools(tmp_path, {"conf/server.conf": conf, "Server.log": LOG})
    whole = box.run("log.window", {"file": "server.conf"})
    assert (whole.drafts[0].provenance.kind, whole.drafts[0].content) == (
        "config",
        conf.decode().rstrip("\n"),
    )
    at = box.run("log.window", {"file": "Server.log", "time": "10:30:00", "before": 0, "after": 0})
    assert at.drafts[0].content == "2031-04-01 10:30:00 INFO stage 2 done"
    assert box.run("log.window", {"file": "Server.log", "line": 999}).cause == "out_of_range"


def test_templates_show_the_rare_line_first(tmp_path: Path) -> None:
    odd = b"2031-04-01 11:00:00 WARN handler of 'stage_41' registered twice at 0x7F3A\n"
    box = tools(tmp_path, {"Server.log": LOG + odd})
    first = listing(box.run("log.templates", {}))[0]
    assert first["template"] == "#-#-# #:#:# WARN handler of <text> registered twice at <hex>"
    assert (first["count"], first["first"]) == (1, 61)
    assert listing(box.run("log.templates", {"order": "frequent"}))[0]["count"] == 60


def test_mining_agrees_with_the_shape_of_every_line(tmp_path: Path) -> None:
    lines = [f"{n} unit '{n % 3}' at {n * 7:x}f{n}00aa done" for n in range(300)]
    path = tmp_path / "x.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    found = {
        t.text: t.number for t in mine(TextFile("x", path, "utf-8", data=False, origin=("", ""), exact=True))
    }
    assert set(found) == {shape(line) for line in lines}
    assert sum(found.values()) == 300


def test_several_logs_are_merged_by_time_and_zone(tmp_path: Path) -> None:
    utc = b"2031-04-01T10:00:30Z gate open\n2031-04-01T10:01:30Z gate shut\n"
    east = b"2031-04-01T12:00:45+02:00 crane up\n"
    box = tools(tmp_path, {"a.log": utc, "b.log": east, "Server.log": LOG})
    merged = listing(
        box.run("log.timeline", {"since": "2031-04-01 10:00:00", "until": "2031-04-01 10:01:45"})
    )
    assert [(e["file"], e["line"], e["zone"]) for e in merged] == [
        ("Server.log", 1, False), ("a.log", 1, True), ("b.log", 1, True), ("Server.log", 2, False), ("a.log", 2, True),
    ]  # fmt: skip


def test_an_entity_is_a_whole_word(tmp_path: Path) -> None:
    box = tools(tmp_path, {"Server.log": b"unit 77 up\nunit 777 up\nunit 77 down\n"})
    found = box.run("log.entity", {"id": "77"})
    assert json.loads(found.drafts[0].content.split("\n")[0]) == {"id": "77", "lines": 2, "kinds": 2}
    assert [p.line_start for p in found.drafts[1].places] == [1, 3]
    assert box.run("log.entity", {"id": "7"}).empty


@pytest.mark.parametrize(
    ("conf", "arguments", "verdict"),
    [
        (b"LogLevel = warn\n", {"level": "info"}, "off"),
        (b"LogLevel = warn\n", {"level": "error"}, "on"),
        (b"LogLevel = warn\n", {}, "unknown"),
        (b"LogFilter_Scripts = 1\n", {"topic": "scripts"}, "off"),
        (b"LogFilter_Scripts = 0\n", {"topic": "scripts"}, "on"),
        (b"[Logging]\nscripts = off\n", {"topic": "scripts"}, "off"),
        (b"# LogLevel = warn\n", {"level": "info"}, "unknown"),
        (b"a.log.level: debug\nb.log.level: error\n", {"level": "info"}, "unknown"),
        (b"LogLevel = warn\n", {"pattern": "unit up"}, "written"),
        (b"LogLevel = info\n", {"level": "fatal", "pattern": "not there"}, "on"),
        (b"LogFilter_Unit = 1\n", {"topic": "unit"}, "written"),
        (b"Log.unit = no\n", {"topic": "unit", "level": "debug"}, "unknown"),
        (b"Log.crane = no\nConsole.log.crane = yes\n", {"topic": "crane"}, "unknown"),
    ],
)
def test_would_this_line_have_been_written(
    tmp_path: Path, conf: bytes, arguments: dict[str, Any], verdict: str
) -> None:
    box = tools(tmp_path, {"server.conf": conf, "Server.log": b"10:00:00 unit up\n"})
    result = box.run("log.capability", arguments)
    assert json.loads(result.drafts[0].content.split("\n")[0])["verdict"] == verdict
    expected = Completeness.PARTIAL if verdict == "unknown" else Completeness.COMPLETE
    assert result.completeness is expected
