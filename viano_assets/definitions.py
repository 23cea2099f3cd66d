"""The one Definitions object; nothing else is wired anywhere else.

`build_defs(**overrides)` replaces resources by name, for tests and for other homes.
"""

from __future__ import annotations

import os
from typing import Any

import dagster as dg

from resources.dagster_viano import VianoResource
from viano_assets.assets.chain import case_chain
from viano_assets.assets.corpus import corpus_calibration, corpus_evaluation
from viano_assets.automation.corpus_sensors import CORPUS_JOBS, CORPUS_SCHEDULES, CORPUS_SENSORS
from viano_assets.automation.jobs import analyse_case
from viano_assets.automation.sensors import SENSORS


def build_defs(**overrides: Any) -> dg.Definitions:
    """Return the definitions; `overrides` replaces resources by name.

    The home comes from `VIANO_HOME` (default `.viano`), as on the command line.
    """
    resources: dict[str, Any] = {"viano": VianoResource(home=os.environ.get("VIANO_HOME", ".viano"))}
    return dg.Definitions(
        assets=[case_chain, corpus_evaluation, corpus_calibration],
        jobs=[analyse_case, *CORPUS_JOBS],
        sensors=[*SENSORS, *CORPUS_SENSORS],
        schedules=CORPUS_SCHEDULES,
        resources=resources | overrides,
        executor=dg.in_process_executor,
    )


defs = build_defs()
