"""Data: does a record or link that working siblings have lack, or differ, for the affected item?"""

from __future__ import annotations

from collections.abc import Iterator

from resources.llm.providers.offline.scene import Judgement, Scene, Wish
from viano_assets.phases.wire import Confidence


def plan_data(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Data in order."""
    if "db.id" not in scene.tools:
        return
    for number in scene.numbers()[:3]:
        yield Wish("db.id", {"value": number}, f"Which records hold {number}?")


def judge_data(scene: Scene) -> Judgement:
    """Judge the family Data from the siblings of the affected item."""
    del scene
    return Judgement("neutral", Confidence.UNASSESSED, reason="No record of the affected item was compared.")
