"""Writes the golden packages of the verdict: confirmed with its output, inconclusive, and never valid.

Run once per released form: `python -m tests.golden.make_diagnosis tests/golden/diagnosis-vN`. A later
release must replay the stored packages without a model call; new bytes are a new folder, never a new content.
The report of the `GERMAN-…` cases is taken to be German.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.diagnosis_answers import confirmed, inconclusive, inputs_of
from tests.support.harbour_case import World, investigated
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.canonical import sha256_hex
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.change_request.builder import ChangeRequestBuilder
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.result import localisation_bytes, payload_bytes
from viano_assets.phases.protocols import DispatchStatus


async def _diagnose(store: CheckpointStore, case_id: str, answers: Sequence[Any]) -> dict[str, str]:
    builder = DiagnosisBuilder(store, ScriptedGateway(answers))
    result = await builder.build(case_id)
    while result.status is DispatchStatus.REJECTED:
        result = await builder.build(case_id)
    if result.head.manifest.lifecycle == "BUILDING_DIAGNOSIS":
        await ChangeRequestBuilder(store).build(case_id)
    head = store.latest(case_id)
    document = json.loads(store.read(head, "analysis/diagnosis/0001/diagnosis_result.json"))
    return {
        "diagnosis": sha256_hex(payload_bytes(document)),
        "localisation": sha256_hex(localisation_bytes(document)),
        "lifecycle": head.manifest.lifecycle,
    }


async def _make(home: Path) -> dict[str, dict[str, str]]:
    store = CheckpointStore(home)
    expected = {}
    kinds = ("CONFIRMED", "INCONCLUSIVE", "NEVER-VALID")
    for case_id in (*kinds, *(f"GERMAN-{kind}" for kind in kinds)):
        language = "de" if case_id.startswith("GERMAN") else "en"
        head = await investigated(store, case_id, world=World(language=language))
        names = inputs_of(store, head)[1]
        broken = {"status": "confirmed"}
        script = {
            "CONFIRMED": [broken, confirmed(names)],
            "INCONCLUSIVE": [inconclusive(names)],
            "NEVER-VALID": [broken] * 3,
        }
        expected[case_id] = await _diagnose(store, case_id, script[case_id.removeprefix("GERMAN-")])
    return expected


def main(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        expected = asyncio.run(_make(Path(folder)))
        for case_id in expected:
            CheckpointStore(Path(folder)).export(case_id, target / f"{case_id}.zip")
    (target / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
