"""Calibration straight from the index, for runs too large to be held as rows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import duckdb

from resources.index.asking import fresh_views, view_sql
from resources.index.checking import check_files
from resources.index.layout import Layout, damaged
from viano_assets.evaluation.calibration import LEVELS, Calibration, calibrate_counts


class Measured(NamedTuple):
    """The calibration of a run, its evidence records and those cited by cases that were wrong."""

    calibration: Calibration
    evidence: int
    cited_when_wrong: int


def calibrate_index(home: Path, run_id: str) -> Measured:
    """Calibrate the confirmed cases of a run and count their evidence, within half a gigabyte.

    Raises:
        PackageError: `index_damaged`, `index_outdated`.
    """
    layout = Layout(home / "index")
    prefix = f"{layout.root.resolve()}/"
    for view in fresh_views(layout):
        check_files(layout.root, view.sums(("evaluations", "evidence")))
        try:
            with duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "512MB"}) as connection:
                for table in ("evaluations", "evidence"):
                    connection.execute(f"CREATE VIEW {table} AS {view_sql(view, table, prefix=prefix)}")
                return _measure(connection, run_id)
        except duckdb.IOException:
            continue
    raise damaged(layout.root, "a file cannot be read")


_LEVELS = """
SELECT effective_confidence, count(*), count(*) FILTER (root_cause_correct) FROM evaluations
WHERE run_id = ? AND predictor = 'viano' AND confirmed AND root_cause_correct IS NOT NULL GROUP BY 1
"""
_EVIDENCE = """
SELECT count(*), count(*) FILTER (e.cited AND NOT v.root_cause_correct)
FROM evidence e JOIN evaluations v USING (partition_key) WHERE v.run_id = ? AND v.predictor = 'viano'
"""


def _measure(connection: duckdb.DuckDBPyConnection, run_id: str) -> Measured:
    found = {level: (total, good) for level, total, good in connection.execute(_LEVELS, [run_id]).fetchall()}
    total = [int(found.get(level, (0, 0))[0]) for level in LEVELS]
    good = [int(found.get(level, (0, 0))[1]) for level in LEVELS]
    evidence, wrong = connection.execute(_EVIDENCE, [run_id]).fetchall()[0]
    return Measured(calibrate_counts(good, total), int(evidence), int(wrong))
