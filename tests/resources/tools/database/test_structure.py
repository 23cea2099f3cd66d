"""What a script does to tables after their rows, which schema rows belong to, and files without rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.tools.database.snapshot import Snapshot
from tests.support.snapshots import rows_of, snapshot_of

MADE = "CREATE TABLE {0} (id int, v int) ENGINE=InnoDB;\nINSERT INTO {0} VALUES (1,1),(2,2);\n"
REMADE = "DROP TABLE IF EXISTS remade; CREATE TABLE remade (id int); INSERT INTO remade VALUES (9);"
TIDY = """LOCK TABLES tidy WRITE;
/*!40000 ALTER TABLE `tidy` DISABLE KEYS */;
ALTER TABLE tidy ADD PRIMARY KEY (id), ADD KEY k (v),
  ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES tidy (id), ENGINE=InnoDB, AUTO_INCREMENT=9;
ALTER TABLE tidy MODIFY id int NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=3;
UNLOCK TABLES;
SET x=1;
CREATE INDEX i ON tidy (v);
DROP TABLE IF EXISTS nothing;
COMMIT;
"""
BOTH = [(1, 1), (2, 2)]
CHANGES: dict[str, tuple[str, list[tuple[object, ...]] | None, str]] = {
    "dropped": ("DROP TABLE `dropped`;", None, "full"),
    "remade": (REMADE, [(9,)], "full"),
    "emptied": ("TRUNCATE TABLE `emptied`;", [], "full"),
    "cleared": ("DELETE FROM cleared;", [], "full"),
    "older": ("RENAME TABLE `older` TO `newer`;", None, "full"),
    "moved": ("ALTER TABLE moved RENAME TO arrived;", None, "full"),
    "added": ("ALTER TABLE added ADD COLUMN x int DEFAULT 7 AFTER id;", [(1, 7, 1), (2, 7, 2)], "full"),
    "several": (
        "ALTER TABLE several ADD a int, ADD (b int DEFAULT 4);",
        [(1, 1, None, 4), (2, 2, None, 4)],
        "full",
    ),
    "less": ("ALTER TABLE less DROP COLUMN v;", [(1,), (2,)], "full"),
    "named": ("ALTER TABLE named CHANGE v w int NOT NULL;", [*BOTH], "full"),
    "retyped": ("ALTER TABLE retyped MODIFY v varchar(3);", [*BOTH], "unknown"),
    "swapped": ("ALTER TABLE swapped EXCHANGE PARTITION p WITH TABLE q;", [*BOTH], "unknown"),
    "filled": ("LOAD DATA INFILE 'x' INTO TABLE filled;", [*BOTH], "unknown"),
    "joined": ("UPDATE other o JOIN joined j ON o.id = j.id SET j.v = 1;", [*BOTH], "unknown"),
    "hidden": ("/*!50001 TRUNCATE TABLE `hidden` */;", [], "full"),
    "tidy": (TIDY, [*BOTH], "full"),
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    files: dict[str, str | bytes] = {
        f"{name}.sql": MADE.format(name) + statement + "\n" for name, (statement, _, _) in CHANGES.items()
    }
    return snapshot_of(tmp_path_factory.mktemp("changed"), files)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_after_the_rows_is_applied_or_said(changed: Snapshot, name: str) -> None:
    _, rows, kind = CHANGES[name]
    table = changed.catalog.table(name)
    if rows is None:
        assert table is None
        return
    assert table is not None
    assert rows_of(changed, name) == rows
    assert table.extent.kind == kind
    listed = [entry for entry in changed.catalog.not_applied if entry.path == f"{name}.sql"]
    assert bool(listed) == (kind == "unknown")


def test_renamed_tables_keep_their_rows(changed: Snapshot) -> None:
    assert rows_of(changed, "newer") == rows_of(changed, "arrived") == [(1, 1), (2, 2)]
    extents = [table.extent.kind for table in changed.catalog.tables if table.name in {"newer", "arrived"}]
    assert extents == ["full", "full"]
    named = changed.catalog.table("named")
    assert named is not None
    assert named.column_names == ("id", "w")


ROLLBACK = (
    MADE.format("kept") + MADE.format("undone").replace("INSERT", "START TRANSACTION; INSERT") + "ROLLBACK;\n"
)


def test_rolled_back_rows_make_their_table_doubtful(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, {"r.sql": ROLLBACK})
    kinds = {table.name: table.extent.kind for table in snapshot.catalog.tables}
    assert kinds == {"kept": "full", "undone": "unknown"}
    assert snapshot.catalog.not_applied[0].text == "ROLLBACK;"


def test_statements_for_a_table_of_another_file_make_it_doubtful(tmp_path: Path) -> None:
    later = "DELETE FROM a WHERE id = 1;\nDROP TABLE b;\nDROP TABLE IF EXISTS c;\n"
    files: dict[str, str | bytes] = {"base.sql": "".join(MADE.format(n) for n in "abc"), "later.sql": later}
    kinds = {t.name: t.extent.kind for t in snapshot_of(tmp_path, files).catalog.tables}
    assert kinds == {"a": "unknown", "b": "unknown", "c": "full"}


POSTGRES = """-- PostgreSQL database dump
CREATE TABLE live.npc (id integer NOT NULL, home integer REFERENCES live.port(id), name text);
CREATE TABLE test.npc (id integer NOT NULL, name text);
CREATE TABLE live.port (id integer PRIMARY KEY);
CREATE TABLE test.port (id integer PRIMARY KEY);
CREATE TABLE live.only (id integer);
COPY live.npc (id, home, name) FROM stdin;
17\t1\tBob
\\.
COPY test.npc (id, name) FROM stdin;
1\tDummy
\\.
COPY live.port (id) FROM stdin;
1
\\.
SET search_path = test, pg_catalog;
INSERT INTO port VALUES (2);
SELECT pg_catalog.set_config('search_path', 'live', false);
INSERT INTO only VALUES (3);
-- PostgreSQL database dump complete
"""
MYSQL = """CREATE DATABASE w1; CREATE DATABASE w2;
USE `w1`;
CREATE TABLE quest (id int);
USE w2;
CREATE TABLE quest (id int);
INSERT INTO w1.quest VALUES (1);
INSERT INTO quest VALUES (2);
INSERT INTO `w1`.`quest` SELECT id + 10 FROM w2.quest;
"""


def test_tables_of_two_schemas_stay_apart(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, {"pg.sql": POSTGRES, "my.sql": MYSQL})
    tables = {table.name: table for table in snapshot.catalog.tables}
    assert sorted(tables) == [
        "live.npc", "live.port", "only", "test.npc", "test.port", "w1.quest", "w2.quest",
    ]  # fmt: skip
    assert rows_of(snapshot, "live.npc") == [(17, 1, "Bob")]
    assert rows_of(snapshot, "test.npc") == [(1, "Dummy")]
    assert rows_of(snapshot, "test.port") == [(2,)]
    assert rows_of(snapshot, "only") == [(3,)]
    assert sorted(rows_of(snapshot, "w1.quest")) == [(1,), (12,)]
    assert rows_of(snapshot, "w2.quest") == [(2,)]
    assert {table.extent.kind for table in tables.values()} == {"full"}
    assert tables["live.npc"].foreign_keys[0].table == "live.port"


def test_rows_named_under_a_schema_the_table_was_not_created_in_are_doubtful(tmp_path: Path) -> None:
    text = "CREATE TABLE quest (id int);\nINSERT INTO w1.quest VALUES (1);\nINSERT INTO quest VALUES (2);\n"
    snapshot = snapshot_of(tmp_path, {"q.sql": text})
    assert [table.extent.kind for table in snapshot.catalog.tables] == ["unknown"]
    assert "another schema" in snapshot.catalog.tables[0].extent.basis


HEAD = "-- MySQL dump 10.13\n"
EMPTY = "CREATE TABLE {0} (id int) ENGINE=InnoDB;\n"
MARK = "--\n-- Dumping data for table `{0}`\n--\n\nLOCK TABLES `{0}` WRITE;\nUNLOCK TABLES;\n"
END = "-- Dump completed on 2031-04-02\n"
PG_HEAD = "-- PostgreSQL database dump\nCREATE TABLE public.t (id int);\n"
PG_END = "-- PostgreSQL database dump complete\n"
T, OTHER = EMPTY.format("t"), MADE.format("o")
WITHOUT_ROWS = {
    "schema_only": (HEAD + T + END, "unknown"),
    "postgres_schema": (PG_HEAD + PG_END, "unknown"),
    "sketch": (T, "unknown"),
    "marked": (HEAD + T + MARK.format("t") + END, "full"),
    "locked": (HEAD + T + "LOCK TABLES `t` WRITE;\n" + OTHER + END, "full"),
    "closed": (HEAD + T + OTHER + END, "full"),
    "not_closed": (T + OTHER, "unknown"),
    "left_out": (HEAD + T + EMPTY.format("o") + MARK.format("o") + END, "unknown"),
    "empty_copy": (PG_HEAD + "COPY public.t (id) FROM stdin;\n\\.\n" + PG_END, "full"),
}


@pytest.mark.parametrize("name", WITHOUT_ROWS)
def test_a_table_without_rows_is_whole_only_when_the_file_says_so(tmp_path: Path, name: str) -> None:
    text, kind = WITHOUT_ROWS[name]
    table = snapshot_of(tmp_path, {"t.sql": text}).catalog.table("t")
    assert table is not None
    assert (table.rows, table.extent.kind) == (0, kind)


PARTS = """-- PostgreSQL database dump
CREATE TABLE public.part (id int, k text) PARTITION BY LIST (k);
CREATE TABLE public.part_a (id int, k text);
CREATE TABLE public.part_b PARTITION OF public.part FOR VALUES IN ('b');
ALTER TABLE ONLY public.part ATTACH PARTITION public.part_a FOR VALUES IN ('a');
CREATE TABLE public.heir (extra int) INHERITS (public.base);
CREATE TABLE public.base (id int);
COPY public.part_a (id, k) FROM stdin;
1\ta
\\.
COPY public.part_b (id, k) FROM stdin;
2\tb
\\.
-- PostgreSQL database dump complete
"""


def test_the_rows_of_a_partitioned_table_are_in_its_parts(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, {"p.sql": PARTS})
    tables = {table.name: table for table in snapshot.catalog.tables}
    assert tables["part"].extent.kind == "unknown"
    assert tables["part"].extent.basis.endswith("part_b, part_a")
    assert rows_of(snapshot, "part_b") == [(2, "b")]
    assert {tables["part_a"].extent.kind, tables["part_b"].extent.kind} == {"full"}


def test_an_empty_cell_of_a_single_column_copy_is_a_row(tmp_path: Path) -> None:
    text = "SET search_path = public;\nCREATE TABLE c (v text);\nCOPY c (v) FROM stdin;\n\n\\.\nSELECT 1;\n"
    assert rows_of(snapshot_of(tmp_path, {"c.sql": text}), "c") == [("",)]
