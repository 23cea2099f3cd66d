"""`make bench NAME=analyst`: the offline analyst on the development cases, through all phases.

Where the cases and their archives lie: `_ranking_cases.py`. `VIANO_ANALYST_ONLY` names cases to run alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from tests.benchmarks import _ranking_fit as learn
from tests.benchmarks._analyst_run import Job, Outcome, run, seeded
from tests.benchmarks._ranking_cases import BugCase, archive, load_cases
from tests.benchmarks.fit_ranking import wrong_pairs

PAIRS = 20
REPEATS = 10
BOOTSTRAPS = 2_000


def _share(values: Sequence[bool]) -> float | None:
    """Return the share of true values as a fraction; None without any."""
    return round(sum(values) / len(values), 4) if values else None


def _bm25_first(case: BugCase) -> bool:
    found = learn.compute(case, case)
    return learn.first_right(found.bm25, found.right_file) == 1


def level_chances(rows: Sequence[Outcome]) -> tuple[list[float], list[float]]:
    """Return for each row the rate of its level, and the rate over all, each without its project."""
    chances, base = [], []
    for row in rows:
        others = [r for r in rows if r.project != row.project]
        rate = (sum(r.file_hit1 for r in others) + 0.5) / (len(others) + 1)
        same = [r.file_hit1 for r in others if r.level == row.level]
        chances.append((sum(same) + 2 * rate) / (len(same) + 2))
        base.append(rate)
    return chances, base


def brier_skill(rows: Sequence[Outcome]) -> tuple[float, float]:
    """Return the skill of the levels over the plain rate and the lower end of its 95 % interval."""
    chances, base = (np.array(values) for values in level_chances(rows))
    truth = np.array([row.file_hit1 for row in rows], dtype=float)
    ours, plain = (chances - truth) ** 2, (base - truth) ** 2
    random = np.random.default_rng(7)
    drawn = [random.integers(0, len(rows), len(rows)) for _ in range(BOOTSTRAPS)]
    skills = [1 - ours[d].sum() / plain[d].sum() for d in drawn]
    return round(float(1 - ours.sum() / plain.sum()), 3), round(float(np.quantile(skills, 0.025)), 3)


def _show(outcome: Outcome) -> None:
    sys.stdout.write(
        f"{outcome.case_id:20} {outcome.kind:14} {outcome.clue:9} {outcome.verdict:38} {outcome.level:18} "
        f"file {outcome.file_hit1:d} {outcome.file_hit5:d} symbol {outcome.symbol_hit1:d} "
        f"{outcome.symbol_hit5:d} correct {outcome.correct:d} cpu {outcome.cpu:.1f}\n"
    )
    sys.stdout.flush()


def main() -> dict[str, object]:
    """Run every case and pair and return the figures; percentages of any-gold hits over the defects."""
    only = os.environ.get("VIANO_ANALYST_ONLY", "").split()
    cases = [case for case in load_cases() if not only or case.id in only]
    defects = [case for case in cases if case.verdict == "defect"]
    pairs = wrong_pairs(defects)[:PAIRS] if not only else []
    with tempfile.TemporaryDirectory(prefix="viano-analyst-") as folder:
        home = os.environ.get("VIANO_ANALYST_HOME", folder)
        Path(home).mkdir(parents=True, exist_ok=True)
        jobs = [Job(case, source, home) for case, source in [*((c, c) for c in cases), *pairs]]
        outcomes = []
        with ProcessPoolExecutor(2) as pool:
            for outcome in pool.map(run, jobs):
                _show(outcome)
                outcomes.append(outcome)
        smallest = min(cases, key=lambda case: (archive(case).stat().st_size, case.id))
        one = Job(smallest, smallest, home)
        outputs = {name for seed in ("1", "2") for name in seeded(one, REPEATS, seed)}
    return _figures(defects, outcomes, len(pairs), len(outputs))


def _figures(defects: list[BugCase], outcomes: list[Outcome], pairs: int, outputs: int) -> dict[str, object]:
    rows = [o for o in outcomes if o.kind == "defect"]
    hidden = [o for o in rows if o.clue == "neither"]
    plain = {case.id: _bm25_first(case) for case in defects}
    controls = [o for o in outcomes if o.kind not in {"defect", "wrong_source"}]
    skill, low = brier_skill(rows)
    return {
        "cases": len(rows),
        "controls": len(controls),
        "wrong_source_pairs": pairs,
        "file_hit1": _share([o.file_hit1 for o in rows]),
        "file_hit5": _share([o.file_hit5 for o in rows]),
        "symbol_hit1": _share([o.symbol_hit1 for o in rows]),
        "symbol_hit5": _share([o.symbol_hit5 for o in rows]),
        "neither_file_hit1": _share([o.file_hit1 for o in hidden]),
        "bm25_file_hit1": _share(list(plain.values())),
        "bm25_neither_file_hit1": _share([plain[o.case_id] for o in hidden]),
        "defects_confirmed": sum(o.confirmed for o in rows),
        "confirmed_correct": sum(o.correct for o in rows),
        "controls_confirmed": sum(o.confirmed for o in controls),
        "wrong_source_confirmed": sum(o.confirmed for o in outcomes if o.kind == "wrong_source"),
        "brier_skill": skill,
        "brier_skill_low": low,
        "index_cpu_s": round(float(np.median([o.index_cpu for o in outcomes])), 2),
        "median_cpu_s": round(float(np.median([o.cpu for o in outcomes])), 2),
        "peak_mb": round(max(o.peak_mb for o in outcomes)),
        "distinct_outputs": outputs,
    }
