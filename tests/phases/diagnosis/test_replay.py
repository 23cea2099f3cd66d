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

GOLDEN = Path(__file__).parents[2] / "golden" / "diagnosis-v1"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path)
    for case_id in EXPECTED:
        store.import_package(GOLDEN / f"{case_id}.zip")
    return store


@pytest.mark.parametrize("case_id", sorted(EXPECTED))
def test_golden_package_replays(store: CheckpointStore, case_id: str) -> None:
    gateway = ScriptedGateway([])
    before = store.latest(case_id)
    result = asyncio.run(DiagnosisBuilder(store, gateway).build(case_id))
    assert result.replayed
    assert gateway.asked == 0
    assert result.head.generation == before.generation
    document = json.loads(store.read(before, "analysis/diagnosis/0001/diagnosis_result.json"))
    assert sha256_hex(payload_bytes(document)) == EXPECTED[case_id]["diagnosis"]
    assert sha256_hex(localisation_bytes(document)) == EXPECTED[case_id]["localisation"]
    assert case_view(store, before, 1)["state"] == EXPECTED[case_id]["lifecycle"]


def test_golden_output_replays_and_is_announced_once(store: CheckpointStore) -> None:
    assert asyncio.run(ChangeRequestBuilder(store).build("CONFIRMED")).replayed
    assert [entry["case_id"] for entry in pending_entries(store)] == ["CONFIRMED"]
