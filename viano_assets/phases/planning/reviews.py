"""What the reviews of repairs make of the candidates of a joint plan.

Reviews are read one by one: a malformed one leaves its position unclear and touches nothing else. A
missing reference is never taken as proof of independence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from viano_assets.phases.common import decode
from viano_assets.phases.planning.contract import Decision, Review
from viano_assets.phases.planning.rules import inputs_unchanged


class Standing(StrEnum):
    """What is known about a position."""

    ORIGINAL = "original"
    RETAINED = "retained"
    REPLACED = "replaced"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Position:
    """One position of the plan: its present wire form and standing."""

    wire: Any
    status: Standing


def first_positions(hypotheses: object) -> tuple[Position, ...] | None:
    """Return the positions of a plan's own list, None when it is no list."""
    if not isinstance(hypotheses, list):
        return None
    return tuple(Position(wire, Standing.ORIGINAL) for wire in hypotheses)


def fold(
    positions: Sequence[Position], reviews: object, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[Position, ...]:
    """Apply the reviews of one repair that turned interpretation `before` into `after`."""
    by_position = _readable(reviews)
    return tuple(
        _decide(position, by_position.get(number), before, after)
        for number, position in enumerate(positions, start=1)
    )


def _readable(reviews: object) -> dict[int, Review]:
    found: dict[int, Review] = {}
    twice: set[int] = set()
    for item in reviews if isinstance(reviews, list) else ():
        review = decode(Review, item)
        if not isinstance(review, Review):
            continue
        if review.position in found:
            twice.add(review.position)
        found[review.position] = review
    return {number: review for number, review in found.items() if number not in twice}


def _decide(
    position: Position, review: Review | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Position:
    unclear = Position(position.wire, Standing.UNCLEAR)
    if review is None:
        return unclear
    if review.decision is Decision.REPLACE and review.replacement is not None:
        return Position(review.replacement.model_dump(mode="json"), Standing.REPLACED)
    if review.decision is not Decision.RETAIN or review.replacement is not None:
        return unclear
    if position.status is Standing.UNCLEAR or not isinstance(position.wire, dict):
        return unclear
    if not inputs_unchanged(position.wire, before, after):
        return unclear
    kept = Standing.REPLACED if position.status is Standing.REPLACED else Standing.RETAINED
    return Position(position.wire, kept)
