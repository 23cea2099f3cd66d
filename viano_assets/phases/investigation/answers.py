"""One shape for the answers of every investigation contract, so that the loop knows only one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viano_assets.phases.common import decode
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.investigation.config import V11
from viano_assets.phases.investigation.contract import Action, Effect, InvestigationAnswer
from viano_assets.phases.investigation.contract_v11 import InvestigationAnswerV11
from viano_assets.phases.schema import wire_schema
from viano_assets.phases.wire import Confidence, ValidationIssue

EVIDENCE_ID = "^E[1-9][0-9]*$"
HYPOTHESIS_ID = "^H[1-9][0-9]*$"


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """A well-formed answer; `effect` is None under a contract without a causal review."""

    hypothesis_id: str
    evidence_refs: tuple[str, ...]
    requested: Confidence
    effect: Effect | None
    support: tuple[str, ...]
    against: tuple[str, ...]
    reason: str
    rejected: bool
    score: int
    novelty_reason: str
    actions: tuple[Action, ...]
    finish: bool
    next_reason: str
    question: str | None
    create: Candidate | None


def read_answer(contract: str, raw: object) -> TurnAnswer | tuple[ValidationIssue, ...]:
    """Validate a decoded answer under its contract: the answer, or the issues that reject it."""
    model: type[InvestigationAnswer | InvestigationAnswerV11]
    model = InvestigationAnswerV11 if contract == V11 else InvestigationAnswer
    answer = decode(model, raw)
    if isinstance(answer, tuple):
        return answer
    update = answer.update
    review = answer.update.causal_review if isinstance(answer, InvestigationAnswer) else None
    return TurnAnswer(
        hypothesis_id=update.hypothesis_id,
        evidence_refs=update.evidence_refs,
        requested=update.requested_confidence,
        effect=review.effect if review else None,
        support=review.support if review else (),
        against=review.against if review else (),
        reason=review.reason if review else "",
        rejected=update.status == "rejected",
        score=answer.assessment.semantic_score,
        novelty_reason=answer.assessment.novelty_reason,
        actions=answer.next.actions,
        finish=answer.next.finish,
        next_reason=answer.next.reason,
        question=answer.question,
        create=answer.create,
    )


def answer_schema(contract: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema sent to a provider.

    It is the same in every dispatch of a revision, so that a provider can cache it: ids are patterns, not
    lists of what exists at the moment. Each tool's arguments follow its own schema.
    """
    schema = wire_schema(InvestigationAnswerV11 if contract == V11 else InvestigationAnswer)
    update = schema["properties"]["update"]["properties"]
    update["hypothesis_id"] = {"type": "string", "pattern": HYPOTHESIS_ID}
    update["evidence_refs"]["items"] = {"type": "string", "pattern": EVIDENCE_ID}
    if "causal_review" in update:
        for side in ("support", "against"):
            update["causal_review"]["properties"][side]["items"] = {"type": "string", "pattern": EVIDENCE_ID}
    actions = schema["properties"]["next"]["properties"]["actions"]
    actions["items"] = {"anyOf": [_action(actions["items"], tool) for tool in tools]}
    return schema


def _action(action: dict[str, Any], tool: dict[str, Any]) -> dict[str, Any]:
    properties = dict(action["properties"])
    properties["tool"] = {"const": tool["name"]}
    properties["arguments"] = tool["arguments"]
    return {**action, "properties": properties}
