"""How far the cases of a corpus run are, read from their packages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from viano_assets.case.lifecycle import is_due
from viano_assets.errors import VianoError
from viano_assets.evaluation.corpus import check_inputs
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import parse_key


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


def standings(
    store: CheckpointStore,
    run: Mapping[str, Any],
    bugs: Mapping[str, Mapping[str, Any]],
    now: datetime | None = None,
) -> dict[str, Standing]:
    """Return how far the cases of a run are, by bug id in order.

    Args:
        store: the case store.
        run: its `run.json`.
        bugs: the entries of `corpus.json` by bug id.
        now: as in `standing`.
    """
    return {
        bug_id: standing(store, key, bugs.get(bug_id), now) for bug_id, key in sorted(run["cases"].items())
    }


def _halted(head: Head, now: datetime) -> Standing:
    overlay = head.manifest.overlay
    if overlay is None:
        return Standing(Stage.OPEN, "not_finished")
    if overlay.kind == "blocked":
        return Standing(Stage.OUT, overlay.code)
    due = overlay.not_before is None or is_due(head, overlay.not_before, now)
    return Standing(Stage.DUE if due else Stage.WAITING, overlay.code, overlay.not_before)
