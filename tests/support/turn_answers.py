"""Answers of an investigation turn, built from the turn they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viano_assets.phases.protocols import ModelRequest

Json = dict[str, Any]


def turn_of(request: ModelRequest) -> Json:
    """Return the data of the `turn` section."""
    (turn,) = request.sections("turn")
    data: Json = turn
    return data


def shown_ids(request: ModelRequest) -> list[str]:
    """Return the evidence ids of the history in order, each once."""
    found: dict[str, None] = {}
    for history in request.sections("history"):
        for action in history["actions"]:
            for item in action["evidence"]:
                found[item["evidence_id"]] = None
    return list(found)


def action(tool: str, purpose: str = "to see", countercheck_of: str | None = None, **arguments: Any) -> Json:
    """Return one action."""
    return {"tool": tool, "arguments": arguments, "purpose": purpose, "countercheck_of": countercheck_of}


def answer(
    turn: Json,
    *,
    actions: Sequence[Json] = (),
    finish: bool = False,
    effect: str = "neutral",
    requested: str = "unassessed",
    support: Sequence[str] = (),
    against: Sequence[str] = (),
    refs: Sequence[str] | None = None,
    score: int = 50,
    status: str | None = None,
    question: str | None = None,
    create: Json | None = None,
) -> Json:
    """Return a whole answer; on a first turn nothing is judged and the score is 0."""
    first = bool(turn["first_turn"])
    cited = list(dict.fromkeys([*support, *against])) if refs is None else list(refs)
    return {
        "update": {
            "hypothesis_id": turn["selected_hypothesis"],
            "evidence_refs": [] if first else cited,
            "requested_confidence": "unassessed" if first else requested,
            "causal_review": {
                "effect": "neutral" if first else effect,
                "support": [] if first else list(support),
                "against": [] if first else list(against),
                "reason": "how the evidence bears on the mechanism",
            },
            "status": None if first else status,
        },
        "assessment": {
            "semantic_score": score if turn["pending_actions"] else 0,
            "novelty_reason": "what was learned",
        },
        "next": {"actions": list(actions), "finish": finish, "reason": "because"},
        "question": question,
        "create": create,
    }
