"""Hostile SQL through `db.query`: nothing outside is read or written, and every statement ends in time.

`figures()` returns how many kinds were run and how many had an outside effect. The snapshot has a small
table (copied into the process) and a large one (the file is opened), so that both ways are under attack.
"""

# ruff: noqa: E501 - one attack a line
from __future__ import annotations

import http.server
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from resources.tools.database.sandbox import DEADLINE_S, QueryAnswer, select
from resources.tools.database.snapshot import DataInput, Snapshot, ensure

CANARY = "canary-7f3a91-outside"
MAX_RESIDENT_MB = 1_536
GRACE_S = 3.0
"""Allowed beyond the deadline: starting and ending a process on a loaded machine."""


class Attack(NamedTuple):
    """One kind of hostile statement in its variants."""

    kind: str
    statements: tuple[str, ...]


def attacks(secret: str, folder: str, port: int, file: str) -> list[Attack]:
    """Return the kinds; `secret` is a file with the canary, `folder` a place to write to."""
    union = " UNION ALL ".join(["SELECT 1"] * 5_000)
    return [
        Attack("read a CSV", (f"SELECT * FROM read_csv('{secret}')", f"SELECT * FROM read_csv('{secret}'), big")),
        Attack("read text", (f"SELECT * FROM read_text('{secret}')", f"SELECT content FROM read_text('{secret}'), big")),
        Attack("read bytes", (f"SELECT * FROM read_blob('{secret}')", f"SELECT * FROM read_blob('{file}') , small")),
        Attack("read JSON", (f"SELECT * FROM read_json_auto('{secret}')",)),
        Attack("read Parquet", (f"SELECT * FROM read_parquet('{folder}/*.parquet')",)),
        Attack("list files", (f"SELECT * FROM glob('{folder}/**')", "SELECT * FROM glob('/home/*'), big")),
        Attack("sniff a file", (f"SELECT * FROM sniff_csv('{secret}')",)),
        Attack("a file as table", (f"SELECT * FROM '{secret}'", f"SELECT * FROM 'file://{secret}', big")),
        Attack("process environment", ("SELECT * FROM read_text('/proc/self/environ')", "SELECT getenv('HOME')")),
        Attack("local network", (f"SELECT * FROM read_text('http://127.0.0.1:{port}/x')", f"SELECT * FROM 'http://127.0.0.1:{port}/x.csv', big")),
        Attack("object storage", ("SELECT * FROM read_csv('s3://bucket/x.csv')",)),
        Attack("copy out", (f"COPY small TO '{folder}/out.csv'", f"COPY (SELECT 1) TO '{folder}/o.parquet'")),
        Attack("copy in", (f"COPY small FROM '{secret}'",)),
        Attack("export and import", (f"EXPORT DATABASE '{folder}/dump'", f"IMPORT DATABASE '{folder}'")),
        Attack("attach", (f"ATTACH '{folder}/new.db'", "ATTACH ':memory:' AS m", f"ATTACH '{file}' AS again")),
        Attack("extensions", ("INSTALL httpfs", f"LOAD '{folder}/x.so'", "SELECT * FROM sqlite_scan('x', 'y')")),
        Attack("secrets", ("CREATE PERSISTENT SECRET s (TYPE http)", "SELECT * FROM duckdb_secrets()")),
        Attack("unlock", ("SET enable_external_access=true", "RESET lock_configuration", "SET memory_limit='64GB'")),
        Attack("pragma", ("PRAGMA database_list", "PRAGMA enable_profiling", f"PRAGMA log_query_path='{folder}/q'")),
        Attack("logging to a file", (f"CALL enable_logging(storage='file', storage_path='{folder}')", f"SELECT * FROM enable_logging('QueryLog', storage='file', storage_path='{folder}')")),
        Attack("two statements", ("SELECT 1; SELECT 2", f"SELECT 1; COPY small TO '{folder}/two.csv'")),
        Attack("SQL in a string", (f"SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')", f"FROM query('COPY small TO ''{folder}/q.csv''')")),
        Attack("serialised SQL", (f"SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{secret}'')'))",)),
        Attack("variables of the host", ("SELECT * FROM job", "SELECT * FROM answer, big", "SELECT * FROM sys")),
        Attack("paths in settings", ("SELECT * FROM duckdb_settings()", "SELECT * FROM duckdb_databases(), (SELECT 1 FROM big LIMIT 1)")),
        Attack("sleep", ("SELECT sleep_ms(60000)", "SELECT sleep_ms(60000) FROM big")),
        Attack("endless join", ("SELECT count(*) FROM range(100000000) a, range(100000000) b", "SELECT count(*) FROM big a, big b, big c WHERE a.id + b.id + c.id = 7")),
        Attack("memory by lists", ("SELECT list(range) FROM range(500000000)", "SELECT string_agg(repeat('x', 1000000), '') FROM range(100000)")),
        Attack("memory by padding", ("SELECT length(lpad('x', 2000000000, 'y'))", "SELECT repeat('ab', 1000000000)")),
        Attack("quadratic text", ("SELECT damerau_levenshtein(repeat('ab', 100000), repeat('ba', 100000))", "SELECT regexp_matches(repeat('a', 1000000), '(a+)+$')")),
        Attack("endless recursion", ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",)),
        Attack("planner", (union, "SELECT " + "(" * 5000 + "1" + ")" * 5000, " UNION ALL ".join(["SELECT 1"] * 800))),
        Attack("writing statements", ("DELETE FROM small", "UPDATE big SET id = 0", "CREATE TEMP TABLE x AS SELECT 1", "WITH d AS (DELETE FROM small RETURNING *) SELECT * FROM d", "CHECKPOINT", "BEGIN", "USE main", "SET VARIABLE a = 1")),
        Attack("explain with execution", (f"EXPLAIN ANALYZE COPY small TO '{folder}/e.csv'", f"EXPLAIN (ANALYZE) SELECT * FROM read_text('{secret}')", "SELECT write_log('x', log_type := 'y')")),
    ]  # fmt: skip


class _Counting(http.server.BaseHTTPRequestHandler):
    hits = 0

    def do_GET(self) -> None:
        type(self).hits += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(CANARY.encode())

    do_HEAD = do_GET  # noqa: N815 - the name is the protocol's

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        del format, args


def make_snapshot(folder: Path, rows: int = 200_000) -> Snapshot:
    """Build a snapshot with a small and a large table."""
    small = folder / "small.csv"
    small.write_text("id,name\n" + "".join(f"{n},n{n}\n" for n in range(10)), encoding="utf-8")
    big = folder / "big.csv"
    big.write_text("id,value\n" + "".join(f"{n},{n % 97}\n" for n in range(rows)), encoding="utf-8")
    derived = folder / "derived"
    derived.mkdir()
    inputs = [DataInput(f.name, f, "csv", "utf-8", f"inputs/{f.name}", "0" * 64) for f in (small, big)]
    snapshot = ensure(derived, inputs, None)
    if snapshot is None:
        raise RuntimeError("no snapshot")
    return snapshot


def _state(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*"))


def effects(statement: str, answer: QueryAnswer, seconds: float, snapshot: Snapshot) -> list[str]:
    """Return what a statement gave away or did not keep to."""
    found = []
    text = repr(answer).replace(statement, "")
    home = str(Path.home()) + "/"
    told = [path for path in (str(snapshot.file.parent), home) if path in text and path not in statement]
    if CANARY in text:
        found.append("an outside file was read")
    if told:
        found.append("a path of the host was shown")
    if seconds > DEADLINE_S + GRACE_S:
        found.append(f"it took {seconds:.1f} s")
    return found


def figures(verbose: bool = False) -> dict[str, object]:
    """Run every kind and count the outside effects."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        snapshot = make_snapshot(root)
        outside = root / "outside"
        outside.mkdir()
        secret = outside / "secret.txt"
        secret.write_text(f"a,b\n{CANARY},2\n", encoding="utf-8")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Counting)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        before = _state(root)
        failures: list[str] = []
        kinds = attacks(str(secret), str(outside), server.server_port, str(snapshot.file))
        slowest = 0.0
        for attack in kinds:
            for statement in attack.statements:
                start = time.monotonic()
                answer = select(snapshot, statement, 500)
                seconds = time.monotonic() - start
                slowest = max(slowest, seconds)
                found = effects(statement, answer, seconds, snapshot)
                failures.extend(f"{attack.kind}: {effect}" for effect in found)
                if verbose:
                    outcome = answer.refused or answer.failed or f"{len(answer.rows)} rows"
                    print(f"{seconds:5.2f} s  {attack.kind:26} {statement[:60]!r}: {outcome[:90]}", found)
        server.shutdown()
        server.server_close()
        if _state(root) != before:
            failures.append("a file was written")
        if _Counting.hits:
            failures.append("the network was reached")
        resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        if resident > MAX_RESIDENT_MB:
            failures.append(f"{resident:.0f} MB were resident")
        if verbose:
            print(f"slowest {slowest:.1f} s, largest resident {resident:.0f} MB", failures)
        return {"hostile_sql": len(kinds), "outside_effects": len(failures)}


if __name__ == "__main__":
    print(figures(verbose=True))
