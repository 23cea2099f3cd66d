"""The `db.*` tools on a real case: rows with places, typed absence, links, siblings, sandboxed SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.tools.database.tools import DatabaseTools
from resources.tools.registry import CaseToolBox
from tests.support.snapshots import snapshot_of
from viano_assets.evidence.model import Completeness, ToolResult


def contents(result: ToolResult, kind: str) -> list[dict[str, Any]]:
    return [json.loads(d.content.split("\n")[0]) for d in result.drafts if d.provenance.kind == kind]


def rows(table: str, *conditions: tuple[str, str, object], limit: int = 10) -> dict[str, Any]:
    where = [{"column": c, "op": op, "value": v} for c, op, v in conditions]
    return {"table": table, "where": where, "limit": limit}


def test_rows_come_with_table_key_and_place(box: CaseToolBox) -> None:
    result = box.run("db.rows", rows("contract_stage", ("contract_id", "=", 7), ("stage", ">=", 2)))
    assert [c["row"]["stage"] for c in contents(result, "row")] == [2, 3]
    place = result.drafts[0].provenance.location
    assert (place.table, place.key, place.path) == ("contract_stage", {"id": "72"}, "db/world.sql")
    assert result.completeness is Completeness.COMPLETE
    assert result.drafts[0].provenance.input_sha256


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        (("name", "=", "Old Tom"), [100]),
        (("name", "like", "gr%"), [101]),
        (("name", "is_null", None), [102]),
        (("name", "not_null", None), [100, 101]),
        (("id", "in", [100, "102"]), [100, 102]),
        (("id", "!=", "100"), [101, 102]),
        (("id", "has_bits", 1), [101]),
        (("id", "<", 101), [100]),
    ],
)
def test_typed_conditions(box: CaseToolBox, condition: tuple[str, str, object], ids: list[int]) -> None:
    found = box.run("db.rows", rows("crane", condition))
    assert [c["row"]["id"] for c in contents(found, "row")] == ids


def test_an_empty_look_is_complete_only_over_whole_tables(box: CaseToolBox) -> None:
    whole = box.run("db.rows", rows("contract_stage", ("contract_id", "=", 7), ("stage", "=", 4)))
    part = box.run("db.rows", rows("berth", ("id", "=", 77)))
    unshipped = box.run("db.rows", rows("nowhere"))
    assert (whole.empty, whole.completeness) == (True, Completeness.COMPLETE)
    assert (part.empty, part.completeness, part.cause) == (True, Completeness.PARTIAL, "table_filtered")
    assert "extract" in part.drafts[0].content
    assert (unshipped.completeness, unshipped.cause) == (Completeness.PARTIAL, "table_not_shipped")
    assert {d.provenance.kind for r in (whole, part, unshipped) for d in r.drafts} == {"absence"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM berth WHERE id = 77",
        "SELECT count(*) FROM berth WHERE id = 77",
        "SELECT max(depth) FROM berth WHERE id = 77",
        "SELECT count(*), sum(depth) FROM berth WHERE false",
        "SELECT EXISTS (SELECT 1 FROM berth WHERE id = 77)",
        "WITH x AS (SELECT * FROM berth) SELECT count(*) FROM x WHERE id = 77",
        "SELECT * FROM contract_stage s JOIN berth b ON s.id = b.id",
    ],
)
def test_nothing_in_a_filtered_table_is_no_proof_in_any_wording(box: CaseToolBox, sql: str) -> None:
    """`count(*) = 0` is one row, and still says only that the extract lacks it."""
    result = box.run("db.query", {"sql": sql})
    assert (result.empty, result.completeness) == (True, Completeness.PARTIAL)


@pytest.mark.parametrize(
    "sql", ["SELECT name FROM crane WHERE id = 102", "SELECT id - 100 AS zero FROM crane WHERE id = 100"]
)
def test_a_row_of_zero_or_null_is_still_a_row(box: CaseToolBox, sql: str) -> None:
    result = box.run("db.query", {"sql": sql})
    assert not result.empty
    assert result.completeness is Completeness.COMPLETE


def test_a_query_names_its_tables_and_caps(box: CaseToolBox) -> None:
    result = box.run("db.query", {"sql": "SELECT id, name FROM contract ORDER BY id", "limit": 3})
    first, *lines = result.drafts[0].content.split("\n")
    assert json.loads(first)["columns"] == ["id", "name"]
    assert [json.loads(line)[0] for line in lines] == [1, 2, 3]
    assert (result.completeness, result.cause) == (Completeness.TRUNCATED, "row_cap")
    assert [t["table"] for t in result.scope["tables"]] == ["contract"]


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        ("DELETE FROM contract", "refused"),
        ("SELECT 1; SELECT 2", "refused"),
        ("PIVOT contract ON kind USING count(*)", "refused"),
        ("EXPLAIN ANALYZE DELETE FROM contract", "refused"),
        ("SELECT " + "1+" * 9000 + "1", "arguments"),
        ("SELECT * FROM read_text('/etc/hostname')", "query_failed"),
        ("SELECT nothing FROM contract", "query_failed"),
    ],
)
def test_statements_outside_the_contract_are_outcomes(box: CaseToolBox, sql: str, cause: str) -> None:
    result = box.run("db.query", {"sql": sql})
    assert (result.completeness, result.cause) == (Completeness.UNAVAILABLE, cause)


def test_values_that_no_json_holds_arrive_typed(box: CaseToolBox) -> None:
    """`infinity`, the year 294247 and NUL once broke the fetch (B18, B23)."""
    sql = (
        "SELECT 'infinity'::TIMESTAMP, '-infinity'::DATE, '0001-01-01'::DATE, '2500-01-01'::TIMESTAMP, "
        "'294247-01-01'::TIMESTAMP, 'nan'::DOUBLE, '-inf'::FLOAT, 'a' || chr(0) || 'b', '\\x00\\xFF'::BLOB, "
        "(2::HUGEINT ** 100)::HUGEINT, 1.50::DECIMAL(9,2), INTERVAL 3 MONTH, [1, NULL], MAP {'k': 1}, "
        "{'a': 1, 'b': 'x'}, true, NULL, '00000000-0000-0000-0000-000000000001'::UUID, 9007199254740993"
    )
    result = box.run("db.query", {"sql": sql})
    assert json.loads(result.drafts[0].content.split("\n")[1]) == [
        "infinity", "-infinity", "0001-01-01", "2500-01-01 00:00:00", "294247-01-01 00:00:00",
        {"number": "nan"}, {"number": "-inf"}, {"text": "a\\x00b"}, {"blob": "0x00FF"},
        {"integer": "1267650600228229401496703205376"}, "1.50", "3 months", "[1, NULL]", "{k=1}",
        "{'a': 1, 'b': x}", True, None, "00000000-0000-0000-0000-000000000001", 9007199254740993,
    ]  # fmt: skip


def test_an_id_is_found_with_its_type_and_its_literal(box: CaseToolBox) -> None:
    number = box.run("db.id", {"id": 7})
    hits = [json.loads(line) for line in number.drafts[0].content.split("\n") if '"column"' in line]
    assert {(h["table"], h["column"], h["key"]) for h in hits} >= {
        ("contract", "id", True), ("contract_stage", "contract_id", False),
    }  # fmt: skip
    assert hits[0]["key"]
    text = box.run("db.id", {"id": "contract_tow"})
    assert any(place.path == "stage.cpp" and place.line_start == 4 for place in text.drafts[0].places)
    assert box.run("db.id", {"id": 123456}).empty


def test_neighbours_follow_links_in_both_directions(box: CaseToolBox) -> None:
    result = box.run("db.neighbours", {"table": "contract", "key": {"id": 7}})
    summary = [json.loads(line) for line in result.drafts[0].content.split("\n")]
    assert summary[0]["literals"]["script"]["source"] == ["stage.cpp:4"]
    assert [(s["link"]["from"], s["link"]["to"], s["rows"]) for s in summary[1:]] == [
        ("contract.crane_id", "crane.id", 1),
        ("contract_stage.contract_id", "contract.id", 3),
    ]
    assert [c["table"] for c in contents(result, "row")] == ["contract", "crane", *["contract_stage"] * 3]


def test_siblings_name_the_stage_that_only_this_contract_lacks(box: CaseToolBox) -> None:
    result = box.run("db.siblings", {"table": "contract", "key": {"id": 7}})
    findings = [json.loads(line) for line in result.drafts[0].content.split("\n")[1:]]
    assert any("stage=4" in f["text"] and f["share"] == 1.0 for f in findings)
    assert any(f["finding"] == "stated count" and "stages=4" in f["text"] for f in findings)
    missing = [d for d in result.drafts if d.provenance.kind == "absence"]
    keys = [d.provenance.location.key for d in missing]
    assert {"contract_id": "7", "stage": "4"} in keys
    assert all(d.completeness is Completeness.COMPLETE for d in missing)


def test_a_row_that_lacks_nothing_has_no_missing_companions(box: CaseToolBox) -> None:
    result = box.run("db.siblings", {"table": "contract", "key": {"id": 9}})
    assert not [d for d in result.drafts if d.provenance.kind == "absence"]


CHAIN = """CREATE TABLE quest (id int PRIMARY KEY, kind int);
INSERT INTO quest VALUES (1,1),(2,1),(3,1),(4,1),(5,1),(6,1);
CREATE TABLE quest_step (id int PRIMARY KEY, quest_id int, next_step int, npc_id int);
INSERT INTO quest_step VALUES (11,1,12,1),(12,1,0,2),(21,2,22,3),(22,2,0,4),(31,3,32,5),(32,3,0,6),
(41,4,42,7),(42,4,0,8),(51,5,59,9),(52,5,0,99),(61,6,62,1),(62,6,0,2);
CREATE TABLE npc (id int PRIMARY KEY, name text);
INSERT INTO npc VALUES (1,'a'),(2,'b'),(3,'c'),(4,'d'),(5,'e'),(6,'f'),(7,'g'),(8,'h'),(9,'i');
CREATE TABLE step_reward (step_id int, gold int, PRIMARY KEY (step_id));
INSERT INTO step_reward VALUES (11,1),(12,1),(21,1),(22,1),(31,1),(32,1),(41,1),(42,1),(51,1),(61,1),(62,1);
"""


def test_siblings_look_one_step_on(tmp_path: Path) -> None:
    """The hole is in a companion's companion and in a companion's reference, not in the row itself."""
    tools = DatabaseTools(snapshot_of(tmp_path, {"q.sql": CHAIN}), None, None)
    arguments = {"table": "quest", "key": {"id": 5}, "limit": 20}
    first = tools.run("db.siblings", arguments)
    texts = [json.loads(line)["text"] for line in first.drafts[0].content.split("\n")[1:]]
    assert any("npc_id=99 leads to no row of npc" in text for text in texts)
    assert any("step_reward refers to quest_step id=52" in text for text in texts)
    assert tools.run("db.siblings", arguments) == first
    fine = tools.run("db.siblings", {"table": "quest", "key": {"id": 2}, "limit": 20})
    assert "leads to no row" not in fine.drafts[0].content


def test_every_tool_ends_at_its_deadline(tmp_path: Path) -> None:
    """A time limit set on one connection does not reach others: each way in has its own (B25)."""
    lines = "id,value\n" + "".join(f"{n},{n % 7}\n" for n in range(60_000))
    tools = DatabaseTools(snapshot_of(tmp_path, {"big.csv": lines}), None, None, seconds=0.0)
    for tool, arguments in (
        ("db.query", {"sql": "SELECT count(*) FROM big a, big b, big c WHERE a.id + b.id + c.id = 7"}),
        ("db.rows", {"table": "big", "where": [{"column": "value", "op": "like", "value": "%6%"}]}),
        ("db.id", {"id": 6}),
        ("db.siblings", {"table": "big", "key": {"id": 7}}),
        ("db.neighbours", {"table": "big", "key": {"id": 7}}),
    ):
        result = tools.run(tool, arguments)
        assert (result.completeness, result.cause) == (Completeness.TRUNCATED, "timeout"), tool
        assert result.empty
