"""Queries that would answer otherwise later are refused; queries that show no row of a part prove nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.tools.database.snapshot import Snapshot
from resources.tools.database.tools import DatabaseTools
from tests.support.snapshots import snapshot_of
from viano_assets.evidence.model import Completeness, ToolResult

WORLD = """CREATE TABLE quest (id int PRIMARY KEY, title text, today text);
INSERT INTO quest VALUES (1,'one','x'),(2,'two','y');
CREATE TABLE seeded (id int, made datetime DEFAULT CURRENT_TIMESTAMP, mixed int);
INSERT INTO seeded (id, mixed) VALUES (1, 5),(2, 'x');
"""
PART = "id,quest_id,item\n10,1,77\n11,1,\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return snapshot_of(tmp_path_factory.mktemp("world"), {"w.sql": WORLD, "reward.csv": PART})


def query(world: Snapshot, sql: str) -> ToolResult:
    return DatabaseTools(world, None, None).run("db.query", {"sql": sql})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT now()",
        "SELECT id FROM quest WHERE current_date > '2020-01-01'",
        "SELECT id, random() FROM quest",
        "SELECT uuid()",
        "SELECT id FROM quest USING SAMPLE 1",
        "SELECT id FROM quest TABLESAMPLE 50%",
        "SELECT age('2020-01-01'::TIMESTAMP)",
        "SELECT ago(INTERVAL 1 DAY)",
        "WITH x AS (SELECT localtimestamp AS t) SELECT t FROM x",
        "SELECT current_setting('threads')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_memory()",
        "SELECT id FROM quest ORDER BY gen_random_uuid()",
        "SELECT txid_current()",
        "EXPLAIN SELECT random() FROM quest",
    ],
)
def test_what_changes_with_the_moment_or_by_chance_is_refused(world: Snapshot, sql: str) -> None:
    result = query(world, sql)
    assert (result.completeness, result.cause) == (Completeness.UNAVAILABLE, "refused")
    assert "another time" in result.drafts[0].content


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT today FROM quest",
        "SELECT year('2020-01-01'::DATE) FROM quest",
        "SELECT age('2020-01-01'::TIMESTAMP, '2019-01-01'::TIMESTAMP) FROM quest",
        "SELECT r.range, q.id FROM quest q, range(2) r",
        "SELECT strftime('2020-01-01'::DATE, '%Y'), id FROM quest",
    ],
)
def test_what_is_repeatable_is_answered(world: Snapshot, sql: str) -> None:
    result = query(world, sql)
    assert (result.empty, result.completeness) == (False, Completeness.COMPLETE)
    assert query(world, sql) == result


LAUNDERED = [
    "SELECT count(*) = 0 AS missing FROM reward WHERE id = 12",
    "SELECT count(*), 'x' FROM reward WHERE id = 12",
    "SELECT 'row missing' WHERE NOT EXISTS (SELECT 1 FROM reward WHERE quest_id = 2)",
    "SELECT q.id FROM quest q WHERE NOT EXISTS (SELECT 1 FROM reward r WHERE r.quest_id = q.id)",
    "SELECT q.id FROM quest q WHERE q.id NOT IN (SELECT quest_id FROM reward)",
    "SELECT q.id FROM quest q LEFT JOIN reward r ON r.quest_id = q.id WHERE r.id IS NULL",
    "SELECT q.id, r.id, r.item FROM quest q LEFT JOIN reward r ON r.quest_id = q.id WHERE r.id IS NULL",
    "SELECT q.id, coalesce(r.id::VARCHAR, 'missing') FROM quest q LEFT JOIN reward r ON r.quest_id = q.id",
    "SELECT q.* FROM quest q ANTI JOIN reward r ON r.quest_id = q.id",
    "SELECT id FROM quest EXCEPT SELECT quest_id FROM reward",
    "SELECT q.id, (SELECT count(*) FROM reward r WHERE r.quest_id = q.id) AS n FROM quest q",
    "SELECT quest_id, max(item) FROM reward GROUP BY quest_id HAVING count(*) < 3",
    "SELECT a.id FROM reward a WHERE NOT EXISTS (SELECT 1 FROM reward b WHERE b.item = a.id AND b.id > 99)",
    "WITH r AS (FROM reward) SELECT a.id FROM r a WHERE NOT EXISTS (SELECT 1 FROM r b WHERE b.id > 99)",
    "WITH m AS (SELECT q.id FROM quest q ANTI JOIN reward r ON r.quest_id = q.id) SELECT id FROM m",
    "SELECT id FROM reward UNION ALL SELECT 999",
    "SELECT CASE WHEN (SELECT max(id) FROM reward) < 99 THEN 'no 99' END",
    "SELECT item FROM reward WHERE id = 11",
    "SELECT n FROM (SELECT count(*) AS n FROM reward) WHERE n < 9",
    "SUMMARIZE reward",
]  # fmt: skip


@pytest.mark.parametrize("sql", LAUNDERED)
def test_an_absence_in_a_part_is_no_finding_in_any_dress(world: Snapshot, sql: str) -> None:
    result = query(world, sql)
    assert (result.empty, result.completeness) == (True, Completeness.PARTIAL)
    assert result.cause in {"shows_no_row", "tables_not_complete"}
    assert {draft.provenance.kind for draft in result.drafts} == {"absence"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM reward",
        "SELECT id, item * 2 FROM reward r WHERE r.item > 5",
        "SELECT q.title, r.item FROM quest q JOIN reward r ON r.quest_id = q.id",
        "SELECT * FROM quest JOIN (SELECT quest_id AS id, item FROM reward) USING (id)",
        "WITH r AS (SELECT id AS n FROM reward) SELECT n FROM r ORDER BY n LIMIT 1",
        "SELECT id FROM reward UNION SELECT id FROM quest",
        "SELECT DISTINCT quest_id FROM reward",
        "SELECT * EXCLUDE (item) FROM reward",
    ],
)
def test_rows_of_a_part_are_shown_as_rows(world: Snapshot, sql: str) -> None:
    result = query(world, sql)
    assert (result.empty, result.completeness) == (False, Completeness.PARTIAL)
    assert result.drafts[0].provenance.kind == "query"


def test_over_whole_tables_every_wording_counts(world: Snapshot) -> None:
    gone = "SELECT 'gone' WHERE NOT EXISTS (SELECT 1 FROM quest WHERE id = 9)"
    for sql in ("SELECT count(*) FROM quest", gone):
        result = query(world, sql)
        assert (result.empty, result.completeness) == (False, Completeness.COMPLETE)


def test_no_table_says_nothing_about_the_data(world: Snapshot) -> None:
    result = query(world, "SELECT 'row missing' AS verdict")
    assert (result.empty, result.completeness, result.cause) == (True, Completeness.PARTIAL, "no_table_read")


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT id FROM seeded WHERE made < '2030-01-01'", Completeness.PARTIAL),
        ("SELECT id FROM seeded WHERE mixed > '9'", Completeness.PARTIAL),
        ("SELECT id FROM seeded WHERE id = 9", Completeness.COMPLETE),
    ],
)
def test_a_column_that_is_not_known_in_every_row_makes_the_look_partial(
    world: Snapshot, sql: str, state: Completeness
) -> None:
    assert query(world, sql).completeness is state


def test_a_table_named_with_its_schema_is_asked_in_quotes(tmp_path: Path) -> None:
    made = "USE {0}; CREATE TABLE t (id int); INSERT INTO t VALUES ({1});"
    snapshot = snapshot_of(tmp_path, {"t.sql": made.format("a", 1) + made.format("b", 2)})
    assert query(snapshot, 'SELECT id FROM "b.t"').drafts[0].content.endswith("[2]")
    asked = DatabaseTools(snapshot, None, None).run("db.rows", {"table": "t", "where": []})
    assert (asked.completeness, asked.cause) == (Completeness.PARTIAL, "table_ambiguous")
    assert "a.t, b.t" in asked.drafts[0].content
