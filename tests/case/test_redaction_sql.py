"""A secret column is found however its script is laid out. Each script holds the canary `LeakC1`."""

# ruff: noqa: E501 - scripts stand here as they are found

from __future__ import annotations

import time

import pytest

from tests.case.reading import REDACTOR
from viano_assets.case.redaction_sql import SqlStream

SCRIPTS = {
    "one line": "CREATE TABLE entry (id INT PRIMARY KEY, password VARCHAR(80));\nINSERT INTO entry VALUES (1,'LeakC1');\n",
    "one line for both": "CREATE TABLE e (id INT, password TEXT); INSERT INTO e VALUES (1,'LeakC1');\n",
    "several a line": (
        "CREATE TABLE e (id INT NOT NULL, name VARCHAR(10),\n  age DECIMAL(10,2), password VARCHAR(80),\n"
        "  PRIMARY KEY (id, name));\nINSERT INTO e VALUES (1,'n',2.5,'LeakC1');\n"
    ),
    "comments": (
        "/* it's a dump */ CREATE TABLE /* x */ e ( -- don't, (count\n id INT, # a, b\n /* c, ( */ a ENUM('x,y',')'),\n"
        " password TEXT COMMENT 'it''s, (secret'\n);\nINSERT INTO e VALUES /* '( */ (1,'x' -- it's\n,'LeakC1');\n"
    ),
    "quoted": 'CREATE TABLE IF NOT EXISTS "e" ("id" INT, "user password" TEXT);\nINSERT INTO "e" VALUES (1,\'LeakC1\');\n',
    "ticks": "create table if not exists `db`.`e` (`id` int,`key` int,`password` text);insert into `db`.`e` values(1,2,'LeakC1');\n",
    "brackets": (
        "CREATE TABLE [dbo].[e] ([id] INT, [password] NVARCHAR(80))\nGO\nINSERT [dbo].[e] ([id], [password]) VALUES (1, N'LeakC1')\nGO\n"
    ),
    "no semicolons": (
        "CREATE TABLE a (id INT, note TEXT)\nGO\nINSERT INTO a VALUES (1, 'x')\nINSERT INTO e (id, password)\nVALUES (1, 'LeakC1')\n"
    ),
    "schema": (
        "CREATE TABLE public.e (id integer, password text);\nINSERT INTO public.e VALUES (1, 'LeakC1');\n"
    ),
    "copy": "COPY public.e (id, password, note) FROM stdin;\n1\tLeakC1\tx\n\\.\n",
    "copy without list": (
        "-- PostgreSQL database dump\nCREATE TABLE public.e (\n id int, password text);\nCOPY public.e FROM stdin;\n1\tLeakC1\n\\.\n"
    ),
    "copy csv": 'COPY e (id, note, password) FROM STDIN WITH (FORMAT csv);\n1,"a,b",LeakC1\n\\.\n',
    "copy accounts": "COPY account FROM stdin;\n1\tLeakC1\n\\.\n",
    "copy many columns": 'COPY "e" ("id",\n "password")\nFROM stdin;\n1\tLeakC1\n\\.\n',
    "sqlite": (
        "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE e(id INTEGER PRIMARY KEY, path TEXT, password TEXT);\n"
        "INSERT INTO e VALUES(1,'C:\\','LeakC1');\nCOMMIT;\n"
    ),
    "rows over lines": (
        "CREATE TABLE e (id INT, password TEXT, n INT);\nINSERT INTO e\nVALUES\n(1,\n'a',\n2),\n(2,'LeakC1'\n,3)\n;\n"
    ),
    "list over lines": "INSERT INTO\n e (\n id,\n `password`\n)\nVALUES\n (1,'LeakC1');\n",
    "string over lines": "INSERT INTO e (id, password) VALUES (1,'first\nLeakC1\nlast');\n",
    "added": (
        "CREATE TABLE e (id INT);\nALTER TABLE e ADD COLUMN password TEXT;\nINSERT INTO e VALUES (1,'LeakC1');\n"
    ),
    "added two": (
        "CREATE TABLE e (id INT);\nALTER TABLE `e`\n ADD COLUMN n DECIMAL(1,2) DEFAULT 1, ADD `password` TEXT AFTER `id`;\n"
        "INSERT INTO e VALUES (1,'LeakC1',2);\n"
    ),
    "added if missing": (
        "CREATE TABLE e (id INT); ALTER TABLE ONLY e ADD COLUMN IF NOT EXISTS password TEXT FIRST; INSERT INTO e VALUES ('LeakC1',1);\n"
    ),
    "renamed column": (
        "CREATE TABLE e (id INT, p TEXT);\nALTER TABLE e RENAME COLUMN p TO password;\nINSERT INTO e VALUES (1,'LeakC1');\n"
    ),
    "renamed table": (
        "CREATE TABLE e (id INT, password TEXT);\nALTER TABLE e RENAME TO f;\nINSERT INTO f VALUES (1,'LeakC1');\n"
    ),
    "like": "CREATE TABLE e (id INT, password TEXT);\nCREATE TABLE f LIKE e;\nREPLACE INTO f VALUES (1,'LeakC1');\n",
    "select": "INSERT INTO e (id, password) SELECT 1, 'x' UNION ALL SELECT f(2, 3), 'LeakC1';\n",
    "double quotes": 'CREATE TABLE e (id INT, password TEXT);\nINSERT INTO e VALUES (1,"LeakC1");\n',
    "escapes": "CREATE TABLE e (id INT, n TEXT, password TEXT);\nINSERT INTO e VALUES (1,'it\\'s, (''x''','Leak\\'C1LeakC1');\n",
    "a string that looks like a statement": (
        "INSERT INTO log VALUES (1,'a\nINSERT INTO x VALUES (''b');\nINSERT INTO e (password) VALUES ('LeakC1');\n"
    ),
    "or replace": "INSERT OR REPLACE INTO e (id, password) VALUES (1, 'LeakC1');\n",
    "conditional": "/*!50000 INSERT INTO e (password) VALUES ('LeakC1') */;\n",
    "set": "INSERT INTO e SET id = 1, `password` = 'LeakC1';\n",
    "update": "UPDATE `e` SET `password`='LeakC1' WHERE id = 1;\n",
    "hex": "CREATE TABLE e (id INT, password BLOB);\nINSERT INTO e VALUES (1,0x4C65616B4331AA), (2,'LeakC1');\n",
    "function before": "CREATE FUNCTION f() RETURNS int AS 'x';\nINSERT INTO e (password) VALUES ('LeakC1');\n",
    "settings": (
        "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT);\nINSERT INTO settings VALUES ('a','b'),('smtp_password','LeakC1');\n"
    ),
    "settings turned": "INSERT INTO option (id, value, name) VALUES (1,'LeakC1','smtp.token');\n",
    "settings copied": "COPY conf (id, name, value) FROM stdin;\n1\tapi_key\tLeakC1\n\\.\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_canary_is_gone_in_every_layout(name: str) -> None:
    text = SCRIPTS[name]
    stream = SqlStream(REDACTOR)
    out = stream.feed(text) + stream.finish()
    assert "LeakC1" not in out
    assert "4C65616B" not in out
    assert "REDACTED_SECRET_" in out
    assert out.count("\n") == text.count("\n")
    stream = SqlStream(REDACTOR)
    assert "".join(stream.feed(line) for line in text.splitlines(keepends=True)) == out


def test_what_is_no_secret_stays() -> None:
    text = (
        "CREATE TABLE berth (id INT, name TEXT, state TEXT);\nINSERT INTO berth VALUES (7,'north','open');\n"
        "CREATE TABLE e (id INT, password TEXT, note TEXT);\n"
        "INSERT INTO e VALUES (1,NULL,'password(1), fine'),(2,'','x');\n"
        "CREATE TABLE settings (name TEXT, value TEXT);\nINSERT INTO settings VALUES ('rate','4'),('a','b');\n"
        "SELECT 'password', 'x';\n"
    )
    assert SqlStream(REDACTOR).feed(text) == text


def test_one_script_teaches_the_columns_for_the_next() -> None:
    tables: dict[str, list[str]] = {}
    first = SqlStream(REDACTOR, tables)
    first.feed("CREATE TABLE e (id INT, password TEXT);\n")
    first.finish()
    assert "LeakC1" not in SqlStream(REDACTOR, tables).feed("INSERT INTO e VALUES (1,'LeakC1');\n")


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO e (password) VALUES ('" + "a" * 1_000_000,
        "INSERT INTO e (password) VALUES " + "('a')," * 100_000,
        "INSERT INTO e (" + "(" * 500_000,
        "INSERT INTO log VALUES (" + "'" * 999_999,
        "CREATE TABLE " + "a " * 400_000,
        "CREATE TABLE e (" + "a int," * 100_000 + ");",
        "CREATE TABLE e (a int);ALTER TABLE e " + "ADD a int," * 50_000 + ";",
        "INSERT " * 150_000,
        "INSERT INTO a.b" + " . c" * 200_000,
        ";" * 500_000 + "/*" * 200_000,
        "INSERT INTO log VALUES " + "/*" * 300_000,
        "INSERT INTO log VALUES (1)\n" * 30_000,
        "COPY e (password) FROM stdin;\n" + "x\t" * 400_000,
        " " * 1_000_000,
        "\n" * 500_000,
    ],
)  # fmt: skip
def test_hostile_scripts_take_linear_time(text: str) -> None:
    began = time.process_time()
    SqlStream(REDACTOR).feed(text)
    assert time.process_time() - began < 6
