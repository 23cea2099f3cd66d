"""One partition without Dagster: when its rows come into the evidence index, and what is told."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from resources.dagster_viano import VianoResource
from resources.evidence_index import EvidenceIndex
from resources.session import Session
from tests.support.graph import blind_case, materialise, small_case
from viano_assets.assets.chain import TOLD_IN_FULL, case_chain
from viano_assets.assets.partition_run import INDEX_AFTER_S, IndexRows, run_partition
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.drive import PHASE_ORDER

STATES = "SELECT case_id, state, generation FROM cases ORDER BY case_id"


def test_the_index_follows_a_case_however_it_ends(tmp_path: Path) -> None:
    home = tmp_path / "home"
    session = Session.open(home)
    for key in (small_case(home, "A-1"), blind_case(home, "B-2")):
        told = list(run_partition(session, key, with_case=True, phases=PHASE_ORDER))
        assert [r.failed for r in told][-1] is (key == "B-2@r1")
    heads = [CheckpointStore(home).latest(name) for name in ("A-1", "B-2")]
    expected = [[h.case_id, h.manifest.lifecycle, h.checkpoints[-1].generation] for h in heads]
    assert EvidenceIndex(home).query(STATES).rows == expected


def test_rows_wait_for_the_next_phase_only_so_long(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "A-1")
    head = CheckpointStore(home).latest("A-1")
    now, written = [100.0], list[Head]()
    rows = IndexRows(written.append, lambda: now[0])
    rows.left_by(head)
    now[0] += INDEX_AFTER_S
    rows.left_by(head)
    assert written == []
    now[0] += 0.1
    rows.left_by(head)
    assert len(written) == 1
    now[0] += INDEX_AFTER_S
    rows.left_by(head)
    rows.write()
    rows.write()
    assert len(written) == 2


def test_an_unknown_provider_fails_the_run_with_its_code(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key = small_case(home, "A-1")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("case_revision", [key])
        done = dg.materialize(
            [case_chain],
            instance=instance,
            resources={"viano": VianoResource(home=str(home), provider="nobody")},
            partition_key=key,
            raise_on_error=False,
        )
        (failure,) = (e.step_failure_data for e in done.all_events if e.is_step_failure)
    assert failure.user_failure_data is not None
    assert failure.user_failure_data.metadata["code"].value == "unknown_provider"


@pytest.mark.parametrize("many", [False, True])
def test_a_run_tells_every_step_of_a_few_cases_and_the_end_of_many(tmp_path: Path, *, many: bool) -> None:
    home = tmp_path / "home"
    keys = [small_case(home, f"A-{number}") for number in range(TOLD_IN_FULL + 1 if many else 1)]
    with dg.DagsterInstance.ephemeral() as instance:
        done = materialise(home, instance, keys, selection=["case", "interpretation"])
        assert done.success
        lines = [e.user_message for e in instance.all_logs(done.run_id) if not e.is_dagster_event]
    steps = [line for line in lines if line.startswith("A-0  interpretation")]
    ends = [line for line in lines if f" of {len(keys)}  A-" in line]
    assert len(ends) == len(keys)
    assert bool(steps) is not many
