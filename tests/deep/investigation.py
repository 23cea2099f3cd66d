"""The investigation under attack: hostile SQL, injected orders, random ledgers with crashes."""

from __future__ import annotations

import sys

from tests.deep import _investigation_injections, _investigation_sql
from tests.support.ledger_model import run_sequence

SEQUENCES = 2_000
STEPS = 50


def ledger_figures() -> dict[str, object]:
    """Run the random sequences against the reference model."""
    violations: list[str] = []
    for seed in range(SEQUENCES):
        violations.extend(run_sequence(seed, STEPS))
    for text in violations[:20]:
        sys.stderr.write(text + "\n")
    return {"ledger_sequences": SEQUENCES, "ledger_violations": len(violations)}


def main() -> dict[str, object]:
    """Return the suite's figures."""
    return {
        **_investigation_sql.figures(),
        **_investigation_injections.figures(),
        **ledger_figures(),
    }
