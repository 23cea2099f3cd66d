"""Data: does a record or link that working siblings have lack, or differ, for the affected item?

Looks: which typed columns hold the ids the report names (`db.id`), then what the rows with that id as key
lack compared with their peers (`db.siblings`). A finding counts by the share of peers it rests on, by
whether the table is whole, and by whether it names a missing row rather than an unusual value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.findings import Look, Record
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from resources.llm.providers.offline.view import Json
from viano_assets.phases.wire import Confidence

MAX_IDS = 3
MAX_ROWS = 4

STRUCTURE = {
    "companion": 1.0,
    "companion kind": 1.0,
    "dangling reference": 1.0,
    "companion of companion": 0.9,
}
"""Findings that name something missing, with their weight against each other."""

VALUES = {"stated count": 0.8, "own value": 0.6}
"""Findings that name something unusual."""

CERTAIN, CLEAR = 0.95, 0.8
"""Share of the peers from which a missing row counts as certain, as clear."""

_QUOTED = re.compile(r"[\"“„»'`]([^\"“”„«»'`\n]{3,60})[\"”“«'`]")


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

    @property
    def weight(self) -> float:
        """Strength against other findings: share of peers, kind, and whether the table is whole."""
        kind = STRUCTURE.get(self.kind, VALUES.get(self.kind, 0.3))
        whole = 1.0 if self.extent == "full" else 0.4
        return self.share * kind * whole


def names(scene: Scene) -> list[str]:
    """Return the ids of the report, then its quoted words, that may stand in a column."""
    numbers = scene.numbers()[: MAX_IDS + 2]
    words = [
        match[1].strip()
        for source in scene.case.of("observation", "report", "reproduction_step", "comment", "technical_fact")
        for match in _QUOTED.finditer(source.text)
    ]
    return list(dict.fromkeys([*numbers, *words]))[: MAX_IDS + 3]


def plan_data(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Data in order."""
    if "db.id" not in scene.tools:
        return
    for name in names(scene):
        yield Wish("db.id", {"id": name}, f"Which typed columns hold {name}?")
    for table, key in keyed_rows(scene)[:MAX_ROWS]:
        yield Wish(
            "db.siblings",
            {"table": table, "key": key},
            f"What do working rows of {table} have that this one lacks?",
            scene.id_of("Code"),
        )


def keyed_rows(scene: Scene) -> list[tuple[str, Json]]:
    """Return the rows whose key is an id of the report: unique ones first, in the order found."""
    found: list[tuple[tuple[int, int], str, Json]] = []
    for number, look in enumerate(scene.findings.by("db.id")):
        for record in look.records:
            for hit in _hits(record):
                if hit.get("key") and int(hit.get("rows", 0)) <= 3:
                    key = {str(hit["column"]): str(look.arguments["id"])}
                    found.append(((int(hit["rows"]), number), str(hit["table"]), key))
    found.sort(key=lambda item: item[0])
    unique = {json.dumps([table, key], sort_keys=True): (table, key) for _, table, key in found}
    return list(unique.values())


def _hits(record: Record) -> Iterator[Json]:
    for line in record.content.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "column" in value and "table" in value:
            yield value


def differences(scene: Scene) -> list[Difference]:
    """Return what the comparisons found, the strongest first."""
    found = [item for look in scene.findings.by("db.siblings") for item in _of(look)]
    return sorted(found, key=lambda item: -item.weight)


def _of(look: Look) -> Iterator[Difference]:
    summary = next((record for record in look.records if record.kind == "query"), None)
    if summary is None:
        return
    row = next((record for record in look.records if record.kind == "row"), None)
    absences = {_statement(record): record for record in look.records if record.empty}
    for line in summary.content.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "finding" in value:
            text = str(value["text"])
            yield Difference(
                str(value["finding"]),
                text,
                float(value["share"]),
                str(value["extent"]),
                summary,
                absences.get(text),
                row,
            )


def _statement(record: Record) -> str:
    try:
        return str(json.loads(record.content).get("statement", ""))
    except ValueError:
        return ""


def judge_data(scene: Scene) -> Judgement:
    """Judge the family Data from what the comparisons found."""
    looks = list(scene.findings.by("db.siblings"))
    found = differences(scene)
    if not looks:
        return Judgement(
            "neutral", Confidence.UNASSESSED, reason="No record of the affected item was compared."
        )
    if not found:
        whole = tuple(r for look in looks for r in look.records if r.usable and r.completeness == "complete")
        if whole:
            return Judgement(
                "contradicts",
                Confidence.WEAKENED,
                against=whole[:3],
                tested=whole[:3],
                reason="The affected item has every record that its working siblings have.",
            )
        return Judgement("neutral", Confidence.UNASSESSED, reason="The shipped tables are not whole.")
    return _judged(found)


def _judged(found: list[Difference]) -> Judgement:
    best = found[0]
    missing = best.kind in STRUCTURE and best.absence is not None and best.absence.usable
    level = Confidence.PLAUSIBLE
    if missing and best.share >= CERTAIN:
        level = Confidence.STRONGLY_SUPPORTED
    elif missing and best.share >= CLEAR:
        level = Confidence.SUPPORTED
    proof = [best.absence] if best.absence is not None and best.absence.usable else []
    proof += [best.row] if best.row is not None else []
    support = (*proof, best.summary)
    where = proof[0].location if proof else best.summary.location
    what = f"{where.table}" + (f" {_key(where.key)}" if where.key else "")
    return Judgement(
        "supports" if level is not Confidence.PLAUSIBLE else "neutral",
        level,
        support=support,
        cause=support,
        tested=support,
        reason=best.text,
        summary=f"The affected item lacks a record that its working siblings have: {quoted(what)}.",
        description=f"{best.text}. The comparison rests on {best.share:.0%} of the siblings.",
        limits=("Only the shipped extract was compared, not the running server's memory.",),
    )


def _key(key: dict[str, str] | None) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted((key or {}).items()))
