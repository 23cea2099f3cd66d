"""The mechanism families by name: how each plans its looks and judges what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from resources.llm.providers.offline.code_family import judge_code, judge_upstream, plan_code, plan_upstream
from resources.llm.providers.offline.config_family import judge_configuration, plan_configuration
from resources.llm.providers.offline.data_family import judge_data, plan_data
from resources.llm.providers.offline.premise_family import (
    judge_environment,
    judge_intended,
    plan_environment,
    plan_intended,
)
from resources.llm.providers.offline.scene import Judgement, Scene, Wish
from viano_assets.phases.wire import Confidence


class Family(NamedTuple):
    """One family's looks and judgement."""

    plan: Callable[[Scene], Iterator[Wish]]
    judge: Callable[[Scene], Judgement]


FAMILIES: dict[str, Family] = {
    "Data": Family(plan_data, judge_data),
    "Configuration": Family(plan_configuration, judge_configuration),
    "Intended": Family(plan_intended, judge_intended),
    "Code": Family(plan_code, judge_code),
    "Upstream": Family(plan_upstream, judge_upstream),
    "Environment": Family(plan_environment, judge_environment),
}
"""In the order in which a well supported family stands before a later one: what a record or a setting
shows directly is stronger than where the signals of a ranking meet."""

DIRECT = ("Data", "Configuration", "Intended")


def judge_all(scene: Scene) -> dict[str, Judgement]:
    """Judge every registered hypothesis; a directly shown cause lowers the ranked ones beneath it."""
    judged = {
        str(entry["id"]): FAMILIES[scene.family(entry["id"])].judge(scene) for entry in scene.hypotheses
    }
    direct = [
        judgement
        for identifier, judgement in judged.items()
        if scene.family(identifier) in DIRECT and judgement.level.rank >= Confidence.SUPPORTED.rank
    ]
    if not direct:
        return judged
    rival = max(direct, key=lambda judgement: judgement.level.rank)
    return {
        identifier: _beneath(judgement, rival) if scene.family(identifier) not in DIRECT else judgement
        for identifier, judgement in judged.items()
    }


def _beneath(judgement: Judgement, rival: Judgement) -> Judgement:
    """Return a ranked family's judgement when another cause is shown directly."""
    against = tuple(record for record in rival.support if record not in judgement.support)[:3]
    if not against:
        return judgement
    effect = "mixed" if judgement.support else "contradicts"
    level = min(judgement.level, Confidence.PLAUSIBLE, key=lambda item: item.rank)
    return replace(
        judgement,
        effect=effect,
        level=level,
        against=against,
        reason=f"Another cause is shown directly: {rival.reason}"[:560],
    )
