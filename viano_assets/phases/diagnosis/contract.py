"""`diagnosis-output-v1` with decision v2: the final evaluation (docs/contracts.md, section 9)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from viano_assets.phases.wire import Confidence, Text, Wire

CONTRACT = "diagnosis-output-v1"


class Verdict(StrEnum):
    """Final standing of one hypothesis."""

    SUPPORTED = "supported"
    WEAKENED = "weakened"
    REJECTED = "rejected"
    UNDETERMINED = "undetermined"


class InconclusiveKind(StrEnum):
    """Why there is no confirmed cause."""

    INSUFFICIENT_INFORMATION = "insufficient_information"
    INTENDED_BEHAVIOUR = "intended_behaviour"
    PREMISE_CONTRADICTED = "premise_contradicted"
    UNDECIDED = "undecided"
    INVALID_ANSWERS = "invalid_answers"


class Contradiction(Wire):
    """Evidence that speaks against a verdict and why the verdict stands all the same."""

    evidence_id: str
    explanation: Text


class Countercheck(Wire):
    """Whether an alternative was really tested, and by which shared findings."""

    adequate: bool
    reason: Text
    evidence_ids: tuple[str, ...]


class FinalEvaluation(Wire):
    """Exactly one per hypothesis."""

    hypothesis_id: str
    verdict: Verdict
    reason: Text
    support: tuple[str, ...]
    against: tuple[str, ...]
    scope_limits: tuple[Text, ...]
    contradictions: tuple[Contradiction, ...]
    countercheck: Countercheck


class RootCause(Wire):
    """The claimed cause; at most five stored records of at most 60 lines carry it.

    Quotes in the texts stand between backticks and are verified against those records.
    """

    summary: Text
    technical_description: Text
    evidence_ids: Annotated[tuple[str, ...], Field(max_length=5)]


class DiagnosisAnswer(Wire):
    """The strict payload."""

    status: Literal["confirmed", "inconclusive"]
    inconclusive_kind: InconclusiveKind | None
    selected_hypothesis: str | None
    root_cause: RootCause | None
    confidence: Confidence
    evaluations: tuple[FinalEvaluation, ...]
    inconclusive_evidence_ids: tuple[str, ...]
    """Evidence that shows intended behaviour or a contradicted premise; empty otherwise."""
    remaining_uncertainty: tuple[Text, ...]
    final_reason: Text
    review_actions: tuple[Text, ...]
