"""`make bench NAME=first`: how often the generated bugs are diagnosed rightly, beside two baselines.

Sixty cases (P1, P5 half code half configuration, P6-C; seeds 1 to 20) and the twin of each, five real
cases, and the deaths of `tests/deep/kills.py`. `FIRST_PARTS` (of `synthetic,real,kills`) leaves parts out;
their figures are then null. `FIRST_PROCESSES` is the number of processes, two unless given.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from collections.abc import Iterable, Sequence
from multiprocessing.pool import Pool

from tests.benchmarks._first_run import Job, Outcome, RealOutcome, run_job, run_real
from viano_assets.data_files import CONFIG
from viano_assets.evaluation.recipes import read_entries

SEEDS = range(1, 21)
REAL_CASES = 5


def jobs() -> list[Job]:
    """Return all generated cases seed by seed, each followed by its twin; odd seeds are German."""
    found = []
    for seed in SEEDS:
        half = (seed - 1) // 2 % 2
        language = "de" if seed % 2 else "en"
        for family, variants in (("P1", "AA"), ("P5", "AB"), ("P6", "CC")):
            found += [Job(family, variants[half], seed, language, twin) for twin in (False, True)]
    return found


def _pool() -> Pool:
    processes = int(os.environ.get("FIRST_PROCESSES", "2"))
    return multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=10)


def synthetic() -> list[Outcome]:
    """Run all generated cases and print a line for each."""
    with _pool() as pool:
        outcomes = []
        for outcome in pool.imap(run_job, jobs()):
            outcomes.append(outcome)
            job = outcome.job
            name = f"{job.family}-{job.variant}-{job.seed}{'-twin' if job.twin else ''} {job.language}"
            word = "right" if outcome.right else "CONFIRMED WRONG" if outcome.confirmed_wrong else "not right"
            sys.stderr.write(
                f"{name:<18} {word:<15} {outcome.status} {outcome.kind}, {outcome.seconds:.1f} s"
                f"{'' if outcome.right else '; ' + outcome.cause}\n"
            )
    return outcomes


def real() -> list[RealOutcome] | None:
    """Run the real cases with the smallest archives; None when an archive cannot be had."""
    entries = read_entries(CONFIG / "corpora" / "pypi-bugs.jsonl")
    chosen = sorted(entries, key=lambda entry: (entry.sdist_bytes, entry.id))
    distinct = list({entry.package: entry for entry in reversed(chosen)}.values())[::-1][:REAL_CASES]
    with _pool() as pool:
        outcomes = pool.map(run_real, distinct, chunksize=1)
    for outcome in outcomes:
        sys.stderr.write(f"{outcome}\n")
    return None if any(outcome.missing for outcome in outcomes) else outcomes


def _count(outcomes: Iterable[Outcome], family: str, field: str) -> int:
    return sum(bool(getattr(o, field)) for o in outcomes if o.job.family == family and not o.job.twin)


def _table(outcomes: Sequence[Outcome]) -> None:
    sys.stderr.write("\nof 20 each       viano  bm25  constant  confirmed wrong\n")
    for family in ("P1", "P5", "P6"):
        counts = [_count(outcomes, family, name) for name in ("right", "bm25", "constant", "confirmed_wrong")]
        sys.stderr.write(f"{family:<16} {counts[0]:>5} {counts[1]:>5} {counts[2]:>9} {counts[3]:>16}\n")
    twins = [o for o in outcomes if o.job.twin]
    for family in ("P1", "P5", "P6"):
        own = [o for o in twins if o.job.family == family]
        counts = [
            sum(bool(getattr(o, n)) for o in own) for n in ("right", "bm25", "constant", "confirmed_wrong")
        ]
        sys.stderr.write(
            f"{family + ' twins':<16} {counts[0]:>5} {counts[1]:>5} {counts[2]:>9} {counts[3]:>16}\n"
        )


def main() -> dict[str, object]:
    """Run the parts and return the figures."""
    parts = os.environ.get("FIRST_PARTS", "synthetic,real,kills").split(",")
    outcomes = synthetic() if "synthetic" in parts else None
    reals = real() if "real" in parts else None
    deaths = importlib.import_module("tests.deep.kills").main() if "kills" in parts else {}
    if outcomes is not None:
        _table(outcomes)
    twins = None if outcomes is None else [o for o in outcomes if o.job.twin]
    broken = [o.broken for o in outcomes or []] + [o.broken for o in reals or []]
    return {
        "p1_right": None if outcomes is None else _count(outcomes, "P1", "right"),
        "p5_right": None if outcomes is None else _count(outcomes, "P5", "right"),
        "p6c_right": None if outcomes is None else _count(outcomes, "P6", "right"),
        "twins_run": None if twins is None else len(twins),
        "twins_confirmed_wrong": None if twins is None else sum(o.confirmed_wrong for o in twins),
        "kills": deaths.get("kills"),
        "repeated_calls": deaths.get("repeated_calls"),
        "unverified_excerpts": sum(broken) if broken else None,
        "real_cases_completed": None if reals is None else sum(o.completed for o in reals),
    }
