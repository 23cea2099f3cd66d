"""What has been looked at so far, read from an investigation's history or from a diagnosis request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.llm.providers.offline.view import Json, one
from viano_assets.canonical import canonical_json
from viano_assets.evidence.model import Location
from viano_assets.phases.protocols import ModelRequest


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One evidence record as it was shown; there is one object per id, so identity is equality."""

    id: str
    tool: str
    kind: str
    content: str
    completeness: str
    location: Location
    places: tuple[Location, ...]

    @property
    def empty(self) -> bool:
        """True when the record states that nothing was found."""
        return self.kind == "absence"

    @property
    def usable(self) -> bool:
        """True unless the look was unavailable or came back empty from an incomplete scope."""
        if self.completeness == "unavailable":
            return False
        return not self.empty or self.completeness == "complete"


@dataclass(frozen=True, slots=True)
class Look:
    """One executed action and the records it brought, in order."""

    action_id: str
    hypothesis: str
    tool: str
    arguments: Json
    countercheck_of: str | None
    completeness: str
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One place of a ranking with its score and signals."""

    rank: int
    path: str
    symbol: str | None
    line_start: int
    line_end: int
    score: float
    signals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """One parsed ranking record: the shape of its scores and its places, best first."""

    name: str
    shape: dict[str, float]
    places: tuple[Ranked, ...]


@dataclass(slots=True)
class Findings:
    """All looks of a case in order, with the records by id."""

    looks: list[Look] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)

    def done(self, tool: str, arguments: Json) -> bool:
        """Tell whether this very look has been made."""
        wanted = canonical_json(arguments)
        return any(look.tool == tool and canonical_json(look.arguments) == wanted for look in self.looks)

    def by(self, *tools: str) -> Iterator[Look]:
        """Yield the looks made with one of the tools, in order."""
        return (look for look in self.looks if look.tool in tools)

    def of_kind(self, *kinds: str) -> list[Record]:
        """Return the usable records of the given kinds, in order."""
        return [record for record in self.records.values() if record.kind in kinds and record.usable]

    def rankings(self, name: str) -> list[Ranking]:
        """Return the parsed rankings called `name` (`symbols` or `files`), in order."""
        parsed = (parse_ranking(record.content) for record in self.of_kind("ranking"))
        return [ranking for ranking in parsed if ranking is not None and ranking.name == name]


def parse_ranking(content: str) -> Ranking | None:
    """Parse a ranking record: a JSON line with the shape, then one JSON line per place."""
    entries = [entry for entry in map(_json_line, content.splitlines()) if entry is not None]
    if not entries or "ranking" not in entries[0]:
        return None
    places = tuple(_ranked(entry) for entry in entries[1:] if "path" in entry)
    return Ranking(entries[0]["ranking"], dict(entries[0].get("shape", {})), places)


def _json_line(line: str) -> Json | None:
    """Return the object a line holds; a line cut for display is no object."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _ranked(entry: Json) -> Ranked:
    start, end = entry.get("lines", (1, 1))
    return Ranked(
        rank=entry["rank"],
        path=entry["path"],
        symbol=entry.get("symbol"),
        line_start=start,
        line_end=end,
        score=float(entry["score"]),
        signals=dict(entry.get("signals", {})),
    )


def _record(item: Json, tool: str) -> Record:
    provenance = item.get("provenance") or {}
    return Record(
        id=item["evidence_id"],
        tool=item.get("tool", tool),
        kind=provenance.get("kind", ""),
        content=item.get("content", ""),
        completeness=item["completeness"],
        location=Location.model_validate(provenance.get("location") or {}),
        places=tuple(Location.model_validate(place) for place in item.get("places") or ()),
    )


def from_history(request: ModelRequest) -> Findings:
    """Read the findings of an investigation request."""
    findings = Findings()
    for dispatch in request.sections("history"):
        for action in dispatch.get("actions", []):
            shown = list(_shown(action, findings))
            findings.looks.append(_look(action, dispatch["hypothesis_id"], shown))
    return findings


def _shown(action: Json, findings: Findings) -> Iterator[Record]:
    for item in action.get("evidence", []):
        if "content" in item:
            findings.records.setdefault(item["evidence_id"], _record(item, action["tool"]))
        record = findings.records.get(item["evidence_id"])
        if record is not None:
            yield record


def from_evidence(request: ModelRequest) -> Findings:
    """Read the findings of a diagnosis request."""
    findings = Findings()
    for item in one(request, "evidence") or []:
        record = _record(item, item["tool"])
        findings.records[record.id] = record
    for action in one(request, "actions") or []:
        shown = [findings.records[i] for i in action["evidence_ids"] if i in findings.records]
        findings.looks.append(_look(action, action["hypothesis_id"], shown))
    return findings


def _look(action: Json, hypothesis: str, records: Sequence[Record]) -> Look:
    return Look(
        action_id=action["action_id"],
        hypothesis=hypothesis,
        tool=action["tool"],
        arguments=dict(action.get("arguments") or {}),
        countercheck_of=action.get("countercheck_of"),
        completeness=action.get("completeness") or "unavailable",
        records=tuple(records),
    )


def ids(records: Iterable[Record], limit: int = 8) -> list[str]:
    """Return the ids of the first `limit` distinct records."""
    found: dict[str, Any] = dict.fromkeys(record.id for record in records)
    return list(found)[:limit]
