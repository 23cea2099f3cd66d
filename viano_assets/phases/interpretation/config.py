"""Settings of the interpretation and of planning; file: config/analysis.example.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.case.assembler import MAX_SHOWN_BYTES
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.protocols import RequestLimits
from viano_assets.phases.settings import read_toml, settings

PlanningMode = Literal["joint", "separate"]

DEFAULT_MODE: PlanningMode = "joint"
"""Planning mode of a new revision when neither configuration nor command line names one."""

Positive = Annotated[int, Field(strict=True, ge=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class InterpretationLimits(_Settings):
    """Operational ceilings in bytes; exceeding one is an explicit refusal, never a truncation."""

    context_bytes: Positive = MAX_SHOWN_BYTES
    output_bytes: Positive = 2_097_152
    summary_bytes: Positive = 2_097_152


class _Interpretation(_Settings):
    max_invalid_responses: Positive = 3
    max_output_tokens: Positive = 8_192
    deadline_s: Positive = 180
    limits: InterpretationLimits = InterpretationLimits()


class PlanningConfig(_Settings):
    """How interpretation and hypotheses are asked for.

    `mode` is frozen when a revision starts; None takes `DEFAULT_MODE` then and never contradicts a
    frozen one. `max_repairs` bounds the chain of statement repairs, `max_repair_places` the places one
    repair may cover; beyond either the whole answer is asked for again.
    """

    mode: PlanningMode | None = None
    max_repairs: Annotated[int, Field(strict=True, ge=1, le=8)] = 2
    max_repair_places: Positive = 12

    def bounds(self) -> dict[str, int]:
        """Return the bounds a joint revision pins."""
        return {"max_repairs": self.max_repairs, "max_repair_places": self.max_repair_places}


class InterpretationConfig(_Interpretation):
    """Settings of `CaseInterpreter`; `hypotheses` is the policy a joint revision pins before its call."""

    planning: PlanningConfig = PlanningConfig()
    hypotheses: HypothesisConfig = HypothesisConfig()

    def joint_limits(self) -> RequestLimits:
        """Return the ceilings of a call that serves both phases: those of both calls together."""
        return RequestLimits(
            max_output_tokens=self.max_output_tokens + self.hypotheses.max_output_tokens,
            deadline_s=self.deadline_s + self.hypotheses.deadline_s,
        )

    @classmethod
    def load(cls, path: str | Path) -> InterpretationConfig:
        """Read the tables `interpretation`, `planning` and `hypotheses`; a missing file gives the defaults.

        Raises:
            ConfigurationError: naming file and key.
        """
        tables = read_toml(path, ("interpretation", "planning", "hypotheses"))
        own = settings(_Interpretation, tables["interpretation"], path, "interpretation")
        planning = settings(PlanningConfig, tables["planning"], path, "planning")
        return cls(**own.model_dump(), planning=planning, hypotheses=HypothesisConfig.load(path))
