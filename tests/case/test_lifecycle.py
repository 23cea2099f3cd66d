from __future__ import annotations

import itertools

import pytest

from viano_assets.case.lifecycle import (
    IN_PHASE,
    TERMINAL,
    TRANSITIONS,
    Lifecycle,
    blocked,
    can_move,
    check_transition,
    deferred,
    reached,
    shown_state,
    state_of,
)
from viano_assets.errors import DefectError
from viano_assets.package.model import Manifest, Overlay

PATH = [
    "RECEIVED",
    "ASSEMBLED",
    "INTERPRETING",
    "GENERATING_HYPOTHESES",
    "INVESTIGATING_HYPOTHESES",
    "BUILDING_DIAGNOSIS",
    "BUILDING_CHANGE_REQUEST",
    "OUTPUT_READY",
]


def manifest(state: str, overlay: Overlay | None = None) -> Manifest:
    return Manifest("C", "p", 1, 1, state, {}, overlay)


def test_the_path_is_the_contracts() -> None:
    for first, second in itertools.pairwise(PATH):
        assert check_transition(Lifecycle(first), Lifecycle(second)) is Lifecycle(second)
    assert can_move(Lifecycle.BUILDING_DIAGNOSIS, Lifecycle.FAILED_TO_ANALYZE)
    assert {state for state in Lifecycle if not TRANSITIONS[state]} == TERMINAL
    assert IN_PHASE | TERMINAL | {Lifecycle.RECEIVED, Lifecycle.ASSEMBLED} == set(Lifecycle)


@pytest.mark.parametrize(
    ("current", "target"),
    [(a, b) for a in Lifecycle for b in Lifecycle if a is not b and b not in TRANSITIONS[a]],
)
def test_every_other_step_is_refused(current: Lifecycle, target: Lifecycle) -> None:
    with pytest.raises(DefectError) as caught:
        check_transition(current, target)
    assert caught.value.code == "lifecycle_transition"


def test_reached() -> None:
    assert reached(Lifecycle.OUTPUT_READY, Lifecycle.INTERPRETING)
    assert reached(Lifecycle.FAILED_TO_ANALYZE, Lifecycle.BUILDING_DIAGNOSIS)
    assert not reached(Lifecycle.FAILED_TO_ANALYZE, Lifecycle.BUILDING_CHANGE_REQUEST)
    assert not reached(Lifecycle.ASSEMBLED, Lifecycle.INTERPRETING)


def test_overlays_remember_what_they_interrupted() -> None:
    halted = manifest("INTERPRETING", blocked("interpretation", "no_observation", "nothing was observed"))
    assert shown_state(halted) == "BLOCKED"
    assert state_of(halted) is Lifecycle.INTERPRETING
    waiting = manifest("INTERPRETING", deferred("interpretation", "c", "m", "2024-01-01T00:10:00Z"))
    assert shown_state(waiting) == "DEFERRED"
    assert waiting.overlay is not None
    assert waiting.overlay.not_before == "2024-01-01T00:10:00Z"


def test_a_foreign_state_is_a_defect() -> None:
    with pytest.raises(DefectError):
        state_of(manifest("LOST"))
