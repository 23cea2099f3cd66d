"""Dies at every change of the disk from the first diagnosis commit to the acknowledged output."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.diagnosis_answers import Json, changed, confirmed, inconclusive, inputs_of
from tests.support.faulty_files import CHANGING, Crash, WatchedFileSystem
from tests.support.harbour_case import CASE, investigated
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.case.outbox import acknowledge, entries
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.change_request.builder import ChangeRequestBuilder
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.protocols import DispatchStatus, ModelRequest

FOLDER = "analysis/diagnosis/0001"
EVENTS = ("diagnosis_started", "diagnosis_published", "change_request_built", "change_request_published")
Script = Callable[[ModelRequest], Json]


class Dying(WatchedFileSystem):
    """Crashes before its n-th change of the disk; afterwards nothing reaches it."""

    def __init__(self, at: int) -> None:
        super().__init__(self._watch)
        self._left = at
        self.dead = False

    def _watch(self, operation: str, path: str) -> None:
        del path
        if self.dead:
            raise Crash
        if operation in CHANGING:
            self._left -= 1
            if self._left == 0:
                self.dead = True
                raise Crash


def _run(store: CheckpointStore, script: Script) -> None:
    builder = DiagnosisBuilder(store, ScriptedGateway(script))
    result = asyncio.run(builder.build(CASE))
    while result.status is DispatchStatus.REJECTED:
        result = asyncio.run(builder.build(CASE))
    if result.head.manifest.lifecycle != "FAILED_TO_ANALYZE":
        asyncio.run(ChangeRequestBuilder(store).build(CASE))
        acknowledge(store, CASE)


def _facts(store: CheckpointStore) -> dict[str, Any]:
    head = store.latest(CASE, audit_history=True)
    events = [checkpoint.event for checkpoint in head.checkpoints]
    artifacts = {p: e.sha256 for p, e in head.files.items() if not p.startswith("inputs/")}
    return {
        "doubled": [name for name in EVENTS if events.count(name) > 1],
        "entries": len(entries(store, CASE)),
        "failures": sum(path.endswith("failure_report.json") for path in head.files),
        "lifecycle": head.manifest.lifecycle,
        "artifacts": artifacts,
    }


def _scripts(names: dict[str, str]) -> dict[str, Script]:
    wrong = changed(confirmed(names), "root_cause.evidence_ids", ["E99"])

    def corrected(request: ModelRequest) -> Json:
        return confirmed(names) if request.sections("validation_issues") else wrong

    return {
        "corrected": corrected,
        "inconclusive": lambda _: inconclusive(names),
        "never valid": lambda _: wrong,
    }


def crashes() -> dict[str, int]:
    """Return the number of crash points and of cases that published something twice or otherwise."""
    points = doubles = 0
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        store = CheckpointStore(base)
        names = inputs_of(store, asyncio.run(investigated(store)))[1]
        for kind, script in _scripts(names).items():
            whole = Path(folder) / "whole"
            shutil.copytree(base, whole)
            _run(CheckpointStore(whole), script)
            expected = _facts(CheckpointStore(whole))
            shutil.rmtree(whole)
            for at in range(1, 10_000):
                home = Path(folder) / "case"
                shutil.copytree(base, home)
                disk = Dying(at)
                try:
                    _run(CheckpointStore(home, filesystem=disk), script)
                except Crash:
                    points += 1
                disk.die()
                _run(CheckpointStore(home), script)
                found = _facts(CheckpointStore(home))
                shutil.rmtree(home)
                if found != expected or found["doubled"]:
                    doubles += 1
                    sys.stderr.write(f"{kind}, crash {at}: {found['doubled']} {found['lifecycle']}\n")
                if not disk.dead:
                    break
    return {"crash_points": points, "double_publications": doubles}
