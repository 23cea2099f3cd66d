"""Reading and planning under pressure: rules removed one by one, mutants, random answers.

`make test-deep NAME=planning`. `rules_with_failing_test` counts the rules whose named test passes as the code
is and fails once the rule is taken out. `random_answers` counts model answers given by seeded authors, half
of whom keep the rules; `contract_violations` counts what an independent oracle found published against the
contracts, accepted parts that were lost, and valid answers that were refused.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from functools import partial

from tests.deep._mutation import module_path, passes, verdict
from tests.deep._mutation import run as run_mutants
from tests.deep._planning_random import play
from tests.deep._planning_rules import RULES, Rule

SCALE = float(os.environ.get("VIANO_RANDOM_SCALE", "1"))
VALID_CASES, NEAR_CASES = round(8_000 * SCALE), round(5_000 * SCALE)
"""Random cases of each kind; each kind then takes more than 10,000 answers."""

_T = "tests/phases/"
_ALL = [_T + name for name in ("planning", "hypotheses", "interpretation", "test_markdown.py")]
_UNIT = {
    "interpretation.rules": ["interpretation/test_rules.py"],
    "hypotheses.rules": ["hypotheses/test_rules.py", "planning/test_joint.py"],
    "planning.rules": ["planning/test_premises.py"],
    "planning.reviews": ["planning/test_premises.py"],
    "planning.places": ["planning/test_places.py", "planning/test_repair.py"],
    "planning.adoption": ["planning/test_joint.py", "planning/test_v1.py"],
    "planning.chain": ["planning/test_repair.py", "planning/test_joint.py", "planning/test_v1.py"],
}
PLAN = [(f"viano_assets.phases.{module}", [_T + test for test in tests]) for module, tests in _UNIT.items()]
"""Rule modules and the tests that must find a change of each."""


def _kept(rule: Rule) -> bool:
    source = module_path(rule.module).read_text(encoding="utf-8")
    removed = source.replace(rule.old, rule.new)
    found = source.count(rule.old) == 1 and verdict([rule.test], rule.module, removed) == "failed"
    if not found:
        sys.stderr.write(f"rule {rule.id} can be removed unnoticed\n")
    return found


def _random(cases: int, *, valid: bool) -> tuple[int, int]:
    answers = violations = 0
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        played = pool.imap(partial(play, valid=valid), range(cases), chunksize=50)
        for number, result in enumerate(played):
            answers += result.answers
            violations += len(result.faults)
            for fault in result.faults[:1]:
                sys.stderr.write(f"case {number} (valid={valid}): {fault}\n")
    return answers, violations


def main() -> dict[str, object]:
    sys.stderr.write("rules …\n")
    if not passes(_ALL):
        raise SystemExit("the fast tests of the reading phases fail; nothing below would mean anything")
    kept = sum(_kept(rule) for rule in RULES)
    sys.stderr.write("random answers …\n")
    valid, near = _random(VALID_CASES, valid=True), _random(NEAR_CASES, valid=False)
    sys.stderr.write("mutants …\n")
    report = run_mutants(PLAN)
    return {
        "rules": len(RULES),
        "rules_with_failing_test": kept,
        "mutants": report.total,
        "mutation_score": round(report.score, 4),
        "random_answers": valid[0] + near[0],
        "contract_violations": valid[1] + near[1],
    }
