"""One turn of the investigation: judge the selected hypothesis by its family, wish for the next looks."""

from __future__ import annotations

from typing import Any

from resources.llm.providers.offline.families import judge_all, plan
from resources.llm.providers.offline.findings import from_history, ids
from resources.llm.providers.offline.scene import Judgement, Scene, Wish
from resources.llm.providers.offline.view import Json, case_of, clip, one
from resources.llm.providers.offline.wording import say
from viano_assets.phases.protocols import ModelRequest
from viano_assets.phases.wire import Confidence


def scene_of(request: ModelRequest) -> Scene:
    """Read an investigation request."""
    tools = one(request, "tools")
    registry = list(one(request, "registry").get("hypotheses", []))
    registry += [d["created"] for d in request.sections("history") if d.get("created")]
    return Scene(
        case=case_of(request),
        interpretation=one(request, "interpretation"),
        hypotheses=registry,
        findings=from_history(request),
        overview=dict(tools.get("overview", {})),
        tools=frozenset(spec["name"] for spec in tools.get("specs", [])),
        schemas={spec["name"]: dict(spec.get("arguments") or {}) for spec in tools.get("specs", [])},
    )


def _affordable(wishes: list[Wish], turn: Json) -> list[Wish]:
    limits, costs = turn["limits"], turn["tool_costs"]
    chosen: list[Wish] = []
    units = int(limits["units"])
    for wish in wishes:
        cost = int(costs.get(wish.tool, units + 1))
        if len(chosen) < int(limits["max_actions"]) and cost <= units:
            chosen.append(wish)
            units -= cost
    return chosen


def _wishes(scene: Scene, hypothesis: str) -> list[Wish]:
    """Return the looks of a hypothesis that nobody has made yet, in order and without repeats."""
    wanted: list[Wish] = []
    for wish in plan(scene, hypothesis):
        made = scene.findings.done(wish.tool, wish.arguments)
        if (
            not made
            and scene.fits(wish.tool, wish.arguments)
            and all((w.tool, w.arguments) != (wish.tool, wish.arguments) for w in wanted)
        ):
            wanted.append(wish)
    return wanted


def _score(scene: Scene, pending: list[str]) -> int:
    """Return how informative the pending looks were: usable records count, empty ones less."""
    looks = [look for look in scene.findings.looks if look.action_id in pending]
    if not looks:
        return 0
    values = [
        max((60 if record.empty else 85) if record.usable else 5 for record in look.records)
        if look.records
        else 5
        for look in looks
    ]
    return sum(values) // len(values)


def _action(wish: Wish) -> Json:
    return {
        "tool": wish.tool,
        "arguments": wish.arguments,
        "purpose": clip(wish.purpose, 400),
        "countercheck_of": wish.countercheck,
    }


def _unseen(scene: Scene) -> Judgement:
    return Judgement(
        "neutral",
        Confidence.UNASSESSED,
        reason=say(
            scene,
            "Nothing of this hypothesis has been looked at yet.",
            "Von dieser Hypothese ist noch nichts angesehen worden.",
        ),
    )


def _update(scene: Scene, hypothesis: str, judgement: Judgement) -> Json:
    against = ids(record for record in judgement.against if record.usable)
    support = [
        name for name in ids(record for record in judgement.support if record.usable) if name not in against
    ]
    effect = judgement.effect
    lacking = (effect == "contradicts" and not against) or (effect == "supports" and not support)
    if lacking or (effect == "mixed" and not (support and against)):
        effect = "neutral"
    references = list(dict.fromkeys([*support, *against, *ids(judgement.tested)]))
    level = judgement.level if references else Confidence.UNASSESSED
    return {
        "hypothesis_id": hypothesis,
        "evidence_refs": references,
        "requested_confidence": level.value,
        "causal_review": {
            "effect": effect,
            "support": support,
            "against": against,
            "reason": clip(judgement.reason, 560)
            or say(scene, "No record decides yet.", "Noch entscheidet kein Beleg."),
        },
        "status": None,
    }


def answer(request: ModelRequest) -> dict[str, Any]:
    """Answer `investigation_project_v12`."""
    scene, turn = scene_of(request), one(request, "turn")
    selected = turn["selected_hypothesis"]
    wishes = _affordable(_wishes(scene, selected), turn)
    pending = list(turn.get("pending_actions", []))
    judgement = judge_all(scene)[selected]
    update = _update(scene, selected, _unseen(scene) if turn.get("first_turn") else judgement)
    score = 0 if not pending else _score(scene, pending)
    return {
        "update": update,
        "assessment": {
            "semantic_score": score,
            "novelty_reason": clip(judgement.reason, 400)
            if pending
            else say(scene, "Nothing was pending.", "Nichts stand aus."),
        },
        "next": {
            "actions": [_action(wish) for wish in wishes],
            "finish": not wishes,
            "reason": clip(wishes[0].purpose, 400)
            if wishes
            else say(
                scene,
                "Every look of this mechanism has been made.",
                "Jeder Blick dieses Mechanismus ist getan.",
            ),
        },
        "question": None,
        "create": None,
    }
