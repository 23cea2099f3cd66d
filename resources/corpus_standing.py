"""How far the cases of a corpus run are, read from their packages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from viano_assets.errors import VianoError
from viano_assets.evaluation.corpus import check_inputs
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import parse_key

CLOCK_SLACK = timedelta(minutes=1)
"""How far the clock may stand before a recorded moment and still be taken as right."""


class Stage(StrEnum):
    """What is left to do for a case of a run."""

    DONE = "done"
    """It has a diagnosis."""
    OUT = "out"
    """It can get none in this run: damaged, blocked, another case, a later revision."""
    WAITING = "waiting"
    """A provider put it off until a time that has not come."""
    DUE = "due"
    """It was put off until a time that has come."""
    OPEN = "open"
    """It can go on now."""


class Standing(NamedTuple):
    """How far a case is; `code` says why it has no diagnosis, `not_before` until when it waits."""

    stage: Stage
    code: str = ""
    not_before: str | None = None

    @property
    def is_settled(self) -> bool:
        """True when waiting brings nothing more."""
        return self.stage in {Stage.DONE, Stage.OUT}


def standing(
    store: CheckpointStore, key: str, bug: Mapping[str, Any] | None = None, now: datetime | None = None
) -> Standing:
    """Return how far the case of a partition is.

    Args:
        store: the case store.
        key: the partition that the run fixed.
        bug: its entry of `corpus.json`, to find out that the case is another one; None does not look.
        now: the moment that due times are held against; None takes the present.
    """
    case_id, revision = parse_key(key)
    try:
        head = store.latest(case_id)
        if bug is not None:
            check_inputs(head, bug)
    except VianoError as error:
        return Standing(Stage.OUT, error.code)
    if any(c.revision == revision and c.event == "diagnosis_published" for c in head.checkpoints):
        return Standing(Stage.DONE)
    if head.revision != revision:
        return Standing(Stage.OUT, "revision_passed")
    return _halted(head, now or datetime.now(UTC))


def _halted(head: Head, now: datetime) -> Standing:
    overlay = head.manifest.overlay
    if overlay is None:
        return Standing(Stage.OPEN, "not_finished")
    if overlay.kind == "blocked":
        return Standing(Stage.OUT, overlay.code)
    recorded = datetime.fromisoformat(head.checkpoints[-1].at)
    due = overlay.not_before is None or datetime.fromisoformat(overlay.not_before) <= now
    stage = Stage.DUE if due or now < recorded - CLOCK_SLACK else Stage.WAITING
    return Standing(stage, overlay.code, overlay.not_before)
