"""The places a person is shown, the same everywhere: terminal, summary, page, Dagster.

The list is only how the published `localisation` is read out. The places of the confirmed cause come first,
whatever their kind, with the very lines the cause rests on; each place stands once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from viano_assets.evidence.model import EvidenceRecord
from viano_assets.phases.diagnosis.claims import find_quote, split_quotes

MOST = 5
"""Longest list of one kind beside the places of the cause."""

KINDS = ("symbols", "files", "rows")
_NO_FAULT_PLACE = frozenset({"case", "log", "ranking"})


class Shown(NamedTuple):
    """One record a report shows: its id, the kind of its content, its location and its content."""

    evidence_id: str
    kind: str
    location: Mapping[str, Any]
    content: str


class Place(NamedTuple):
    """One place to show: `file`, `symbol` or `row`, and the localisation entry it is read from."""

    kind: str
    item: Mapping[str, Any]


def heading(*, confirmed: bool) -> str:
    """Return the heading of the places: a claim only when the cause is confirmed."""
    return "Where" if confirmed else "Where to look first (a ranking, not a claim)"


def shown_records(records: Iterable[EvidenceRecord]) -> list[Shown]:
    """Return stored records as `ranked_places` takes them."""
    return [
        Shown(r.evidence_id, r.provenance.kind, r.provenance.location.model_dump(), r.content)
        for r in records
    ]


def view_places(view: Mapping[str, Any]) -> list[Place]:
    """Return the places of a case view (`case_view`) in the order in which people are shown them."""
    shown = [
        Shown(record["evidence_id"], record["kind"], record, str(record["excerpt"]))
        for record in view.get("evidence") or []
    ]
    return ranked_places(view.get("localisation") or {}, view.get("diagnosis") or {}, shown)


def ranked_places(
    localisation: Mapping[str, Sequence[Mapping[str, Any]]],
    diagnosis: Mapping[str, Any],
    shown: Sequence[Shown],
) -> list[Place]:
    """Return the places to show, best first.

    Those of the confirmed cause in cited order, then what else is cited by kind (rows first when the best
    cited record is one); retrieved ones only as long as nothing is confirmed. A file is left out when a
    place inside it stands already.

    Args:
        localisation: `files`, `symbols` and `rows` of a result.
        diagnosis: `status` and `root_cause` of a result.
        shown: the records of the report in its order, the cited ones first.
    """
    lists = {kind: list(localisation.get(kind) or []) for kind in KINDS}
    lists["rows"] = _each_row_once(lists["rows"])
    confirmed = diagnosis.get("status") == "confirmed"
    found = _of_cause(lists, diagnosis.get("root_cause") or {}, shown) if confirmed else []
    cited_any = any(item["basis"] == "cited" for items in lists.values() for item in items)
    order = ("rows", "symbols", "files") if _rows_first(shown) else KINDS
    for basis in ("cited", "retrieved"):
        if basis == "retrieved" and confirmed and cited_any:
            break
        for kind in order:
            _add(found, kind[:-1], [item for item in lists[kind][:MOST] if item["basis"] == basis])
    return found


def _rows_first(shown: Sequence[Shown]) -> bool:
    for record in shown:
        if record.location.get("table"):
            return True
        if record.location.get("path") and record.kind not in _NO_FAULT_PLACE:
            return False
    return False


def _identity(item: Mapping[str, Any]) -> tuple[Any, ...]:
    key = tuple(sorted((item.get("key") or {}).items()))
    return (item.get("path"), item.get("symbol"), item.get("table"), key)


def _add(found: list[Place], kind: str, items: Iterable[Mapping[str, Any]]) -> None:
    """Append the places that do not stand yet."""
    for item in items:
        inside = kind == "file" and any(place.item.get("path") == item["path"] for place in found)
        if not inside and _identity(item) not in {_identity(place.item) for place in found}:
            found.append(Place(kind, item))


def _each_row_once(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return each row once, with the columns named besides its key, as well founded as its best entry."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    columns: dict[tuple[Any, ...], dict[str, None]] = {}
    for item in rows:
        identity = _identity(item)
        entry = found.setdefault(identity, {**item, "column": None})
        if item["basis"] == "cited":
            entry["basis"] = "cited"
        column = item.get("column")
        if column and column not in (item.get("key") or {}):
            columns.setdefault(identity, {})[column] = None
    for identity, names in columns.items():
        found[identity]["column"] = ", ".join(names)
    return list(found.values())


def _of_cause(
    lists: Mapping[str, Sequence[Mapping[str, Any]]], cause: Mapping[str, Any], shown: Sequence[Shown]
) -> list[Place]:
    """Return the places of the records that carry the cause, in cited order."""
    by_id = {record.evidence_id: record for record in shown}
    texts = (str(cause.get("summary", "")), str(cause.get("technical_description", "")))
    quotes = [quote for text in texts for quote in split_quotes(text)[1::2]]
    found: list[Place] = []
    for name in cause.get("evidence_ids") or []:
        record = by_id.get(name)
        if record is not None and record.kind not in _NO_FAULT_PLACE:
            place = _place_of(lists, record, quotes)
            if place is not None:
                _add(found, place.kind, [place.item])
    return found


def _place_of(
    lists: Mapping[str, Sequence[Mapping[str, Any]]], record: Shown, quotes: Sequence[str]
) -> Place | None:
    location = record.location
    if location.get("table"):
        item = next((row for row in lists["rows"] if _identity(row) == _identity(_bare(location))), None)
        return None if item is None else Place("row", item)
    path, start = location.get("path"), location.get("line_start")
    if path is None:
        return None
    quoted = _lines(record, quotes)
    first = quoted[0] if quoted else start
    for item in lists["symbols"]:
        begin, end = item.get("line_start"), item.get("line_end")
        around = first is not None and begin is not None and end is not None and begin <= first <= end
        if item["path"] == path and (around or item["symbol"] == location.get("symbol")):
            return Place("symbol", item)
    file = next((item for item in lists["files"] if item["path"] == path), None)
    if file is None:
        return None
    last = quoted[1] if quoted else location.get("line_end")
    return Place("file", {**file, "line_start": first, "line_end": last})


def _bare(location: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"table": location["table"], "key": location.get("key")}


def _lines(record: Shown, quotes: Sequence[str]) -> tuple[int, int] | None:
    """Return the lines of the file that the cause quotes out of a record, when it quotes any."""
    start = record.location.get("line_start")
    if start is None:
        return None
    for quote in quotes:
        at = find_quote(record.content, quote)
        if at is not None:
            return (start + at.line, start + at.line + at.lines - 1)
    return None
