"""Jobs over the case chain."""

from __future__ import annotations

import dagster as dg

from viano_assets.assets.specs import ASSET_OF_PHASE, CASE

analyse_case = dg.define_asset_job(
    "analyse_case",
    selection=dg.AssetSelection.assets(CASE, *ASSET_OF_PHASE.values()),
    description="Carry one case revision through all phases.",
    executor_def=dg.in_process_executor,
)
