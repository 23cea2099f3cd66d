"""One partition through its selected phases, without Dagster: what to report, what failed, what is due."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from resources.session import Session
from viano_assets.assets.reports import MAIN, case_report, phase_report
from viano_assets.assets.run_types import PhaseReport
from viano_assets.errors import InputError, VianoError
from viano_assets.package.model import Head
from viano_assets.partitions import parse_key
from viano_assets.phases.common import artifact_path, read_json
from viano_assets.phases.drive import assembled
from viano_assets.phases.protocols import DispatchStatus, Phase, PhaseResult

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
    """Run the selected phases of `key` in order and report each; the first that cannot go on ends it."""
    case_id, revision = parse_key(key)
    phase: Phase | None = None
    try:
        head = assembled(session.store, session.store.latest(case_id))
        _check_revision(head, revision, key)
        if with_case:
            yield case_report(session, head, key, revision)
        for phase in phases:
            if phase is Phase.CHANGE_REQUEST and _inconclusive(
                session, session.store.latest(case_id), revision
            ):
                return
            if revision < head.revision:
                yield phase_report(session, head, key, revision, phase)
                continue
            result = asyncio.run(session.run_phase(case_id, phase, retry_id=retry_id, attempt_id=attempt_id))
            report = _outcome(session, key, revision, result)
            if report is not None:
                yield report
            if report is None or not report.published:
                return
    except VianoError as error:
        yield _failure(key, phase, error)


def _check_revision(head: Head, revision: int, key: str) -> None:
    if revision > head.revision:
        raise InputError(
            "unknown_revision",
            f"the case has no revision {revision}",
            where=key,
            hint=f"the newest is r{head.revision}; viano sync drops keys without a revision",
        )


def _inconclusive(session: Session, head: Head, revision: int) -> bool:
    """Tell whether the revision's diagnosis is published and leaves the decision to a person."""
    path = artifact_path(Phase.DIAGNOSIS, revision, MAIN[Phase.DIAGNOSIS][0])
    if path not in head.files:
        return False
    return bool(read_json(session.store, head, path)["diagnosis"]["status"] != "confirmed")


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
