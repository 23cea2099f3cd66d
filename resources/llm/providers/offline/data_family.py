"""Data: does a record or link that working siblings have lack, or differ, for the affected item?

Looks: which typed columns hold the ids the report names (`db.id`), what the rows with that id as key lack
compared with their peers (`db.siblings`), how whole the table is (`db.schema`), and whether a log says that a
row was not taken (`log.entity`). A finding counts by the share of peers it rests on, by whether the table is
whole, and by whether it names a missing row rather than an unusual value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from resources.llm.providers.offline.findings import Look, Record
from resources.llm.providers.offline.printing import log_lines
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from resources.llm.providers.offline.view import Json
from resources.llm.providers.offline.wording import line_quote, plain, say
from viano_assets.phases.wire import Confidence

MAX_IDS = 4
MAX_ROWS = 3
MAX_NAMED = 2

STRUCTURE = {
    "companion": 1.0,
    "companion kind": 1.0,
    "dangling reference": 1.0,
    "companion of companion": 0.9,
}
"""Findings that name something missing, with their weight against each other."""

VALUES = {"stated count": 0.7, "own value": 0.6}
"""Findings that name something unusual."""

CERTAIN, CLEAR = 0.95, 0.9
"""Share of the peers from which a missing row counts as certain, as clear."""

_QUOTED = re.compile(r"[\"“„»'`]([^\"“”„«»'`\n]{3,60})[\"”“«'`]")
_PROPER = re.compile(
    r"(?<![.!?:\n] )(?<!^)\b([A-ZÄÖÜ][\w'-]+(?: (?:of|the|von|der|des|de|am|im))?(?: [A-ZÄÖÜ][\w'-]+)+)"
)
_ID_COLUMN = re.compile(r"(?:^|[_a-z])(?:id|guid|no|nr|num|number|ref|key|entry|code)$", re.IGNORECASE)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d.*)?$")
_SKIPPED = re.compile(
    r"skip|ignor|not loaded|non.?exist|does not exist|unknown|invalid|discard|missing|"
    r"verworfen|übersprungen|fehlt",
    re.IGNORECASE,
)
_PREDICATE = re.compile(
    r"([A-Za-z_]\w*)[`\"]?\s*(<=|>=|<>|!=|=|<|>|between|in)\s*(\([^()]*\)|[\w.'-]+)(?:\s+and\s+([\w.'-]+))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One finding of a comparison: its kind, words, share of peers, table extent and the look it is from."""

    kind: str
    text: str
    share: float
    extent: str
    summary: Record
    absence: Record | None
    row: Record | None
    example: Record | None
    missing: dict[str, str]
    table: str
    named: bool
    keyed: bool

    @property
    def momentary(self) -> bool:
        """True when what is missing is told apart by a date or time: a moment is no kind of row."""
        return any(_MOMENT.match(value) for value in self.missing.values())

    @property
    def weight(self) -> float:
        """Strength against other findings: share of peers, kind, what the report names, table extent."""
        kind = STRUCTURE.get(self.kind, VALUES.get(self.kind, 0.3))
        whole = 1.0 if self.extent == "full" else 0.5
        return self.share * kind * whole + (0.3 if self.named else 0.0) + (0.2 if self.keyed else 0.0)


def names(scene: Scene) -> list[str]:
    """Return the ids of the report, then its quoted words and proper names, that may stand in a column."""
    numbers = scene.numbers()[:MAX_IDS]
    texts = scene.case.of("observation", "report", "reproduction_step", "comment", "technical_fact")
    words = [match[1].strip() for source in texts for match in _QUOTED.finditer(source.text)]
    words += [match[1].strip() for source in texts for match in _PROPER.finditer(source.text)]
    return list(dict.fromkeys([*numbers, *words]))[: MAX_IDS + 2]


def plan_data(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Data in order."""
    if "db.id" not in scene.tools:
        return
    code = scene.id_of("Code")
    for name in names(scene):
        yield Wish(
            "db.id",
            {"id": name},
            say(scene, f"Which typed columns hold {name}?", f"In welchen Spalten steht {name}?"),
        )
    for table, column, name in named_rows(scene)[:MAX_NAMED]:
        where = [{"column": column, "op": "=", "value": name}]
        yield Wish(
            "db.rows",
            {"table": table, "where": where, "limit": 3},
            say(scene, f"Which item is called {name}?", f"Welcher Gegenstand heißt {name}?"),
        )
    for column, value in named_ids(scene)[:MAX_NAMED]:
        yield Wish(
            "db.id",
            {"id": value, "column_like": column},
            say(
                scene,
                f"Which rows have {column} {value} as their key?",
                f"Welche Zeilen haben {column} {value} als Schlüssel?",
            ),
        )
    for table, key in keyed_rows(scene)[:MAX_ROWS]:
        shown = ", ".join(f"{column}={value}" for column, value in sorted(key.items()))
        yield Wish(
            "db.siblings",
            {"table": table, "key": key},
            say(
                scene,
                f"What do working rows of {table} have that {shown} lacks?",
                f"Was haben funktionierende Zeilen von {table}, das {shown} fehlt?",
            ),
            code,
        )
    for difference in differences(scene)[:1]:
        yield Wish(
            "db.schema",
            {"table": difference.table},
            say(
                scene,
                f"How whole is {difference.table} as shipped, and what is its key?",
                f"Wie vollständig ist {difference.table} im Auszug, und was ist der Schlüssel?",
            ),
        )


def named_rows(scene: Scene) -> list[tuple[str, str, str]]:
    """Return table, column and name where a name of the report stands beside the key, few rows first."""
    return [
        (str(hit["table"]), str(hit["column"]), str(look.arguments["id"]))
        for look in scene.findings.by("db.id")
        if not str(look.arguments["id"]).isdigit()
        for record in look.records
        for hit in _json_lines(record)
        if "column" in hit and "table" in hit and not hit.get("key") and 0 < int(hit.get("rows", 0)) <= 3
    ]


def named_ids(scene: Scene) -> list[tuple[str, str]]:
    """Return the id columns, with their values, of the rows that carry a name of the report."""
    found: dict[tuple[str, str], None] = {}
    for look in scene.findings.by("db.rows"):
        for record in look.records:
            for value in _json_lines(record):
                for column, cell in (value.get("row") or {}).items():
                    if isinstance(cell, int) and not isinstance(cell, bool) and _ID_COLUMN.search(column):
                        found[str(column), str(cell)] = None
    return list(found)


def keyed_rows(scene: Scene) -> list[tuple[str, Json]]:
    """Return the rows that an id or name of the report identifies: key columns and few rows first."""
    found: list[tuple[tuple[int, int, int], str, Json]] = []
    for number, look in enumerate(scene.findings.by("db.id")):
        for record in look.records:
            for hit in _json_lines(record):
                if "column" not in hit or "table" not in hit or int(hit.get("rows", 0)) > 3:
                    continue
                name, like = str(look.arguments["id"]), look.arguments.get("column_like")
                if not hit.get("key") and (not name.isdigit() or int(hit["rows"]) != 1 or like):
                    continue
                linked = like is not None and str(hit["column"]) == like
                order = (0 if linked else 1 if hit.get("key") else 2, int(hit["rows"]), number)
                found.append((order, str(hit["table"]), {str(hit["column"]): name}))
    found.sort(key=lambda item: item[0])
    unique = {json.dumps([table, key], sort_keys=True): (table, key) for _, table, key in found}
    return list(unique.values())


def _json_lines(record: Record) -> Iterator[Json]:
    for line in record.content.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _schemas(scene: Scene) -> dict[str, dict[str, Any]]:
    """Return what `db.schema` said of each table: completeness, predicate, key."""
    found: dict[str, dict[str, Any]] = {}
    for look in scene.findings.by("db.schema"):
        for record in look.records:
            merged: dict[str, Any] = {"record": record}
            lines = record.content.splitlines()
            for number, line in enumerate(lines):
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                if isinstance(value, dict):
                    merged.update(value)
                    if isinstance(value.get("key"), int):
                        names_ = [text.strip('"') for text in lines[number + 1 : number + 1 + value["key"]]]
                        merged["key"] = names_
            found[str(look.arguments.get("table"))] = merged
    return found


def differences(scene: Scene) -> list[Difference]:
    """Return what the comparisons found, the strongest first."""
    wanted = set(re.findall(r"\d+", scene.case.text()))
    keys = {table: set(schema.get("key") or []) for table, schema in _schemas(scene).items()}
    found = [item for look in scene.findings.by("db.siblings") for item in _of(look, wanted, keys)]
    return sorted(found, key=lambda item: -item.weight)


def _of(look: Look, wanted: set[str], keys: dict[str, set[str]]) -> Iterator[Difference]:
    summary = next((record for record in look.records if record.kind == "query"), None)
    if summary is None:
        return
    rows = [record for record in look.records if record.kind == "row"]
    absences = {_statement(record): record for record in look.records if record.empty}
    asked = {str(value) for value in look.arguments["key"].values()}
    for value in _json_lines(summary):
        if "finding" not in value:
            continue
        text, kind = str(value["text"]), str(value["finding"])
        absence = absences.get(text)
        where = absence.location if absence is not None else summary.location
        missing = dict(where.key or {})
        others = {name: part for name, part in missing.items() if part not in asked}
        table = str(where.table or look.arguments["table"])
        yield Difference(
            kind=kind,
            text=text,
            share=float(value["share"]),
            extent=str(value["extent"]),
            summary=summary,
            absence=absence,
            row=rows[0] if rows else None,
            example=next((row for row in rows[1:] if row.location.table == table), None),
            missing=missing,
            table=table,
            named=any(part in wanted and len(part) > 1 for part in others.values()),
            keyed=bool(others) and (bool(value.get("in_key")) or set(others) <= keys.get(table, set())),
        )


def _statement(record: Record) -> str:
    return next((str(value.get("statement", "")) for value in _json_lines(record)), "")


def skipped_rows(scene: Scene) -> list[tuple[Record, str]]:
    """Return the log lines that say that a row of an affected table was not taken."""
    tables = {table for table, _ in keyed_rows(scene)}
    ids = [re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)") for name in scene.numbers()[:MAX_IDS]]
    tables |= {str(r.location.table) for r in scene.findings.of_kind("row") if r.location.table}
    return [
        (record, line)
        for record, line in log_lines(scene)
        if _SKIPPED.search(line)
        and any(word.search(line) for word in ids)
        and any(re.search(rf"\b{re.escape(table)}\b", line) for table in tables)
    ]


def judge_data(scene: Scene) -> Judgement:
    """Judge the family Data from what the comparisons found."""
    looks = list(scene.findings.by("db.siblings"))
    skipped = skipped_rows(scene)
    found = differences(scene)
    if skipped and (not found or found[0].kind not in STRUCTURE):
        judgement = _skipped(scene, skipped[0])
        if judgement is not None:
            return judgement
    if not looks:
        reason = say(
            scene,
            "No stored record of the affected item could be compared with working ones.",
            "Kein gespeicherter Datensatz des betroffenen Gegenstands ließ sich mit funktionierenden "
            "vergleichen.",
        )
        return Judgement("neutral", Confidence.UNASSESSED, reason=reason)
    structural = [item for item in found if item.kind in STRUCTURE and not item.momentary]
    if not structural:
        return _like_siblings(scene, looks, found)
    return _missing(scene, structural[0])


def _like_siblings(scene: Scene, looks: list[Look], found: list[Difference]) -> Judgement:
    whole = tuple(r for look in looks for r in look.records if r.usable and r.kind in {"query", "row"})
    complete = [r for r in whole if r.kind == "query" and r.completeness == "complete"]
    if found and found[0].share >= CERTAIN:
        support = tuple(r for r in (found[0].row, found[0].summary) if r is not None)
        return Judgement(
            "neutral",
            Confidence.PLAUSIBLE,
            support=support,
            tested=support,
            reason=plain(found[0].text, 400)
            or say(scene, "A value is unusual.", "Ein Wert ist ungewöhnlich."),
        )
    if complete:
        return Judgement(
            "contradicts",
            Confidence.WEAKENED,
            against=tuple(complete[:3]),
            tested=tuple(complete[:3]),
            reason=say(
                scene,
                "The affected item has every record that its working siblings have.",
                "Der betroffene Gegenstand hat jeden Datensatz, den funktionierende Geschwister haben.",
            ),
        )
    reason = say(
        scene,
        "No difference to working siblings is visible, but the shipped tables are not whole.",
        "Kein Unterschied zu funktionierenden Geschwistern ist zu sehen, aber die Tabellen sind "
        "nicht vollständig.",
    )
    return Judgement("neutral", Confidence.UNASSESSED, tested=whole[:2], reason=reason)


def _skipped(scene: Scene, skipped: tuple[Record, str]) -> Judgement | None:
    record, line = skipped
    tables = [row for row in scene.findings.of_kind("row") if f"{row.location.table}" in line]
    if not tables:
        return None
    quote = line_quote(record, line)
    cause = (tables[0], record)
    return Judgement(
        "supports",
        Confidence.SUPPORTED,
        support=cause,
        cause=cause,
        tested=cause,
        reason=say(
            scene,
            f"The row exists, but the loader did not take it: {quote}.",
            f"Die Zeile ist da, wurde beim Laden aber nicht übernommen: {quote}.",
        ),
        summary=say(
            scene,
            f"A row of {quoted(str(tables[0].location.table))} is stored but was not loaded.",
            f"Eine Zeile von {quoted(str(tables[0].location.table))} ist gespeichert, wurde aber "
            f"nicht geladen.",
        ),
        description=say(
            scene, f"The log says at load time: {quote}.", f"Beim Laden steht im Protokoll: {quote}."
        ),
        limits=(_snapshot(scene),),
    )


def _snapshot(scene: Scene) -> str:
    return say(
        scene,
        "Only the shipped extract was compared, not what the running program held in memory.",
        "Verglichen wurde nur der mitgelieferte Auszug, nicht der Speicher des laufenden Programms.",
    )


def covered(difference: Difference, schema: dict[str, Any] | None) -> bool:
    """Say whether the predicate of a filtered table, as far as it can be read, includes the missing row."""
    predicate = str((schema or {}).get("predicate") or "")
    if not predicate:
        return False
    parts = list(_PREDICATE.finditer(predicate))
    if not parts or re.search(r"\b(?:or|not|limit|like)\b", predicate, re.IGNORECASE):
        return False
    return all(_holds(part, difference.missing) for part in parts)


def _holds(part: re.Match[str], row: dict[str, str]) -> bool:
    value = row.get(part[1])
    if value is None:
        return False
    bare = part[3].strip("()'\" ")
    if part[2].lower() == "in":
        return value in [item.strip("'\" ") for item in bare.split(",")]
    try:
        number, first = float(value), float(bare)
        last = float(part[4].strip("'\"")) if part[4] else first
    except ValueError:
        return part[2] == "=" and value == bare
    return {
        "=": number == first,
        "<": number < first,
        ">": number > first,
        "<=": number <= first,
        ">=": number >= first,
        "<>": number != first,
        "!=": number != first,
        "between": first <= number <= last,
    }[part[2].lower()]


def _missing(scene: Scene, best: Difference) -> Judgement:
    schema = _schemas(scene).get(best.table)
    absent = best.absence is not None and best.absence.usable
    inside = not absent and covered(best, schema)
    level = Confidence.PLAUSIBLE
    if absent and best.share >= CERTAIN:
        level = Confidence.STRONGLY_SUPPORTED
    elif (absent and best.keyed and best.share >= CLEAR) or (inside and best.share >= CERTAIN):
        level = Confidence.SUPPORTED
    proof = [best.absence] if absent and best.absence is not None else []
    if inside and schema is not None:
        proof.append(schema["record"])
    rows = [best.row] if best.row is not None else []
    extra = [best.example] if best.example is not None else []
    shown = [*proof, best.summary] if absent else [best.summary, *proof]
    support = tuple(dict.fromkeys([*shown, *rows, *extra]))
    cause = tuple(dict.fromkeys([*(proof if absent else []), best.summary, *rows]))
    key = ", ".join(f"{quoted(f'{name}={value}')}" for name, value in sorted(best.missing.items()))
    supports = level is not Confidence.PLAUSIBLE
    detail = best.text if best.text in best.summary.content else plain(best.text, 400)
    extent = _extent(scene, best, absent=absent, inside=inside)
    return Judgement(
        "supports" if supports else "neutral",
        level,
        support=support,
        cause=cause,
        tested=support,
        reason=say(
            scene, f"Siblings have what it lacks: {detail}.", f"Geschwister haben, was ihm fehlt: {detail}."
        ),
        summary=say(
            scene,
            f"A row is missing in {quoted(best.table)}: {key}.",
            f"In {quoted(best.table)} fehlt eine Zeile: {key}.",
        ),
        description=say(
            scene,
            f"The comparison with working siblings says: {quoted(detail)}. {extent}",
            f"Der Vergleich mit funktionierenden Geschwistern ergibt: {quoted(detail)}. {extent}",
        ),
        limits=(_snapshot(scene),),
        action=say(
            scene,
            f"Add the row of {quoted(best.table)} in a copy of the data and repeat the steps; look "
            f"for siblings "
            "with the same hole.",
            f"Die Zeile von {quoted(best.table)} in einer Kopie der Daten ergänzen und die Schritte "
            f"wiederholen; "
            "Geschwister mit derselben Lücke suchen.",
        ),
    )


def _extent(scene: Scene, best: Difference, *, absent: bool, inside: bool) -> str:
    if absent:
        return say(
            scene,
            f"{best.table} was shipped whole, so the row does not exist.",
            f"{best.table} liegt vollständig vor, die Zeile gibt es also nicht.",
        )
    if inside:
        return say(
            scene,
            f"{best.table} is an extract whose condition includes the missing row.",
            f"{best.table} ist ein Auszug, dessen Bedingung die fehlende Zeile einschließt.",
        )
    return say(
        scene,
        f"{best.table} is not known to be whole: the row may just not have been shipped.",
        f"{best.table} ist womöglich unvollständig: Die Zeile kann auch nur im Auszug fehlen.",
    )


def incomplete(scene: Scene) -> Difference | None:
    """Return the strongest missing row that a table which is not whole leaves open."""
    for difference in differences(scene):
        if difference.kind in STRUCTURE and (difference.absence is None or not difference.absence.usable):
            return difference
    return None
