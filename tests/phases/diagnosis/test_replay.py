"""Packages of a release replay: verified whole, without a model call, with the bytes they had."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.canonical import sha256_hex
from viano_assets.case.outbox import pending_entries
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.change_request.builder import ChangeRequestBuilder
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.result import localisation_bytes, payload_bytes
from viano_assets.phases.diagnosis.view import case_view

FOLDERS = sorted((Path(__file__).parents[2] / "golden").glob("diagnosis-v*"))
EXPECTED = {folder.name: json.loads((folder / "expected.json").read_text()) for folder in FOLDERS}
CASES = [(folder, case_id) for folder in FOLDERS for case_id in sorted(EXPECTED[folder.name])]


def opened(home: Path, folder: Path, *case_ids: str) -> CheckpointStore:
    store = CheckpointStore(home)
    for case_id in case_ids:
        store.import_package(folder / f"{case_id}.zip")
    return store


@pytest.mark.parametrize(("folder", "case_id"), CASES, ids=[f"{f.name}/{case}" for f, case in CASES])
def test_golden_package_replays(tmp_path: Path, folder: Path, case_id: str) -> None:
    store, expected = opened(tmp_path, folder, case_id), EXPECTED[folder.name][case_id]
    gateway = ScriptedGateway([])
    before = store.latest(case_id)
    result = asyncio.run(DiagnosisBuilder(store, gateway).build(case_id))
    assert result.replayed
    assert gateway.asked == 0
    assert result.head.generation == before.generation
    document = json.loads(store.read(before, "analysis/diagnosis/0001/diagnosis_result.json"))
    assert sha256_hex(payload_bytes(document)) == expected["diagnosis"]
    assert sha256_hex(localisation_bytes(document)) == expected["localisation"]
    assert case_view(store, before, 1)["state"] == expected["lifecycle"]


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_golden_output_replays_and_is_announced_once(tmp_path: Path, folder: Path) -> None:
    ready = ["CONFIRMED", "GERMAN-CONFIRMED"]
    store = opened(tmp_path, folder, *ready, "INCONCLUSIVE")
    for case_id in ready:
        assert asyncio.run(ChangeRequestBuilder(store).build(case_id)).replayed
    assert [entry["case_id"] for entry in pending_entries(store)] == ready
