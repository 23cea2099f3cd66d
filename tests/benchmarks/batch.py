"""`make bench NAME=batch`: a corpus through the Dagster graph beside the builders called directly.

200 small cases (`BENCH_CASES`), one of them damaged on purpose, as one ranged run of the case chain with
`BENCH_THREADS` threads; the same cases through the builders in as many threads; and the same again, killed in
the middle and run once more. Every part runs in a process of its own with a fresh home.

Of the builders counts what they do themselves: opening a session, model calls, tools and all commits of the
four phases up to the diagnosis. The graph also counts Dagster's planning, its stored events, metadata with
the plot, the checks (each piece of evidence looked up again), the change request, and the rows of the
evidence index with their compaction. Making the home, starting Python and importing this module stay outside
both; what either imports later is inside.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg

from resources.session import Session
from tests.support.damage import cut_largest
from tests.support.graph import REPORT, SOURCE, materialise
from viano_assets.case.intake import import_case
from viano_assets.data_files import CONFIG
from viano_assets.errors import VianoError
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import CaseRevision, parse_key
from viano_assets.phases.drive import PHASE_ORDER, drive
from viano_assets.phases.protocols import DispatchStatus

THREADS = int(os.environ.get("BENCH_THREADS", "4"))


def make_home(home: Path, cases: int) -> list[str]:
    """Import the cases, damage the one in the middle, and return the partition keys."""
    store = CheckpointStore(home)
    with tempfile.TemporaryDirectory(prefix="viano-batch-") as folder:
        inputs = Path(folder)
        (inputs / "src").mkdir()
        for number in range(cases):
            (inputs / "report.md").write_text(REPORT.replace("17", str(17 + number)), encoding="utf-8")
            source = SOURCE.replace("16", str(16 + number))
            (inputs / "src" / "crane.cpp").write_text(source, encoding="utf-8")
            import_case(store, case_id=f"B{number:03d}", report=inputs / "report.md", source=inputs / "src")
    cut_largest(home, f"B{cases // 2:03d}")
    return [CaseRevision(f"B{number:03d}", 1).key for number in range(cases)]


def direct(home: Path, keys: list[str]) -> dict[str, Any]:
    """Call the builders in threads, without graph and index."""
    start = time.perf_counter()
    session = Session.open(home)

    def one(key: str) -> str | None:
        try:
            for phase in PHASE_ORDER[:-1]:
                result = asyncio.run(
                    drive(session.store, session.builders[phase], phase, parse_key(key).case_id)
                )
                if result.status is not DispatchStatus.COMPLETED:
                    return f"{key} {phase.value} {result.status.value} {result.code} {result.message}"
        except VianoError as error:
            return f"{key} {error.code}"
        return None

    with ThreadPoolExecutor(THREADS) as pool:
        failed = [text for text in pool.map(one, keys) if text is not None]
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "cpu": time.process_time(), "failed": failed}


def graph(home: Path, keys: list[str]) -> dict[str, Any]:
    """Materialise the keys as one ranged run on an instance with its store on disk."""
    place = home.parent / "dagster"
    place.mkdir(exist_ok=True)
    shutil.copyfile(CONFIG / "dagster.yaml", place / "dagster.yaml")
    os.environ["DAGSTER_HOME"] = str(place)
    with dg.DagsterInstance.get() as instance:
        start = time.perf_counter()
        done = materialise(home, instance, keys, threads=THREADS)
        seconds = time.perf_counter() - start
    failed: list[Mapping[str, Any]] = []
    for event in done.all_events:
        failure = event.step_failure_data if event.is_step_failure else None
        if failure is not None and failure.user_failure_data is not None:
            table = failure.user_failure_data.metadata["failed"]
            failed += [record.data for record in table.records]  # type: ignore[attr-defined]
    cpu = time.process_time()
    return {"seconds": seconds, "cpu": cpu, "failed": sorted({str(item["key"]) for item in failed})}


def calls(home: Path, keys: list[str]) -> dict[str, int]:
    """Return the recorded rounds per case, and those of operations recorded twice."""
    store = CheckpointStore(home)
    finished: dict[str, int] = {}
    for key in keys:
        try:
            head = store.latest(parse_key(key).case_id)
        except VianoError:
            continue
        rounds = [c.detail["operation"] for c in head.checkpoints if c.event == "model_round_recorded"]
        finished[key] = len(rounds) - len(set(rounds))
    return finished


def _child(role: str, home: Path, keys: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.batch", role, str(home), json.dumps(keys)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _run(role: str, home: Path, keys: list[str]) -> dict[str, Any]:
    output, _ = _child(role, home, keys).communicate()
    return dict(json.loads(output.strip().splitlines()[-1]))


def _generations(home: Path, keys: list[str]) -> dict[str, int]:
    store, found = CheckpointStore(home), {}
    for key in keys:
        try:
            head = store.latest(parse_key(key).case_id)
        except VianoError:
            continue
        if any(c.event == "diagnosis_published" for c in head.checkpoints):
            found[key] = head.generation
    return found


def _killed(home: Path, keys: list[str]) -> int:
    """Kill a ranged run in its middle, run it again, and count finished cases that were worked on again."""
    process = _child("graph", home, keys)
    left = set(keys)
    while process.poll() is None and len(left) > len(keys) * 2 // 3:
        time.sleep(2)
        left -= _generations(home, sorted(left)).keys()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    finished = {key: n for key, n in _generations(home, keys).items() if _complete(home, key)}
    sys.stderr.write(f"killed with {len(finished)} of {len(keys)} finished\n")
    _run("graph", home, keys)
    after = _generations(home, keys)
    sys.stderr.write(f"then {len(after)} finished\n")
    return sum(after[key] != number for key, number in finished.items()) + sum(calls(home, keys).values())


def _complete(home: Path, key: str) -> bool:
    state = CheckpointStore(home).latest(parse_key(key).case_id).manifest.lifecycle
    return state in {"FAILED_TO_ANALYZE", "OUTPUT_READY"}


def main() -> dict[str, object]:
    """Run all parts."""
    cases = int(os.environ.get("BENCH_CASES", "200"))
    with tempfile.TemporaryDirectory(prefix="viano-batch-") as folder:
        first = Path(folder) / "a" / "home"
        keys = make_home(first, cases)
        for name in ("b", "c"):
            shutil.copytree(first.parent, Path(folder) / name)
        straight = _run("direct", first, keys)
        ranged = _run("graph", Path(folder) / "b" / "home", keys)
        sys.stderr.write(f"direct {straight}\ngraph {ranged}\n")
        repeated = _killed(Path(folder) / "c" / "home", keys)
    planted = {keys[cases // 2]}
    return {
        "cases": cases,
        "overhead_s_per_case": round((ranged["seconds"] - straight["seconds"]) / cases, 4),
        "failures_planted": len(planted),
        "failures_isolated": len(planted) if set(ranged["failed"]) == planted else 0,
        "repeated_after_resume": repeated,
    }


if __name__ == "__main__":
    _role, _home, _keys = sys.argv[1:]
    _answer = {"direct": direct, "graph": graph}[_role](Path(_home), json.loads(_keys))
    print(json.dumps(_answer))
