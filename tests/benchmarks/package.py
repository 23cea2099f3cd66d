"""`make bench NAME=package`: bytes, lookups and commits of the package store beside what it is compared with.

Everything is measured in this run on this disk and given as a ratio. CPU seconds are compared where
the work is computing (lookups), wall seconds where it is waiting for the disk (commits).
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import _package_workload as load
from viano_assets.package.store import CheckpointStore

ROUNDS = 15
PAIRS = 7
"""Measurements of which the median counts: lookups, and commits beside LangGraph."""

LONG = (10_000, 10_239)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _disk_bytes(folder: Path) -> int:
    """Return the larger of the files' sizes and the blocks they take."""
    files = [p.stat() for p in folder.rglob("*") if p.is_file()]
    return max(sum(s.st_size for s in files), sum(s.st_blocks * 512 for s in files))


def _file_system(path: Path) -> str:
    best = ("", "unknown")
    for line in Path("/proc/mounts").read_text().splitlines():
        device, mount, kind = line.split()[:3]
        if str(path).startswith(mount) and len(mount) >= len(best[0]):
            best = (mount, f"{kind} on {device}")
    return best[1]


def _two_flushes(folder: Path, number: int, data: bytes) -> float:
    """Write one file, flush, rename, flush the directory: the least a durable commit can do."""
    start = time.perf_counter()
    temporary = folder / f"t{number}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)
    temporary.rename(folder / f"f{number}")
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    return time.perf_counter() - start


def _commits(root: Path, files: dict[str, bytes], work: list[load.Step]) -> dict[str, float]:
    """Commit every step, each beside the bare limit with the same bytes."""
    disk = load.Counting()
    store = CheckpointStore(root / "short", filesystem=disk)
    head = load.first(store, files)
    bare = root / "bare"
    bare.mkdir()
    ours, limits, flushes, cpu = [], [], [], 0.0
    with store.lock(load.CASE):
        for number, step in enumerate(work):
            change = load.change_of(step)
            disk.flushes = 0
            used, start = time.process_time(), time.perf_counter()
            head = store.commit(head, change)
            ours.append(time.perf_counter() - start)
            cpu += time.process_time() - used
            flushes.append(disk.flushes)
            limits.append(_two_flushes(bare, number, b"".join(step.put.values())))
    _say(
        f"commit ms: {statistics.median(ours) * 1e3:.2f}, limit {statistics.median(limits) * 1e3:.2f}; "
        f"CPU {cpu / len(work) * 1e3:.2f}"
    )
    return {
        "ratio": statistics.median(ours) / statistics.median(limits),
        "flushes": statistics.median(flushes),
    }


def _lookups(homes: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Measure cold lookups and plain hashing in fresh processes, all homes in turn."""
    samples: dict[str, list[dict[str, list[float]]]] = {name: [] for name in homes}
    for number in range(ROUNDS):
        for name, home in homes.items():
            order = "hash" if number % 2 else "lookup"
            done = subprocess.run(
                [sys.executable, "-m", "tests.benchmarks._package_lookup", str(home), order],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            samples[name].append(json.loads(done.stdout))
    result = {}
    for name, runs in samples.items():
        result[name] = {
            kind: [statistics.median(run[kind][i] for run in runs) for i in (0, 1)]
            for kind in ("lookup", "hash")
        }
        result[name]["pairs"] = [run["lookup"][0] / run["hash"][0] for run in runs]
        result[name]["cpu"] = [run["lookup"][0] for run in runs]
        _say(
            f"{name} generations, ms CPU (wall): "
            + ", ".join(
                f"{kind} {cpu * 1e3:.1f} ({wall * 1e3:.1f})"
                for kind in ("lookup", "hash")
                for cpu, wall in [result[name][kind]]
            )
        )
    return result


def _paired(long: dict[str, Any], short: dict[str, Any]) -> float:
    """Return how much longer the lookups of one home took than their neighbours in the other; the median."""
    return float(statistics.median(one / other for one, other in zip(long["cpu"], short["cpu"], strict=True)))


def _python_with_langgraph(root: Path) -> Path | None:
    """Make the throw-away environment, or return None with the reason on standard error."""
    environment = root / "langgraph"
    try:
        venv.create(environment, with_pip=True)
        python = environment / "bin/python"
        packages = ["langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2"]
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
            check=True, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", None) or str(error)
        _say(f"LangGraph was not measured: {str(detail).strip()[-300:]}")
        return None
    return python


def _cpu(command: Sequence[str | Path]) -> float:
    """Run a measuring process and return its CPU seconds per step."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    figures = json.loads(done.stdout.splitlines()[-1])
    return float(figures["cpu_seconds"] / figures["steps"])


def _langgraph(root: Path, work: list[load.Step], input_bytes: int) -> dict[str, float] | None:
    """Run the same steps through LangGraph and through the store, in turn, each in a fresh process.

    CPU seconds are those of the process, so waiting counts for neither; what a busy machine adds, it adds
    to both neighbours of a pair, and the median of the pairs' ratios is taken.
    """
    python = _python_with_langgraph(root)
    if python is None:
        return None
    payload = root / "steps.json"
    payload.write_text(
        json.dumps(
            [{"put": {p: d.decode("latin-1") for p, d in s.put.items()}, "events": s.events} for s in work]
        )
    )
    script = Path(__file__).with_name("_package_langgraph.py")
    pairs: list[tuple[float, float]] = []
    size = 0
    for number in range(PAIRS):
        database, home = root / "langgraph.db", root / "pair"
        both: dict[str, list[str | Path]] = {
            "ours": [sys.executable, "-m", "tests.benchmarks._package_commits", home],
            "theirs": [python, script, database, payload],
        }
        order = sorted(both, reverse=bool(number % 2))
        cost = {name: _cpu(both[name]) for name in order}
        pairs.append((cost["theirs"], cost["ours"]))
        size = sum(p.stat().st_size for p in root.glob("langgraph.db*"))
        shutil.rmtree(home)
        for path in root.glob("langgraph.db*"):
            path.unlink()
    theirs, ours = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    ratios = sorted(pair[0] / pair[1] for pair in pairs)
    _say(
        f"LangGraph: {size / 1e6:.0f} MB; CPU a step {theirs * 1e3:.2f} ms, ours {ours * 1e3:.2f};"
        f" ratios {', '.join(f'{ratio:.1f}' for ratio in ratios)}"
    )
    return {"bytes": size + input_bytes, "cpu_ratio": statistics.median(ratios)}


def main() -> dict[str, object]:
    """Run everything in a temporary directory on the disk that `TMPDIR` names."""
    with tempfile.TemporaryDirectory(prefix="viano-bench-") as folder:
        return _measure(Path(folder))


def _measure(root: Path) -> dict[str, object]:
    files = load.inputs()
    work = list(load.steps())
    input_bytes = sum(map(len, files.values()))
    distinct = input_bytes + sum(len(d) for d in {d for step in work for d in step.put.values()})
    commits = _commits(root, files, work)
    used = _disk_bytes(root / "short")
    zips = load.zip_sizes(files, work)
    _say(f"disk {used / 1e6:.1f} MB; stored ZIPs would be {zips.stored / used:.0f} times that")
    homes = {str(load.GENERATIONS): root / "short"}
    for generations in LONG:
        load.long_package(root / str(generations), files, work, generations)
        homes[str(generations)] = root / str(generations)
    gc.collect()
    looked = _lookups(homes)
    short = looked[str(load.GENERATIONS)]
    for generations in LONG:
        shutil.rmtree(root / str(generations))
    other = _langgraph(root, work, input_bytes)
    return {
        "bytes_ratio": round(used / distinct, 3),
        "vs_zip_ratio": round(zips.deflated / used, 1),
        "cold_full_vs_hash": round(statistics.median(short["pairs"]), 2),
        "lookup_10000_vs_148": round(max(_paired(looked[str(n)], short) for n in LONG), 2),
        "commit_vs_two_fsyncs": round(commits["ratio"], 2),
        "fsyncs_per_commit": commits["flushes"],
        "langgraph_bytes_ratio": None if other is None else round(other["bytes"] / used, 1),
        "langgraph_commit_cpu_ratio": None if other is None else round(other["cpu_ratio"], 1),
        "filesystem": _file_system(root),
    }
