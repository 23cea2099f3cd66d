"""`case_plan_v2` and `case_plan_statement_repair_v2` (seed 003; docs/contracts.md, section 4).

All paths are JSON pointers into the interpretation of the same answer, for example
`/observed_behavior/0`. `case_plan_v1` is v2 without premises, reviews and statement repair; contexts
frozen with it still resume, new revisions never use it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.wire import ShortText, Text, Wire

CONTRACT_V1 = "case_plan_v1"
CONTRACT_V2 = "case_plan_v2"
REPAIR_CONTRACT = "case_plan_statement_repair_v2"


class PremiseKind(StrEnum):
    """Whether a premise stands on something cited or is merely supposed."""

    GROUNDED = "grounded"
    UNVERIFIED = "unverified"


class Premise(Wire):
    """What a proposal presupposes; it confirms nothing about the mechanism."""

    kind: PremiseKind
    text: ShortText
    source_ids: tuple[str, ...]
    interpretation_paths: tuple[str, ...]


class PlannedCandidateV1(Wire):
    """A candidate that refers to statements of the same answer by path."""

    title: Text
    mechanism: Text
    rationale: Text
    distinction: Text
    source_ids: tuple[str, ...]
    interpretation_paths: tuple[str, ...]
    expected_evidence: tuple[Text, ...]
    falsifying_evidence: tuple[Text, ...]
    open_questions: tuple[Text, ...]


class PlannedCandidate(PlannedCandidateV1):
    """A v2 candidate with its explicit premises."""

    premises: Annotated[tuple[Premise, ...], Field(min_length=1)]


class CasePlanAnswer(Wire):
    """The whole joint answer."""

    interpretation: InterpretationAnswer
    hypotheses: tuple[PlannedCandidate, ...]


class CasePlanAnswerV1(Wire):
    """The joint answer of version 1."""

    interpretation: InterpretationAnswer
    hypotheses: tuple[PlannedCandidateV1, ...]


class Decision(StrEnum):
    """What a repair says about one existing hypothesis."""

    RETAIN = "retain"
    REPLACE = "replace"
    UNCERTAIN = "uncertain"


class Review(Wire):
    """The examination of one hypothesis for direct and implicit dependence on the corrected statements."""

    position: Annotated[int, Field(ge=1)]
    decision: Decision
    reason: ShortText
    replacement: PlannedCandidate | None


class Patch(Wire):
    """The new value of one disputed place; null deletes a disputed list entry."""

    path: str
    value: Any


class Patches(Wire):
    """The binding half of a repair answer."""

    patches: tuple[Patch, ...]


class StatementRepairAnswer(Patches):
    """The whole repair answer as it is asked for; the reviews are read leniently, one by one."""

    reviews: tuple[Review, ...]
