"""The mutation score counts tests that failed, and nothing else."""

from __future__ import annotations

import pytest

from tests.deep._mutation import Mutant, run_each

UNITS = ["tests/package/test_units.py::test_history_reads_like_one_list"]
MODULE = "viano_assets.package.clock"
SOURCES = {
    "hangs": "while True:\n    pass\n",
    "fails": "raise RuntimeError\n",
}


@pytest.mark.parametrize(("kind", "killed", "timeouts"), [("hangs", 0, 1), ("fails", 1, 0)])
def test_a_mutant_that_hangs_is_no_killed_mutant(
    kind: str, killed: int, timeouts: int, capfd: pytest.CaptureFixture[str]
) -> None:
    mutant = Mutant(MODULE, 1, kind, SOURCES[kind])
    report = run_each([(mutant, UNITS)], jobs=1, limit=60 if killed else 3)
    assert (report.total, report.killed, report.timeouts) == (1, killed, timeouts)
    assert report.survivors == [mutant] * timeouts
    assert report.score == killed
    assert ("out of time" in capfd.readouterr().err) == bool(timeouts)
