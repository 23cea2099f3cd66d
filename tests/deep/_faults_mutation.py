"""Mutants of the store and budget modules, run as `python -m tests.deep._faults_mutation N`.

Runs a seeded sample of N mutants (0: all of them), spread over the named modules in proportion, one at a
time, because tests of locks and races read the clock. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys

from tests.deep._mutation import mutant_count, passes, run_each, sampled

STORE = [
    "tests/package/test_conformance.py", "tests/package/test_tamper.py", "tests/package/test_golden.py",
    "tests/package/test_faults.py", "tests/package/test_anchor.py", "tests/package/test_transfer.py",
    "tests/package/test_processes.py", "tests/package/test_units.py",
]  # fmt: skip
PLAN: dict[str, list[str]] = {
    "viano_assets.package.changes": STORE[:1],
    "viano_assets.package.container": STORE[:3],
    "viano_assets.package.files": STORE,
    "viano_assets.package.history": ["tests/package/test_units.py", *STORE[:3]],
    "viano_assets.package.layout": STORE[:3],
    "viano_assets.package.locking": ["tests/package/test_processes.py", *STORE[:1]],
    "viano_assets.package.names": [
        "tests/package/test_units.py",
        "tests/package/test_archive.py",
        *STORE[:1],
    ],
    "viano_assets.package.reader": STORE,
    "viano_assets.package.record": ["tests/package/test_units.py", *STORE[:3]],
    "viano_assets.package.staging": STORE,
    "viano_assets.package.store": STORE,
    "viano_assets.package.writer": STORE,
    "viano_assets.budget.ledger": ["tests/budget"],
    "viano_assets.budget.manager": ["tests/budget"],
    "viano_assets.budget.policy": ["tests/budget"],
}
SEED = 16


def main(count: int) -> int:
    """Run the sample and print its figures."""
    every = sum(map(mutant_count, PLAN))
    if not passes(sorted({test for tests in PLAN.values() for test in tests})):
        sys.stderr.write("the tests fail without any mutation\n")
        return 1
    report = run_each(sampled(list(PLAN.items()), count or every, SEED), jobs=1)
    figures = {"mutants": report.total, "mutation_score": round(report.score, 4), "of": every}
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
