"""Runs one case through all phases in a home of its own and keeps what the figures need."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from resources.session import Session
from tests.benchmarks import _first_judge as judge
from tests.corpus.generate import generate, write_case
from viano_assets.case.intake import import_case
from viano_assets.errors import BlockedError
from viano_assets.evaluation.gold import read_gold
from viano_assets.evaluation.recipes import RecipeEntry, archive_cache, archive_for
from viano_assets.phases.diagnosis.view import case_view


class Job(NamedTuple):
    """Arguments of one generated case."""

    family: str
    variant: str
    seed: int
    language: str
    twin: bool


class Outcome(NamedTuple):
    """What came out; `bm25` and `constant` are the baselines on the same case, `cause` what was confirmed."""

    job: Job
    right: bool
    confirmed_wrong: bool
    status: str
    kind: str
    broken: int
    bm25: bool
    constant: bool
    seconds: float
    cause: str


def run_inputs(
    home: Path, case_id: str, report: Path, diagnostics: Path | None, source: Path
) -> dict[str, Any]:
    """Import and run a case; return its view and, under `broken`, what no longer verifies."""
    session = Session.open(home, provider="offline")
    import_case(session.store, case_id=case_id, report=report, diagnostics=diagnostics, source=source)
    asyncio.run(session.run(case_id))
    head = session.store.latest(case_id)
    view = case_view(session.store, head, head.revision)
    return {**view, "broken": session.verify(case_id)["problems"]}


def run_job(job: Job) -> Outcome:
    """Generate, import, run and judge one case."""
    started = time.monotonic()
    case = generate(job.family, job.variant, job.seed, job.language, twin=job.twin)
    gold = read_gold(case.gold, case.case_id)
    with tempfile.TemporaryDirectory(prefix="viano-first-") as folder:
        root = Path(folder)
        written = write_case(case, root)
        view = run_inputs(
            root / "home",
            case.case_id,
            written / case.report_name,
            written / "diagnostics.zip",
            written / "source.zip",
        )
    diagnosis = view["diagnosis"] or {}
    return Outcome(
        job,
        judge.right(job.family, view, gold),
        judge.confirmed_wrong(view, gold),
        str(diagnosis.get("status")),
        str(diagnosis.get("inconclusive_kind")),
        len(view["broken"]),
        judge.bm25_right(case, gold),
        judge.constant_right(gold),
        time.monotonic() - started,
        str((diagnosis.get("root_cause") or {}).get("summary", "")),
    )


class RealOutcome(NamedTuple):
    """A real case: whether it ended in a verdict, what no longer verifies, and why it did not run."""

    case_id: str
    completed: bool
    broken: int
    missing: str


def run_real(entry: RecipeEntry) -> RealOutcome:
    """Run one case of a recipe from its source archive."""
    with tempfile.TemporaryDirectory(prefix="viano-first-") as folder:
        root = Path(folder)
        try:
            archive = archive_for(entry, archive_cache(root, os.environ))
        except BlockedError as error:
            return RealOutcome(entry.id, completed=False, broken=0, missing=str(error))
        report = root / "report.md"
        report.write_text(entry.report(), encoding="utf-8")
        view = run_inputs(root / "home", entry.id, report, None, archive)
    return RealOutcome(entry.id, view["diagnosis"] is not None, len(view["broken"]), "")
