"""One partition through its selected phases, without Dagster: what to report, what failed, what is due.

The rows of the evidence index are replaced as a whole, so phases that follow each other within
`INDEX_AFTER_S` share one replacement: offline a case takes a second, and five replacements would double it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence

from resources.session import Session
from viano_assets.assets.reports import case_report, phase_report
from viano_assets.assets.run_types import PhaseReport
from viano_assets.errors import InputError, VianoError
from viano_assets.package.model import Head
from viano_assets.partitions import parse_key
from viano_assets.phases.common import artifact_path
from viano_assets.phases.diagnosis.published import FAILURE
from viano_assets.phases.drive import assembled
from viano_assets.phases.protocols import DispatchStatus, Phase, PhaseResult

INDEX_AFTER_S = 10.0
"""Longest time in seconds that published phases wait for their rows while the next phase works."""

WAITING = frozenset({DispatchStatus.RETRY_PENDING, DispatchStatus.DEFERRED})


def _failure(key: str, phase: Phase | None, error: VianoError) -> PhaseReport:
    return PhaseReport(
        key, phase, published=False, failed=True, code=error.code, message=str(error), hint=error.hint
    )


def run_partition(
    session: Session,
    key: str,
    *,
    with_case: bool,
    phases: Sequence[Phase],
    retry_id: str | None = None,
    attempt_id: str | None = None,
) -> Iterator[PhaseReport]:
    """Run the selected phases of `key` in order and report each; the first that cannot go on ends it.

    The evidence index has the rows of every published phase at the end, however it ends.
    """
    case_id, revision = parse_key(key)
    phase: Phase | None = None
    rows = IndexRows(session.index)
    try:
        head = assembled(session.store, session.store.latest(case_id))
        _check_revision(head, revision, key)
        if with_case:
            yield case_report(session, head, key, revision)
        for phase in phases:
            if phase is Phase.CHANGE_REQUEST and _inconclusive(head, revision):
                break
            if revision < head.revision:
                yield phase_report(session, head, key, revision, phase)
                continue
            result = asyncio.run(
                session.run_phase(case_id, phase, retry_id=retry_id, attempt_id=attempt_id, indexed=False)
            )
            head = result.head
            rows.left_by(head)
            report = _outcome(session, key, revision, result)
            if report is not None:
                yield report
            if report is None or not report.published:
                break
    except VianoError as error:
        yield _failure(key, phase, error)
    try:
        rows.write()
    except VianoError as error:
        yield _failure(key, phase, error)


class IndexRows:
    """The head whose rows the evidence index does not have yet.

    Args:
        write: replaces the rows of a head's revision.
        clock: monotonic seconds.
    """

    def __init__(self, write: Callable[[Head], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._head: Head | None = None
        self._written = clock()

    def left_by(self, head: Head) -> None:
        """Take the head that a phase left; its rows are written at once when the last ones are old."""
        self._head = head
        if self._clock() - self._written > INDEX_AFTER_S:
            self.write()

    def write(self) -> None:
        """Write what is missing."""
        if self._head is not None:
            self._write(self._head)
            self._head, self._written = None, self._clock()


def _check_revision(head: Head, revision: int, key: str) -> None:
    if revision > head.revision:
        raise InputError(
            "unknown_revision",
            f"the case has no revision {revision}",
            where=key,
            hint=f"the newest is r{head.revision}; viano sync drops keys without a revision",
        )


def _inconclusive(head: Head, revision: int) -> bool:
    """Tell whether the revision's diagnosis is published and leaves the decision to a person."""
    return artifact_path(Phase.DIAGNOSIS, revision, FAILURE) in head.files


def _outcome(session: Session, key: str, revision: int, result: PhaseResult) -> PhaseReport | None:
    if result.status is DispatchStatus.COMPLETED:
        if result.code == "not_applicable":
            return None
        return phase_report(session, result.head, key, revision, result.phase)
    return PhaseReport(
        key,
        result.phase,
        published=False,
        failed=result.status not in WAITING,
        code=result.code or result.status.value.lower(),
        message=f"{result.status.value}: {result.message}",
        hint=result.hint,
        not_before=result.not_before,
    )
