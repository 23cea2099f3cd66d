"""Contexts frozen with `case_plan_v1` resume and replay; new revisions never use them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.reading import plan_answer
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.common import read_json
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig
from viano_assets.phases.protocols import DispatchStatus

GOLDEN = Path(__file__).parents[2] / "golden" / "planning-v1"
CASE = "OLD-1"
DONE = DispatchStatus.COMPLETED
STARTED, ANSWERED, READ, ADOPTING, FINISHED = 3, 4, 5, 6, 7


def at(home: Path, generation: int) -> CheckpointStore:
    """Open the golden package as it was after `generation`."""
    shutil.copytree(GOLDEN, home, dirs_exist_ok=True)
    for container in sorted((home / "cases" / CASE / "gens").iterdir())[generation:]:
        container.unlink()
    return CheckpointStore(home)


async def finish(store: CheckpointStore, gateway: ScriptedGateway) -> bytes:
    read = await CaseInterpreter(store, gateway).build(CASE)
    assert read.status is DONE
    done = await HypothesisBuilder(store, gateway).build(CASE)
    assert done.status is DONE
    return store.read(done.head, "analysis/hypotheses/0001/hypotheses.json")


async def test_a_finished_v1_package_replays(tmp_path: Path) -> None:
    store = at(tmp_path, FINISHED)
    head = store.latest(CASE)
    assert head.generation == FINISHED
    context = read_json(store, head, "analysis/interpretation/0001/context.json")
    assert context["joint_generation"]["version"] == 1
    assert (await CaseInterpreter(store, ScriptedGateway([])).build(CASE)).replayed
    assert (await HypothesisBuilder(store, ScriptedGateway([])).build(CASE)).replayed


@pytest.mark.parametrize("generation", [ANSWERED, READ, ADOPTING])
async def test_an_interrupted_v1_package_resumes_without_a_call_to_equal_bytes(
    tmp_path: Path, generation: int
) -> None:
    expected = await finish(at(tmp_path / "whole", FINISHED), ScriptedGateway([]))
    assert await finish(at(tmp_path / "cut", generation), ScriptedGateway([])) == expected


async def test_a_frozen_v1_request_is_sent_unchanged(tmp_path: Path) -> None:
    store = at(tmp_path, STARTED)
    context = read_json(store, store.latest(CASE), "analysis/interpretation/0001/context.json")
    gateway = ScriptedGateway([plan_answer(version=1)])
    await finish(store, gateway)
    assert gateway.requests[0].model_dump(mode="json") == context["request"]
    assert gateway.requests[0].contract == "case_plan_v1"


async def test_v1_knows_no_statement_repair(tmp_path: Path) -> None:
    bad = plan_answer(version=1)
    bad["interpretation"]["technical_facts"][0]["source_ids"] = ["S1"]
    store = at(tmp_path, STARTED)
    gateway = ScriptedGateway([bad, plan_answer(version=1)])
    assert (await CaseInterpreter(store, gateway).build(CASE)).status is DispatchStatus.ERROR
    assert (await CaseInterpreter(store, gateway).build(CASE, attempt_id="attempt-2")).status is DONE
    assert [request.contract for request in gateway.requests] == ["case_plan_v1"] * 2
    assert (await CaseInterpreter(store, ScriptedGateway([])).build(CASE)).replayed


async def test_v1_candidates_have_no_premises(tmp_path: Path) -> None:
    """A v2 candidate in a v1 answer has an unknown field: it is not adopted, the reading is."""
    store = at(tmp_path, STARTED)
    gateway = ScriptedGateway([plan_answer(version=2)])
    assert (await CaseInterpreter(store, gateway).build(CASE)).status is DONE
    plan_only = ScriptedGateway(lambda request: {"contract": request.contract})
    await HypothesisBuilder(store, plan_only).build(CASE)
    assert plan_only.requests[0].contract == "hypotheses-output-v1"


async def test_a_v1_revision_ignores_the_bounds_of_v2(tmp_path: Path) -> None:
    store = at(tmp_path, STARTED)
    config = InterpretationConfig(planning=PlanningConfig(mode="joint", max_repairs=1))
    gateway = ScriptedGateway([plan_answer(version=1)])
    assert (await CaseInterpreter(store, gateway, config).build(CASE)).status is DONE
