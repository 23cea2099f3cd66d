"""The mechanism families by name: how each plans its looks and judges what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from resources.llm.providers.offline.code_family import judge_code, judge_upstream, plan_code, plan_upstream
from resources.llm.providers.offline.config_family import judge_configuration, plan_configuration
from resources.llm.providers.offline.data_family import judge_data, plan_data
from resources.llm.providers.offline.foreign_family import judge_claim, plan_claim
from resources.llm.providers.offline.mechanisms import is_own
from resources.llm.providers.offline.premise_family import (
    judge_environment,
    judge_intended,
    plan_environment,
    plan_intended,
)
from resources.llm.providers.offline.scene import Judgement, Scene, Wish
from resources.llm.providers.offline.wording import say
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
"""In the order in which a well supported family stands before an equally supported later one."""

CLAIMED = frozenset({"Code", "Upstream", "Intended"})
"""Families whose foreign titles may claim the absence of something in the source."""


def plan(scene: Scene, hypothesis: str) -> Iterator[Wish]:
    """Yield the looks of a hypothesis, then those of its rivals as tests of them.

    A hypothesis ends only when its rivals have been looked at too; what was looked at once is shared.
    """
    title = scene.title(hypothesis)
    family = scene.family(hypothesis)
    if not is_own(title) and family in CLAIMED:
        yield from plan_claim(scene, title)
    yield from FAMILIES[family].plan(scene)
    for entry in scene.hypotheses:
        rival = scene.family(entry["id"])
        if str(entry["id"]) != hypothesis and rival != family:
            for wish in FAMILIES[rival].plan(scene):
                yield replace(wish, countercheck=str(entry["id"]))


def judge_one(scene: Scene, hypothesis: str) -> Judgement:
    """Judge one hypothesis by its family; another author's by what its title claims, if that can be told."""
    title = scene.title(hypothesis)
    judged = FAMILIES[scene.family(hypothesis)].judge(scene)
    if is_own(title) or scene.family(hypothesis) not in CLAIMED:
        return judged
    claim = judge_claim(scene, title)
    if claim is not None and claim.effect == "contradicts":
        return claim
    if claim is not None and judged.level.rank < Confidence.SUPPORTED.rank:
        return claim
    return judged


def outdone(scene: Scene, rival: str) -> str:
    """Return the sentence that another hypothesis is shown better."""
    return say(
        scene,
        f"{rival} is shown better by what was found.",
        f"{rival} ist durch das Gefundene besser belegt.",
    )


def precedence(scene: Scene, identifier: str, judgement: Judgement) -> tuple[int, bool, int]:
    """Return the place of a judgement among others, the smallest first: level, directness, family."""
    return (
        -judgement.level.rank,
        not judgement.direct,
        list(FAMILIES).index(scene.family(identifier)),
    )


def judge_all(scene: Scene) -> dict[str, Judgement]:
    """Judge every registered hypothesis; a better shown cause speaks against the others."""
    judged = {str(entry["id"]): judge_one(scene, str(entry["id"])) for entry in scene.hypotheses}
    strong = [
        (precedence(scene, identifier, judgement), identifier)
        for identifier, judgement in judged.items()
        if judgement.effect == "supports" and judgement.level.rank >= Confidence.SUPPORTED.rank
    ]
    if not strong:
        return judged
    _, best = min(strong)
    return {
        identifier: judgement
        if identifier == best
        else _beneath(judgement, judged[best], outdone(scene, best))
        for identifier, judgement in judged.items()
    }


def _beneath(judgement: Judgement, rival: Judgement, outdone: str) -> Judgement:
    """Return a judgement when another cause is shown better: at most plausible, with that against it."""
    if judgement.effect == "contradicts":
        return judgement
    against = tuple(r for r in rival.support if r.usable and r not in judgement.support)[:2]
    if not against:
        return judgement
    level = min(judgement.level, Confidence.PLAUSIBLE, key=lambda item: item.rank)
    effect = (
        "mixed" if judgement.support and judgement.level.rank >= Confidence.PLAUSIBLE.rank else "contradicts"
    )
    tested = tuple(dict.fromkeys([*judgement.tested, *against]))
    return replace(
        judgement,
        effect=effect,
        level=level,
        against=against,
        tested=tested,
        reason=f"{judgement.reason} {outdone}".strip()[:560],
    )
