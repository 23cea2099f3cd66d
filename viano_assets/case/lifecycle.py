"""The states of a case and the steps between them (docs/contracts.md, section 11).

A state says which phase works on the case or has just ended; `BLOCKED` and `DEFERRED` are no states but
overlays (`viano_assets.package.model.Overlay`) that remember the phase they interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from viano_assets.errors import DefectError
from viano_assets.package.model import Checkpoint, Head, Manifest, Overlay

CLOCK_SLACK = timedelta(minutes=1)
"""How far the clock may stand before a recorded moment and still be taken as right."""


class Lifecycle(StrEnum):
    """Where a case stands; the values are stored in the manifest."""

    RECEIVED = "RECEIVED"
    ASSEMBLED = "ASSEMBLED"
    INTERPRETING = "INTERPRETING"
    GENERATING_HYPOTHESES = "GENERATING_HYPOTHESES"
    INVESTIGATING_HYPOTHESES = "INVESTIGATING_HYPOTHESES"
    BUILDING_DIAGNOSIS = "BUILDING_DIAGNOSIS"
    BUILDING_CHANGE_REQUEST = "BUILDING_CHANGE_REQUEST"
    OUTPUT_READY = "OUTPUT_READY"
    FAILED_TO_ANALYZE = "FAILED_TO_ANALYZE"


ROUTING_REVIEW = "review"
"""Routing of a case that a person has to look at."""

_NEXT: dict[Lifecycle, frozenset[Lifecycle]] = {
    Lifecycle.RECEIVED: frozenset({Lifecycle.ASSEMBLED}),
    Lifecycle.ASSEMBLED: frozenset({Lifecycle.INTERPRETING}),
    Lifecycle.INTERPRETING: frozenset({Lifecycle.GENERATING_HYPOTHESES}),
    Lifecycle.GENERATING_HYPOTHESES: frozenset({Lifecycle.INVESTIGATING_HYPOTHESES}),
    Lifecycle.INVESTIGATING_HYPOTHESES: frozenset({Lifecycle.BUILDING_DIAGNOSIS}),
    Lifecycle.BUILDING_DIAGNOSIS: frozenset({Lifecycle.BUILDING_CHANGE_REQUEST, Lifecycle.FAILED_TO_ANALYZE}),
    Lifecycle.BUILDING_CHANGE_REQUEST: frozenset({Lifecycle.OUTPUT_READY}),
    Lifecycle.OUTPUT_READY: frozenset(),
    Lifecycle.FAILED_TO_ANALYZE: frozenset(),
}
TRANSITIONS = MappingProxyType(_NEXT)
"""Every step within one analysis revision; a new revision starts again at `ASSEMBLED`."""

TERMINAL = frozenset({Lifecycle.OUTPUT_READY, Lifecycle.FAILED_TO_ANALYZE})
"""States after which only a new analysis revision moves the case."""

IN_PHASE = frozenset(Lifecycle) - TERMINAL - {Lifecycle.RECEIVED, Lifecycle.ASSEMBLED}
"""States in which a phase works or has just ended."""


def state_of(manifest: Manifest) -> Lifecycle:
    """Return the manifest's state.

    Raises:
        DefectError: `unknown_lifecycle` when the stored name is none of ours.
    """
    try:
        return Lifecycle(manifest.lifecycle)
    except ValueError as error:
        raise DefectError(
            "unknown_lifecycle", f"{manifest.lifecycle!r} is no lifecycle state", where=manifest.case_id
        ) from error


def can_move(current: Lifecycle, target: Lifecycle) -> bool:
    """True for a step of `TRANSITIONS` and for staying where the case is."""
    return target is current or target in TRANSITIONS[current]


def check_transition(current: Lifecycle, target: Lifecycle, *, where: str = "") -> Lifecycle:
    """Return `target` when the step is allowed.

    Raises:
        DefectError: `lifecycle_transition`; phases check their predecessor before they get here.
    """
    if not can_move(current, target):
        raise DefectError(
            "lifecycle_transition", f"{current.value} does not lead to {target.value}", where=where
        )
    return target


def reached(current: Lifecycle, target: Lifecycle) -> bool:
    """True when a case in state `current` has passed through or stands in `target`."""
    if current is target:
        return True
    frontier, seen = {target}, set[Lifecycle]()
    while frontier:
        step = frontier.pop()
        seen.add(step)
        if current in TRANSITIONS[step]:
            return True
        frontier |= TRANSITIONS[step] - seen
    return False


def blocked(phase: str, code: str, message: str) -> Overlay:
    """Return the overlay of a halt that a person lifts with `viano case resume`."""
    return Overlay(kind="blocked", phase=phase, code=code, message=message)


def deferred(phase: str, code: str, message: str, not_before: str) -> Overlay:
    """Return the overlay of a halt that ends by itself at `not_before` (UTC, ISO 8601 with Z)."""
    return Overlay(kind="deferred", phase=phase, code=code, message=message, not_before=not_before)


_DONE = MappingProxyType(
    {
        Lifecycle.INTERPRETING.value: ("interpretation_published", "INTERPRETED"),
        Lifecycle.GENERATING_HYPOTHESES.value: ("hypotheses_published", "HYPOTHESES_GENERATED"),
        Lifecycle.INVESTIGATING_HYPOTHESES.value: ("investigation_published", "INVESTIGATED"),
        Lifecycle.BUILDING_DIAGNOSIS.value: ("diagnosis_published", "DIAGNOSED"),
    }
)
"""States that a phase leaves as they are when it ends: the event that ends it, and the stage then."""


def stage_of(state: str, checkpoints: Iterable[Checkpoint], revision: int) -> str:
    """Return how far a revision is: its state, or that the phase of this state has published its result.

    A confirmed diagnosis stays `BUILDING_DIAGNOSIS` until its change request begins; its stage is
    `DIAGNOSED`.

    Args:
        state: name of the state.
        checkpoints: the history of the case.
        revision: the analysis revision that the state is of.
    """
    if state not in _DONE:
        return state
    event, stage = _DONE[state]
    return stage if any(c.event == event and c.revision == revision for c in checkpoints) else state


def is_due(head: Head, not_before: str, now: datetime) -> bool:
    """Say whether the time has come until which the newest generation of a case put it off.

    A clock that was put back behind the moment the wait was recorded says nothing about the wait: the
    case may go on, and the gateway, which bounds every wait, decides.
    """
    recorded = datetime.fromisoformat(head.checkpoints[-1].at)
    return datetime.fromisoformat(not_before) <= now or now < recorded - CLOCK_SLACK


def shown_state(manifest: Manifest) -> str:
    """Return what a person sees: the overlay's name when one lies over the state, else the state."""
    if manifest.overlay is None:
        return state_of(manifest).value
    name: Literal["BLOCKED", "DEFERRED"] = "BLOCKED" if manifest.overlay.kind == "blocked" else "DEFERRED"
    return name
