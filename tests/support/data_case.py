"""A case with tables, logs and source, imported for real: what the data tools are tested on.

The world is a small harbour: contracts with stages, cranes, a server in C++. Contract 7 lacks stage 4.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from resources.tools.registry import CaseToolBox, ToolBoxFactory
from viano_assets.case.intake import import_case
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore

REPORT = """# Contract 7 stops

## Observed
After stage 3 nothing happens.

## Expected
Stage 4 begins.
"""

SERVER_CPP = """#include "stage.h"

bool RunStage(Contract& c, int stage) {
    if (c.script == "contract_tow") {
        return Tow(c, stage);
    }
    return false;
}
"""

CONFIG = """# harbour server
LogLevel = info
LogFilter_StageScripts = 1
MaxStage = 9
Database.Password = swordfish-canary
"""

LOG = "".join(
    f"2031-04-{1 + n // 40:02d} 10:{n % 40:02d}:00 INFO stage {n % 4 + 1} of contract {n % 9 + 1} done\n"
    for n in range(120)
)
CUT_LOG = "and 3 more\n2031-04-01 10:00:00 INFO start\n2031-04-01 10:00:09 WARN slow tick\n2031-04-01 10:0"


def dump() -> str:
    """A MySQL dump of the harbour: contracts, stages (one missing), cranes."""
    contracts = ",\n".join(
        f"({n},'Contract {n}',{1 + n % 2},4,'contract_{'tow' if n % 2 else 'lift'}',{100 + n % 3})"
        for n in range(1, 31)
    )
    stages = ",\n".join(
        f"({n * 10 + s},{n},{s},'step {s} of {n}',{30 * s})"
        for n in range(1, 31)
        for s in range(1, 5)
        if not (n == 7 and s == 4)
    )
    return (
        "-- MySQL dump 10.13\n"
        "CREATE TABLE `contract` (\n  `id` int unsigned NOT NULL,\n  `name` varchar(60),\n  `kind` tinyint,\n"
        "  `stages` int,\n  `script` varchar(40),\n  `crane_id` int,\n  PRIMARY KEY (`id`)\n);\n"
        f"INSERT INTO `contract` VALUES {contracts};\n"
        "CREATE TABLE `contract_stage` (\n  `id` int NOT NULL,\n  `contract_id` int,\n  `stage` int,\n"
        "  `text` varchar(60),\n  `delay` int,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n"
        f"INSERT INTO `contract_stage` VALUES {stages};\n"
        "CREATE TABLE `crane` (\n  `id` int NOT NULL,\n  `name` varchar(60),\n  PRIMARY KEY (`id`)\n);\n"
        "INSERT INTO `crane` VALUES (100,'Old Tom'),(101,'Gr\\u00fcne'),(102,NULL);\n"
        "-- Dump completed on 2031-04-02\n"
    ).replace("\\u00fc", "\u00fc")


def write_inputs(folder: Path) -> dict[str, Path]:
    """Write report, diagnostics and source below `folder`."""
    report = folder / "report.md"
    report.write_text(REPORT, encoding="utf-8")
    diagnostics = folder / "diagnostics"
    for name, text in {
        "db/world.sql": dump(),
        "db/berth.csv": "id,name,depth\n1,North,9.5\n2,South,7.25\n",
        "db/tide.jsonl": "".join(json.dumps({"hour": h, "level": h * 3 % 7}) + "\n" for h in range(24)),
        "db/manifest.json": json.dumps(
            {"tables": [{"file": "berth.csv", "where": "depth > 7", "rows_at_source": 5}]}
        ),
        "logs/Server.log": LOG,
        "logs/gate_tail.log": CUT_LOG,
        "config/server.conf": CONFIG,
    }.items():
        target = diagnostics / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (diagnostics / "logs/wide.log").write_bytes(
        "\ufeff2031-04-01 10:00:00 Größe erreicht\r\n2031-04-01 10:00:01 ende\r\n".encode("utf-16-le")
    )
    lite = sqlite3.connect(diagnostics / "db/state.sqlite")
    lite.execute("CREATE TABLE pilot (id INTEGER PRIMARY KEY, name TEXT, rating REAL, badge BLOB)")
    lite.executemany(
        "INSERT INTO pilot VALUES (?,?,?,?)", [(1, "Ann", 4.5, b"\x00\x01"), (2, "Ben", None, None)]
    )
    lite.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT, password TEXT, email TEXT)")
    lite.execute("INSERT INTO account VALUES (1, 'ann', 'hunter2-canary', 'ann.canary@harbour.example')")
    lite.commit()
    lite.close()
    source = folder / "source"
    (source / "src").mkdir(parents=True)
    (source / "src/stage.cpp").write_text(SERVER_CPP, encoding="utf-8")
    return {"report": report, "diagnostics": diagnostics, "source": source}


def imported(folder: Path, case_id: str = "HARBOUR-7") -> tuple[CheckpointStore, Head]:
    """Write the inputs and import them into a fresh home."""
    inputs = write_inputs(folder)
    store = CheckpointStore(folder / "home")
    head = import_case(
        store,
        case_id=case_id,
        report=inputs["report"],
        diagnostics=inputs["diagnostics"],
        source=inputs["source"],
    )
    return store, head


def toolbox(folder: Path) -> tuple[CheckpointStore, Head, CaseToolBox]:
    """Return the imported case with its tools."""
    store, head = imported(folder)
    return store, head, ToolBoxFactory(folder / "cache").open(store, head)
