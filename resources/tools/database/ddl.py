"""CREATE TABLE to columns, keys and DuckDB types.

Only what a reader of rows needs is kept. Dates stay text, because dumps hold dates that do not exist
(`0000-00-00`); binary columns hold `0x…` text; an unknown type is text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from resources.tools.database.catalog import Column, ForeignKey
from resources.tools.database.defaults import Default, read_default
from resources.tools.database.naming import NAME, TABLE
from resources.tools.database.script import plain_name, space_of

_CREATE = re.compile(
    rf"CREATE\s+(?:(?:GLOBAL|LOCAL)\s+)?(?:TEMP(?:ORARY)?\s+|UNLOGGED\s+|FOREIGN\s+)?TABLE\s+"
    rf"(?P<guard>IF\s+NOT\s+EXISTS\s+)?(?P<name>{TABLE})\s*"
    rf"(?:(?P<body>\()|PARTITION\s+OF\s+(?P<whole>{TABLE})|LIKE\s+(?P<like>{TABLE})\s*;?\s*$)",
    re.IGNORECASE,
)
_LIKE_BODY = re.compile(rf"LIKE\s+({TABLE})", re.IGNORECASE)
_INHERITS = re.compile(rf"\)\s*INHERITS\s*\(\s*({TABLE})", re.IGNORECASE)
_PARTITIONED = re.compile(r"\)\s*PARTITION\s+BY\b", re.IGNORECASE)
_COLUMN = re.compile(rf"({NAME})\s+(.*)", re.DOTALL)
_KEY_LIST = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_FOREIGN = re.compile(
    rf"FOREIGN\s+KEY\s*(?:{NAME}\s*)?\(([^()]*)\)\s*REFERENCES\s+((?:{NAME}\s*\.\s*)*{NAME})\s*\(([^()]*)\)",
    re.IGNORECASE,
)
_REFERENCES = re.compile(rf"\bREFERENCES\s+((?:{NAME}\s*\.\s*)*{NAME})\s*(?:\(([^()]*)\))?", re.IGNORECASE)
_INDEX = re.compile(
    r"(?:UNIQUE|FULLTEXT|SPATIAL)?\s*(?:KEY|INDEX)\s*[^\s,(]*\s*(?:USING\s+\w+\s*)?\(\s*[`\"\[A-Za-z_]|"
    r"(?:CONSTRAINT\s+\S+\s+)?(?:UNIQUE\s*(?:KEY|INDEX)?\s*[^\s,(]*\s*\(|CHECK\s*\(|EXCLUDE\b|LIKE\b)",
    re.IGNORECASE,
)
_STOP = re.compile(
    r"\b(NOT\s+NULL|NULL|DEFAULT|AUTO_INCREMENT|AUTOINCREMENT|COMMENT|COLLATE|CHARACTER\s+SET|PRIMARY|UNIQUE|"
    r"REFERENCES|GENERATED|CHECK|ON\s+UPDATE|CONSTRAINT|KEY|AS\s*\()",
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
    """A CREATE TABLE as read.

    `binary` names the columns whose values become `0x…` text; `copied` the table whose columns this one takes
    over (LIKE, PARTITION OF, INHERITS); `whole` the table that this one is a part of; `guarded` means
    IF NOT EXISTS.
    """

    name: str
    columns: list[Column] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    binary: set[str] = field(default_factory=set)
    defaults: dict[str, Default] = field(default_factory=dict)
    space: str = ""
    copied: str | None = None
    whole: str | None = None
    partitioned: bool = False
    guarded: bool = False

    def take_over(self, other: TableShape) -> None:
        """Put the columns of another table before the own ones."""
        own = {column.name.casefold() for column in self.columns}
        taken = [column for column in other.columns if column.name.casefold() not in own]
        self.columns = [*taken, *self.columns]
        self.defaults = {**other.defaults, **self.defaults}
        self.binary |= other.binary
        self.primary_key = self.primary_key or other.primary_key

    def settle_key(self) -> None:
        """A key column that has no default and is left out has a value only the server knew."""
        for key in self.primary_key:
            name = next((c.name for c in self.columns if c.name.casefold() == key.casefold()), key)
            if self.defaults.get(name, Default()) == Default():
                self.defaults[name] = Default(unknown="it is a key and has no default")


def duckdb_type(declared: str, *, sqlite: bool = False) -> str:
    """Return the DuckDB type that holds every value of a declared SQL type; SQLite's integers have 64 bit."""
    text = " ".join(declared.lower().split())
    if sqlite and "int" in text:
        return "BIGINT"
    base = re.match(r"[a-z0-9_]+(?: precision| varying)?", text.strip('[]"`'))
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


def parse_create(text: str, *, sqlite: bool = False, backslash: bool = True) -> TableShape | None:
    """Read one CREATE TABLE statement; None when it is something else (a view, CREATE … AS SELECT).

    Args:
        text: the statement without comments.
        sqlite: whether SQLite wrote it.
        backslash: whether a backslash escapes in strings.
    """
    plain = text.lstrip()
    head = _CREATE.match(plain)
    if head is None:
        return None
    shape = TableShape(plain_name(head.group("name")), space=space_of(head.group("name")))
    shape.guarded = head.group("guard") is not None
    if not head.group("body"):
        shape.whole = head.group("whole")
        shape.copied = head.group("whole") or head.group("like")
        shape.partitioned = bool(re.search(r"\bPARTITION\s+BY\b", plain[head.end() :], re.IGNORECASE))
        return shape
    body = _balanced(plain, head.end())
    if body is None:
        return None
    tail = plain[head.end() + len(body) :]
    heirs = _INHERITS.match(tail)
    shape.partitioned = _PARTITIONED.match(tail) is not None
    shape.whole = heirs.group(1) if heirs else None
    shape.copied = shape.whole
    for item in items(body):
        like = _LIKE_BODY.match(item)
        if like:
            shape.copied = like.group(1)
        else:
            read_item(shape, item, sqlite=sqlite, backslash=backslash)
    if sqlite and (alias := shape.primary_key[:1] if len(shape.primary_key) == 1 else ()):
        for column in shape.columns:
            if column.name == alias[0] and (column.declared or "").upper() == "INTEGER":
                shape.defaults[column.name] = Default(unknown="the server numbers it")
    shape.settle_key()
    return shape if shape.columns or shape.copied else None


def _balanced(text: str, start: int) -> str | None:
    depth = 1
    for token in re.finditer(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|[()]", text[start:], re.DOTALL):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0:
            return text[start : start + token.start()]
    return None


def items(body: str) -> list[str]:
    """Split a list at its commas outside strings and parentheses."""
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


def _target(raw: str) -> str:
    """Name of a table that a key refers to, with its schema when that is named."""
    space = space_of(raw)
    return f"{space}.{plain_name(raw)}" if space else plain_name(raw)


def read_item(shape: TableShape, item: str, *, sqlite: bool = False, backslash: bool = True) -> None:
    """Read one item of the list in CREATE TABLE into the shape: a column, a key, a reference."""
    upper = item.upper()
    foreign = _FOREIGN.search(item)
    if foreign:
        shape.foreign_keys.append(
            ForeignKey(
                columns=_names(foreign.group(1)),
                table=_target(foreign.group(2)),
                target=_names(foreign.group(3)),
            )
        )
    elif re.match(r"(?:CONSTRAINT\s+\S+\s+)?PRIMARY\s+KEY\b", upper):
        keys = _KEY_LIST.search(item)
        shape.primary_key = _names(keys.group(1)) if keys else ()
    elif _INDEX.match(item):
        return
    elif column := _COLUMN.match(item):
        _read_column(shape, plain_name(column.group(1)), column.group(2), sqlite=sqlite, backslash=backslash)
    elif sqlite:
        shape.columns.append(Column(name=plain_name(item), type="VARCHAR"))


def _read_column(shape: TableShape, name: str, rest: str, *, sqlite: bool, backslash: bool) -> None:
    comment = _COMMENT.search(rest)
    stop = _STOP.search(rest)
    declared = " ".join((rest[: stop.start()] if stop else rest).split())
    if re.match(r"(?:tiny|medium|long)?blob\b|(?:var)?binary\b|bytea\b", declared, re.IGNORECASE):
        shape.binary.add(name)
    text = re.sub(r"\\(.)", r"\1", comment.group(1)).replace("''", "'") if comment else None
    shape.columns.append(
        Column(name=name, type=duckdb_type(declared, sqlite=sqlite), declared=declared or None, comment=text)
    )
    default = read_default(declared, rest, backslash=backslash)
    if name in shape.binary and default.literal is not None and default.literal[:2] != "0x":
        default = Default("0x" + default.literal.encode().hex().upper())
    if default != Default():
        shape.defaults[name] = default
    if re.search(r"\bPRIMARY\s+KEY\b", rest, re.IGNORECASE) and not shape.primary_key:
        shape.primary_key = (name,)
    reference = _REFERENCES.search(rest)
    if reference:
        target = _names(reference.group(2)) if reference.group(2) else ()
        shape.foreign_keys.append(
            ForeignKey(columns=(name,), table=_target(reference.group(1)), target=target)
        )
