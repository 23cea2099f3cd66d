"""R13: packages replay to the same bytes without a model, and no bound field can be flipped unnoticed.

The whole table, and the leaves of all artifacts, are played by `make test-deep NAME=faults`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.forgeries import PHASES, expected, faults, finished, leaf_faults, replay_thrice
from viano_assets.package.store import CheckpointStore

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(GOLDEN.glob("diagnosis-v*/*.zip"))


def test_a_finished_case_replays_three_times_to_the_same_bytes() -> None:
    made = finished()
    assert replay_thrice(made.store, made.head.case_id, PHASES) == []


@pytest.mark.parametrize("package", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_packages_replay_three_times_to_the_same_bytes(package: Path, tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    head = store.import_package(package)
    done = [phase for phase in PHASES if any(c.event == f"{phase}_published" for c in head.checkpoints)]
    assert done[:3] == list(PHASES[:3])
    assert replay_thrice(store, head.case_id, done) == []


@pytest.mark.parametrize("part", range(4))
def test_every_flip_of_a_bound_field_has_its_code(part: int) -> None:
    assert faults(part, 16) == []


def test_the_table_knows_many_codes() -> None:
    assert len(expected()) >= 200
    assert len({code for row in expected().values() for code in row}) >= 12


def test_flips_of_any_field_are_refused() -> None:
    count, found = leaf_faults(97)
    assert count > 20
    assert found == []
