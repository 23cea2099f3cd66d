"""Settings of `HypothesisBuilder`; file: config/analysis.example.toml, table `hypotheses`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from viano_assets.case.assembler import MAX_SHOWN_BYTES
from viano_assets.phases.settings import read_toml, settings

Positive = Annotated[int, Field(strict=True, ge=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class HypothesisLimits(_Settings):
    """Operational ceilings, independent of format contracts; history is never silently truncated."""

    context_bytes: Positive = MAX_SHOWN_BYTES
    prior_documents: Positive = 32
    output_bytes: Positive = 2_097_152
    summary_bytes: Positive = 2_097_152


class HypothesisConfig(_Settings):
    """The policy a revision pins before its first request, and the limits of the machine.

    `initial_budget` is in abstract investigation units per hypothesis. `prior_generations` says whether
    the initial proposals of earlier analysis revisions are shown.
    """

    min_hypotheses: Positive = 3
    max_hypotheses: Positive = 5
    initial_budget: Positive = 100
    prior_generations: Literal["include", "exclude"] = "include"
    max_invalid_responses: Positive = 3
    max_output_tokens: Positive = 8_192
    deadline_s: Positive = 180
    limits: HypothesisLimits = HypothesisLimits()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_hypotheses > self.max_hypotheses:
            raise ValueError("min_hypotheses cannot exceed max_hypotheses")
        return self

    @classmethod
    def load(cls, path: str | Path) -> HypothesisConfig:
        """Read the table `hypotheses`; a missing file gives the defaults.

        Raises:
            ConfigurationError: naming file and key.
        """
        tables = read_toml(path, ("interpretation", "planning", "hypotheses"))
        return settings(cls, tables["hypotheses"], path, "hypotheses")

    def policy(self) -> dict[str, Any]:
        """Return the part that is pinned for a revision."""
        return {
            "min_hypotheses": self.min_hypotheses,
            "max_hypotheses": self.max_hypotheses,
            "initial_budget": self.initial_budget,
            "prior_generations": self.prior_generations,
            "max_invalid_responses": self.max_invalid_responses,
        }
