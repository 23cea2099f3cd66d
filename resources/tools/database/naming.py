"""Names in SQL and what a file is by its name and first bytes; imports nothing heavy."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_MAGIC = (("sqlite", 0, b"SQLite format 3\x00"), ("parquet", 0, b"PAR1"), ("duckdb", 8, b"DUCK"))
_SUFFIXES = (
    ("script", (".sql", ".dump", ".ddl", ".psql")),
    ("csv", (".csv", ".tsv", ".psv", ".tab")),
    ("json", (".json", ".jsonl", ".ndjson")),
)

NAME = r"(?:`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|\[[^\]]+\]|[\w$]+)"
"""Pattern of a name in SQL, in the quotes of every dialect or bare."""
TABLE = rf"{NAME}(?:\s*\.\s*{NAME})*"
"""Pattern of a table's name, its schema and database in front."""


def quote(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def kind_of(path: str, head: bytes) -> str | None:
    """Return `script`, `csv`, `json`, `sqlite`, `parquet`, `duckdb`, or None for what holds no tables."""
    name = path.lower()
    if "manifest" in PurePosixPath(name).name:
        return None
    for kind, start, magic in _MAGIC:
        if head[start : start + len(magic)] == magic:
            return kind
    return next((kind for kind, suffixes in _SUFFIXES if name.endswith(suffixes)), None)


_NUMBER = re.compile(
    r"(?:tiny|small|medium|big)?int(?:eger)?\d?\b|(?:small|big)?serial|float|double|real|dec(?:imal)?\b|numeric|fixed|"
    r"number\b|money|year|bit\b",
    re.IGNORECASE,
)


def declares_number(declared: str | None) -> bool:
    """Say whether a declared type is one of numbers."""
    return declared is not None and _NUMBER.match(declared.strip().strip('[]"`')) is not None
