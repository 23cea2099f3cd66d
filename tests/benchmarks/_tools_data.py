"""Figures of the data tools: a generated dump into DuckDB and a large log."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from resources.session import Session
from resources.tools.database.naming import quote
from resources.tools.database.snapshot import DataInput, Snapshot, ensure
from tests.benchmarks import _tools_mariadb
from viano_assets.case.intake import import_case
from viano_assets.phases.protocols import DispatchStatus, Phase

DUMP_MB = 280
LOG_MB = 200
_REPORT = """# Handler of stage_41 does nothing

## Observed
Unit 1234 does not move after stage_41. The log shows `handler of stage_41 registered twice`.

## Expected
The second handler runs.
"""
_WORDS = (
    "crane", "berth", "pilot", "tide", "cargo", "rope", "winch", "quay", "ballast", "ledger", "lantern",
)  # fmt: skip


class Column(NamedTuple):
    """A generated column: name, SQL type, DuckDB comparison type."""

    name: str
    sql: str
    kind: str


_COLUMNS = (
    Column("id", "int unsigned NOT NULL", "int"),
    Column("kind", "tinyint", "int"),
    Column("owner", "bigint", "int"),
    Column("flags", "int unsigned", "int"),
    Column("weight", "double", "real"),
    Column("price", "decimal(12,3)", "text"),
    Column("name", "varchar(80)", "text"),
    Column("note", "text", "text"),
    Column("script", "varchar(40)", "text"),
    Column("since", "datetime", "text"),
    Column("badge", "varbinary(16)", "binary"),
    Column("extra", "varchar(40)", "text"),
)


def rows(table: int, count: int) -> Iterator[tuple[Any, ...]]:
    """Generate the rows of one table; the same for the same numbers."""
    dice = random.Random(table)
    for n in range(count):
        word = _WORDS[dice.randrange(len(_WORDS))]
        note = f"{word} no. {n}" if n % 7 else f'it\'s "{word}"\n),( ; -- {n}\\ 100%'
        yield (
            n,
            dice.randrange(-128, 128),
            dice.randrange(-(2**62), 2**62) if n % 11 else None,
            dice.randrange(2**32),
            dice.randrange(10**6) / 64,
            f"{dice.randrange(10**8)}.{dice.randrange(1000):03d}",
            f"{word.title()} {dice.randrange(10**5)}",
            note,
            None if n % 5 else f"script_{word}_{n % 97}",
            "0000-00-00 00:00:00" if n % 13 == 0 else f"2031-04-{1 + n % 28:02d} 10:{n % 60:02d}:00",
            None if n % 3 else n.to_bytes(4, "big"),
            "NULL" if n % 17 == 0 else "" if n % 4 else f"Größe {n}",
        )


def _sql(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return "0x" + value.hex().upper()
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace('"', '\\"')
    return f"'{text}'"


def write_dump(path: Path, megabytes: int, rows_per_table: int = 20_000) -> int:
    """Write a MySQL dump of about `megabytes`; every second table has one row a line. Returns the tables."""
    table = 0
    with path.open("w", encoding="utf-8") as out:
        out.write("-- MySQL dump 10.13\n/*!40101 SET NAMES utf8 */;\n")
        while out.tell() < megabytes * 1_000_000:
            listed = ",\n".join(f"  `{c.name}` {c.sql}" for c in _COLUMNS)
            out.write(f"CREATE TABLE `t{table}` (\n{listed},\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n")
            between = ",\n" if table % 2 else ","
            batch: list[str] = []
            for number, row in enumerate(rows(table, rows_per_table), 1):
                batch.append("(" + ",".join(_sql(value) for value in row) + ")")
                if number % 5_000 == 0:
                    out.write(f"INSERT INTO `t{table}` VALUES {between.join(batch)};\n")
                    batch = []
            table += 1
        out.write("-- Dump completed on 2031-04-30\n")
    return table


def differing_cells(snapshot: Snapshot, tables: int, rows_per_table: int = 20_000) -> int:
    """Compare every cell of the snapshot with the generator's list."""
    differ = 0
    with snapshot.connect(3_600) as connection:
        for table in range(tables):
            found = connection.execute(f"SELECT * FROM {quote(f't{table}')} ORDER BY id").fetchall()
            differ += abs(len(found) - rows_per_table) * len(_COLUMNS)
            for want, have in zip(rows(table, rows_per_table), found, strict=False):
                differ += sum(_plain(a) != _tools_mariadb.same(b) for a, b in zip(want, have, strict=True))
    return differ


def _plain(value: Any) -> Any:
    return "0x" + value.hex().upper() if isinstance(value, bytes) else value


def dump_figures(folder: Path, megabytes: int = DUMP_MB) -> dict[str, float]:
    """Load a generated dump and measure CPU, peak memory and cells."""
    dump = folder / "world.sql"
    tables = write_dump(dump, megabytes)
    derived = folder / "derived"
    derived.mkdir()
    item = DataInput(dump.name, dump, "script", "utf-8", "inputs/diagnostics/world.sql", "0" * 64)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    snapshot = ensure(derived, [item], None)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if snapshot is None:
        raise RuntimeError("no snapshot")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = dump.stat().st_size / 1_000_000
    differ = differing_cells(snapshot, tables)
    if _tools_mariadb.installed():
        place = folder / "mariadb"
        place.mkdir()
        other = _tools_mariadb.differing_cells(place, dump, snapshot, tables, [c.kind for c in _COLUMNS])
        sys.stderr.write(f"{other} cells differ from MariaDB, {differ} from the generator\n")
        differ += other
    else:
        sys.stderr.write("MariaDB is not installed: compared with the generator alone\n")
    return {
        "dump_mb_per_cpu_s": round(size / cpu, 2),
        "dump_peak_mb": round(after.ru_maxrss / 1024, 1),
        "dump_cells_differ": differ,
    }


def write_log(path: Path, megabytes: int) -> None:
    """Write a log of about `megabytes` with one odd line near its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    dice = random.Random(5)
    with path.open("w", encoding="utf-8") as out:
        n = 0
        while out.tell() < megabytes * 1_000_000:
            lines = []
            for _ in range(20_000):
                n += 1
                clock = f"{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}"
                day = f"2031-{1 + n // 2_592_000 % 12:02d}-{1 + n // 86_400 % 28:02d}"
                word = _WORDS[dice.randrange(len(_WORDS))]
                lines.append(
                    f"{day} {clock} INFO [{word}] unit {dice.randrange(10**6)} moved to berth {n % 50}\n"
                )
            out.writelines(lines)
        out.write("2031-12-28 23:59:59 ERROR handler of stage_41 registered twice, the first one is kept\n")


def log_figures(folder: Path, megabytes: int = LOG_MB) -> dict[str, float]:
    """Import a case with a large log and search it: seconds from the end of the import to the answer.

    That holds the building of the redacted view, which is done once for a case.
    """
    write_log(folder / "diagnostics" / "logs" / "Server.log", megabytes)
    report = folder / "report.md"
    report.write_text(_REPORT, encoding="utf-8")
    session = Session.open(folder / "home", provider="offline")
    import_case(session.store, case_id="LOG", report=report, diagnostics=folder / "diagnostics")
    head = session.store.latest("LOG")
    start = time.monotonic()
    result = session.tools.open(session.store, head).run("log.search", {"pattern": "registered twice"})
    seconds = time.monotonic() - start
    if result.empty:
        raise RuntimeError("the odd line was not found")
    return {"log_ready_s": round(seconds, 3)}


def dispatch_figures(folder: Path, dump_mb: int = DUMP_MB, log_mb: int = LOG_MB) -> dict[str, float]:
    """Investigate a case of that size with the offline analyst; median seconds of a warm dispatch."""
    diagnostics = folder / "diagnostics"
    diagnostics.mkdir(parents=True)
    write_dump(diagnostics / "world.sql", dump_mb)
    write_log(diagnostics / "logs" / "Server.log", log_mb)
    source = folder / "source" / "src"
    source.mkdir(parents=True)
    for n in range(60):
        lines = [f"bool Handle{n}_{k}(Unit& u) {{ return u.stage > {k}; }}\n" for k in range(200)]
        (source / f"handler_{n}.cpp").write_text("".join(lines), encoding="utf-8")
    report = folder / "report.md"
    report.write_text(_REPORT, encoding="utf-8")
    return asyncio.run(_dispatches(folder, report))


async def _dispatches(folder: Path, report: Path) -> dict[str, float]:
    session = Session.open(folder / "home", provider="offline")
    import_case(
        session.store,
        case_id="LARGE",
        report=report,
        diagnostics=folder / "diagnostics",
        source=folder / "source",
    )
    await session.run("LARGE", until=Phase.HYPOTHESES)
    seconds: list[float] = []
    status = DispatchStatus.PROGRESSED
    while status is DispatchStatus.PROGRESSED:
        start = time.monotonic()
        status = (await session.builders[Phase.INVESTIGATION].build("LARGE")).status
        seconds.append(time.monotonic() - start)
    if status is not DispatchStatus.COMPLETED or len(seconds) < 3:
        raise RuntimeError(f"{len(seconds)} dispatches, then {status}")
    return {"dispatch_s": round(statistics.median(seconds[1:]), 3), "open_s": round(seconds[0], 1)}


def _in_process(part: str) -> dict[str, float]:
    """Run one part in a fresh process, so that its peak memory is its own."""
    script = (
        "import json, tempfile; from pathlib import Path; from tests.benchmarks import _tools_data as d\n"
        f"with tempfile.TemporaryDirectory() as f: print(json.dumps(d.{part}(Path(f))))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def figures() -> dict[str, float]:
    """Return the figures of the dump and the log."""
    large = _in_process("dispatch_figures")
    return {
        **_in_process("dump_figures"),
        **_in_process("log_figures"),
        "dispatch_s": large["dispatch_s"],
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(dump_figures(Path(place), int(sys.argv[1])))
