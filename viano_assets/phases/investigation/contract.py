"""`investigation_project_v12`: one turn of the investigation (docs/contracts.md, section 5; seed 004)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.wire import Confidence, ShortText, Text, Wire

CONTRACT: Final = "investigation_project_v12"


class Effect(StrEnum):
    """Cumulative effect of the evidence on the exact selected mechanism."""

    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    MIXED = "mixed"
    NEUTRAL = "neutral"


class CausalReview(Wire):
    """The declared causal relation; up to eight stored evidence ids on each side."""

    effect: Effect
    support: Annotated[tuple[str, ...], Field(max_length=8)]
    against: Annotated[tuple[str, ...], Field(max_length=8)]
    reason: ShortText


class Update(Wire):
    """What the accumulated evidence means for the selected hypothesis."""

    hypothesis_id: str
    evidence_refs: tuple[str, ...]
    requested_confidence: Confidence
    causal_review: CausalReview
    status: Literal["rejected"] | None = None


class Assessment(Wire):
    """How informative the results of the previous actions were, 0 to 100; not a causal direction."""

    semantic_score: Annotated[int, Field(ge=0, le=100)]
    novelty_reason: ShortText


class Action(Wire):
    """One tool call. `countercheck_of` names the hypothesis that this look could refute."""

    tool: str
    arguments: dict[str, Any]
    purpose: ShortText
    countercheck_of: str | None = None


class Next(Wire):
    """What to do next: tool calls for the selected hypothesis, or nothing more for it (`finish`)."""

    actions: Annotated[tuple[Action, ...], Field(max_length=4)]
    finish: bool
    reason: ShortText


class InvestigationAnswer(Wire):
    """The whole answer of one dispatch; `create` proposes a new hypothesis under the same cap."""

    update: Update
    assessment: Assessment
    next: Next
    question: Text | None = None
    create: Candidate | None = None
