"""Mutants of the store and budget modules, run as `python -m tests.deep._faults_mutation N`.

Runs a seeded sample of N mutants (0: all of them), spread over the named modules in proportion. A mutant
that runs out of time is not counted as killed. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence

from tests.deep._mutation import ROOT, Mutant, _Served, mutants

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
TIME_LIMIT = 240


def _verdict(tests: Sequence[str], mutant: Mutant | None) -> str:
    """Run tests in a forked child with one changed module: `passed`, `failed` or `timeout`."""
    import pytest  # imported once in the parent, shared by every child

    child = os.fork()
    if child == 0:
        code = 99
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.chdir(ROOT)
            sys.path.insert(0, str(ROOT))
            if mutant is not None:
                sys.meta_path.insert(0, _Served(mutant.module, mutant.source))
            options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "-o", "timeout=60"]
            code = int(pytest.main([*options, *tests]))
        finally:
            os._exit(code)
    deadline = time.monotonic() + TIME_LIMIT
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def main(count: int) -> int:
    """Run the sample and print its figures."""
    everything = [mutant for module in PLAN for mutant in mutants(module)]
    chosen = everything
    if count and count < len(everything):
        picked = sorted(random.Random(16).sample(range(len(everything)), count))
        chosen = [everything[i] for i in picked]
    killed = 0
    for mutant in chosen:
        verdict = _verdict(PLAN[mutant.module], mutant)
        killed += verdict == "failed"
        if verdict != "failed":
            sys.stderr.write(f"{verdict}: {mutant.module}:{mutant.line} {mutant.change}\n")
    score = killed / len(chosen) if chosen else 0.0
    figures = {"mutants": len(chosen), "mutation_score": round(score, 4), "of": len(everything)}
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
