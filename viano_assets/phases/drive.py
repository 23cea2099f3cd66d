"""The one loop behind the asset, the command line and the tests: dispatch until nothing more can move.

A builder does one dispatch. `drive` repeats it for one phase, corrects invalid answers with derived,
numbered attempt ids and stops at any result that another dispatch cannot move (docs/contracts.md,
section 11). `run_case` drives the phases in order and never runs one whose predecessor did not complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from viano_assets.case.assembler import CaseAssembler
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.errors import DefectError
from viano_assets.package.model import Head
from viano_assets.phases.common import invalid_attempts
from viano_assets.phases.protocols import DispatchStatus, Phase, PhaseResult, Progress, ProgressSink, Store

MAX_DISPATCHES = 500
"""Safety bound of one drive; every phase ends by its own limits long before."""

INVALID = frozenset({DispatchStatus.REJECTED, DispatchStatus.ERROR})


class PhaseBuilder(Protocol):
    """One dispatch of one phase."""

    async def build(
        self,
        case_id: str,
        package_id: str | None = None,
        *,
        attempt_id: str | None = None,
        retry_id: str | None = None,
    ) -> PhaseResult:
        """Carry out at most one provider round and publish what it allows."""
        ...


def _attempt_id(given: str | None, invalid: int, invalid_at_start: int) -> str | None:
    if given is not None and invalid == invalid_at_start:
        return given
    prefix = given or "attempt"
    return f"{prefix}-{invalid + 1}"


async def drive(
    store: Store,
    builder: PhaseBuilder,
    phase: Phase,
    case_id: str,
    *,
    attempt_id: str | None = None,
    retry_id: str | None = None,
    progress: ProgressSink | None = None,
) -> PhaseResult:
    """Dispatch `phase` of `case_id` until a result that another dispatch cannot move.

    Args:
        store: the case store.
        builder: the phase's builder.
        phase: the phase it builds.
        case_id: the case.
        attempt_id: explicit id of the first attempt; corrections number it further.
        retry_id: passed to the model operation (seed 000: reopens transport, resets nothing).
        progress: receives one line per dispatch.

    Raises:
        BusyError: another process works on the case.
    """
    with store.lock(case_id):
        head = assembled(store, store.latest(case_id))
        at_start = invalid_attempts(head, phase)
        for number in range(1, MAX_DISPATCHES + 1):
            # A model that answers at once never suspends: only here can the loop deliver an interrupt.
            await asyncio.sleep(0)
            before = invalid_attempts(head, phase)
            attempt = _attempt_id(attempt_id, before, at_start)
            result = await builder.build(case_id, attempt_id=attempt, retry_id=retry_id)
            head = result.head
            _tell(progress, result, case_id, number)
            corrected = result.status in INVALID and invalid_attempts(head, phase) > before
            if result.status is not DispatchStatus.PROGRESSED and not corrected:
                return result
    raise DefectError(
        "dispatches_exhausted",
        f"{phase.value} did not end within {MAX_DISPATCHES} dispatches",
        where=case_id,
        hint="report this; the case lost nothing and can be run again",
    )


def assembled(store: Store, head: Head) -> Head:
    """Complete an import that died between its two generations; any other head is returned unchanged."""
    if head.manifest.lifecycle != Lifecycle.RECEIVED.value:
        return head
    return CaseAssembler(store).assemble(head)


def _tell(progress: ProgressSink | None, result: PhaseResult, case_id: str, number: int) -> None:
    if progress is None:
        return
    text = result.message or result.status.value.lower().replace("_", " ")
    progress(Progress(case_id, result.phase.value, text, {"dispatch": number, "status": result.status.value}))


PHASE_ORDER: Sequence[Phase] = (
    Phase.INTERPRETATION,
    Phase.HYPOTHESES,
    Phase.INVESTIGATION,
    Phase.DIAGNOSIS,
    Phase.CHANGE_REQUEST,
)
"""The order in which a case passes the phases."""


async def run_case(
    store: Store,
    builders: Mapping[Phase, PhaseBuilder],
    case_id: str,
    *,
    until: Phase = Phase.CHANGE_REQUEST,
    attempt_id: str | None = None,
    retry_id: str | None = None,
    progress: ProgressSink | None = None,
    on_phase: Callable[[Head, PhaseResult], None] | None = None,
) -> PhaseResult:
    """Drive the phases of the current revision in order up to `until`.

    `on_phase` is called after each phase with the head it left behind (for the evidence index and the
    asset's metadata). A finished phase is replayed and verified without a model call. The run ends at
    the first result other than COMPLETED, and after an inconclusive diagnosis.
    """
    result: PhaseResult | None = None
    for phase in PHASE_ORDER:
        if phase not in builders:
            continue
        result = await drive(
            store,
            builders[phase],
            phase,
            case_id,
            attempt_id=attempt_id,
            retry_id=retry_id,
            progress=progress,
        )
        if on_phase is not None:
            on_phase(result.head, result)
        if phase is until or result.status is not DispatchStatus.COMPLETED:
            break
        if phase is Phase.DIAGNOSIS and result.head.manifest.lifecycle == "FAILED_TO_ANALYZE":
            break
    if result is None:
        raise ValueError("no builders were given")
    return result
