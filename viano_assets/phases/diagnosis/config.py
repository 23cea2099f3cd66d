"""Settings of `DiagnosisBuilder`; file: config/diagnosis.example.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.phases.settings import read_toml, settings

Positive = Annotated[int, Field(strict=True, ge=1)]

DEFAULT_MAX_INVALID = 3
"""Invalid final answers a revision tolerates when nothing is configured (seed 000)."""


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DiagnosisLimits(_Settings):
    """Operational ceilings in bytes, adjustable at any time and no part of the package format.

    A context or artifact above its ceiling is refused, never truncated. Defaults as in seed 000.
    """

    context_bytes: Positive = 2 * 1024 * 1024
    artifact_bytes: Positive = 4 * 1024 * 1024


class DiagnosisConfig(_Settings):
    """The policy a revision freezes at its start, and the limits of the machine.

    A policy value left out (None) takes the default at the start of a revision and adopts the stored
    value on resume; an explicit value that differs from the stored one is refused (`policy_changed`).
    """

    max_invalid_responses: Positive | None = None
    max_output_tokens: Positive | None = None
    deadline_s: Positive | None = None
    limits: DiagnosisLimits = DiagnosisLimits()

    @classmethod
    def load(cls, path: str | Path) -> DiagnosisConfig:
        """Read the tables `diagnosis` and `limits`; a missing file gives the defaults.

        Raises:
            ConfigurationError: naming file and key.
        """
        tables = read_toml(path, ("diagnosis", "limits"))
        limits = settings(DiagnosisLimits, tables["limits"], path, "limits")
        return settings(cls, {**tables["diagnosis"], "limits": limits}, path, "diagnosis")

    def policy(self) -> dict[str, int]:
        """Return the policy a new revision freezes."""
        return {
            "max_invalid_responses": self.max_invalid_responses or DEFAULT_MAX_INVALID,
            "max_output_tokens": self.max_output_tokens or 8_192,
            "deadline_s": self.deadline_s or 180,
        }

    def changed(self, frozen: dict[str, int]) -> list[str]:
        """Return the names of explicit settings that differ from the frozen policy."""
        explicit = {name: getattr(self, name) for name in self.policy()}
        return [name for name, value in explicit.items() if value is not None and value != frozen.get(name)]
