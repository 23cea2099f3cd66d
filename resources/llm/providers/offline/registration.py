"""Is the affected row's name known to the source where the names of its siblings are?

Rows often name a script or handler that the code registers. The names that sibling rows hold in the same
column are looked for in the source together with the affected one: a file where most siblings stand and the
affected one does not is a hole in the code, not in the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.scene import Scene, Wish
from resources.llm.providers.offline.view import Json
from resources.llm.providers.offline.wording import say

MAX_NAMES = 8
FEW = 3
"""Sibling names that must stand in a file before it counts as the place for such names."""
MOST = 0.8
SPAN = 60

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:\-]{4,60}")


@dataclass(frozen=True, slots=True)
class Named:
    """A row and one of its columns that holds a name of the code."""

    table: str
    column: str
    name: str
    row: Record


@dataclass(frozen=True, slots=True)
class Hole:
    """A file in which sibling names stand and the affected one does not; lines of the siblings there."""

    named: Named
    path: str
    siblings: tuple[str, ...]
    first: int
    last: int


def named_rows(scene: Scene) -> list[Named]:
    """Return the names in the rows that were compared with their siblings."""
    found: list[Named] = []
    for look in scene.findings.by("db.siblings"):
        row = next((record for record in look.records if record.kind == "row"), None)
        for column, value in _cells(row).items() if row is not None else ():
            coded = isinstance(value, str) and _NAME.fullmatch(value) is not None
            if row is not None and coded and (re.search(r"[_\d:.]|[a-z][A-Z]", value)):
                found.append(Named(str(look.arguments["table"]), column, value, row))
    return found[:2]


def _cells(record: Record | None) -> Json:
    try:
        row = json.loads(record.content).get("row", {}) if record is not None else {}
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _rows_wish(scene: Scene, named: Named) -> Wish:
    where = [{"column": named.column, "op": "!=", "value": named.name}]
    return Wish(
        "db.rows",
        {"table": named.table, "where": where, "limit": 20},
        say(
            scene,
            f"Which names do other rows of {named.table} have in {named.column}?",
            f"Welche Namen haben andere Zeilen von {named.table} in {named.column}?",
        ),
    )


def _siblings(scene: Scene, named: Named) -> list[str]:
    wish = _rows_wish(scene, named)
    values: list[str] = []
    for look in scene.findings.by("db.rows"):
        if look.arguments == wish.arguments:
            values += [str(_cells(r).get(named.column)) for r in look.records if r.kind == "row"]
    return [v for v in dict.fromkeys(values) if _NAME.fullmatch(v)][:MAX_NAMES]


def _search(scene: Scene, named: Named, siblings: list[str]) -> Wish:
    words = "|".join(re.escape(word) for word in [named.name, *siblings])
    return Wish(
        "source.search",
        {"pattern": rf"\b({words})\b", "regex": True, "context": 0, "limit": 200},
        say(
            scene,
            f"Where does the source know {named.name}, and where its siblings?",
            f"Wo kennt der Quelltext {named.name}, und wo die Geschwister?",
        ),
    )


def plan_registration(scene: Scene) -> Iterator[Wish]:
    """Yield the looks that compare where names are known."""
    if "db.rows" not in scene.tools or "source.search" not in scene.tools:
        return
    for named in named_rows(scene):
        yield _rows_wish(scene, named)
        siblings = _siblings(scene, named)
        if len(siblings) < FEW:
            continue
        yield _search(scene, named, siblings)
    for hole in holes(scene)[:1]:
        yield _absence(scene, hole)
        last = min(hole.last + 1, hole.first + SPAN - 2)
        span = {"path": hole.path, "line_start": max(1, hole.first - 1), "line_end": last}
        yield Wish(
            "source.read",
            span,
            say(
                scene,
                f"How are the siblings of {hole.named.name} named there?",
                f"Wie sind die Geschwister von {hole.named.name} dort genannt?",
            ),
        )


def _absence(scene: Scene, hole: Hole) -> Wish:
    return Wish(
        "source.search",
        {"pattern": hole.named.name, "globs": [hole.path], "limit": 5},
        say(
            scene,
            f"Does {hole.path} know {hole.named.name} anywhere?",
            f"Kennt {hole.path} irgendwo {hole.named.name}?",
        ),
    )


def holes(scene: Scene) -> list[Hole]:
    """Return the files that know most siblings and not the affected name."""
    found: list[Hole] = []
    for named in named_rows(scene):
        siblings = _siblings(scene, named)
        if len(siblings) >= FEW:
            places = _places(scene, _search(scene, named, siblings).arguments, [named.name, *siblings])
            found += _holes(named, siblings, places)
    return found


def _places(scene: Scene, arguments: Json, names: list[str]) -> dict[str, dict[str, int]]:
    """Return name → path → first line, from the listing of one search."""
    places: dict[str, dict[str, int]] = {}
    for look in scene.findings.by("source.search"):
        if look.arguments != arguments or look.completeness != "complete":
            continue
        for record in look.records:
            for line in record.content.splitlines() if record.kind == "search" else ():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                for name in names:
                    if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(entry.get("text", ""))):
                        places.setdefault(name, {}).setdefault(str(entry["path"]), int(entry["line"]))
    return places


def _holes(named: Named, siblings: list[str], places: dict[str, dict[str, int]]) -> Iterator[Hole]:
    known = [name for name in siblings if name in places]
    paths = sorted({path for name in known for path in places[name]})
    for path in paths:
        there = [name for name in known if path in places[name]]
        usual = len(there) >= FEW and len(there) >= MOST * len(known)
        if usual and path not in places.get(named.name, {}):
            lines = [places[name][path] for name in there]
            yield Hole(named, path, tuple(there), min(lines), max(lines))


def shown(scene: Scene, hole: Hole) -> tuple[Record | None, Record | None]:
    """Return the complete absence of the name in the file, and the lines that name the siblings."""
    absence = None
    for look in scene.findings.by("source.search"):
        if look.arguments == _absence(scene, hole).arguments:
            absence = next((r for r in look.records if r.empty and r.usable), None)
    lines = next(
        (
            record
            for record in scene.findings.of_kind("source", "config")
            if record.tool == "source.read"
            and record.location.path == hole.path
            and sum(name in record.content for name in hole.siblings) >= FEW
        ),
        None,
    )
    return absence, lines
