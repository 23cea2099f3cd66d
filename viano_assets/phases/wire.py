"""What all wire contracts share: strict, frozen models, the confidence levels and validation issues."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]
"""Nonblank text of at most 4,000 characters."""

ShortText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
"""Nonblank text of at most 600 characters."""


class Wire(BaseModel):
    """A model answer or a part of one: unknown fields and coerced types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Confidence(StrEnum):
    """Qualitative levels, weakest first."""

    WEAKENED = "weakened"
    UNASSESSED = "unassessed"
    PLAUSIBLE = "plausible"
    SUPPORTED = "supported"
    STRONGLY_SUPPORTED = "strongly_supported"

    @property
    def rank(self) -> int:
        """Position in the order, 0 for the weakest."""
        return list(Confidence).index(self)


class ValidationIssue(BaseModel):
    """One reason why an answer was rejected: a path into the answer, a stable category and a hint."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    path: str
    category: str
    message: str
    hint: str = ""
