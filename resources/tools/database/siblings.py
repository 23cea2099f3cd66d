"""What do working examples have that this row lacks?

The row is compared with its peers: rows of the same table that share most of its small-valued columns.
Four questions, each answered by counting, none about meaning: which companion rows do most peers have; which
kinds of companion row (by a small-valued column) do most peers have; do counts that a peer states agree with
its companion rows; which references of the peers lead somewhere. A finding carries the shares it stands on;
whether it is the defect is for a reader to judge.
"""

# ruff: noqa: S608 - names in SQL are quoted, values are parameters
from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from resources.tools.contract import compact
from resources.tools.database.catalog import Catalog, Table
from resources.tools.database.cells import encode_cell
from resources.tools.database.compare import is_numeric
from resources.tools.database.links import Link, Links
from resources.tools.database.naming import quote
from resources.tools.database.rows import (
    Row,
    completeness,
    fetch,
    location,
    row_draft,
    scope,
    text_of,
    where,
)
from viano_assets.evidence.model import Draft, Location, Provenance

if TYPE_CHECKING:
    import duckdb

MOST = 0.8
"""Share of the peers from which on something counts as what peers have."""

MIN_PEERS = 3
MAX_PEERS = 300
_SMALL = 50

_BESIDE_KEY = 0.9
"""Weight of a kind that is no part of a composite key: rows differ there more often for good reasons."""


class Finding(NamedTuple):
    """One difference; `share` is the part of the peers that have what the row lacks."""

    share: float
    kind: str
    text: str
    table: Table
    missing: dict[str, str] | None
    example: str | None


class Comparison(NamedTuple):
    """The drafts of a comparison and the tables it looked at."""

    drafts: list[Draft]
    tables: list[Table]


class Companions(NamedTuple):
    """Rows of one linked table, grouped by the value that links them."""

    link: Link
    table: Table
    rows: dict[str, list[dict[str, Any]]]


class Measured(NamedTuple):
    """Counts and largest values over the companion rows, of the row and of each of its peers."""

    own: dict[str, float]
    peers: list[tuple[dict[str, Any], dict[str, float]]]


def compare(
    connection: duckdb.DuckDBPyConnection, catalog: Catalog, links: Links, row: Row, limit: int
) -> Comparison:
    """Compare `row` with its peers and return the findings, the strongest first."""
    peers = _peers(connection, row)
    tables = {row.table.name: row.table}
    findings: list[Finding] = []
    companions: list[Companions] = []
    if len(peers) >= MIN_PEERS:
        for link in links.incoming(connection, row.table):
            table = catalog.table(link.child)
            if table is None or table.name == row.table.name:
                continue
            tables[table.name] = table
            companions.append(_companions(connection, link, table, row, peers))
        findings.extend(_own_values(row, peers))
        findings.extend(_dangling(connection, catalog, links, row.table, [row.cells], peers, tables))
        for group in companions:
            measured = Measured(_measures(group, row.cells), [(p, _measures(group, p)) for p in peers])
            findings.extend(_missing(group, row, peers, measured))
            findings.extend(_stated_counts(group, row, measured))
            findings.extend(_deeper(connection, catalog, links, group, row, peers, tables))
    findings.sort(key=lambda f: (-f.share, f.kind, f.table.name, f.text))
    return Comparison(
        _drafts(row, peers, companions, findings[:limit], list(tables.values())), list(tables.values())
    )


def _peers(connection: duckdb.DuckDBPyConnection, row: Row) -> list[dict[str, Any]]:
    """Return the peers: the rows that agree with it in most small-valued columns."""
    table = row.table
    condition = where(table, [])
    if isinstance(condition, str):
        return []
    others = [other.cells for other in fetch(connection, table, condition, 5_000) if other.cells != row.cells]
    small = _small_columns(table, [*others, row.cells])
    scored = sorted(
        ((sum(other[c] == row.cells[c] for c in small), index) for index, other in enumerate(others)),
        key=lambda pair: (-pair[0], pair[1]),
    )
    if not scored:
        return []
    near = [pair for pair in scored if pair[0] >= scored[0][0] - 1]
    if len(near) < 10:
        near = scored[: max(10, len(near))]
    return [others[index] for _, index in near[:MAX_PEERS]]


def _small_columns(table: Table, rows: list[dict[str, Any]]) -> list[str]:
    names = []
    for column in table.column_names:
        if column in table.primary_key:
            continue
        values = {text_of(row[column]) for row in rows}
        if 1 < len(values) <= min(_SMALL, max(2, len(rows) // 4)):
            names.append(column)
    return names


def _companions(
    connection: duckdb.DuckDBPyConnection, link: Link, table: Table, row: Row, peers: list[dict[str, Any]]
) -> Companions:
    own = text_of(row.cells[link.target])
    wanted = [own, *sorted({text_of(r[link.target]) for r in peers if r[link.target] is not None} - {own})]
    parts = ", ".join(
        f"{quote(c.name)}::VARCHAR" if not is_numeric(c.type) else quote(c.name) for c in table.columns
    )
    order = ", ".join(quote(name) for name in table.primary_key) or "rowid"
    grouped: dict[str, list[dict[str, Any]]] = {}
    for part in (wanted[:1], wanted[1:]):
        found = connection.execute(
            f"SELECT {parts} FROM {quote(table.name)} WHERE {quote(link.column)}::VARCHAR IN "
            f"(SELECT unnest(?::VARCHAR[])) ORDER BY {order} LIMIT 20000",
            [part],
        ).fetchall()
        for values in found:
            plain = (str(v) if isinstance(v, Decimal) else encode_cell(v) for v in values)
            cells = dict(zip(table.column_names, plain, strict=True))
            grouped.setdefault(text_of(cells[link.column]), []).append(cells)
    return Companions(link, table, grouped)


def _rows_of(group: Companions, cells: dict[str, Any]) -> list[dict[str, Any]]:
    return group.rows.get(text_of(cells.get(group.link.target)), [])


def _missing(group: Companions, row: Row, peers: list[dict[str, Any]], measured: Measured) -> list[Finding]:
    own = _rows_of(group, row.cells)
    having = [peer for peer in peers if _rows_of(group, peer)]
    share = len(having) / len(peers)
    key = {group.link.column: text_of(row.cells[group.link.target])}
    table = group.table
    findings = []
    if not own:
        if share >= MOST:
            text = f"no row of {table.name} refers to it; {len(having)} of {len(peers)} peers have some"
            findings.append(Finding(share, "companion", text, table, key, _example(group, having)))
        return findings
    if len(having) < MIN_PEERS:
        return findings
    for column in table.column_names:
        if column == group.link.column:
            continue
        present = Counter(v for peer in having for v in {text_of(r[column]) for r in _rows_of(group, peer)})
        if len(present) > _SMALL:
            continue
        mine = {text_of(r[column]) for r in own}
        stated_end = _states_end(row, measured, column)
        for value, number in sorted(present.items()):
            part = number / len(having)
            if part >= MOST and value not in mine and not (stated_end and _beyond(value, mine)):
                text = (
                    f"no row of {table.name} with {column}={value} refers to it; "
                    f"{number} of {len(having)} peers have one"
                )
                example = _example(
                    group, [p for p in having if value in {text_of(r[column]) for r in _rows_of(group, p)}]
                )
                beside = len(table.primary_key) > 1 and column not in table.primary_key
                weight = part * _BESIDE_KEY if beside else part
                findings.append(
                    Finding(weight, "companion kind", text, table, {**key, column: value}, example)
                )
    return findings


def _states_end(row: Row, measured: Measured, column: str) -> bool:
    """Say whether a column of the row states its own last value of `column`, as it does with the peers.

    Then the row ends where it says it ends, and a kind beyond that is no gap.
    """
    name = f"largest {column}"
    own = measured.own.get(name)
    for stated in row.table.columns:
        if not is_numeric(stated.type) or stated.name in row.table.primary_key:
            continue
        if own is None or row.cells[stated.name] != own:
            continue
        pairs = [(peer[stated.name], found[name]) for peer, found in measured.peers if name in found]
        if len(pairs) >= 5 and sum(a == b for a, b in pairs) / len(pairs) >= 0.9:
            return True
    return False


def _beyond(value: str, mine: set[str]) -> bool:
    """Say whether a whole number lies beyond all of `mine`."""
    numbers = [int(item) for item in mine if item.lstrip("-").isdigit()]
    return value.lstrip("-").isdigit() and bool(numbers) and int(value) > max(numbers)


def _example(group: Companions, peers: list[dict[str, Any]]) -> str | None:
    return text_of(peers[0][group.link.target]) if peers else None


def _measures(group: Companions, cells: dict[str, Any]) -> dict[str, float]:
    rows = _rows_of(group, cells)
    found: dict[str, float] = {"number of rows": len(rows)}
    for column in group.table.columns:
        if is_numeric(column.type) and column.name != group.link.column:
            values = [row[column.name] for row in rows if isinstance(row[column.name], int | float)]
            if values:
                found[f"largest {column.name}"] = max(values)
    return found


def _stated_counts(group: Companions, row: Row, measured: Measured) -> list[Finding]:
    """A number in the row that, with the peers, equals a count or maximum over the companion rows."""
    findings = []
    for column in row.table.columns:
        if not is_numeric(column.type) or column.name in row.table.primary_key:
            continue
        for name in sorted({n for _, measures in measured.peers for n in measures}):
            pairs = [
                (p[column.name], m[name])
                for p, m in measured.peers
                if name in m and p[column.name] is not None
            ]
            agree = sum(a == b for a, b in pairs)
            if len(pairs) < 5 or agree / len(pairs) < 0.9:
                continue
            certain = 1.0 if len({a for a, _ in pairs}) > 1 else 0.9
            stated, real = row.cells[column.name], measured.own.get(name, 0)
            if stated is not None and stated != real:
                text = (
                    f"{column.name}={stated} but {name} of {group.table.name} is {real:g}; "
                    f"both agree in {agree} of {len(pairs)} peers"
                )
                key = {group.link.column: text_of(row.cells[group.link.target])}
                last, kind = name.removeprefix("largest "), "stated count"
                if last in group.table.primary_key and isinstance(stated, int) and stated > real:
                    kind, key = "companion kind", {**key, last: text_of(stated)}
                share = certain * agree / len(pairs)
                findings.append(Finding(share, kind, text, group.table, key, None))
    return findings


def _own_values(row: Row, peers: list[dict[str, Any]]) -> list[Finding]:
    findings = []
    for column in row.table.column_names:
        if column in row.table.primary_key:
            continue
        value, number = Counter(text_of(peer[column]) for peer in peers).most_common(1)[0]
        share = number / len(peers)
        if share >= 0.9 and text_of(row.cells[column]) != value and number < len(peers) + 1:
            text = f"{column}={text_of(row.cells[column])}; {number} of {len(peers)} peers have {value}"
            findings.append(Finding(share * 0.9, "own value", text, row.table, None, None))
    return findings


def _targets(connection: duckdb.DuckDBPyConnection, parent: Table, column: str, values: set[str]) -> set[str]:
    found = connection.execute(
        f"SELECT DISTINCT {quote(column)}::VARCHAR FROM {quote(parent.name)} "
        f"WHERE {quote(column)}::VARCHAR IN (SELECT unnest(?::VARCHAR[]))",
        [sorted(values)],
    ).fetchall()
    return {str(value) for (value,) in found}


def _dangling(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    links: Links,
    table: Table,
    own: list[dict[str, Any]],
    peers: list[dict[str, Any]],
    tables: dict[str, Table],
) -> list[Finding]:
    """References of the row (or its companions) that lead nowhere although those of the peers do not."""
    findings = []
    for link in links.outgoing(connection, table):
        parent = catalog.table(link.parent)
        if parent is None:
            continue
        mine = {text_of(r[link.column]) for r in own if r[link.column] not in (None, 0, -1, "")}
        theirs = {text_of(r[link.column]) for r in peers if r[link.column] not in (None, 0, -1, "")}
        if not mine:
            continue
        tables[parent.name] = parent
        held = _targets(connection, parent, link.target, mine | theirs)
        share = len(theirs & held) / len(theirs) if theirs else 0.0
        if share < MOST:
            continue
        for value in sorted(mine - held):
            text = (
                f"{table.name}.{link.column}={value} leads to no row of {parent.name}; "
                f"{len(theirs & held)} of {len(theirs)} values of the peers do"
            )
            findings.append(Finding(share, "dangling reference", text, parent, {link.target: value}, None))
    return findings


def _deeper(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    links: Links,
    group: Companions,
    row: Row,
    peers: list[dict[str, Any]],
    tables: dict[str, Table],
) -> list[Finding]:
    """The same questions one step on: do the companion rows themselves have companions and targets?"""
    own = _rows_of(group, row.cells)
    theirs = [r for peer in peers for r in _rows_of(group, peer)]
    if not own or len(theirs) < MIN_PEERS:
        return []
    findings = _dangling(connection, catalog, links, group.table, own, theirs, tables)
    for link in links.incoming(connection, group.table):
        child = catalog.table(link.child)
        if child is None or child.name in {row.table.name, group.table.name}:
            continue
        tables[child.name] = child
        keys = {text_of(r[link.target]) for r in own + theirs if r[link.target] is not None}
        held = _targets(connection, child, link.column, keys)
        having = sum(text_of(r[link.target]) in held for r in theirs)
        share = having / len(theirs)
        if share < MOST:
            continue
        for companion in own:
            value = text_of(companion[link.target])
            if value not in held:
                text = (
                    f"no row of {child.name} refers to {group.table.name} {link.target}={value}; "
                    f"{having} of {len(theirs)} companion rows of the peers have one"
                )
                findings.append(
                    Finding(share, "companion of companion", text, child, {link.column: value}, None)
                )
    return findings


def _drafts(
    row: Row,
    peers: list[dict[str, Any]],
    companions: list[Companions],
    findings: list[Finding],
    tables: list[Table],
) -> list[Draft]:
    keys = row.table.primary_key or row.table.column_names[:1]
    head = {
        "table": row.table.name,
        "key": row.key,
        "peers": len(peers),
        "peer_examples": [{k: peer[k] for k in keys} for peer in peers[:5]],
        "linked_tables": [group.link.describe() for group in companions],
        "findings": len(findings),
    }
    lines = [
        {
            "finding": f.kind,
            "text": f.text,
            "share": round(f.share, 3),
            "extent": f.table.extent.kind,
            "in_key": f.missing is not None and set(f.missing) <= set(f.table.primary_key),
        }
        for f in findings
    ]
    places = [location(f.table, f.missing) for f in findings if f.missing]
    summary = Draft(
        content="\n".join([compact(head), *(compact(line) for line in lines)]),
        provenance=Provenance(
            kind="query",
            input_path=row.table.input_path,
            input_sha256=row.table.input_sha256,
            location=location(row.table, row.key),
        ),
        completeness=completeness(tables),
        places=tuple(places) or (Location(path=row.table.path, table=row.table.name, key=row.key),),
    )
    missing = [
        _absent(finding) for finding in findings if finding.missing and finding.kind != "stated count"
    ][:5]
    return [summary, row_draft(row), *missing, *_examples(companions, findings)]


def _absent(finding: Finding) -> Draft:
    table = finding.table
    return Draft(
        content=compact(
            {"found": 0, "statement": finding.text, "looked_for": finding.missing, "scope": scope([table])}
        ),
        provenance=Provenance(
            kind="absence",
            input_path=table.input_path,
            input_sha256=table.input_sha256,
            location=location(table, finding.missing),
        ),
        completeness=completeness([table], finding.missing),
    )


def _examples(companions: list[Companions], findings: list[Finding]) -> list[Draft]:
    drafts = []
    for finding in findings[:3]:
        if finding.example is None:
            continue
        group = next(g for g in companions if g.table.name == finding.table.name)
        wanted = {k: v for k, v in (finding.missing or {}).items() if k != group.link.column}
        for cells in group.rows.get(finding.example, []):
            if all(text_of(cells[k]) == v for k, v in wanted.items()):
                drafts.append(row_draft(Row(group.table, cells)))
                break
    return drafts
