"""Statements that change tables as such: DROP, TRUNCATE, RENAME, ALTER TABLE and transactions.

What is exact is applied at its place in the script. Whatever would need the server (a change of type over
rows, an exchange of partitions, a rollback) is not applied, and the table says so. The boilerplate of dump
tools changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from resources.tools.database.catalog import Column
from resources.tools.database.ddl import TableShape, items, read_item
from resources.tools.database.defaults import Default, literal_of
from resources.tools.database.naming import NAME, TABLE, quote
from resources.tools.database.register import Register, folded_space
from resources.tools.database.script import plain_name, space_of
from resources.tools.database.sink import TableSink

_DROP = re.compile(
    rf"DROP\s+(?:TEMPORARY\s+)?TABLE\s+(?P<guard>IF\s+EXISTS\s+)?(?P<names>{TABLE}(?:\s*,\s*{TABLE})*)",
    re.IGNORECASE,
)
_DROP_SPACE = re.compile(rf"DROP\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+EXISTS\s+)?({NAME})", re.IGNORECASE)
_EMPTY = re.compile(
    rf"(?:TRUNCATE\s+(?:TABLE\s+)?(?:ONLY\s+)?(?P<names>{TABLE}(?:\s*,\s*{TABLE})*)|"
    rf"DELETE\s+FROM\s+(?P<name>{TABLE})\s*;?\s*$)",
    re.IGNORECASE,
)
_RENAME = re.compile(r"RENAME\s+TABLE\s+(.*?);?\s*$", re.IGNORECASE | re.DOTALL)
_PAIR = re.compile(rf"({TABLE})\s+TO\s+({TABLE})", re.IGNORECASE)
_ALTER = re.compile(
    rf"ALTER\s+(?:IGNORE\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(?P<name>{TABLE})\s*\*?\s*(?P<rest>.*?);?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_HARMLESS = re.compile(
    r"(?:ENABLE|DISABLE|OWNER|ENGINE|AUTO_INCREMENT|COMMENT|ROW_FORMAT|CHECKSUM|STATS_\w+|DEFAULT|CHARACTER|CHARSET|"
    r"COLLATE|CONVERT|RESET|CLUSTER|REPLICA|VALIDATE|FORCE|NO\s+FORCE|NO\s+INHERIT|NOCHECK|CHECK|ORDER|LOCK|ALGORITHM|"
    r"ANALYZE|OPTIMIZE|REBUILD|WITH\s+(?:NO)?CHECK\s+(?:ADD|CHECK)|SET\s+(?!SCHEMA)|"
    r"ADD\s+(?:CONSTRAINT|UNIQUE|INDEX|KEY|FULLTEXT|SPATIAL|CHECK|EXCLUDE|PARTITION)\b|"
    r"DROP\s+(?:PRIMARY|INDEX|KEY|FOREIGN|CONSTRAINT|CHECK)\b|RENAME\s+(?:INDEX|KEY|CONSTRAINT)\b|ALTER\s+INDEX\b|"
    rf"ALTER\s+(?:COLUMN\s+)?{NAME}\s+(?:SET\s+(?:STATISTICS|STORAGE|NOT\s+NULL|COMPRESSION|\()|DROP\s+NOT|RESET|RESTART))",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"(?:WITH\s+(?:NO)?CHECK\s+)?ADD\s+((?:CONSTRAINT\s+\S+\s+)?(?:PRIMARY|FOREIGN)\s+KEY\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_ADD = re.compile(r"ADD\s+(?:COLUMN\s+)?(?:IF\s+NOT\s+EXISTS\s+)?(.+)$", re.IGNORECASE | re.DOTALL)
_PLACE = re.compile(rf"\s+(?:(FIRST)|AFTER\s+({NAME}))\s*$", re.IGNORECASE)
_DROP_COLUMN = re.compile(
    rf"DROP\s+(?:COLUMN\s+)?(?:IF\s+EXISTS\s+)?({NAME})\s*(?:CASCADE|RESTRICT)?\s*$", re.IGNORECASE
)
_RENAME_COLUMN = re.compile(rf"RENAME\s+(?:COLUMN\s+)?({NAME})\s+TO\s+({NAME})\s*$", re.IGNORECASE)
_RENAME_TO = re.compile(rf"RENAME\s+(?:TO\s+|AS\s+)?({TABLE})\s*$", re.IGNORECASE)
_SET_SCHEMA = re.compile(rf"SET\s+SCHEMA\s+({NAME})\s*$", re.IGNORECASE)
_CHANGE = re.compile(
    rf"(?:MODIFY\s+(?:COLUMN\s+)?(?P<modify>{NAME})|CHANGE\s+(?:COLUMN\s+)?(?P<old>{NAME})\s+(?P<new>{NAME}))\s+"
    r"(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_DEFAULT = re.compile(
    rf"ALTER\s+(?:COLUMN\s+)?({NAME})\s+(?:SET\s+DEFAULT\s+(?P<value>.+)|(?P<drop>DROP\s+DEFAULT)|"
    r"(?P<numbered>ADD\s+GENERATED\b.*))$",
    re.IGNORECASE | re.DOTALL,
)
_PART = re.compile(
    rf"(?:ATTACH\s+PARTITION\s+(?P<child>{TABLE})|INHERIT\s+(?P<parent>{TABLE}))", re.IGNORECASE
)
_BEGIN = re.compile(r"(?:BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
_COMMIT = re.compile(r"(?:COMMIT|END)\b", re.IGNORECASE)
_ROLLBACK = re.compile(r"ROLLBACK\b", re.IGNORECASE)
_LOCK = re.compile(r"LOCK\s+TABLES?\s+(.*?);?\s*$", re.IGNORECASE | re.DOTALL)

NOT_APPLIED = "statements for it were not applied"


class Outcome(NamedTuple):
    """What became of a statement: `reason` says why it was not applied, `names` what that concerns."""

    reason: str | None = None
    names: tuple[tuple[str, str], ...] = ()


def _name(raw: str) -> tuple[str, str]:
    return space_of(raw), plain_name(raw)


class Structure:
    """Applies the statements to the tables of one script.

    Args:
        register: the tables.
        forget: told of every table that is dropped.
        backslash: whether a backslash escapes in strings.
    """

    def __init__(self, register: Register, forget: Callable[[TableSink], None], *, backslash: bool) -> None:
        self.changed: set[TableSink] = set()
        """Tables that got rows since the last commit."""
        self.absent: list[tuple[str, str]] = []
        """Tables that were dropped or emptied before this script had any rows of them."""
        self._register = register
        self._forget = forget
        self._backslash = backslash

    def apply(self, text: str) -> Outcome | None:
        """Carry out one statement; None when it is of another kind."""
        if self._register.follow(text):
            return Outcome()
        for pattern, act in (
            (_DROP, self._drop),
            (_DROP_SPACE, self._drop_space),
            (_EMPTY, self._empty),
            (_RENAME, self._rename),
            (_ALTER, self._alter),
            (_LOCK, self._lock),
        ):
            found = pattern.match(text)
            if found is not None:
                return act(found)
        return self._transaction(text)

    def _transaction(self, text: str) -> Outcome | None:
        if _ROLLBACK.match(text):
            touched = sorted((sink.space, sink.name) for sink in self.changed)
            for sink in self.changed:
                sink.doubt("rows were rolled back, and that was not applied")
            self.changed.clear()
            return Outcome("a rollback is not applied", tuple(touched)) if touched else Outcome()
        if _BEGIN.match(text) or _COMMIT.match(text):
            self.changed.clear()
            return Outcome()
        return None

    def _drop(self, found: re.Match[str]) -> Outcome:
        for raw in re.findall(TABLE, found.group("names")):
            space, name = _name(raw)
            sink = self._register.find(space, name, rows=True)
            if sink is not None:
                self._remove(sink)
            elif not found.group("guard"):
                self.absent.append((space, name))
        return Outcome()

    def _remove(self, sink: TableSink) -> None:
        sink.connection.execute(f"DROP TABLE {quote(sink.physical)}")
        self._register.remove(sink)
        self.changed.discard(sink)
        self._forget(sink)

    def _drop_space(self, found: re.Match[str]) -> Outcome:
        space = folded_space(plain_name(found.group(1)))
        for sink in [sink for sink in self._register if space and folded_space(sink.space) == space]:
            self._remove(sink)
        return Outcome()

    def _empty(self, found: re.Match[str]) -> Outcome:
        for raw in re.findall(TABLE, found.group("names") or found.group("name")):
            space, name = _name(raw)
            sink = self._register.find(space, name)
            if sink is None:
                self.absent.append((space, name))
            else:
                sink.empty()
        return Outcome()

    def _rename(self, found: re.Match[str]) -> Outcome:
        for old, new in _PAIR.findall(found.group(1)):
            sink = self._register.find(*_name(old))
            if sink is None:
                return Outcome("it renames a table that this file does not create", (_name(old), _name(new)))
            self._register.rename(sink, *_name(new))
        return Outcome()

    def _lock(self, found: re.Match[str]) -> Outcome:
        for part in found.group(1).split(","):
            raw = re.match(TABLE, part.strip())
            sink = self._register.find(*_name(raw.group())) if raw else None
            if sink is not None and re.search(r"\bWRITE\b", part, re.IGNORECASE):
                sink.marked = True
        return Outcome()

    def _alter(self, found: re.Match[str]) -> Outcome:
        own = _name(found.group("name"))
        sink = self._register.find(*own)
        reason = None
        for clause in items(found.group("rest")):
            failed = self._clause(sink, clause)
            reason = reason or failed
        if reason is None:
            return Outcome()
        if sink is not None:
            sink.doubt(NOT_APPLIED)
        return Outcome(reason, (own,))

    def _clause(self, sink: TableSink | None, clause: str) -> str | None:
        """Apply one clause of ALTER TABLE; return why it was not applied, or None."""
        key = _KEY.match(clause)
        if key is not None or _HARMLESS.match(clause):
            if sink is not None and key is not None:
                _add_key(sink, key.group(1))
            return None
        if sink is None:
            return "it changes a table that this file does not create"
        if move := _SET_SCHEMA.match(clause):
            self._register.rename(sink, plain_name(move.group(1)), sink.name)
        elif default := _DEFAULT.match(clause):
            self._default(sink, default)
        elif part := _PART.match(clause):
            self._part(sink, part)
        else:
            return self._columns(sink, clause)
        return None

    def _columns(self, sink: TableSink, clause: str) -> str | None:
        if change := _CHANGE.match(clause):
            return self._change(sink, change)
        if add := _ADD.match(clause):
            return self._add(sink, add.group(1).strip())
        if (drop := _DROP_COLUMN.match(clause)) and sink.column(plain_name(drop.group(1))) is not None:
            name = str(sink.column(plain_name(drop.group(1))))
            sink.reshape([(column, quote(column.name)) for column in sink.columns if column.name != name])
            return None
        if (rename := _RENAME_COLUMN.match(clause)) and sink.column(plain_name(rename.group(1))) is not None:
            sink.rename_column(str(sink.column(plain_name(rename.group(1)))), plain_name(rename.group(2)))
            return None
        if move := _RENAME_TO.match(clause):
            self._register.rename(sink, *_name(move.group(1)))
            return None
        return "a change of the table that only its server can make"

    def _default(self, sink: TableSink, found: re.Match[str]) -> None:
        name = sink.column(plain_name(found.group(1)))
        if name is None:
            return
        if found.group("drop"):
            sink.set_default(name, Default())
        elif found.group("numbered"):
            sink.set_default(name, Default(unknown="the server numbers it"))
        else:
            sink.set_default(name, literal_of(found.group("value").strip(), backslash=self._backslash))

    def _part(self, sink: TableSink, found: re.Match[str]) -> None:
        if found.group("child"):
            child = self._register.find(*_name(found.group("child")))
            sink.parts.append(plain_name(found.group("child")))
            if child is not None:
                child.whole = sink.name
            return
        parent = self._register.find(*_name(found.group("parent")))
        sink.whole = plain_name(found.group("parent"))
        if parent is not None:
            parent.parts.append(sink.name)

    def _add(self, sink: TableSink, text: str) -> str | None:
        inner = items(text[1:-1]) if text.startswith("(") and text.endswith(")") else [text]
        for item in inner:
            place = _PLACE.search(item)
            shape = TableShape(sink.name)
            read_item(shape, item[: place.start()] if place else item, backslash=self._backslash)
            if len(shape.columns) != 1:
                return "a change of the table that only its server can make"
            column = shape.columns[0]
            if sink.column(column.name) is not None:
                continue
            at = _position(sink, place)
            if at is None:
                return "it names a column that the table does not have"
            _insert_column(sink, column, shape, at)
        return None

    def _change(self, sink: TableSink, found: re.Match[str]) -> str | None:
        old = sink.column(plain_name(found.group("modify") or found.group("old")))
        if old is None or _PLACE.search(found.group("rest")):
            return "it changes or moves a column"
        new = plain_name(found.group("modify") or found.group("new"))
        shape = TableShape(sink.name)
        read_item(shape, f"{quote(new)} {found.group('rest')}", backslash=self._backslash)
        own = next(column for column in sink.columns if column.name == old)
        if not shape.columns or (shape.columns[0].type != own.type and sink.rows):
            return "a change of a column's type over rows"
        if old != new:
            sink.rename_column(old, new)
        sink.redeclare(new, shape.columns[0])
        sink.set_default(new, shape.defaults.get(new, Default()))
        return None


def _position(sink: TableSink, place: re.Match[str] | None) -> int | None:
    if place is None:
        return len(sink.columns)
    if place.group(1):
        return 0
    name = sink.column(plain_name(place.group(2)))
    return None if name is None else sink.names.index(name) + 1


def _insert_column(sink: TableSink, column: Column, shape: TableShape, at: int) -> None:
    default = shape.defaults.get(column.name, Default())
    if default.unknown is not None and sink.rows:
        column = column.model_copy(update={"doubt": f"it was added to rows that exist: {default.unknown}"})
    literal = "NULL" if default.literal is None else "'" + default.literal.replace("'", "''") + "'"
    parts: list[tuple[Column, str]] = [(own, quote(own.name)) for own in sink.columns]
    parts.insert(at, (column, f"{literal}::{column.type}"))
    sink.defaults[column.name] = default
    sink.binary |= shape.binary
    sink.reshape(parts)


def _add_key(sink: TableSink, text: str) -> None:
    shape = TableShape(sink.name)
    read_item(shape, text)
    if shape.primary_key:
        sink.primary_key = shape.primary_key
        for key in shape.primary_key:
            name = sink.column(key)
            if name is not None and sink.defaults.get(name, Default()) == Default():
                sink.defaults[name] = Default(unknown="it is a key and has no default")
    sink.foreign_keys.extend(shape.foreign_keys)
