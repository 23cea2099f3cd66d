"""CREATE TABLE to columns, keys and DuckDB types.

Only what a reader of rows needs is kept. Dates stay text, because dumps hold dates that do not exist
(`0000-00-00`); binary columns hold `0x…` text; an unknown type is text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from resources.tools.database.catalog import Column, ForeignKey
from resources.tools.database.script import plain_name

_CREATE = re.compile(
    r"CREATE\s+(?:TEMPORARY\s+|UNLOGGED\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"((?:(?:`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|\[[^\]]+\]|[\w$]+)\s*\.?\s*)+)\(",
    re.IGNORECASE,
)
_NAME = r"(?:`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|\[[^\]]+\]|[\w$]+)"
_COLUMN = re.compile(rf"({_NAME})\s+(.*)", re.DOTALL)
_KEY_LIST = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_FOREIGN = re.compile(
    rf"FOREIGN\s+KEY\s*(?:{_NAME}\s*)?\(([^()]*)\)\s*REFERENCES\s+((?:{_NAME}\s*\.\s*)*{_NAME})\s*\(([^()]*)\)",
    re.IGNORECASE,
)
_REFERENCES = re.compile(rf"\bREFERENCES\s+((?:{_NAME}\s*\.\s*)*{_NAME})\s*(?:\(([^()]*)\))?", re.IGNORECASE)
_INDEX = re.compile(
    r"(?:UNIQUE|FULLTEXT|SPATIAL)?\s*(?:KEY|INDEX)\s*[^\s,(]*\s*(?:USING\s+\w+\s*)?\(\s*[`\"\[A-Za-z_]|"
    r"(?:CONSTRAINT\s+\S+\s+)?(?:UNIQUE\s*(?:KEY|INDEX)?\s*[^\s,(]*\s*\(|CHECK\s*\(|EXCLUDE\b|LIKE\b)",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"\bCOMMENT\s+'((?:[^'\\]|\\.|'')*)'", re.IGNORECASE)
_SIGNED = {
    "tinyint": "TINYINT", "smallint": "SMALLINT", "mediumint": "INTEGER", "int": "INTEGER",
    "integer": "INTEGER", "bigint": "BIGINT", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT",
    "serial": "INTEGER", "bigserial": "BIGINT",
    "smallserial": "SMALLINT", "year": "INTEGER", "bit": "UBIGINT",
}  # fmt: skip
_UNSIGNED = {
    "TINYINT": "UTINYINT", "SMALLINT": "USMALLINT", "INTEGER": "UINTEGER", "BIGINT": "UBIGINT",
}  # fmt: skip
_REAL = frozenset({"float", "double", "real", "float4", "float8", "double precision"})


@dataclass(slots=True)
class TableShape:
    """A CREATE TABLE as read; `binary` names the columns whose values become `0x…` text."""

    name: str
    columns: list[Column] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    binary: set[str] = field(default_factory=set)
    sqlite: bool = False


def duckdb_type(declared: str) -> str:
    """Return the DuckDB type that holds every value of a declared SQL type."""
    text = " ".join(declared.lower().split())
    base = re.match(r"[a-z0-9_]+(?: precision| varying)?", text)
    word = base.group() if base else ""
    if word in _SIGNED:
        plain = _SIGNED[word]
        return _UNSIGNED.get(plain, plain) if "unsigned" in text else plain
    if word in {"bool", "boolean"}:
        return "VARCHAR"
    if word in _REAL:
        return "DOUBLE"
    if word in {"decimal", "numeric", "dec", "fixed"}:
        parts = re.search(r"\((\d+)(?:\s*,\s*(\d+))?\)", text)
        precision, scale = (int(parts.group(1)), int(parts.group(2) or 0)) if parts else (0, 0)
        return f"DECIMAL({precision},{scale})" if 0 < precision <= 38 and scale <= precision else "VARCHAR"
    return "VARCHAR"


def parse_create(text: str) -> TableShape | None:
    """Read one CREATE TABLE statement; None when it is something else (a view, CREATE … AS SELECT)."""
    head = _CREATE.match(text.lstrip())
    if head is None:
        return None
    body = _balanced(text.lstrip(), head.end())
    if body is None:
        return None
    shape = TableShape(plain_name(head.group(1)))
    for item in _items(body):
        _read_item(shape, item)
    return shape if shape.columns else None


def _balanced(text: str, start: int) -> str | None:
    depth = 1
    for token in re.finditer(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|[()]", text[start:], re.DOTALL):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0:
            return text[start : start + token.start()]
    return None


def _items(body: str) -> list[str]:
    items, depth, begin = [], 0, 0
    for token in re.finditer(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|[(),]", body, re.DOTALL):
        char = token.group()
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            items.append(body[begin : token.start()].strip())
            begin = token.end()
    items.append(body[begin:].strip())
    return [item for item in items if item]


def _names(raw: str) -> tuple[str, ...]:
    return tuple(plain_name(re.sub(r"\(\d+\)", "", part).strip()) for part in raw.split(",") if part.strip())


def _read_item(shape: TableShape, item: str) -> None:
    upper = item.upper()
    foreign = _FOREIGN.search(item)
    if foreign:
        target = plain_name(foreign.group(2))
        shape.foreign_keys.append(
            ForeignKey(columns=_names(foreign.group(1)), table=target, target=_names(foreign.group(3)))
        )
    elif re.match(r"(?:CONSTRAINT\s+\S+\s+)?PRIMARY\s+KEY\b", upper):
        keys = _KEY_LIST.search(item)
        shape.primary_key = _names(keys.group(1)) if keys else ()
    elif _INDEX.match(item):
        return
    elif column := _COLUMN.match(item):
        _read_column(shape, plain_name(column.group(1)), column.group(2))


def _read_column(shape: TableShape, name: str, rest: str) -> None:
    comment = _COMMENT.search(rest)
    stop = re.search(
        r"\b(NOT\s+NULL|NULL|DEFAULT|AUTO_INCREMENT|AUTOINCREMENT|COMMENT|COLLATE|CHARACTER\s+SET|PRIMARY|UNIQUE|"
        r"REFERENCES|GENERATED|CHECK|ON\s+UPDATE|CONSTRAINT|KEY)\b",
        rest,
        re.IGNORECASE,
    )
    declared = " ".join((rest[: stop.start()] if stop else rest).split())
    if re.match(r"(?:tiny|medium|long)?blob\b|(?:var)?binary\b|bytea\b", declared, re.IGNORECASE):
        shape.binary.add(name)
    text = re.sub(r"\\(.)", r"\1", comment.group(1)).replace("''", "'") if comment else None
    shape.columns.append(
        Column(name=name, type=duckdb_type(declared), declared=declared or None, comment=text)
    )
    if re.search(r"\bPRIMARY\s+KEY\b", rest, re.IGNORECASE) and not shape.primary_key:
        shape.primary_key = (name,)
    reference = _REFERENCES.search(rest)
    if reference:
        target = _names(reference.group(2)) if reference.group(2) else ()
        shape.foreign_keys.append(
            ForeignKey(columns=(name,), table=plain_name(reference.group(1)), target=target)
        )
