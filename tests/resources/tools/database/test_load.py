"""Loading dumps and extracts through the real loader process, and saying what was not applied."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resources.tools.database.catalog import Table
from resources.tools.database.snapshot import DataInput, Snapshot, ensure
from tests.support.snapshots import SHA, rows_of, snapshot_of

QUIRKS = rb"""/*M!999999\- enable the sandbox mode */
-- MySQL dump 10.13  Distrib 8
/*!40101 SET NAMES utf8mb4 */;
CREATE TABLE `crane` (
  `id` int unsigned NOT NULL AUTO_INCREMENT COMMENT 'it''s (the) key',
  `name` varchar(60) DEFAULT NULL,
  `since` datetime DEFAULT '0000-00-00 00:00:00',
  `badge` varbinary(8),
  `big` bigint unsigned,
  `key` varchar(3),
  PRIMARY KEY (`id`),
  KEY `n` (`name`(10)),
  CONSTRAINT `f` FOREIGN KEY (`key`) REFERENCES `port` (`code`)
) ENGINE=InnoDB;
INSERT INTO `crane` (`name`,`id`) VALUES ('a;b -- c',1),
-- it's a comment between rows
('x),(y\'s \\',2), /* another ' one */ ('NULL',3);
INSERT INTO `crane` VALUES (4,NULL,'0000-00-00 00:00:00',0x00FF,18446744073709551615,'\0\Z');
INSERT INTO `crane` VALUES (5,'B@r','2031-04-01 00:00:00',_binary 'A\'',0,NULL);
/*!50001 CREATE VIEW v AS SELECT 1 */;
DELIMITER ;;
CREATE PROCEDURE p() BEGIN INSERT INTO crane VALUES (99); END ;;
DELIMITER ;
""".replace(b"@", "ä".encode())


@pytest.fixture(scope="module")
def quirks(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return snapshot_of(
        tmp_path_factory.mktemp("quirks"), {"w.sql": QUIRKS + b"-- Dump completed on 2031-04-02\n"}
    )


def test_quirks_of_a_dump_are_read_exactly(quirks: Snapshot) -> None:
    assert rows_of(quirks, "crane") == [
        (1, "a;b -- c", "0000-00-00 00:00:00", None, None, None),
        (2, "x),(y's \\", "0000-00-00 00:00:00", None, None, None),
        (3, "NULL", "0000-00-00 00:00:00", None, None, None),
        (4, None, "0000-00-00 00:00:00", "0x00FF", 18446744073709551615, "\0\x1a"),
        (5, "Bär", "2031-04-01 00:00:00", "0x4127", 0, None),
    ]


def test_the_catalog_says_what_a_table_is(quirks: Snapshot) -> None:
    table = quirks.catalog.table("CRANE")
    assert table is not None
    assert table.primary_key == ("id",)
    assert table.key_basis == "declared"
    assert table.foreign_keys[0].table == "port"
    assert table.columns[0].comment == "it's (the) key"
    assert table.extent.kind == "full"
    assert (table.line_start, table.line_end) == (15, 19)


def test_views_and_routines_are_listed_not_loaded(quirks: Snapshot) -> None:
    listed = [(entry.line, entry.reason) for entry in quirks.catalog.not_applied]
    assert listed == [(20, "views, triggers and routines are not loaded"), (21, "DELIMITER block")]


SLOW = """CREATE TABLE t (id int PRIMARY KEY, v varchar(20), n int) ENGINE=InnoDB;
INSERT INTO t VALUES (1,'a',1),(2,'b',2),(3,'c',3);
SET @BASE := 40;
INSERT INTO t VALUES (@BASE+2, CONCAT('x','y'), 10+1);
REPLACE INTO t (id, v) VALUES (1,'new');
INSERT IGNORE INTO t VALUES (2,'ignored',0),(9,'kept',9);
UPDATE t SET n = n | 8 WHERE id = 3;
DELETE FROM t WHERE id = 2;
INSERT INTO other SELECT * FROM t;
UPDATE missing SET a = 1;
INSERT INTO t VALUES (1,'dup',0) ON DUPLICATE KEY UPDATE v='dup';
INSERT INTO t VALUES (@UNKNOWN, 'x', 1);
UPDATE t SET v = (SELECT content FROM read_text('/etc/hostname')) WHERE id = 3;
"""
POSTGRES = """-- PostgreSQL database dump
SET search_path = public;
CREATE TABLE public.tug (id integer NOT NULL, name text, ok boolean, at timestamp);
COPY public.tug (id, name, ok, at) FROM stdin;
1\tAnn\\tB\\\\\tt\t2031-04-01
2\t\\N\tf\tinfinity
\\.

INSERT INTO public.tug VALUES (3, 'C:\\dir ''x''', true, NULL);
CREATE FUNCTION f() RETURNS int AS $b$ begin; it's; $b$ LANGUAGE sql;
ALTER TABLE ONLY public.tug ADD CONSTRAINT pk PRIMARY KEY (id);
-- PostgreSQL database dump complete
"""
LITE = """PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE lite(id INTEGER PRIMARY KEY, t TEXT, b BLOB);
INSERT INTO lite VALUES(1,'c:\\new',X'4142');
INSERT INTO lite VALUES(2,'it''s',NULL);
COMMIT;
"""
WHERE = """-- MySQL dump 10
CREATE TABLE wa (id int);
--
-- Dumping data for table `wa`
--
-- WHERE:  id < 9

INSERT INTO wa VALUES (1);
CREATE TABLE wb (id int);
INSERT INTO wb VALUES (1);
-- Dump completed
"""
UNFIT = "CREATE TABLE unfit (id int, n tinyint);\nINSERT INTO unfit VALUES (1,5),(2,'x'),(3,300);\n"
COPIES = "CREATE TABLE a (id int PRIMARY KEY, v text);\nINSERT INTO a VALUES (1,'x'),(2,'y'),(3,'z');\n"
CUTS = {
    "done": (";\n-- Dump completed on 2031-04-02\n", "full", "CREATE TABLE"),
    "unclosed": (";\n", "unknown", "closing line"),
    "inside": (",(3,'c", "unknown", "ends inside"),
    "comma": (",", "unknown", "ends inside"),
}
ENCODINGS = {"wide.sql": "utf-16-le", "latin.sql": "cp1252", "bom.sql": "utf-8-sig", "crlf.sql": "utf-8"}


def binary_files(folder: Path) -> dict[str, str | bytes]:
    """Write an SQLite file and two Parquet files and return them with two that must be refused."""
    lite = sqlite3.connect(folder / "s.db")
    lite.execute("CREATE TABLE pilot (id INTEGER PRIMARY KEY, name TEXT, rating REAL, badge BLOB)")
    lite.execute("CREATE VIEW v AS SELECT * FROM pilot")
    lite.executemany("INSERT INTO pilot VALUES (?,?,?,?)", [(1, "Ann", 4.5, b"\0A"), (2, None, None, "text")])
    lite.commit()
    lite.close()
    data = pa.table({"id": pa.array([1, 2], pa.int32()), "t": ["x", None], "l": [[1], None]})
    pq.write_table(data, folder / "p.parquet")
    pq.write_table(data, folder / "b.parquet", compression="BROTLI")
    names = ("s.db", "p.parquet", "b.parquet")
    return {
        **{name: (folder / name).read_bytes() for name in names},
        "x.duckdb": b"\0" * 8 + b"DUCK" + b"\0" * 40,
        "broken.parquet": b"PAR1" + b"\0" * 30,
    }


def text_files() -> dict[str, str | bytes]:
    """Return the scripts and extracts of the shared snapshot."""
    files: dict[str, str | bytes] = {
        "slow.sql": SLOW,
        "pg.sql": POSTGRES,
        "lite.sql": LITE,
        "where.sql": WHERE,
        "unfit.sql": UNFIT,
        "all.sql": COPIES,
        "a.csv": "id,v\n1,x\n2,other\n",
        "old.sql": "INSERT INTO a VALUES (3,'q');",
        "c.csv": '# SELECT * FROM c WHERE id < 3\nid;name;n\n1;"a; ""b""\nc";007\n2;;1,5\nbroken\n',
        "tsv.tsv": "id\tx\n1\t2.5\n2\t\\N\n",
        "l.jsonl": '{"id": 1, "tags": ["a"]}\n{"id": 2, "ok": true}\n',
        "d.json": json.dumps({"stage": [{"id": 1}], "note": "x"}),
        "w.json": json.dumps({"table": "tide", "where": "h < 4", "rows": [{"h": 1}, {"h": 2}]}),
    }
    for name, (tail, _, _) in CUTS.items():
        files[f"{name}.sql"] = (
            f"-- MySQL dump 10\nCREATE TABLE {name} (id int, t text);\n"
            f"INSERT INTO {name} VALUES (1,'a'),(2,'b'){tail}"
        )
    for name in ENCODINGS:
        text = f"CREATE TABLE {name[:-4]} (id int, t text);\nINSERT INTO {name[:-4]} VALUES (1,'Größe');\n"
        files[name] = text.replace("\n", "\r\n") if name == "crlf.sql" else text
    return files


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Every kind of file in one case."""
    files = {**text_files(), **binary_files(tmp_path_factory.mktemp("binary"))}
    return snapshot_of(tmp_path_factory.mktemp("mixed"), files, ENCODINGS)


def table_of(snapshot: Snapshot, name: str) -> Table:
    table = snapshot.catalog.table(name)
    assert table is not None
    return table


def test_statements_that_are_no_literals_take_the_slow_path(mixed: Snapshot) -> None:
    assert sorted(rows_of(mixed, "t"), key=str) == [
        (1, "new", None),
        (3, "c", 11),
        (42, "xy", 11),
        (9, "kept", 9),
    ]
    lines = [entry.line for entry in mixed.catalog.not_applied if entry.path == "slow.sql"]
    assert lines == [9, 10, 11, 12, 13]
    assert table_of(mixed, "t").extent.kind == "unknown", "with statements not applied it is not full"


def test_a_postgres_dump_with_copy_and_inserts(mixed: Snapshot) -> None:
    assert rows_of(mixed, "tug") == [
        (1, "Ann\tB\\", "t", "2031-04-01"),
        (2, None, "f", "infinity"),
        (3, "C:\\dir 'x'", "true", None),
    ]
    table = table_of(mixed, "tug")
    assert (table.primary_key, table.extent.kind) == (("id",), "full")
    assert [file.dialect for file in mixed.catalog.files if file.path == "pg.sql"] == ["postgres"]


def test_the_dump_of_sqlite_keeps_backslashes(mixed: Snapshot) -> None:
    assert rows_of(mixed, "lite") == [(1, "c:\\new", "0x4142"), (2, "it's", None)]


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_dump_is_not_full(mixed: Snapshot, name: str) -> None:
    _, kind, basis = CUTS[name]
    extent = table_of(mixed, name).extent
    assert extent.kind == kind
    assert basis in extent.basis


def test_the_where_of_a_dump_makes_it_filtered(mixed: Snapshot) -> None:
    filtered = table_of(mixed, "wa").extent
    assert (filtered.kind, filtered.predicate) == ("filtered", "id < 9")
    assert table_of(mixed, "wb").extent.kind == "full"


def test_values_that_do_not_fit_turn_the_column_into_flagged_text(mixed: Snapshot) -> None:
    assert rows_of(mixed, "unfit") == [(1, "5"), (2, "x"), (3, "300")]
    assert "kept as text" in table_of(mixed, "unfit").flags[0]


def test_copies_of_a_table_stay_apart_and_conflicts_are_counted(mixed: Snapshot) -> None:
    tables = {table.name: table for table in mixed.catalog.tables if table.name == "a" or table.of == "a"}
    assert sorted(tables) == ["a", "a__2", "a__3"]
    assert tables["a"].path == "all.sql"
    assert {tables["a__2"].conflicts, tables["a__3"].conflicts} == {1}
    assert tables["a__3"].column_names == ("id", "v")
    assert rows_of(mixed, "a") == [(1, "x"), (2, "y"), (3, "z")]


@pytest.mark.parametrize("name", ENCODINGS)
def test_encodings_of_dumps(mixed: Snapshot, name: str) -> None:
    assert rows_of(mixed, name[:-4]) == [(1, "Größe")]


def test_csv_json_lines_and_documents(mixed: Snapshot) -> None:
    assert rows_of(mixed, "c") == [(1, 'a; "b"\nc', "007"), (2, None, "1,5")]
    assert rows_of(mixed, "tsv") == [(1, 2.5), (2, None)]
    assert rows_of(mixed, "l") == [(1, '["a"]', None), (2, None, "true")]
    extents = {table.name: (table.extent.kind, table.extent.predicate) for table in mixed.catalog.tables}
    assert extents["c"] == ("filtered", "id < 3")
    assert extents["tide"] == ("filtered", "h < 4")
    assert extents["stage"] == ("unknown", None)
    assert "1 lines" in table_of(mixed, "c").flags[0]


def test_sqlite_and_parquet(mixed: Snapshot) -> None:
    assert rows_of(mixed, "pilot") == [(1, "Ann", 4.5, "0x0041"), (2, None, None, "text")]
    assert [row[:2] for row in rows_of(mixed, "p")] == [(1, "x"), (2, None)]
    trouble = {file.path: file.trouble or "" for file in mixed.catalog.files}
    assert "BROTLI" in trouble["b.parquet"]
    assert "not opened" in trouble["x.duckdb"]
    assert "Parquet" in trouble["broken.parquet"]
    assert (table_of(mixed, "pilot").extent.kind, table_of(mixed, "p").extent.kind) == ("full", "unknown")


def test_the_same_files_give_the_same_catalog(tmp_path: Path, quirks: Snapshot) -> None:
    again = snapshot_of(tmp_path, {"w.sql": QUIRKS + b"-- Dump completed on 2031-04-02\n"})
    assert again.catalog == quirks.catalog
    assert rows_of(again, "crane") == rows_of(quirks, "crane")


def test_a_snapshot_is_built_once(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id\n1\n", encoding="utf-8")
    item = DataInput("c.csv", path, "csv", "utf-8", "inputs/c.csv", SHA)
    told: list[str] = []
    first = ensure(tmp_path, [item], None, lambda text, _: told.append(text))
    assert told
    told.clear()
    second = ensure(tmp_path, [item], None, lambda text, _: told.append(text))
    assert not told
    assert first is not None
    assert second is not None
    assert first.catalog == second.catalog
    assert ensure(tmp_path, [item._replace(kind=None)], None) is None


def test_a_file_whose_reader_dies_is_left_out_and_the_rest_loads(tmp_path: Path) -> None:
    """The loader is killed for real while it reads one file; only that file is lost, and it is said."""
    inputs = []
    for name in ("a.csv", "b.csv", "c.csv"):
        path = tmp_path / name
        path.write_text("id\n" + "1\n" * 60_000, encoding="utf-8")
        inputs.append(DataInput(name, path, "csv", "utf-8", f"inputs/{name}", SHA))
    killed: list[str] = []

    def kill(path: str, at: int) -> None:
        del at
        if path == "b.csv" and not killed:
            killed.append(path)
            for child in psutil.Process().children():
                child.kill()

    snapshot = ensure(tmp_path, inputs, None, kill)
    assert killed
    assert snapshot is not None
    trouble = {file.path: file.trouble for file in snapshot.catalog.files if file.trouble}
    assert trouble == {"b.csv": "its reader failed: signal 9"}
    assert [table.name for table in snapshot.catalog.tables] == ["a", "c"]
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_odd_cells_do_not_cost_the_file(tmp_path: Path) -> None:
    """A lone surrogate, a key that stands twice, a line that is no object, a cell of 200 KB, a blob."""
    files: dict[str, str | bytes] = {
        "s.jsonl": '{"id": 1, "t": "a\\ud800"}\n{"id": 2, "t": "b", "t": "c"}\nbroken\n'
        '{"id": 3, "t": ["\\udfff"]}\n',
        "big.csv": f"id,t\n1,{'x' * 200_000}\n2,y\n",
        "blob.sql": "CREATE TABLE blob (id int, b blob);\n"
        "INSERT INTO blob VALUES (1+0, X'4142'),(2, 0x43);\n",
    }
    snapshot = snapshot_of(tmp_path, files)
    assert rows_of(snapshot, "s") == [(1, "a\\ud800"), (2, "c"), (3, '["\\udfff"]')]
    flags = table_of(snapshot, "s").flags
    assert any("twice (t)" in flag for flag in flags)
    assert any(flag.startswith("1 lines are no JSON objects") for flag in flags)
    assert [len(str(row[1])) for row in rows_of(snapshot, "big")] == [200_000, 1]
    assert not table_of(snapshot, "big").flags
    assert rows_of(snapshot, "blob") == [(1, "0x4142"), (2, "0x43")]


def test_whole_rows_before_a_cut_are_kept(mixed: Snapshot) -> None:
    assert rows_of(mixed, "inside") == [(1, "a"), (2, "b")]
    cut = [entry.text for entry in mixed.catalog.not_applied if entry.path == "inside.sql"]
    assert cut[0] == "(3,'c"
