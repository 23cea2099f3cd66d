"""Configuration: does a governing setting differ from its default or from what the report expects?"""

from __future__ import annotations

from collections.abc import Iterator

from resources.llm.providers.offline.scene import Judgement, Scene, Wish
from viano_assets.phases.wire import Confidence


def plan_configuration(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Configuration in order."""
    del scene
    yield from ()


def judge_configuration(scene: Scene) -> Judgement:
    """Judge the family Configuration."""
    del scene
    return Judgement("neutral", Confidence.UNASSESSED, reason="No setting was compared.")
