"""Mutation run of the gates, in a process of its own: `python -m tests.deep._diagnosis_mutation`."""

from __future__ import annotations

import importlib
import json
import sys

from tests.deep._mutation import passes, run_each, sampled

DIAGNOSIS = ["tests/phases/diagnosis/test_rules.py", "tests/phases/diagnosis/test_claims.py"]
REQUEST = ["tests/phases/change_request"]
PLAN = (
    ("viano_assets.phases.diagnosis.rules", DIAGNOSIS),
    ("viano_assets.phases.diagnosis.text_rules", DIAGNOSIS),
    ("viano_assets.phases.diagnosis.ground", DIAGNOSIS),
    ("viano_assets.phases.diagnosis.claims", DIAGNOSIS),
    ("viano_assets.phases.change_request.rules", REQUEST),
)

SAMPLE = 320
"""Mutants that are run of the 470 or so: the suite ends within 12 minutes on two cores."""

SEED = 20_310_401
JOBS = 2

PRELOADED = ("pydantic", "jinja2", "tests.support.harbour_case")
"""Loaded once in the parent and shared by every child; nothing of it imports a mutated module."""


def main() -> int:
    for name in PRELOADED:
        importlib.import_module(name)
    harbour_case = importlib.import_module("tests.support.harbour_case")
    harbour_case.finished_store()
    harbour_case.extract_store()
    loaded = [module for module, _ in PLAN if module in sys.modules]
    if loaded:
        raise AssertionError(f"{loaded} would not be mutated")
    if not passes([*DIAGNOSIS, *REQUEST]):
        sys.stderr.write("the tests fail without any mutation\n")
        return 1
    report = run_each(sampled(PLAN, SAMPLE, SEED), JOBS)
    sys.stdout.write(json.dumps({"mutants": report.total, "mutation_score": round(report.score, 4)}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
