"""Turns a phase report into the events Dagster stores."""

from __future__ import annotations

import dagster as dg

from viano_assets.assets.metadata import to_metadata
from viano_assets.assets.run_types import CheckReport, PhaseReport
from viano_assets.assets.specs import ASSET_OF_PHASE, CASE

DATA_VERSION_TAG = "dagster/data_version"


def asset_of(report: PhaseReport) -> dg.AssetKey:
    """Return the asset a report belongs to."""
    return CASE if report.phase is None else ASSET_OF_PHASE[report.phase]


def materialisation(report: PhaseReport) -> dg.AssetMaterialization:
    """Return the materialisation of a published report."""
    return dg.AssetMaterialization(
        asset_of(report),
        partition=report.key,
        metadata=to_metadata(report.metadata),
        tags={DATA_VERSION_TAG: report.data_version},
    )


def evaluations(report: PhaseReport) -> list[dg.AssetCheckEvaluation]:
    """Return the check evaluations of a published report."""
    return [_evaluation(asset_of(report), report.key, check) for check in report.checks]


def _evaluation(asset: dg.AssetKey, key: str, check: CheckReport) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=asset,
        check_name=check.name,
        passed=check.passed,
        severity=dg.AssetCheckSeverity.WARN if check.warn_only else dg.AssetCheckSeverity.ERROR,
        description=check.description,
        metadata=to_metadata(check.metadata),
        partition=key,
    )
