"""A package started under `investigation_project_v11` resumes and replays; nothing new starts under it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.golden.make_investigation_v11 import CASE, old_answer
from tests.support.investigating import builder_for
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_case import SmallToolFactory, prepared
from tests.support.turn_answers import action, answer, turn_of
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.drive import drive
from viano_assets.phases.investigation.config import V11
from viano_assets.phases.investigation.record import InvestigationRecord, load_loop
from viano_assets.phases.protocols import DispatchStatus, ModelRequest, Phase

GOLDEN = Path(__file__).parents[2] / "golden" / "investigation-v11"
CONTAINERS = sorted((GOLDEN / "cases" / CASE / "gens").iterdir())
RESULTS = ("investigation.json", "investigation.md", "evidence.json")


def at(home: Path, generation: int) -> CheckpointStore:
    """Open the golden package as it was after `generation`."""
    shutil.copytree(GOLDEN, home, dirs_exist_ok=True)
    for container in sorted((home / "cases" / CASE / "gens").iterdir())[generation:]:
        container.unlink()
    return CheckpointStore(home)


def results(store: CheckpointStore) -> list[bytes]:
    head = store.latest(CASE)
    return [store.read(head, f"analysis/investigation/0001/{name}") for name in RESULTS]


def test_a_finished_package_replays_and_asks_nothing(tmp_path: Path) -> None:
    store = at(tmp_path, len(CONTAINERS))
    builder = builder_for(store, ScriptedGateway([]))
    result = asyncio.run(builder.build(CASE))
    assert result.replayed
    record = InvestigationRecord.load(store, result.head)
    assert record.document.contract == V11
    first = record.document.hypotheses[0]
    assert first.effective_confidence is first.requested_confidence
    assert first.effective_confidence.value == "strongly_supported"
    assert first.last_review is not None
    assert first.last_review.effect is None
    assert record.document.reason == "confident"


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 7, 12, 16])
def test_an_interrupted_package_resumes_under_its_own_contract_to_equal_bytes(
    tmp_path: Path, cut: int
) -> None:
    expected = results(at(tmp_path / "whole", len(CONTAINERS)))
    store = at(tmp_path / "cut", len(CONTAINERS) - cut)
    builder = builder_for(store, ScriptedGateway(old_answer), None, SmallToolFactory())
    result = asyncio.run(drive(store, builder, Phase.INVESTIGATION, CASE))
    assert result.status is DispatchStatus.COMPLETED
    assert results(store) == expected


def test_an_answer_of_the_new_contract_is_refused_there(tmp_path: Path) -> None:
    store = at(tmp_path, len(CONTAINERS) - 4)

    def script(request: ModelRequest) -> dict[str, object]:
        return answer(turn_of(request), actions=[action("source.search", pattern="x")])

    result = asyncio.run(builder_for(store, ScriptedGateway(script)).build(CASE))
    assert result.status is DispatchStatus.ERROR
    assert "schema" in result.message


def test_a_new_revision_never_starts_under_it() -> None:
    store = MemoryStore()
    prepared(store)

    def script(request: ModelRequest) -> dict[str, object]:
        return answer(turn_of(request), actions=[action("source.search", pattern="x")])

    result = asyncio.run(builder_for(store, ScriptedGateway(script)).build("CASE-1"))
    loop = load_loop(store, result.head)
    assert loop is not None
    assert loop.policy.contract == "investigation_project_v12"
    assert "causal_review" in str(loop.start.json_schema)
