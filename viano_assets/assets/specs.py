"""The assets and their checks as declared to Dagster: one partition set, one chain, one group.

The phase artifacts of one case revision are `AssetSpec`s of a single multi-asset, so that one partition
and a range of hundreds run through the same code with isolation per case (docs/dagster.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import dagster as dg

from viano_assets.canonical import sha256_hex
from viano_assets.data_files import PROMPTS
from viano_assets.partitions import PARTITION_SET
from viano_assets.phases.protocols import Phase

case_revisions = dg.DynamicPartitionsDefinition(name=PARTITION_SET)

GROUP = "case"
CASE = dg.AssetKey("case")

ASSET_OF_PHASE = {
    Phase.INTERPRETATION: dg.AssetKey("interpretation"),
    Phase.HYPOTHESES: dg.AssetKey("hypotheses_registry"),
    Phase.INVESTIGATION: dg.AssetKey("evidence_store"),
    Phase.DIAGNOSIS: dg.AssetKey("diagnosis_result"),
    Phase.CHANGE_REQUEST: dg.AssetKey("change_request"),
}

_DESCRIPTIONS = {
    CASE: "The imported report, diagnostics and source as typed, redacted sources.",
    ASSET_OF_PHASE[Phase.INTERPRETATION]: (
        "What the report says: observation, expectation, facts and assumptions, each with its source."
    ),
    ASSET_OF_PHASE[Phase.HYPOTHESES]: "Three to five competing mechanisms with a pinned policy and budget.",
    ASSET_OF_PHASE[Phase.INVESTIGATION]: "What the tools found, what it cost and what it means so far.",
    ASSET_OF_PHASE[Phase.DIAGNOSIS]: "The verdict with its evidence, or the question that would decide it.",
    ASSET_OF_PHASE[Phase.CHANGE_REQUEST]: "What has to change, built by policy from a confirmed diagnosis.",
}

_PROMPTS_OF_PHASE = {
    Phase.INTERPRETATION: ("interpretation_", "case_plan_"),
    Phase.HYPOTHESES: ("hypotheses_", "case_plan_"),
    Phase.INVESTIGATION: ("investigation_",),
    Phase.DIAGNOSIS: ("diagnosis_",),
}


def prompt_version(phase: Phase) -> str:
    """Return the hash of a phase's prompt files, shown as its code version."""
    prefixes = _PROMPTS_OF_PHASE.get(phase, ())
    files = sorted(p for p in PROMPTS.glob("*.txt") if p.name.startswith(prefixes)) if prefixes else []
    return sha256_hex(b"\0".join(path.name.encode() + b"\0" + path.read_bytes() for path in files))[:12]


def _spec(key: dg.AssetKey, dependency: dg.AssetKey | None, code_version: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key,
        deps=[dependency] if dependency else [],
        description=_DESCRIPTIONS[key],
        group_name=GROUP,
        skippable=True,
        code_version=code_version,
        kinds={"python"},
        owners=["team:viano"],
    )


def asset_specs() -> Sequence[dg.AssetSpec]:
    """Return the specs of the chain, in order."""
    specs = [_spec(CASE, None, "case-v1")]
    for phase, key in ASSET_OF_PHASE.items():
        specs.append(_spec(key, specs[-1].key, prompt_version(phase)))
    return specs


CHECKS: dict[str, tuple[dg.AssetKey, str]] = {
    "inputs_unchanged": (CASE, "The raw inputs are the bytes that were imported."),
    "cites_sources": (
        ASSET_OF_PHASE[Phase.INTERPRETATION],
        "Every statement cites a source of a type that may ground it.",
    ),
    "registry_bounds": (
        ASSET_OF_PHASE[Phase.HYPOTHESES],
        "The number of hypotheses, their ids and budgets fit the pinned policy.",
    ),
    "budget_settled": (
        ASSET_OF_PHASE[Phase.INVESTIGATION],
        "No balance is negative and every reservation is settled or released.",
    ),
    "evidence_resolves": (
        ASSET_OF_PHASE[Phase.INVESTIGATION],
        "Every cited excerpt still stands in the inputs at its place.",
    ),
    "cites_stored_evidence": (
        ASSET_OF_PHASE[Phase.DIAGNOSIS],
        "Every evidence id of the diagnosis names a stored record.",
    ),
    "countercheck_present": (
        ASSET_OF_PHASE[Phase.DIAGNOSIS],
        "A confirmed diagnosis tested at least one alternative.",
    ),
    "conclusive": (
        ASSET_OF_PHASE[Phase.DIAGNOSIS],
        "The diagnosis is confirmed; a warning says that a person has to decide.",
    ),
}
"""Check name to the asset it belongs to and what it states; all are per partition."""


def check_specs() -> Sequence[dg.AssetCheckSpec]:
    """Return the specs of the per-partition checks, logged from the phase run itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # pinned for it: docs/dependencies.md
        return [
            dg.AssetCheckSpec(name, asset=key, description=text, partitions_def=case_revisions)
            for name, (key, text) in CHECKS.items()
        ]
