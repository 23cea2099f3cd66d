"""Which table refers to which: declared keys, else a column name that means a table and values that fit.

Nothing is known of any particular schema. A link needs a name that points at the table and, where both
tables are whole, nearly all values present at the target; both reasons are kept with it.
"""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from resources.tools.database.catalog import Catalog, Table
from resources.tools.database.compare import is_numeric
from resources.tools.database.naming import quote
from resources.tools.database.rows import column_of

if TYPE_CHECKING:
    import duckdb

CONTAINMENT = 0.98
"""Share of distinct values that the target must hold when both tables are whole."""

GROUPED = 0.8
"""Share of the values in a column that must lead a group of rows; the affected one may be missing."""

_SUFFIXES = frozenset(
    {"id", "ids", "guid", "uuid", "key", "no", "nr", "ref", "entry", "code", "fk", "idx", "num"}
)
_GENERIC = frozenset(
    {"id", "guid", "uuid", "key", "entry", "name", "code", "type", "no", "nr", "index", "idx"}
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class Link(NamedTuple):
    """Rows of `child` refer by `column` to the rows of `parent` whose `target` has the same value."""

    child: str
    column: str
    parent: str
    target: str
    basis: str
    containment: float | None

    def describe(self) -> dict[str, object]:
        """Return the link as evidence shows it."""
        return {
            "from": f"{self.child}.{self.column}",
            "to": f"{self.parent}.{self.target}",
            "basis": self.basis,
            "containment": None if self.containment is None else round(self.containment, 4),
        }


@lru_cache(maxsize=8192)
def words(name: str) -> tuple[str, ...]:
    """Split a name at case and underscores; each word lower case and singular."""
    return tuple(_singular(word.lower()) for word in _WORD.findall(name))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("sses") or (word.endswith("xes") and len(word) > 4):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _stem(column: str) -> tuple[str, ...]:
    found = list(words(column))
    while found and found[-1] in _SUFFIXES:
        found.pop()
    return tuple(found)


def _means(column: str, table: str) -> bool:
    """Say whether a column's name points at a table: `home_berth_id` at `berths` or `harbour_berth`."""
    stem, name = _stem(column), words(table)
    if not stem or not name:
        return False
    if stem == name or name[: len(stem)] == stem or name[-len(stem) :] == stem:
        return True
    return stem[-len(name) :] == name or stem[: len(name)] == name


class Links:
    """Links of a snapshot, found table by table when asked for."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables = [table for table in catalog.tables if table.of is None]
        self._checked: dict[tuple[str, str, str, str], float | None] = {}

    def outgoing(self, connection: duckdb.DuckDBPyConnection, table: Table) -> list[Link]:
        """Links from the columns of `table`, one for each column and target, best first."""
        found: list[Link] = []
        for parent in self._tables:
            found.extend(self._between(connection, table, parent))
        return sorted(found, key=lambda link: (link.column, -(link.containment or 0), link.parent))

    def incoming(self, connection: duckdb.DuckDBPyConnection, table: Table) -> list[Link]:
        """Links from other tables to `table`."""
        found: list[Link] = []
        for child in self._tables:
            found.extend(self._between(connection, child, table))
            found.extend(self._groups(connection, child, table))
        unique = {(link.child, link.column, link.target): link for link in reversed(found)}
        return sorted(unique.values(), key=lambda link: (link.child, link.column, link.target))

    def _groups(self, connection: duckdb.DuckDBPyConnection, child: Table, table: Table) -> list[Link]:
        """Links by a value that names a group of rows, as the steps of a route or the lines of an order.

        A column of `table` whose values are the leading part of the composite key of `child`.
        """
        if len(child.primary_key) < 2 or child.name == table.name:
            return []
        lead = column_of(child, child.primary_key[0])
        if lead is None:
            return []
        links = []
        for column in table.columns:
            if column.name in table.primary_key or is_numeric(column.type) != is_numeric(lead[1]):
                continue
            same = column.name.casefold() == lead[0].casefold() and lead[0].casefold() not in _GENERIC
            if not (same or (_stem(column.name) and _means(column.name, child.plain))):
                continue
            share = self._containment(connection, table, column.name, child, lead[0])
            if share is not None and share >= GROUPED:
                links.append(Link(child.name, lead[0], table.name, column.name, "group of rows", share))
        return links

    def _between(self, connection: duckdb.DuckDBPyConnection, child: Table, parent: Table) -> list[Link]:
        links: list[Link] = []
        declared = {
            key.columns[0].casefold(): (key.target[0] if key.target else (parent.primary_key or ("",))[0])
            for key in child.foreign_keys
            if key.table.casefold() == parent.name.casefold() and len(key.columns) == 1
        }
        target = parent.primary_key[0] if len(parent.primary_key) == 1 else None
        for column in child.columns:
            apart = child.space != parent.space and bool(child.space and parent.space)
            named = None if apart else self._named(child, column.name, parent, target)
            aim = declared.get(column.name.casefold()) or named
            place = column_of(parent, aim) if aim else None
            if place is None or (child.name == parent.name and place[0] == column.name):
                continue
            if is_numeric(place[1]) != is_numeric(column.type):
                continue
            share = self._containment(connection, child, column.name, parent, place[0])
            if column.name.casefold() in declared:
                links.append(Link(child.name, column.name, parent.name, place[0], "declared", share))
            elif share is not None and share >= self._needed(child, column.name, parent):
                links.append(Link(child.name, column.name, parent.name, place[0], "name and values", share))
        return links

    def _named(self, child: Table, column: str, parent: Table, target: str | None) -> str | None:
        if target is None:
            return None
        same = column.casefold() == target.casefold() and column.casefold() not in _GENERIC
        if same and child.name != parent.name:
            return target
        return (
            target if _means(column, parent.plain) and (child.name != parent.name or _stem(column)) else None
        )

    def _needed(self, child: Table, column: str, parent: Table) -> float:
        if parent.extent.kind != "full" or child.extent.kind != "full":
            return 0.0 if _stem(column) == words(parent.plain) else 0.5
        return 0.8 if _stem(column) == words(parent.plain) else CONTAINMENT

    def _containment(
        self, connection: duckdb.DuckDBPyConnection, child: Table, column: str, parent: Table, target: str
    ) -> float | None:
        """Share of distinct values (0, -1, NULL aside) that the target holds; None without values."""
        key = (child.name, column, parent.name, target)
        if key not in self._checked:
            own = quote(column)
            row = connection.execute(
                f"SELECT count(*), count(*) FILTER (v IN (SELECT {quote(target)} FROM {quote(parent.name)})) "
                f"FROM (SELECT DISTINCT {own} AS v FROM {quote(child.name)} "
                f"WHERE {own} IS NOT NULL AND {own}::VARCHAR NOT IN ('0', '-1', ''))"
            ).fetchone()
            total, held = row or (0, 0)
            self._checked[key] = held / total if total else None
        return self._checked[key]
