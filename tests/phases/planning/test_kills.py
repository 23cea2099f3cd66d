"""Kill the process at every generation of the reading phases, before and after it is written."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.reading import hypotheses_answer, interpretation_answer, new_case, plan_answer, review
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.common import invalid_attempts
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig, PlanningMode
from viano_assets.phases.protocols import DispatchStatus, ModelRequest, Phase

EVENTS = {"separate": 6, "joint": 8}
"""Generations of each flow after the case was assembled."""


class KillingStore(CheckpointStore):
    """Ends the process at a chosen commit, as `kill -9` does."""

    def __init__(self, home: Path, at: int, *, before: bool) -> None:
        super().__init__(home)
        self._left = at
        self._before = before

    def commit(self, head: Head, change: Change) -> Head:
        self._left -= 1
        if self._left == 0 and self._before:
            os.kill(os.getpid(), signal.SIGKILL)
        head = super().commit(head, change)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return head


def model(request: ModelRequest) -> dict[str, Any]:
    """A model whose plan needs one repair, after which the second candidate is unclear."""
    if request.contract == "interpretation-output-v1":
        return interpretation_answer()
    if request.contract == "hypotheses-output-v1":
        return hypotheses_answer()
    if request.contract == "case_plan_v2":
        answer = plan_answer()
        answer["interpretation"]["technical_facts"][0]["source_ids"] = ["S1"]
        return answer
    value = {"text": "OrderWriter reports no stage 3.", "source_ids": ["S4"]}
    return {
        "patches": [{"path": "/technical_facts/0", "value": value}],
        "reviews": [review(1), review(2, "uncertain"), review(3)],
    }


async def drive(store: CheckpointStore, mode: PlanningMode) -> Head:
    gateway = ScriptedGateway(model)
    reader = CaseInterpreter(store, gateway, InterpretationConfig(planning=PlanningConfig(mode=mode)))
    proposer = HypothesisBuilder(store, gateway)
    for builder, phase in ((reader, Phase.INTERPRETATION), (proposer, Phase.HYPOTHESES)):
        status = DispatchStatus.ERROR
        while status is DispatchStatus.ERROR:
            number = invalid_attempts(store.latest("BUG-1"), phase) + 1
            status = (await builder.build("BUG-1", attempt_id=f"attempt-{number}")).status
        assert status is DispatchStatus.COMPLETED
    return store.latest("BUG-1")


def prepare(home: Path) -> None:
    new_case(CheckpointStore(home))  # type: ignore[arg-type]


def killed(run: Callable[[], object]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def run_doomed(opened: Callable[[], CheckpointStore], mode: PlanningMode) -> None:
    asyncio.run(drive(opened(), mode))


def content(store: CheckpointStore, head: Head) -> dict[str, bytes]:
    return {path: store.read(head, path) for path in sorted(head.files)}


@pytest.mark.parametrize("mode", ["separate", "joint"])
def test_a_kill_at_any_generation_costs_nothing_and_changes_no_byte(
    tmp_path: Path, mode: PlanningMode
) -> None:
    """The recorded calls are among the bytes: none is missing and none was made twice."""
    prepare(tmp_path / "base")
    events = EVENTS[mode]
    expected = None
    for at in range(events + 1):
        for before in (True, False):
            home = tmp_path / f"{at}-{before}"
            shutil.copytree(tmp_path / "base", home)
            if at:
                doomed = partial(KillingStore, home, at, before=before)
                assert killed(partial(run_doomed, doomed, mode))
            store = CheckpointStore(home)
            head = asyncio.run(drive(store, mode))
            assert head.generation == 2 + events
            if expected is None:
                expected = content(store, head)
            assert content(store, head) == expected
