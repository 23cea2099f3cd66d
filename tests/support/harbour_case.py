"""A harbour case driven through the real phases up to a completed investigation.

Files, tables and logs live in a `World`; the tools over it are real in what they return: exact lines,
scope, completeness, typed absence, ranked places. The scripted model asks for given looks and reviews them.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tests.support.memory_store import MemoryStore
from tests.support.planning import SEPARATE
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.evidence.model import (
    Completeness,
    Draft,
    EvidenceKind,
    EvidenceRecord,
    Location,
    Provenance,
    ToolResult,
)
from viano_assets.package.model import Change, Head
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.protocols import DispatchStatus, ModelRequest, Store, ToolSpec

Json = dict[str, Any]
Look = tuple[str, Json]
Found = tuple[list[Draft], Completeness]

CASE = "BERTH-3"
PACKAGE_ID = "11111111-2222-4333-8444-555555555555"
REPORT = "inputs/report/report.md"
SOURCE_ZIP = "inputs/source/harbour.zip"
DIAGNOSTICS_ZIP = "inputs/diagnostics/diag.zip"

RAW: Mapping[str, bytes] = {
    REPORT: b"""# Berth 3 stays empty

Ship 17 leaves berth 3 and the berth stays empty.

The next ship of the queue should moor.

1. Moor ship 17 at berth 3, then let it leave.

ERROR: berth 3 not assigned, queue has 2 ships

I think the pilot is missing.
""",
    SOURCE_ZIP: b"harbour source bytes",
    DIAGNOSTICS_ZIP: b"harbour diagnostics bytes",
}

FILES: Mapping[str, str] = {
    "src/berth.cpp": """#include "berth.h"

// A berth is free when no ship is moored and the tide allows it.
bool Berth::isFree(int tide) const
{
    if (!moored_ && tide >= minTide_)
        return true;
    return false;
}

void Berth::release(int shipId)
{
    moored_ = false;
    lastShip_ = shipId;
    pilot_->dismiss(shipId);
}

int Berth::waitMinutes(int queue) const
{
    // one pilot serves the whole queue
    return queue * 25 + offset_;
}
""",
    "src/queue.cpp": """#include "queue.h"

void Queue::step(int now)
{
    if (now > nextCheck_)
        assign(now);
    nextCheck_ = now + 15;
}
""",
    "conf/harbour.ini": """[harbour]
min_tide = 4
pilot_count = 1
""",
}
SYMBOLS: Mapping[str, Sequence[tuple[str, int, int]]] = {
    "src/berth.cpp": (("Berth::isFree", 4, 9), ("Berth::release", 11, 16), ("Berth::waitMinutes", 18, 22)),
    "src/queue.cpp": (("Queue::step", 3, 8),),
}
LOG = """2021-03-04 10:00:01 ship 17 moored at berth 3
2021-03-04 10:09:30 ship 17 left berth 3
2021-03-04 10:10:00 ERROR: berth 3 not assigned, queue has 2 ships
"""
ROWS: tuple[Mapping[str, str], ...] = (
    {"berth": "3", "stage": "1", "action": "signal"},
    {"berth": "3", "stage": "2", "action": "moor"},
    {"berth": "4", "stage": "1", "action": "signal"},
)
SCHEMA = "CREATE TABLE berth_step (berth INT NOT NULL, stage TINYINT UNSIGNED, action VARCHAR(8))"


@dataclass
class World:
    """What the tools can see. `filtered` makes the table an extract, `unavailable` breaks tools.

    `language` is the one the report is taken to be written in.
    """

    files: Mapping[str, str] = field(default_factory=lambda: FILES)
    rows: Sequence[Mapping[str, str]] = ROWS
    filtered: bool = False
    unavailable: frozenset[str] = frozenset()
    language: str = "en"


SPECS = tuple(
    ToolSpec(name, f"purpose of {name}", {"type": "object"}, 2)
    for name in ("db.rows", "db.schema", "log.search", "source.rank", "source.read", "source.search")
)


class HarbourTools:
    """Implements `CaseTools` over a `World`."""

    def __init__(self, world: World, inputs: Mapping[str, str]) -> None:
        self._world = world
        self._inputs = inputs

    def specs(self) -> Sequence[ToolSpec]:
        return SPECS

    def overview(self) -> Json:
        return {"files": sorted(self._world.files), "tables": ["berth_step"]}

    def check(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        del arguments
        return None if tool in {spec.name for spec in SPECS} else "no such tool"

    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        looks: dict[str, Callable[[Json], Found]] = {
            "source.rank": self._rank,
            "source.read": self._read,
            "source.search": self._search,
            "db.rows": self._rows,
            "db.schema": self._schema,
            "log.search": self._log,
        }
        drafts, completeness = looks[tool](dict(arguments))
        if tool in self._world.unavailable:
            completeness = Completeness.UNAVAILABLE
            drafts = [self._draft("absence", SOURCE_ZIP, Location(), f"{tool} is not there", completeness)]
        return ToolResult(
            tool=tool,
            arguments=dict(arguments),
            scope={"whole": completeness is Completeness.COMPLETE},
            completeness=completeness,
            drafts=tuple(drafts),
            empty=all(draft.provenance.kind == "absence" for draft in drafts),
        )

    def still_holds(self, record: EvidenceRecord) -> str | None:
        again = self.run(record.tool, record.arguments)
        return None if any(d.content == record.content for d in again.drafts) else "the look brings another"

    def _draft(
        self,
        kind: EvidenceKind,
        path: str,
        location: Location,
        content: str,
        completeness: Completeness = Completeness.COMPLETE,
        places: tuple[Location, ...] = (),
    ) -> Draft:
        provenance = Provenance(
            kind=kind, input_path=path, input_sha256=self._inputs[path], location=location
        )
        return Draft(content=content, provenance=provenance, completeness=completeness, places=places)

    def _rank(self, arguments: Json) -> Found:
        places = tuple(
            Location(path=path, symbol=name, line_start=start, line_end=end)
            for path, symbols in SYMBOLS.items()
            for name, start, end in symbols
        )
        content = "\n".join([str(arguments["text"]), *(f"{p.path} {p.symbol}" for p in places)])
        draft = self._draft("ranking", SOURCE_ZIP, Location(), content, places=places)
        return [draft], Completeness.COMPLETE

    def _read(self, arguments: Json) -> Found:
        path, start, end = arguments["path"], arguments["line_start"], arguments["line_end"]
        lines = self._world.files[path].splitlines()[start - 1 : end]
        symbol = next((n for n, a, b in SYMBOLS.get(path, ()) if a <= start and end <= b), None)
        location = Location(path=path, symbol=symbol, line_start=start, line_end=start + len(lines) - 1)
        kind: EvidenceKind = "config" if path.endswith(".ini") else "source"
        return [self._draft(kind, SOURCE_ZIP, location, "\n".join(lines))], Completeness.COMPLETE

    def _search(self, arguments: Json) -> Found:
        hits = [
            (path, number, line)
            for path, text in sorted(self._world.files.items())
            for number, line in enumerate(text.splitlines(), 1)
            if arguments["pattern"] in line
        ]
        if not hits:
            nothing = f"no line holds {arguments['pattern']}"
            return [self._draft("absence", SOURCE_ZIP, Location(), nothing)], Completeness.COMPLETE
        places = tuple(Location(path=path, line_start=n, line_end=n) for path, n, _ in hits)
        content = "\n".join(f"{path}:{n}: {line}" for path, n, line in hits)
        return [self._draft("search", SOURCE_ZIP, Location(), content, places=places)], Completeness.COMPLETE

    def _rows(self, arguments: Json) -> Found:
        where: Json = arguments["where"]
        completeness = Completeness.PARTIAL if self._world.filtered else Completeness.COMPLETE
        rows = [row for row in self._world.rows if all(row[k] == v for k, v in where.items())]
        if not rows:
            location = Location(table="berth_step", key=where)
            nothing = f"no row of berth_step has {canonical_json(where).decode()}"
            return [self._draft("absence", DIAGNOSTICS_ZIP, location, nothing, completeness)], completeness
        return [
            self._draft(
                "row",
                DIAGNOSTICS_ZIP,
                Location(table="berth_step", key={k: row[k] for k in ("berth", "stage")}),
                canonical_json(row).decode(),
                completeness,
            )
            for row in rows
        ], completeness

    def _schema(self, arguments: Json) -> Found:
        location = Location(table=arguments["table"])
        return [self._draft("schema", DIAGNOSTICS_ZIP, location, SCHEMA)], Completeness.COMPLETE

    def _log(self, arguments: Json) -> Found:
        drafts = [
            self._draft(
                "log", DIAGNOSTICS_ZIP, Location(path="server.log", line_start=number, line_end=number), line
            )
            for number, line in enumerate(LOG.splitlines(), 1)
            if arguments["pattern"] in line
        ]
        return drafts, Completeness.COMPLETE


@dataclass
class HarbourToolFactory:
    """Implements `ToolFactory`."""

    world: World = field(default_factory=World)

    def open(self, store: Store, head: Head) -> HarbourTools:
        del store
        return HarbourTools(self.world, head.raw_inputs())


def read(path: str, start: int, end: int) -> Look:
    """A look at lines of a file."""
    return "source.read", {"path": path, "line_start": start, "line_end": end}


LOOKS: Mapping[str, Sequence[Look]] = {
    "H1": (
        ("source.rank", {"text": "berth stays empty"}),
        read("src/berth.cpp", 4, 9),
        read("src/berth.cpp", 11, 16),
        ("log.search", {"pattern": "berth 3"}),
    ),
    "H2": (
        ("db.rows", {"where": {"berth": "3"}}),
        ("db.rows", {"where": {"berth": "3", "stage": "3"}}),
        ("db.schema", {"table": "berth_step"}),
    ),
    "H3": (
        read("conf/harbour.ini", 1, 3),
        read("src/queue.cpp", 3, 8),
        ("source.search", {"pattern": "assign"}),
    ),
}
"""The looks of each hypothesis."""

_SOURCES: tuple[tuple[str, str], ...] = (
    ("observation", "Ship 17 leaves berth 3 and the berth stays empty."),
    ("expectation", "The next ship of the queue should moor."),
    ("reproduction_step", "1. Moor ship 17 at berth 3, then let it leave."),
    ("technical_fact", "ERROR: berth 3 not assigned, queue has 2 ships"),
    ("tester_assumption", "I think the pilot is missing."),
)
_ROLES = {REPORT: "report", SOURCE_ZIP: "source", DIAGNOSTICS_ZIP: "diagnostics"}


def case_document(head: Head, language: str = "en") -> bytes:
    """Return the canonical case over the report."""
    report = RAW[REPORT].decode()
    sources = []
    for number, (kind, text) in enumerate(_SOURCES, 1):
        start = report.index(text)
        line = report.count("\n", 0, start) + 1
        origin = {
            "input_path": REPORT,
            "input_sha256": sha256_hex(RAW[REPORT]),
            "line_start": line,
            "line_end": line,
            "byte_start": start,
            "byte_end": start + len(text),
        }
        sources.append({"id": f"S{number}", "type": kind, "text": text, "origin": origin})
    inputs = [
        {"path": path, "sha256": sha256_hex(data), "bytes": len(data), "role": _ROLES[path]}
        for path, data in RAW.items()
    ]
    return canonical_json(
        {
            "schema": "case-v1",
            "case_id": head.case_id,
            "package_id": head.manifest.package_id,
            "analysis_revision": head.revision,
            "title": "Berth 3 stays empty",
            "language": language,
            "sources": sources,
            "inputs": inputs,
            "redaction_rules": "none-v1",
        }
    )


def _statement(text: str, source: str, **more: str) -> Json:
    return {"text": text, "source_ids": [source], **more}


INTERPRETATION: Mapping[str, Any] = {
    "summary": "Berth 3 stays empty after ship 17 left.",
    "observed_behavior": [_statement("The berth stays empty.", "S1")],
    "expected_behavior": [_statement("The next ship moors.", "S2", expectation_completeness="partial")],
    "reproduction_steps": [_statement("Moor ship 17, let it leave.", "S3")],
    "technical_facts": [_statement("Berth 3 was not assigned.", "S4")],
    "tester_assumptions": [_statement("The pilot may be missing.", "S5")],
    "failure_stage": None,
    "first_known_divergence": _statement("The berth stays empty.", "S1"),
    "entities": [{"kind": "berth", "value": "berth 3", "label": "the berth", "source_ids": ["S1"]}],
    "lookups": [],
    "missing_information": ["The tide at the time of the failure."],
    "open_questions": [],
}


def _candidate(title: str, mechanism: str) -> Json:
    return {
        "title": title,
        "mechanism": mechanism,
        "rationale": "It would explain that the berth stays empty.",
        "distinction": f"Only here: {mechanism}",
        "source_ids": ["S1"],
        "interpretation_ids": ["I1", "I6"],
        "expected_evidence": [f"Lines or rows that show: {mechanism}"],
        "falsifying_evidence": [f"The opposite of: {mechanism}"],
        "open_questions": [],
    }


HYPOTHESES: Mapping[str, Any] = {
    "candidates": [
        _candidate("Release forgets the queue", "release() frees the berth and never calls the queue"),
        _candidate("The third step is missing", "the step table has no stage 3 for this berth"),
        _candidate("The tide limit is too high", "min_tide keeps the berth closed"),
    ]
}


@dataclass
class Investigator:
    """Asks for the looks of each hypothesis, then reviews them with the effect and level given."""

    looks: Mapping[str, Sequence[Look]] = field(default_factory=lambda: LOOKS)
    levels: Mapping[str, tuple[str, str]] = field(
        default_factory=lambda: {
            "H1": ("supports", "supported"),
            "H2": ("contradicts", "weakened"),
            "H3": ("contradicts", "weakened"),
        }
    )
    rejected: frozenset[str] = frozenset()
    asked: dict[str, int] = field(default_factory=dict)

    def __call__(self, request: ModelRequest) -> Json:
        turn = request.sections("turn")[-1]
        name = str(turn["selected_hypothesis"])
        shown = [
            evidence["evidence_id"]
            for history in request.sections("history")
            if history["hypothesis_id"] == name
            for action in history["actions"]
            for evidence in action["evidence"]
            if not action["empty"] or action["completeness"] == "complete"
        ]
        done = self.asked.get(name, 0)
        plan = list(self.looks[name])[done : done + turn["limits"]["max_actions"]]
        self.asked[name] = done + len(plan)
        return self._answer(name, list(dict.fromkeys(shown))[:8], plan, turn)

    def _answer(self, name: str, shown: list[str], plan: list[Look], turn: Mapping[str, Any]) -> Json:
        effect, level = self.levels[name] if shown else ("neutral", "unassessed")
        rejected = not plan and name in self.rejected
        actions = [
            {"tool": tool, "arguments": arguments, "purpose": "look", "countercheck_of": None}
            for tool, arguments in plan
        ]
        return {
            "update": {
                "hypothesis_id": name,
                "evidence_refs": shown,
                "requested_confidence": level,
                "causal_review": {
                    "effect": effect,
                    "support": shown if effect == "supports" else [],
                    "against": shown if effect == "contradicts" else [],
                    "reason": "What was read says so.",
                },
                "status": "rejected" if rejected else None,
            },
            "assessment": {
                "semantic_score": 60 if turn["pending_actions"] else 0,
                "novelty_reason": "New lines.",
            },
            "next": {"actions": actions, "finish": not plan and not rejected, "reason": "Planned looks."},
            "question": None,
            "create": None,
        }


def assemble(store: Any, head: Head, language: str = "en") -> Head:
    """Assemble the case of the head's revision."""
    path = f"case/{head.revision:04d}/case.json"
    change = Change(
        event="case_assembled",
        put={path: case_document(head, language)},
        pointers={"case": path},
        lifecycle="ASSEMBLED",
    )
    assembled: Head = store.commit(head, change)
    return assembled


def received(store: Any, case_id: str = CASE, language: str = "en") -> Head:
    """Create the case and assemble it."""
    change = Change(event="case_received", put=dict(RAW), raw=frozenset(RAW), lifecycle="RECEIVED")
    return assemble(store, store.create(case_id, change, package_id=PACKAGE_ID), language)


async def analyse(
    store: Any, case_id: str, world: World | None = None, investigator: Investigator | None = None
) -> Head:
    """Drive an assembled case through interpretation, hypotheses and investigation."""
    reading = await CaseInterpreter(store, ScriptedGateway([INTERPRETATION]), SEPARATE).build(case_id)
    assert reading.status is DispatchStatus.COMPLETED, reading
    proposing = await HypothesisBuilder(store, ScriptedGateway([HYPOTHESES])).build(case_id)
    assert proposing.status is DispatchStatus.COMPLETED, proposing
    gateway = ScriptedGateway(investigator or Investigator())
    builder = InvestigationBuilder(store, gateway, None, HarbourToolFactory(world or World()))
    result = await builder.build(case_id)
    while result.status is DispatchStatus.PROGRESSED:
        result = await builder.build(case_id)
    assert result.status is DispatchStatus.COMPLETED, result
    return result.head


async def investigated(
    store: Any, case_id: str = CASE, *, world: World | None = None, investigator: Investigator | None = None
) -> Head:
    """Create a case and drive it to a completed investigation; return the head."""
    received(store, case_id, (world or World()).language)
    return await analyse(store, case_id, world, investigator)


def reopened(store: Any, case_id: str = CASE) -> Head:
    """Start the next analysis revision of the same inputs."""
    head = store.latest(case_id)
    pointers: dict[str, str | None] = dict.fromkeys(head.manifest.pointers)
    change = Change(
        event="case_reopened",
        revision=head.revision + 1,
        pointers=pointers,
        lifecycle="RECEIVED",
        routing=None,
        overlay=None,
    )
    return assemble(store, store.commit(head, change))


def replaced(world: World, **changes: Any) -> World:
    """Return a world with some parts replaced."""
    return dataclasses.replace(world, **changes)


def copy_of(store: MemoryStore) -> MemoryStore:
    """Return an independent store with the same (immutable) generations."""
    fresh = MemoryStore()
    fresh._heads = {name: list(heads) for name, heads in store._heads.items()}
    return fresh


@lru_cache(maxsize=1)
def finished_store() -> MemoryStore:
    """Return a store with the default case investigated; shared, so copy before writing."""
    store = MemoryStore()
    asyncio.run(investigated(store))
    return store


@lru_cache(maxsize=1)
def extract_store() -> MemoryStore:
    """Return the same with a filtered step table and no search."""
    store = MemoryStore()
    world = World(filtered=True, unavailable=frozenset({"source.search"}))
    asyncio.run(investigated(store, world=world))
    return store
