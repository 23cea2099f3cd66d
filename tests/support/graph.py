"""Small homes and materialisations of the case chain in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg

from resources.dagster_viano import VianoResource
from viano_assets.assets.chain import case_chain
from viano_assets.case.intake import import_case
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import PARTITION_SET, CaseRevision

REPORT = """# The night crane stops

## Observed
Crane 17 stops after the second lift and the log says `lift refused`.

## Expected
Crane 17 lifts all four containers.

## Steps
1. Start contract 17.
2. Wait for the second lift.
"""

SOURCE = """int lifts_allowed(int contract) {
    if (contract > 16) {
        log_error("lift refused");
        return 2;
    }
    return 4;
}
"""


def small_case(home: Path, case_id: str, *, report: str = REPORT, source: bool = True) -> str:
    """Import a tiny case and return its partition key."""
    inputs = home.parent / f"inputs-{case_id}"
    (inputs / "src").mkdir(parents=True)
    (inputs / "report.md").write_text(report, encoding="utf-8")
    (inputs / "src" / "crane.cpp").write_text(SOURCE, encoding="utf-8")
    import_case(
        CheckpointStore(home),
        case_id=case_id,
        report=inputs / "report.md",
        source=inputs / "src" if source else None,
    )
    return CaseRevision(case_id, 1).key


def blind_case(home: Path, case_id: str) -> str:
    """Import a case whose report holds no observation: its hypotheses phase blocks."""
    return small_case(home, case_id, report="# Expected\n\nThe crane lifts.\n", source=False)


def materialise(
    home: Path,
    instance: dg.DagsterInstance,
    keys: Sequence[str],
    *,
    selection: Sequence[str] | None = None,
    threads: int = 4,
    tags: Mapping[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    """Materialise one key, or the contiguous range of several, without raising on failure."""
    known = set(instance.get_dynamic_partitions(PARTITION_SET))
    new = [key for key in keys if key not in known]
    if new:
        instance.add_dynamic_partitions(PARTITION_SET, new)
    span = {
        "dagster/asset_partition_range_start": keys[0],
        "dagster/asset_partition_range_end": keys[-1],
    }
    return dg.materialize(
        [case_chain],
        instance=instance,
        resources={"viano": VianoResource(home=str(home))},
        run_config={"ops": {"case_chain": {"config": {"threads": threads}}}},
        partition_key=keys[0] if len(keys) == 1 else None,
        tags={**(tags or {}), **({} if len(keys) == 1 else span)},
        selection=None if selection is None else list(selection),
        raise_on_error=False,
    )
