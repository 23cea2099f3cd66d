"""One question in a throw-away process: what it may see, what it may not, how it ends."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from resources.evidence_index import EvidenceIndex
from resources.index import asking
from tests.support.index_units import unit, unit_rows
from viano_assets.errors import BlockedError, InputError


@pytest.fixture
def index(tmp_path: Path) -> EvidenceIndex:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    made = EvidenceIndex(tmp_path)
    made.publish(unit("A"), 1, unit_rows("A", 1))
    return made


OUTSIDE = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('{home}/secret.csv')",
    "SELECT * FROM '{home}/secret.csv'",
    "SELECT * FROM read_text('../secret.csv')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_text('current.json')",
    "SELECT * FROM read_parquet('parts/*/*.parquet')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "FROM read_blob('/etc/hostname')",
    "SELECT * FROM job",
]


@pytest.mark.parametrize("sql", OUTSIDE)
def test_nothing_but_the_index_can_be_read(index: EvidenceIndex, sql: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sql_failed"):
        index.query(sql.replace("{home}", str(tmp_path)))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "COPY cases TO 'out.csv'",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW cases",
        "INSERT INTO cases VALUES (1)",
        "SET memory_limit='9GB'",
        "PRAGMA database_list",
        "ATTACH 'x.duckdb'",
        "INSTALL httpfs",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT '" + "x" * 17_000 + "'",
        "not sql",
        "",
    ],
    ids=lambda sql: sql[:20] or "empty",
)
def test_only_one_select_is_answered(index: EvidenceIndex, sql: str) -> None:
    before = sorted(path for path in index.layout.root.rglob("*"))
    with pytest.raises(InputError, match="sql_refused"):
        index.query(sql)
    assert sorted(path for path in index.layout.root.rglob("*")) == before


def test_a_question_that_does_not_end_is_ended(index: EvidenceIndex) -> None:
    with pytest.raises(BlockedError, match="sql_limit"):
        asking.ask(
            index.layout, "SELECT count(*) FROM range(1000000000) a, range(1000) b", limit=1, deadline=1.5
        )


def test_a_question_that_wants_all_memory_is_ended(index: EvidenceIndex) -> None:
    with pytest.raises(BlockedError, match="sql_limit"):
        index.query("SELECT list(i) FROM range(400000000) t(i)")


def test_cells_are_plain_json(index: EvidenceIndex) -> None:
    answer = index.query(
        "SELECT 'nan'::DOUBLE, 1.25::DECIMAL(6,2), [1, NULL], {'a': DATE '2030-01-02'}, NULL"
    )
    assert answer.rows == [["nan", 1.25, [1, None], {"a": "2030-01-02"}, None]]
    assert not math.isnan(index.query("SELECT 0.5").rows[0][0])


def test_a_cut_answer_says_so(index: EvidenceIndex) -> None:
    assert index.query("SELECT * FROM range(10)", limit=10).truncated is False
    cut = index.query("SELECT * FROM range(11)", limit=10)
    assert (len(cut.rows), cut.truncated) == (10, True)
