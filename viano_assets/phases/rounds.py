"""Recorded model rounds of a case: the one checkpoint event that the gateway writes and everybody reads."""

from __future__ import annotations

from viano_assets.package.model import Checkpoint, Head

ROUND_RECORDED = "model_round_recorded"
"""Checkpoint event of one round of one model operation."""


def model_rounds(head: Head, revision: int) -> list[Checkpoint]:
    """Return the rounds of a revision in the order in which they were recorded."""
    return [c for c in head.checkpoints if c.event == ROUND_RECORDED and c.revision == revision]
