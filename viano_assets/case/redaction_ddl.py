"""What the definitions in a SQL script say of the columns of its tables."""

from __future__ import annotations

import re

IDENT = r"(?:`[^`]+`|\"[^\"]+\"|\[[^\]]+\]|[\w$#@-]+)"
NAME = rf"(?P<name>{IDENT}(?:\s*\.\s*{IDENT})*)"
_CREATE_HEAD = re.compile(
    rf"\s*(?:(?!table\b)\w+\s+){{0,4}}table\s+(?:if\s+not\s+exists\s+)?{NAME}", re.IGNORECASE
)
_LIKE = re.compile(rf"\s*\(?\s*like\s+{NAME}", re.IGNORECASE)
_ALTER_HEAD = re.compile(
    rf"\s*(?:ignore\s+|foreign\s+)?table\s+(?:if\s+exists\s+)?(?:only\s+)?{NAME}", re.IGNORECASE
)
_CHANGE = re.compile(
    rf"(?:(?P<verb>add|drop|change|rename)\s+(?:column\s+)?(?:if\s+(?:not\s+)?exists\s+)?)?(?P<col>{IDENT})"
    rf"(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_AFTER = re.compile(rf"\bafter\s+(?P<col>{IDENT})\s*$|\b(?P<first>first)\s*$", re.IGNORECASE)
_RENAMED = re.compile(rf"\s*(?:to\s+)?(?P<col>{IDENT})", re.IGNORECASE)
_TYPE = re.compile(
    r"\s+(?:n?(?:var)?char|character|(?:tiny|medium|long)?text|citext|clob|string|int|big|small|blob|numeric|json"
    r"|uuid|date|time|bool|decimal|real|float|double|not\b|primary\b|$)",
    re.IGNORECASE,
)
_NO_COLUMN = frozenset(
    """primary unique key index constraint foreign fulltext check spatial exclude like period
    partition""".split()  # noqa: SIM905 - words read better than a list of strings
)


def created(head: str, tables: dict[str, list[str]]) -> None:
    """Take in the columns of a `CREATE TABLE`; `head` is what follows the first word."""
    name = _CREATE_HEAD.match(head)
    if name is None:
        return
    table = bare(name["name"]).lower()
    like = _LIKE.match(head, name.end())
    if like is not None:
        tables[table] = list(tables.get(bare(like["name"]).lower(), []))
        return
    body = head[name.end() :].partition("(")[2]
    columns = [column for item in _items(body) if (column := _column(item)) is not None]
    if columns:
        tables[table] = columns


def altered(head: str, tables: dict[str, list[str]]) -> None:
    """Take in what an `ALTER TABLE` adds, drops and renames; `head` is what follows the first word."""
    name = _ALTER_HEAD.match(head)
    columns = None if name is None else tables.get(bare(name["name"]).lower())
    if name is None or columns is None:
        return
    verb = ""
    for item in _items(head[name.end() :], whole=True):
        inner = re.match(r"\s*add\s*\((.*)\)\s*$", item, re.IGNORECASE | re.DOTALL)
        changes = _items(inner[1], whole=True) if inner is not None else [item]
        for change in changes:
            match = _CHANGE.match(change.strip())
            if match is None:
                continue
            verb = "add" if inner is not None else (match["verb"] or verb).lower()
            _change(columns, verb, match, tables)


def _change(columns: list[str], verb: str, match: re.Match[str], tables: dict[str, list[str]]) -> None:
    column, rest = match["col"], match["rest"]
    known = [item.lower() for item in columns]
    at = known.index(bare(column).lower()) if bare(column).lower() in known else None
    if verb == "add" and _column(column + rest) is not None and at is None:
        after = _AFTER.search(rest)
        place = len(columns)
        if after is not None:
            target = "" if after["first"] else bare(after["col"]).lower()
            place = known.index(target) + 1 if target in known else (0 if after["first"] else place)
        columns.insert(place, bare(column))
    elif verb == "drop" and at is not None:
        del columns[at]
    elif verb in {"change", "rename"} and (new := _RENAMED.match(rest)) is not None:
        if at is not None:
            columns[at] = bare(new["col"])
        elif column.lower() == "to":
            tables[bare(new["col"]).lower()] = columns
    elif verb == "rename" and rest == "" and at is None:
        tables[bare(column).lower()] = columns


_ITEM = re.compile(r"'(?:[^'\\]++|\\.|'')*+'|\"[^\"]*+\"|`[^`]*+`|[(),]|[^'\"`(),]++|.", re.DOTALL)


def _items(body: str, *, whole: bool = False) -> list[str]:
    """Split at the commas outside brackets and strings, up to the bracket that ends the list."""
    items = [""]
    depth = 0
    for match in _ITEM.finditer(body):
        word = match[0]
        if word == ")" and depth == 0 and not whole:
            break
        if word == "," and depth == 0:
            items.append("")
            continue
        depth += (word == "(") - (word == ")")
        items[-1] += word
    return items


def _column(item: str) -> str | None:
    """Return the column that an item of a table's definition makes, None for a key or constraint."""
    match = re.match(rf"\s*({IDENT})", item)
    if match is None:
        return None
    word = match[1].lower()
    if word in _NO_COLUMN and not (word in {"key", "index", "period"} and _TYPE.match(item, match.end())):
        return None
    return bare(match[1])


def bare(name: str) -> str:
    """Return the last part of a name without its quotes."""
    parts = re.findall(IDENT, name)
    return parts[-1].strip('`"[]') if parts else name.strip()
