"""Settings of `InvestigationBuilder`; file: config/investigation.example.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.budget.policy import BudgetPolicy
from viano_assets.phases.investigation.contract import CONTRACT
from viano_assets.phases.settings import read_toml, settings

Positive = Annotated[int, Field(strict=True, ge=1)]
MaxActions = Annotated[int, Field(strict=True, ge=1, le=4)]

V11 = "investigation_project_v11"
"""The contract before the causal review; only replayed, never started."""

PROMPTS = {CONTRACT: CONTRACT, V11: V11}
"""Contract to prompt file."""


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class InvestigationLimits(_Settings):
    """Ceilings of the machine and of one call; not pinned, a later dispatch may use other values.

    A request above `context_bytes` is never shortened: the loop ends with `context_limit` and what is
    known, or the case is blocked when not even the first dispatch fits.
    """

    context_bytes: Positive = 2_097_152
    output_tokens: Positive = 8_192
    deadline_s: Positive = 180


class InvestigationConfig(_Settings):
    """What a revision pins before its first dispatch, and the limits.

    Args:
        dispatch_limit: most model rounds of one revision.
        max_actions: most tool calls of one dispatch (the contract allows at most four).
        bootstrap_actions: most tool calls of a hypothesis' first turn.
        max_invalid_responses: rejected answers of one dispatch before the case is blocked.
        tool_costs: units per tool; a tool not named costs what the tool itself declares.
        budget: reward curve and low-information rule.
    """

    dispatch_limit: Positive = 24
    max_actions: MaxActions = 4
    bootstrap_actions: MaxActions = 1
    max_invalid_responses: Positive = 3
    tool_costs: dict[str, Positive] = Field(default_factory=dict)
    budget: BudgetPolicy = BudgetPolicy()
    limits: InvestigationLimits = InvestigationLimits()

    @classmethod
    def load(cls, path: str | Path) -> InvestigationConfig:
        """Read the tables `investigation`, `costs`, `budget` and `limits`; a missing file gives defaults.

        Raises:
            ConfigurationError: naming file and key.
        """
        tables = read_toml(path, ("investigation", "costs", "budget", "limits"))
        values: dict[str, Any] = dict(tables["investigation"])
        costs, budget, limits = tables["costs"], tables["budget"], tables["limits"]
        if costs:
            values["tool_costs"] = costs
        if budget:
            values["budget"] = settings(BudgetPolicy, budget, path, "budget")
        if limits:
            values["limits"] = settings(InvestigationLimits, limits, path, "limits")
        return settings(cls, values, path, "investigation")

    def differing(self, policy: InvestigationPolicy) -> str | None:
        """Return the first setting that was given explicitly and differs from the pinned policy."""
        for name in sorted(self.model_fields_set - {"limits"}):
            given = getattr(self, name)
            if name == "tool_costs":
                if any(policy.tool_costs.get(tool, cost) != cost for tool, cost in given.items()):
                    return name
            elif given != getattr(policy, name):
                return name
        return None


class InvestigationPolicy(_Settings):
    """`policy.json`: everything that decides how the loop of one revision runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    schema_: Literal["investigation-policy-v1"] = Field(default="investigation-policy-v1", alias="schema")
    contract: Literal["investigation_project_v12", "investigation_project_v11"]
    prompt_version: str
    prompt_sha256: str
    dispatch_limit: Positive
    max_actions: MaxActions
    bootstrap_actions: MaxActions
    max_invalid_responses: Positive
    max_hypotheses: Positive
    initial_budget: Positive
    tool_costs: dict[str, Positive]
    budget: BudgetPolicy
    controller: Literal["investigation-controller-1", "investigation-controller-2"] = (
        "investigation-controller-1"
    )
    """Version of what the controller derives. Since 2 an empty look from an incomplete scope is no
    countercheck, and what was shipped but not read counts as not examined."""

    @property
    def is_strict(self) -> bool:
        """True under the rules of controller 2."""
        return self.controller != "investigation-controller-1"

    @property
    def cheapest(self) -> int:
        """Units of the cheapest look; an account below it can ask for nothing."""
        return min(self.tool_costs.values(), default=1)
