"""Numbers stay numbers: wider types instead of text, and comparisons that say what they could not compare."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from resources.tools.database.snapshot import Snapshot
from resources.tools.database.tools import DatabaseTools
from tests.support.snapshots import snapshot_of
from viano_assets.evidence.model import Completeness, ToolResult

NUMBERS = """CREATE TABLE n (id int PRIMARY KEY, u int unsigned, big int, huge bigint unsigned, part int,
mixed int, price decimal(5,2), flag tinyint(1), free varchar(20), ok boolean) ENGINE=InnoDB;
INSERT INTO n VALUES (1,7,5,1,2,9,1.50,1,'9',TRUE),(2,8,6,2,3,10,2.25,0,'10','f');
INSERT INTO n VALUES (3,-24,5000000000,-1,2.5,'many',123456.125,true,'x',FALSE),
(4,9,7,36893488147419103232,4,100,3.00,false,'2031-04-01','t');
"""


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("numbers")
    lite = sqlite3.connect(folder / "events.db")
    lite.execute("CREATE TABLE ev (id INTEGER PRIMARY KEY, ts INTEGER, m INTEGER)")
    lite.executemany(
        "INSERT INTO ev VALUES (?,?,?)", [(i, 1704067200000 + i, i or "none") for i in range(12)]
    )
    lite.commit()
    lite.close()
    return snapshot_of(folder, {"n.sql": NUMBERS, "events.db": (folder / "events.db").read_bytes()})


def ask(snapshot: Snapshot, table: str, column: str, op: str, value: object) -> ToolResult:
    arguments = {"table": table, "where": [{"column": column, "op": op, "value": value}], "limit": 20}
    return DatabaseTools(snapshot, None, None).run("db.rows", arguments)


def ids(result: ToolResult) -> list[Any]:
    return [] if result.empty else [json.loads(draft.content)["row"]["id"] for draft in result.drafts]


def test_a_value_that_does_not_fit_gives_the_next_wider_type(numbers: Snapshot) -> None:
    table = numbers.catalog.table("n")
    assert table is not None
    assert {column.name: column.type for column in table.columns} == {
        "id": "INTEGER", "u": "BIGINT", "big": "BIGINT", "huge": "HUGEINT", "part": "DOUBLE",
        "mixed": "VARCHAR",
        "price": "DECIMAL(38,3)", "flag": "TINYINT", "free": "VARCHAR", "ok": "VARCHAR",
    }  # fmt: skip
    assert any("widened to BIGINT" in flag for flag in table.flags)
    events = numbers.catalog.table("ev")
    assert events is not None
    assert events.columns[1].type == "BIGINT"
    assert not [flag for flag in events.flags if " ts " in flag]


@pytest.mark.parametrize(
    ("table", "column", "op", "value", "found"),
    [
        ("n", "u", ">", 5, [1, 2, 4]),
        ("n", "u", "<", 0, [3]),
        ("n", "big", ">", "4999999999", [3]),
        ("n", "big", "<", "99999999999999999999999", [1, 2, 3, 4]),
        ("n", "huge", ">", 2**64, [4]),
        ("n", "huge", "<", 10**60, [1, 2, 3, 4]),
        ("n", "part", "=", "2.5", [3]),
        ("n", "id", "=", "2.5", []),
        ("n", "price", "=", 2.25, [2]),
        ("n", "price", ">", "123456.1", [3]),
        ("n", "flag", "=", True, [1, 3]),
        ("n", "ok", "=", True, [1, 4]),
        ("n", "ok", "=", "false", [2, 3]),
        ("ev", "ts", ">", 1704067200009, [10, 11]),
        ("ev", "ts", ">", 99, list(range(12))),
        ("ev", "ts", "<", 99, []),
    ],
)
def test_comparisons_are_of_numbers_and_complete(
    numbers: Snapshot, table: str, column: str, op: str, value: object, found: list[int]
) -> None:
    result = ask(numbers, table, column, op, value)
    assert ids(result) == found
    assert result.completeness is Completeness.COMPLETE


@pytest.mark.parametrize(
    ("table", "column", "op", "value", "found"),
    [
        ("n", "mixed", ">", 9, [2, 4]),
        ("n", "mixed", ">", 1000, []),
        ("n", "mixed", "has_bits", 64, [4]),
        ("n", "free", ">", 9, [2]),
        ("n", "free", ">", 5000, []),
        ("ev", "m", ">", "9", [10, 11]),
    ],
)
def test_rows_that_are_no_number_are_said_not_to_be_compared(
    numbers: Snapshot, table: str, column: str, op: str, value: object, found: list[int]
) -> None:
    result = ask(numbers, table, column, op, value)
    assert ids(result) == found
    assert (result.completeness, result.cause) == (Completeness.PARTIAL, "rows_undecided")
    assert result.scope["undecided_rows"] > 0
    assert column in result.scope["undecided"]


def test_what_is_excluded_by_another_condition_is_not_undecided(numbers: Snapshot) -> None:
    where = [{"column": "mixed", "op": ">", "value": 1000}, {"column": "id", "op": "<", "value": 3}]
    result = DatabaseTools(numbers, None, None).run("db.rows", {"table": "n", "where": where})
    assert (result.empty, result.completeness) == (True, Completeness.COMPLETE)


def test_text_of_dates_is_still_ordered_as_text(numbers: Snapshot) -> None:
    result = ask(numbers, "n", "free", ">=", "2031-01-01")
    assert 4 in ids(result)


def test_ordering_numbers_by_a_word_is_refused(numbers: Snapshot) -> None:
    result = ask(numbers, "n", "id", "<", "many")
    assert result.completeness is Completeness.UNAVAILABLE
    assert ask(numbers, "n", "id", "=", "many").completeness is Completeness.COMPLETE


DEFAULTS = """CREATE TABLE cfg (id int NOT NULL AUTO_INCREMENT, name varchar(20),
  enabled tinyint NOT NULL DEFAULT 1, label varchar(9) DEFAULT 'it''s',
  at datetime DEFAULT CURRENT_TIMESTAMP, twice int GENERATED ALWAYS AS (enabled*2),
  need int NOT NULL, PRIMARY KEY (id)) ENGINE=InnoDB;
INSERT INTO cfg (name, need) VALUES ('a', 1),('b', 1);
INSERT INTO cfg (id, name) VALUES (10, 'c');
INSERT INTO cfg (id, name, need) VALUES (11, CONCAT('d','e'), 1);
CREATE TABLE twins (id int NOT NULL, v text, PRIMARY KEY (id));
INSERT INTO twins VALUES (1,'first'),(1,'second');
CREATE TABLE plain (id int NOT NULL AUTO_INCREMENT, v int DEFAULT 3, PRIMARY KEY (id));
INSERT INTO plain VALUES (1,DEFAULT),(2,5);
"""


@pytest.fixture(scope="module")
def defaults(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return snapshot_of(tmp_path_factory.mktemp("defaults"), {"d.sql": DEFAULTS})


def test_literal_defaults_are_filled(defaults: Snapshot) -> None:
    assert len(ids(ask(defaults, "cfg", "enabled", "=", 1))) == 4
    assert len(ids(ask(defaults, "cfg", "label", "=", "it's"))) == 4
    none = ask(defaults, "cfg", "enabled", "=", 0)
    assert (none.empty, none.completeness) == (True, Completeness.COMPLETE)
    assert ids(ask(defaults, "plain", "v", "=", 3)) == [1]
    assert ask(defaults, "plain", "id", "=", 9).completeness is Completeness.COMPLETE


@pytest.mark.parametrize(("column", "value"), [("id", 1), ("at", "2031"), ("twice", 2), ("need", 0)])
def test_what_only_the_server_knew_is_never_a_complete_absence(
    defaults: Snapshot, column: str, value: object
) -> None:
    result = ask(defaults, "cfg", column, "=", value)
    if column == "need":
        assert result.scope["undecided_rows"] == 1
    assert (result.empty, result.completeness) == (True, Completeness.PARTIAL)
    assert result.cause == "rows_undecided"


def test_a_row_says_which_of_its_cells_are_not_known(defaults: Snapshot) -> None:
    result = ask(defaults, "cfg", "name", "=", "a")
    row = json.loads(result.drafts[0].content)["row"]
    assert "unknown" in row["id"]
    assert row["enabled"] == 1
    assert result.drafts[0].provenance.location.key == {
        "name": "a", "enabled": "1", "label": "it's", "need": "1",
    }  # fmt: skip


def test_two_rows_of_one_key_make_the_table_doubtful(defaults: Snapshot) -> None:
    table = defaults.catalog.table("twins")
    assert table is not None
    assert table.extent.kind == "unknown"
    assert "share the key" in table.flags[0]
