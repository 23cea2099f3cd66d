"""No tool answer, table, index or cached text holds a planted secret, whatever the layout it came in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from resources.tools.registry import ToolBoxFactory
from viano_assets.canonical import canonical_json
from viano_assets.case.intake import import_case
from viano_assets.package.store import CheckpointStore

_FILES = {
    "one-line.sql": (
        "CREATE TABLE entry (id INT PRIMARY KEY, password VARCHAR(80));\n"
        "INSERT INTO entry VALUES (1,'LeakC1');\n"
    ),
    "settings.sql": (
        "CREATE TABLE settings (name TEXT, value TEXT);\n"
        "INSERT INTO settings VALUES ('smtp_password','LeakSmtp4455'),('rate','4');\n"
    ),
    "options.csv": "key,value\nsmtp_password,LeakCsv\nrate,4\n",
    "server.conf": "password=LeakConf&3xyz\ndb = Server=a;Password=abc;LeakTail3;Database=b\n",
    "2031-04-01T10:00:00.log": (
        "2031-04-01 10:00:00 INFO passwd: LeakTail6,LeakTail7\n"
        "2031-04-01 10:00:01 INFO AKIAABCDEFGHIJKLMNOP secret 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\n"
        "2031-04-01 10:00:02 INFO row ('token','LeakRow5566') stored\n"
    ),
}


def _inputs(folder: Path) -> tuple[Path, Path]:
    diagnostics = folder / "diagnostics"
    diagnostics.mkdir()
    for name, text in _FILES.items():
        (diagnostics / name).write_text(text)
    with closing(sqlite3.connect(diagnostics / "app.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE conf (id INT, key TEXT, value);"
            "INSERT INTO conf VALUES (1,'api_key','LeakLite1'),(2,'rate','4'),(3,'token',X'4C65616B');"
            "CREATE TABLE login (id INT, password BLOB); INSERT INTO login VALUES (1, X'4C65616B');"
        )
    report = folder / "report.md"
    report.write_text("# Login stops\n\nThe login stops. I used password=LeakReport,1x there.\n")
    return report, diagnostics


def test_no_canary_reaches_a_tool_a_table_or_the_cache(tmp_path: Path) -> None:
    report, diagnostics = _inputs(tmp_path)
    store = CheckpointStore(tmp_path / "home")
    head = import_case(store, case_id="LEAK", report=report, diagnostics=diagnostics)
    assert b"Leak" not in store.read(head, "case/0001/case.json")
    cache = tmp_path / "cache"
    box = ToolBoxFactory(cache).open(store, head)
    answers = [box.run("db.schema", {})]
    answers += [
        box.run("db.rows", {"table": name}) for name in ("entry", "settings", "options", "conf", "login")
    ]
    rows = b"".join(canonical_json(answer.model_dump(mode="json")) for answer in answers)
    assert rows.count(b"REDACTED_SECRET_") >= 6
    assert b'"rate"' in rows
    logs = canonical_json(box.run("log.search", {"pattern": "INFO"}).model_dump(mode="json"))
    assert b"2031-04-01T10:00:00.log" in logs
    for data in (rows, logs, canonical_json(box.overview())):
        assert b"Leak" not in data
        assert b"4C65616B" not in data
    kept = [path for path in cache.rglob("*") if path.is_file() and path.name != "app.sqlite"]
    assert [path for path in kept if b"Leak" in path.read_bytes()] == []
    assert any(path.suffix == ".duckdb" for path in kept)
