"""Runs one report against one source archive through all phases and keeps what the figures need."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from resources.session import Session
from tests.benchmarks._ranking_cases import BugCase, archive
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.intake import import_case
from viano_assets.evaluation import calibration
from viano_assets.evaluation.correctness import score
from viano_assets.evaluation.gold import Gold, read_gold
from viano_assets.phases.diagnosis.view import case_view
from viano_assets.phases.protocols import Phase


class Job(NamedTuple):
    """A report, the source it is run on, and the home."""

    case: BugCase
    source: BugCase
    home: str


class Outcome(NamedTuple):
    """What came out; hits are of the first and of the first five places; CPU in seconds."""

    case_id: str
    project: str
    kind: str
    clue: str
    file_hit1: bool
    file_hit5: bool
    symbol_hit1: bool
    symbol_hit5: bool
    confirmed: bool
    correct: bool
    verdict: str
    level: str
    index_cpu: float
    cpu: float
    peak_mb: float
    digest: str


def gold_of(case: BugCase) -> Gold:
    """Return the truth of a case in the form that `score` reads."""
    stated = {"verdict": case.verdict, "files": sorted(case.files), "functions": sorted(case.functions)}
    return read_gold(stated, case.id)


def _cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def view_of(job: Job, name: str) -> tuple[dict[str, Any], float, float]:
    """Return the view of a run, the CPU of opening the tools (index), and that of everything after."""
    home = Path(job.home)
    shutil.rmtree(home / "cases" / name, ignore_errors=True)
    session = Session.open(home, provider="offline")
    report = home / f"{name}.md"
    report.write_text(job.case.text, encoding="utf-8")
    import_case(session.store, case_id=name, report=report, source=archive(job.source))
    start = _cpu()
    session.tools.open(session.store, session.store.latest(name))
    opened = _cpu()
    asyncio.run(session.run(name, until=Phase.DIAGNOSIS))
    done = _cpu()
    head = session.store.latest(name)
    return dict(case_view(session.store, head, head.revision)), opened - start, done - opened


def digest(view: dict[str, Any]) -> str:
    """Return a hash over verdict and places."""
    return sha256_hex(canonical_json([view["diagnosis"], view["localisation"]]))


def run(job: Job) -> Outcome:
    """Run one job."""
    own = job.case.id == job.source.id
    name = job.case.id if own else f"{job.case.id}-on-{job.source.package}"
    view, index_cpu, cpu = view_of(job, name)
    found = score(view, gold_of(job.case))
    diagnosis = view["diagnosis"] or {}
    levels = [str(entry["effective_confidence"]) for entry in view["hypotheses"]]

    def hit(hits: Any, count: int) -> bool:
        return bool(own and hits and hits[count][0])

    return Outcome(
        job.case.id,
        job.case.package,
        job.case.verdict if own else "wrong_source",
        job.case.clue,
        hit(found.file_hits, 1),
        hit(found.file_hits, 5),
        hit(found.symbol_hits, 1),
        hit(found.symbol_hits, 5),
        diagnosis.get("status") == "confirmed",
        bool(own and found.root_cause_correct),
        f"{diagnosis.get('status')} {diagnosis.get('inconclusive_kind')}",
        max(levels, key=calibration.LEVELS.index, default="unassessed"),
        index_cpu,
        cpu,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        digest(view),
    )


def repeated(job: Job, times: int) -> list[str]:
    """Return the digests of several runs of the same job, each from the start."""
    return [digest(view_of(job, "REPEATED")[0]) for _ in range(times)]


def seeded(job: Job, times: int, seed: str) -> list[str]:
    """Return the digests of runs in an own process with a given hash seed."""
    import json
    import subprocess
    import sys

    code = (
        "import json, sys\n"
        "from tests.benchmarks._analyst_run import Job, repeated\n"
        "from tests.benchmarks._ranking_cases import load_cases\n"
        "case = next(c for c in load_cases() if c.id == sys.argv[1])\n"
        "print(json.dumps(repeated(Job(case, case, sys.argv[2]), int(sys.argv[3]))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, job.case.id, job.home, str(times)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found
