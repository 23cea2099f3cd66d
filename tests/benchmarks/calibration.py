"""`make bench NAME=calibration`: index and calibration over 100,000 cases and 2,000,000 evidence rows.

The evaluations and evidence rows are synthetic Parquet segments of a real index. A child process (fresh
peak memory) reads them from Parquet, joins evidence to cases and calibrates; then 100 simulations each of a
perfectly calibrated and a 20-points overconfident provider. `BENCH_CASES` scales it down.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from resources.index.layout import Current, Layout
from resources.index.merging import new_name, write_tables
from resources.index.tables import TABLES
from viano_assets.evaluation.calibration import LEVELS, check_claims

EVIDENCE_PER_CASE = 20
RATES = (0.1, 0.2, 0.45, 0.7, 0.9)
SHARES = (0.1, 0.1, 0.3, 0.3, 0.2)

_CHILD = """
import json, resource, sys, time
from pathlib import Path
from resources.index.at_scale import calibrate_index
start = time.perf_counter()
found = calibrate_index(Path(sys.argv[1]), "synthetic.r0001")
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "peak_mb": peak, "decided": found.calibration.decided,
                  "evidence": found.evidence, "in_band": found.calibration.within_null_band}))
"""


def make_index(home: Path, cases: int) -> None:
    """Write synthetic evaluations and evidence in 20 segments."""
    rng = np.random.default_rng(8)
    layout = Layout(home / "index")
    segments = []
    for part in np.array_split(np.arange(cases), 20):
        names = [f"S{number:06d}" for number in part]
        keys = [f"{name}@r1" for name in names]
        level = rng.choice(len(LEVELS), len(part), p=SHARES)
        right = rng.random(len(part)) < np.asarray(RATES)[level]
        run = f"synthetic.p{part[0]:06d}"
        evaluations = _table("evaluations", len(part), {
            "run_id": ["synthetic.r0001"] * len(part), "corpus": ["synthetic"] * len(part),
            "predictor": ["viano"] * len(part), "bug_id": names, "case_id": names, "partition_key": keys,
            "verdict": ["defect"] * len(part), "confirmed": [True] * len(part),
            "effective_confidence": [LEVELS[i] for i in level], "root_cause_correct": right.tolist(),
        })  # fmt: skip
        repeated = np.repeat(np.asarray(keys), EVIDENCE_PER_CASE).tolist()
        evidence = _table("evidence", len(repeated), {
            "case_id": np.repeat(np.asarray(names), EVIDENCE_PER_CASE).tolist(), "partition_key": repeated,
            "evidence_id": [f"E{n}" for n in range(1, EVIDENCE_PER_CASE + 1)] * len(part),
            "tool": ["source.read"] * len(repeated), "cited": (rng.random(len(repeated)) < 0.2).tolist(),
            "content": ["if (stage > limit) { return; }"] * len(repeated),
        })  # fmt: skip
        tables = {"evaluations": evaluations, "evidence": evidence}
        segments.append(write_tables(layout.root, new_name(0), [run, *keys], tables))
    with layout.lock():
        layout.flip(Current(1, tuple(segments), ()))


def _table(name: str, rows: int, columns: dict[str, list[Any]]) -> pa.Table:
    return pa.table(
        [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
            for field in TABLES[name]
        ],
        schema=TABLES[name],
    )


def simulated(
    rng: np.random.Generator, n: int, shift: float
) -> tuple[list[str], list[bool], dict[str, float]]:
    """Draw a provider whose levels claim `RATES` and hold `RATES` minus `shift`."""
    level = rng.choice(len(LEVELS), n, p=SHARES)
    right = rng.random(n) < np.clip(np.asarray(RATES)[level] - shift, 0, 1)
    return [LEVELS[i] for i in level], right.tolist(), dict(zip(LEVELS, RATES, strict=True))


def main() -> dict[str, object]:
    """Measure and simulate."""
    cases = int(os.environ.get("BENCH_CASES", "100000"))
    with tempfile.TemporaryDirectory(prefix="viano-calibration-") as folder:
        home = Path(folder)
        make_index(home, cases)
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, str(home)], check=True, capture_output=True, text=True
        )
    measured = json.loads(done.stdout)
    sys.stderr.write(f"{measured}\n")
    rng = np.random.default_rng(60)
    calm = flagged = 0
    for seed in range(100):
        levels, right, claimed = simulated(rng, 60, 0.0)
        calm += check_claims(levels, right, claimed, seed=seed).within_null_band
        levels, right, claimed = simulated(rng, 60, 0.2)
        flagged += check_claims(levels, right, claimed, seed=seed).flagged
    return {
        "cases": measured["decided"],
        "evidence_rows": measured["evidence"],
        "seconds": round(measured["seconds"], 3),
        "peak_mb": round(measured["peak_mb"], 1),
        "calibrated_in_null_band_of_100": calm,
        "overconfident_flagged_of_100": flagged,
    }
