"""From text of the database to string literals of the source, and the tables a row touches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from resources.tools.contract import compact
from resources.tools.database.catalog import Table
from resources.tools.database.links import Link, Links
from resources.tools.database.rows import (
    Condition,
    Row,
    completeness,
    count,
    fetch,
    location,
    row_draft,
    where,
)
from resources.tools.database.snapshot import Snapshot
from viano_assets.evidence.model import Draft, Location, Provenance

if TYPE_CHECKING:
    import duckdb

LiteralSearch = Callable[[str], Sequence[Location]]
"""Finds the places in the source where a string stands as a quoted literal."""

_IDENTIFIER = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9_.:/-]{4,80}")


class Bridge:
    """Looks up identifier-like text of the database as a literal of the source."""

    def __init__(self, search: LiteralSearch) -> None:
        self._search = search
        self._known: dict[str, tuple[Location, ...]] = {}

    def places(self, text: str) -> list[Location]:
        """Return where `text` stands as a literal; nothing for text that is no identifier."""
        if not _IDENTIFIER.fullmatch(text):
            return []
        if text not in self._known:
            self._known[text] = tuple(self._search(text))
        return list(self._known[text])

    def of_row(self, row: Row) -> dict[str, Any]:
        """Return, for the identifier-like cells of a row, the places in the source or an empty list."""
        found = {}
        for column, cell in row.cells.items():
            if isinstance(cell, str) and _IDENTIFIER.fullmatch(cell) and not cell.startswith("0x"):
                places = self.places(cell)
                found[column] = {
                    "value": cell,
                    "source": [f"{place.path}:{place.line_start}" for place in places[:5]],
                }
        return found


class Surroundings(NamedTuple):
    """What stands around one row."""

    summary: Draft
    rows: list[Draft]
    tables: list[Table]


class Around:
    """Follows the links of one row, one step in both directions."""

    def __init__(self, snapshot: Snapshot, links: Links, bridge: Bridge | None) -> None:
        self._catalog = snapshot.catalog
        self._links = links
        self._bridge = bridge

    def of(self, connection: duckdb.DuckDBPyConnection, row: Row, limit: int) -> Surroundings:
        """Collect the neighbours of `row`: a summary line for each link, then up to `limit` rows."""
        lines: list[dict[str, Any]] = []
        drafts: list[Draft] = []
        places: list[Location] = []
        tables = {row.table.name: row.table}
        for link, outgoing in self._steps(connection, row.table):
            own, other, column = (
                (link.column, link.parent, link.target)
                if outgoing
                else (link.target, link.child, link.column)
            )
            table = self._catalog.table(other)
            value = row.cells.get(own)
            if table is None or value in (None, 0, "", -1) or isinstance(value, dict):
                continue
            tables[table.name] = table
            condition = where(table, [Condition(column=column, op="=", value=value)])
            if isinstance(condition, str):
                continue
            total = count(connection, table, condition)
            lines.append({
                "link": link.describe(), "value": value, "rows": total, "extent": table.extent.kind,
            })  # fmt: skip
            for found in fetch(connection, table, condition, 3 if total else 0):
                if len(drafts) < limit:
                    drafts.append(row_draft(found))
                    places.append(location(table, found.key))
        return Surroundings(
            self._summary(row, lines, places, list(tables.values())), drafts, list(tables.values())
        )

    def _steps(self, connection: duckdb.DuckDBPyConnection, table: Table) -> list[tuple[Link, bool]]:
        outgoing = [(link, True) for link in self._links.outgoing(connection, table)]
        return outgoing + [(link, False) for link in self._links.incoming(connection, table)]

    def _summary(
        self, row: Row, lines: list[dict[str, Any]], places: list[Location], tables: list[Table]
    ) -> Draft:
        head: dict[str, Any] = {"table": row.table.name, "key": row.key, "links": len(lines)}
        if self._bridge is not None:
            head["literals"] = self._bridge.of_row(row)
        return Draft(
            content="\n".join([compact(head), *(compact(line) for line in lines)]),
            provenance=Provenance(
                kind="query",
                input_path=row.table.input_path,
                input_sha256=row.table.input_sha256,
                location=location(row.table, row.key),
            ),
            completeness=completeness(tables),
            places=tuple(places),
        )
