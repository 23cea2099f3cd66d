"""A little of every class of fuzzed input; the counts of a release are in `make test-deep NAME=faults`."""

from __future__ import annotations

from pathlib import Path

from tests.deep import _faults_bytes, _faults_fuzz
from tests.deep._faults_kill import Tally


def test_only_declared_errors_come_out(tmp_path: Path) -> None:
    tally = Tally()
    assert _faults_fuzz.run(tmp_path / "inputs", tally, 120) == 480
    assert _faults_bytes.fuzz(tmp_path / "bytes", tally, 60) == 123
    assert tally.torn == 0
