"""What one partition's run reports, without Dagster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viano_assets.phases.protocols import Phase

CORPUS_RUN = "viano/corpus_run"
"""Tag of the Dagster runs that work on a run of a known-bug corpus."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One evaluated check; `warn_only` marks what a person should see and nothing must stop for."""

    name: str
    passed: bool
    description: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    warn_only: bool = False


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """What became of one asset of one partition (`phase` None is the asset `case`)."""

    key: str
    phase: Phase | None
    published: bool
    failed: bool = False
    data_version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    checks: Sequence[CheckReport] = ()
    code: str = ""
    message: str = ""
    hint: str = ""
    not_before: str | None = None
