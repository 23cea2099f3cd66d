# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""The rest of the server: subsystems that have nothing to do with the case, as source and as tables.

Every subsystem is a class with a loader, an update tick and some queries, and one table it reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.corpus.sqldump import Column, Table
from tests.corpus.vocab import World, camel, draw, person

SUBJECTS = [
    "weather",
    "tide",
    "fog",
    "lamp",
    "signal",
    "canteen",
    "market",
    "toll",
    "ferry",
    "cellar",
    "well",
    "bridge",
    "garden",
    "kitchen",
    "stable",
    "kennel",
    "forge",
    "archive",
    "chapel",
    "lantern",
    "ladder",
    "pulley",
    "rope",
    "barrel",
    "oven",
    "mill",
    "granary",
    "watch",
    "patrol",
    "alarm",
    "rumour",
    "song",
    "festival",
    "calendar",
    "ration",
    "medicine",
    "wound",
    "repair",
    "rust",
    "paint",
    "carpet",
    "mirror",
    "window",
    "door",
    "key",
    "chest",
    "purse",
    "loan",
    "debt",
    "tax",
    "fine",
    "auction",
    "gossip",
    "letter",
    "seal",
    "stamp",
    "map",
    "compass",
    "ruin",
    "cavern",
    "spring",
    "creek",
    "meadow",
    "hedge",
    "fence",
    "gatepost",
]
ASPECTS = ("", "", "_state", "_rule", "_timer", "_price", "_route", "_rank", "_shape", "_mood")
VERBS = (
    "Refresh",
    "Collect",
    "Measure",
    "Sort",
    "Rotate",
    "Announce",
    "Restock",
    "Repaint",
    "Count",
    "Balance",
)
FIELDS = (
    "level",
    "weight",
    "region",
    "colour",
    "value",
    "limit_value",
    "chance",
    "phase_no",
    "minutes",
    "owner_no",
)
REMARKS = (
    "Runs once a minute; cheap enough to do for all of them.",
    "The order matters to the client, which shows the first three only.",
    "Values above the limit are kept and reported, nothing is thrown away.",
    "TODO: move this into the table.",
    "Called from the tick, never from a handler.",
    "Kept for clients that still ask for it.",
)


class Subsystem(NamedTuple):
    """One subsystem: snake_case name, table name, its number columns."""

    name: str
    table: str
    fields: tuple[str, ...]


def subsystems(world: World, count: int) -> list[Subsystem]:
    """Draw `count` subsystems with distinct names."""
    rng = world.rng("subsystems")
    names = rng.sample([s + a for s in SUBJECTS for a in dict.fromkeys(ASPECTS)], count)
    return [Subsystem(name, f"{name}_data", tuple(rng.sample(FIELDS, 4))) for name in names]


def _tick(rng: random.Random, cls: str, f: Sequence[str]) -> str:
    verb, limit = rng.choice(VERBS), rng.randrange(3, 90)
    return f"""void {cls}::{verb}All(uint32_t diffMs)
{{
    // {rng.choice(REMARKS)}
    elapsedMs_ += diffMs;
    if (elapsedMs_ < {limit * 1000})
        return;
    elapsedMs_ = 0;
    for (auto& entry : rows_)
    {{
        if (entry.second.{f[0]} > {limit} && entry.second.{f[1]} != 0)
            entry.second.{f[0]} -= {rng.randrange(1, 9)};
        else if (entry.second.{f[2]} < {rng.randrange(2, 40)})
            ++entry.second.{f[2]};
    }}
}}
"""


def _sum(rng: random.Random, cls: str, f: Sequence[str]) -> str:
    return f"""int32_t {cls}::Total{camel(f[1])}(int32_t {f[2]}) const
{{
    int32_t total = 0;
    for (const auto& entry : rows_)
        if (entry.second.{f[2]} == {f[2]})
            total += entry.second.{f[1]} * {rng.randrange(2, 12)} / {rng.randrange(2, 7)};
    return std::min(total, {rng.randrange(500, 9000)});
}}
"""


def _best(rng: random.Random, cls: str, f: Sequence[str]) -> str:
    return f"""uint32_t {cls}::{rng.choice(("Best", "Nearest", "Oldest"))}By{camel(f[3])}(int32_t from) const
{{
    // {rng.choice(REMARKS)}
    uint32_t best = 0;
    int32_t distance = {rng.randrange(1000, 9999)};
    for (const auto& entry : rows_)
    {{
        const int32_t away = std::abs(entry.second.{f[3]} - from);
        if (away >= distance)
            continue;
        distance = away;
        best = entry.first;
    }}
    return best;
}}
"""


def _react(rng: random.Random, cls: str, f: Sequence[str]) -> str:
    steps = rng.randrange(2, 5)
    cases = "".join(
        f"        case {i + 1}:\n            row.{rng.choice(f)} += {rng.randrange(1, 30)};\n            break;\n"
        for i in range(steps)
    )
    return f"""bool {cls}::React(uint32_t id, int32_t event)
{{
    const auto found = rows_.find(id);
    if (found == rows_.end())
    {{
        LOG_ERROR("{cls}: no row %u for event %d", id, event);
        return false;
    }}
    Row& row = found->second;
    switch (event)
    {{
{cases}        default:
            return false;
    }}
    return true;
}}
"""


def _ready(rng: random.Random, cls: str, f: Sequence[str]) -> str:
    a, b = rng.sample(tuple(f), 2)
    return f"""bool {cls}::IsReady(uint32_t id, std::time_t now) const
{{
    const auto found = rows_.find(id);
    if (found == rows_.end() || found->second.{a} < {rng.randrange(1, 20)})
        return false;
    return found->second.{b} + since_ <= now;
}}
"""


BODIES: Sequence[tuple[Callable[[random.Random, str, Sequence[str]], str], str]] = (
    (_sum, "int32_t"),
    (_best, "uint32_t"),
    (_react, "bool"),
    (_ready, "bool"),
)


def _header(world: World, cls: str, subsystem: Subsystem, body: str) -> str:
    fields = "\n".join(f"        int32_t {name} = 0;" for name in subsystem.fields)
    declared = "\n".join(
        f"    {line.replace(f'{cls}::', '')};"
        for line in body.splitlines()
        if f" {cls}::" in line and "LOG" not in line
    )
    return f"""#pragma once
#include <cstdint>
#include <ctime>
#include <map>

namespace {world.words["ns"]} {{

class Database;

class {cls}
{{
public:
    struct Row
    {{
{fields}
    }};
{declared}

private:
    std::map<uint32_t, Row> rows_;
    uint32_t elapsedMs_ = 0;
    std::time_t since_ = 0;
}};

}} // namespace {world.words["ns"]}
"""


def source_of(world: World, subsystem: Subsystem) -> dict[str, str]:
    """Return the files of one subsystem: header and implementation, in a folder of its subject."""
    rng = draw(world.seed, world.family, "noise", subsystem.name)
    cls = camel(subsystem.name) + rng.choice(("Mgr", "System", "Service", "Keeper"))
    folder = (
        subsystem.name.split("_", maxsplit=1)[0]
        if rng.random() < 0.4
        else rng.choice(("misc", "town", "trade"))
    )
    columns = ", ".join(subsystem.fields)
    reads = "\n".join(
        f"        row.{name} = result->Signed({i + 1});" for i, name in enumerate(subsystem.fields)
    )
    parts = [
        f"""void {cls}::Load(Database& db)
{{
    rows_.clear();
    auto result = db.Query("SELECT id, {columns} FROM {subsystem.table}");
    while (result && result->Next())
    {{
        Row row;
{reads}
        rows_[result->Unsigned(0)] = row;
    }}
    LOG_BASIC(">> loaded %u rows of {subsystem.table}", unsigned(rows_.size()));
}}
""",
        _tick(rng, cls, subsystem.fields),
    ]
    order = rng.sample(subsystem.fields, 4)
    parts += [make(rng, cls, order) for make, _ in rng.sample(list(BODIES), rng.randrange(2, 5))]
    body = "\n".join(parts)
    name = f"{folder}/{cls}"
    ns = world.words["ns"]
    implementation = (
        f'#include "{name}.h"\n#include "core/Log.h"\n#include "db/Database.h"\n#include <algorithm>\n#include <cstdlib>\n'
        f"\nnamespace {ns} {{\n\n{body}\n}} // namespace {ns}\n"
    )
    return {
        world.path(f"{name}.h"): _header(world, cls, subsystem, body),
        world.path(f"{name}.{world.words['ext']}"): implementation,
    }


def table_of(world: World, subsystem: Subsystem, rows: int) -> Table:
    """Return the table of one subsystem with invented rows."""
    rng = draw(world.seed, world.family, "rows", subsystem.name)
    columns = [Column("id", "int unsigned NOT NULL"), *(Column(f, "int NOT NULL") for f in subsystem.fields)]
    columns.append(Column("label", "varchar(64) DEFAULT NULL"))
    first = rng.randrange(1, 900)
    values = [
        (
            first + index,
            *(rng.randrange(-5, 120) for _ in subsystem.fields),
            None if rng.random() < 0.2 else f"{person(rng)}'s {subsystem.name.replace('_', ' ')}",
        )
        for index in range(rng.randrange(rows // 2, rows))
    ]
    return Table(subsystem.table, columns, values, ("id",))
