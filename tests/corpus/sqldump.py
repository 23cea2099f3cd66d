# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""Writes tables the way mysqldump does, quirks included, and as CSV extracts with a manifest."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

Value = int | float | str | None


class Column(NamedTuple):
    """Name and SQL type of a column."""

    name: str
    type: str


class Table(NamedTuple):
    """A table with its rows in key order."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    key: Sequence[str]
    comment: str = ""


def literal(value: Value) -> str:
    """Return a value as mysqldump writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\0", "\\0")
        return f"'{escaped}'"
    return repr(value)


def ddl(table: Table) -> str:
    """Return DROP and CREATE of a table."""
    lines = [f"  `{column.name}` {column.type}," for column in table.columns]
    keys = ",".join(f"`{name}`" for name in table.key)
    note = f" COMMENT='{table.comment}'" if table.comment else ""
    body = "\n".join([*lines, f"  PRIMARY KEY ({keys})"])
    return (
        f"DROP TABLE IF EXISTS `{table.name}`;\n/*!40101 SET @saved_cs_client     = @@character_set_client */;\n"
        f"/*!50503 SET character_set_client = utf8mb4 */;\nCREATE TABLE `{table.name}` (\n{body}\n"
        f") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4{note};\n"
        "/*!40101 SET character_set_client = @saved_cs_client */;\n"
    )


def dump(tables: Sequence[Table], *, database: str, one_line: bool, mariadb: bool) -> str:
    """Return a whole dump.

    Args:
        tables: in the order they are written.
        database: name in the head comment.
        one_line: all rows of a table in one line (mysqldump), else one row a line.
        mariadb: start with the sandbox line of newer MariaDB dumps.
    """
    head = "/*M!999999\\- enable the sandbox mode */\n" if mariadb else ""
    head += (
        f"-- MySQL dump 10.13  Distrib 8.0.36\n--\n-- Host: localhost    Database: {database}\n"
        "-- ------------------------------------------------------\n"
        "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n/*!50503 SET NAMES utf8mb4 */;\n"
        "/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;\n\n"
    )
    parts = [head]
    between = "," if one_line else ",\n"
    for table in tables:
        parts.append(f"--\n-- Table structure for table `{table.name}`\n--\n\n{ddl(table)}\n")
        if not table.rows:
            continue
        rows = between.join("(" + ",".join(literal(value) for value in row) + ")" for row in table.rows)
        start = " " if one_line else "\n"
        parts.append(
            f"--\n-- Dumping data for table `{table.name}`\n--\n\nLOCK TABLES `{table.name}` WRITE;\n"
            f"/*!40000 ALTER TABLE `{table.name}` DISABLE KEYS */;\n"
            f"INSERT INTO `{table.name}` VALUES{start}{rows};\n"
            f"/*!40000 ALTER TABLE `{table.name}` ENABLE KEYS */;\nUNLOCK TABLES;\n\n"
        )
    parts.append("/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;\n\n-- Dump completed\n")
    return "".join(parts)


def extract(table: Table, rows: Sequence[Sequence[Value]]) -> str:
    """Return rows of a table as CSV with a header line; NULL is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    return out.getvalue()
