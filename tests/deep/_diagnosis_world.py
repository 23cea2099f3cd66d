"""Evidence of a larger case for the quote suite: code, rows, logs and configuration, all from one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.evidence.model import Completeness, EvidenceKind, EvidenceRecord, Location, Provenance
from viano_assets.phases.diagnosis.ground import Ground

VERBS = ("load", "store", "assign", "release", "count", "merge", "cancel", "resume", "notify", "verify")
NOUNS = ("Berth", "Crane", "Pilot", "Queue", "Signal", "Tide", "Anchor", "Cargo", "Ticket", "Wharf")
STATES = ("ready", "blocked", "moored", "expired", "loaded", "visible", "pending", "locked")


@dataclass(frozen=True)
class Row:
    """One row of the table; rows with `read` False exist and were never looked at."""

    cells: dict[str, str]
    read: bool


@dataclass(frozen=True)
class Evidence:
    """The records, the table behind them, and the ids by kind."""

    ground: Ground
    rows: Sequence[Row]
    by_kind: dict[str, list[str]]

    def record(self, name: str) -> EvidenceRecord:
        """Return one record."""
        return self.ground.records[name]


def _function(random_: random.Random, number: int) -> list[str]:
    verb, noun = random_.choice(VERBS), random_.choice(NOUNS)
    state, other = random_.sample(STATES, 2)
    value, limit = random_.randint(100, 9999), random_.randint(1000, 99999)
    return [
        f"int {noun}::{verb}{number}(int ticket, const char* name)",
        "{",
        f"    // does not {verb} a {noun.lower()} that is {other} before stage {value}",
        f"    if (!{state}_{number} && ticket >= {limit})",
        f"        return {value};",
        f'    const char* label_{number} = "{noun} {verb} {value}";',
        f"    delay_{number} = ticket * {value + 3} - {limit + 7};",
        f"    if (name == nullptr || {other}_{number} != {value + 1})",
        f"        not_{state}_{number}(label_{number}, -{value + 5}, {limit + 19}.{value + 9});",
        f"    return {limit + 11};",
        "}",
    ]


def _record(name: str, kind: EvidenceKind, tool: str, location: Location, content: str) -> EvidenceRecord:
    data = content.encode()
    return EvidenceRecord(
        evidence_id=name,
        tool=tool,
        arguments={},
        scope={},
        completeness=Completeness.COMPLETE,
        content=content,
        content_sha256=sha256_hex(data),
        provenance=Provenance(kind=kind, location=location),
        bytes=len(data),
    )


def evidence(seed: int) -> Evidence:
    """Return 30 functions in 6 files, 30 read and 30 unread rows, 20 log lines and 5 settings files."""
    random_ = random.Random(seed)
    records: dict[str, EvidenceRecord] = {}
    by_kind: dict[str, list[str]] = {"source": [], "row": [], "log": [], "config": []}

    def add(kind: EvidenceKind, tool: str, location: Location, content: str) -> None:
        name = f"E{len(records) + 1}"
        records[name] = _record(name, kind, tool, location, content)
        by_kind[kind].append(name)

    for file in range(6):
        path = f"src/{random_.choice(NOUNS).lower()}_{file}.cpp"
        for number in range(5):
            start = 40 * number + 12
            lines = _function(random_, 5 * file + number)
            symbol = lines[0].split(" ")[1].split("(")[0]
            location = Location(path=path, symbol=symbol, line_start=start, line_end=start + len(lines) - 1)
            add("source", "source.read", location, "\n".join(lines))
    rows = [_row(random_, number) for number in range(60)]
    for row in rows:
        if row.read:
            key = {"entry": row.cells["entry"], "stage": row.cells["stage"]}
            content = canonical_json({"table": "crane_step", "row": row.cells}).decode()
            add("row", "db.rows", Location(table="crane_step", key=key), content)
    for number in range(20):
        text = (
            f"2031-0{number % 9 + 1}-1{number % 10} 08:{number + 20}:4{number % 10} ERROR: ticket "
            f"{random_.randint(10_000, 99_999)} was not {random_.choice(STATES)} at stage {number + 61}"
        )
        location = Location(path="server.log", line_start=100 + 7 * number, line_end=100 + 7 * number)
        add("log", "log.search", location, text)
    for number in range(5):
        content = f"[pilot{number}]\nmax_wait = {random_.randint(1000, 9999)}\nnot_before = {number + 71}"
        location = Location(path=f"conf/pilot{number}.ini", line_start=1, line_end=3)
        add("config", "source.read", location, content)
    ground = Ground({"H1": "closed", "H2": "closed", "H3": "closed"}, records, ("The crane stops.",))
    return Evidence(ground, rows, by_kind)


def _row(random_: random.Random, number: int) -> Row:
    cells = {
        "entry": str(7000 + 13 * number),
        "stage": str(number + 201),
        "delay": str(random_.randint(1000, 9999)),
        "action": f"{random_.choice(VERBS)}-{random_.choice(STATES)}-{number}",
    }
    return Row(cells, number % 2 == 0)


def answer(world: Evidence, cause: str) -> dict[str, Any]:
    """Return a valid confirmed answer whose cause is carried by one record."""
    other = next(name for name in world.ground.records if name != cause)

    def evaluation(
        name: str, verdict: str, support: list[str], against: list[str], tested: bool
    ) -> dict[str, Any]:
        return {
            "hypothesis_id": name,
            "verdict": verdict,
            "reason": "What was read says so.",
            "support": support,
            "against": against,
            "scope_limits": ["The rest of the tree."],
            "contradictions": [],
            "countercheck": {"adequate": tested, "reason": "Read.", "evidence_ids": list(against)},
        }

    return {
        "status": "confirmed",
        "inconclusive_kind": None,
        "selected_hypothesis": "H1",
        "root_cause": {"summary": "It fails.", "technical_description": "It fails.", "evidence_ids": [cause]},
        "confidence": "supported",
        "evaluations": [
            evaluation("H1", "supported", [cause], [], tested=False),
            evaluation("H2", "weakened", [], [other], tested=True),
            evaluation("H3", "undetermined", [], [], tested=False),
        ],
        "inconclusive_evidence_ids": [],
        "remaining_uncertainty": ["Callers were not read."],
        "final_reason": "The mechanism was read.",
        "review_actions": ["Watch it."],
    }
