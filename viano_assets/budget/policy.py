"""What a look costs and what an informative one earns back; pinned per analysis revision.

Units are `investigation_units`, whole numbers without any relation to tokens or money. The reward curve
is piecewise linear in whole numbers, so that the same score always earns the same units everywhere.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

MAX_SCORE = 100
"""Highest `semantic_score`."""


class CurvePoint(NamedTuple):
    """At `score`, `percent` of the action's cost is paid back."""

    score: int
    percent: int


class BudgetPolicy(BaseModel):
    """Reward curve and low-information rule.

    `reward_curve` must start with 0 percent at score 0, end at score 100, rise strictly in score, never
    fall in percent and stay within 0 to 100 percent; a reward is always smaller than the cost. A
    hypothesis whose last `low_information_streak` assessments all lie below `low_information_floor` ends
    as `low_information`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reward_curve: tuple[CurvePoint, ...] = (
        CurvePoint(0, 0),
        CurvePoint(20, 0),
        CurvePoint(60, 30),
        CurvePoint(100, 70),
    )
    low_information_floor: Annotated[int, Field(ge=0, le=MAX_SCORE)] = 20
    low_information_streak: Annotated[int, Field(ge=1)] = 3

    @field_validator("reward_curve", mode="before")
    @classmethod
    def _pairs(cls, value: object) -> object:
        if isinstance(value, (list, tuple)):
            return tuple(
                CurvePoint(*point) if isinstance(point, (list, tuple)) and len(point) == 2 else point
                for point in value
            )
        return value

    @field_validator("reward_curve")
    @classmethod
    def _well_formed(cls, curve: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
        if len(curve) < 2 or curve[0] != CurvePoint(0, 0) or curve[-1].score != MAX_SCORE:
            message = "reward_curve must start with [0, 0] and reach score 100"
            raise ValueError(message)
        for low, high in pairwise(curve):
            if high.score <= low.score or high.percent < low.percent:
                message = "reward_curve must rise in score and never fall in percent"
                raise ValueError(message)
        if not all(0 <= point.percent <= 100 for point in curve):
            message = "reward_curve percents must lie between 0 and 100"
            raise ValueError(message)
        return curve

    def reward(self, cost: int, score: int) -> int:
        """Return the units paid back for an action of `cost` assessed with `score` (0 to 100).

        Rounded down; never the whole cost, so that every look costs at least one unit.
        """
        for low, high in pairwise(self.reward_curve):
            if score <= high.score:
                span = high.score - low.score
                scaled = low.percent * span + (high.percent - low.percent) * (score - low.score)
                return min(cost - 1, cost * scaled // (span * 100))
        return min(cost - 1, cost * self.reward_curve[-1].percent // 100)
