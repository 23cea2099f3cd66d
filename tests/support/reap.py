"""`python -m tests.support.reap`: one tick of the reaper over the Dagster home of this environment.

Exits 1 when a run is still under way afterwards.
"""

from __future__ import annotations

import sys

import dagster as dg

from viano_assets.automation.sensors import reap_dead_runs


def main() -> int:
    with dg.DagsterInstance.get() as instance:
        reap_dead_runs(dg.build_sensor_context(instance=instance))
        left = [run.run_id for run in instance.get_runs() if not run.is_finished]
    sys.stdout.write(f"{len(left)} runs left\n")
    return 1 if left else 0


if __name__ == "__main__":
    raise SystemExit(main())
