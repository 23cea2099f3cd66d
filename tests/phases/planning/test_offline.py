"""The default provider plans jointly and repairs what another provider left disputed."""

from __future__ import annotations

from typing import Any

import pytest

from resources.llm.providers.offline.analyst import answer as offline
from tests.support.memory_store import MemoryStore
from tests.support.planning import SEPARATE
from tests.support.reading import LINES, new_case, plan_answer, review
from tests.support.scripted_gateway import Halted, ScriptedGateway
from viano_assets.case.model import SourceType
from viano_assets.phases.common import read_json
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig, PlanningMode
from viano_assets.phases.protocols import DispatchStatus, ModelRequest

DONE = DispatchStatus.COMPLETED


async def run(store: MemoryStore, gateway: ScriptedGateway, mode: PlanningMode, attempts: int = 1) -> None:
    builder = CaseInterpreter(store, gateway, InterpretationConfig(planning=PlanningConfig(mode=mode)))
    read = [await builder.build("BUG-1", attempt_id=f"attempt-{n + 1}") for n in range(attempts)]
    assert read[-1].status is DONE, read[-1]
    done = await HypothesisBuilder(store, gateway).build("BUG-1")
    assert done.status is DONE, done


@pytest.mark.parametrize("mode", ["separate", "joint"])
@pytest.mark.parametrize("only", [None, *SourceType], ids=lambda kind: kind.value if kind else "all")
async def test_the_analyst_satisfies_both_modes_for_any_mixture(
    mode: PlanningMode, only: SourceType | None
) -> None:
    lines = [line for line in LINES if only is None or line[1] in {only, SourceType.OBSERVATION}]
    store = MemoryStore()
    new_case(store, lines)
    gateway = ScriptedGateway(offline)
    await run(store, gateway, mode)
    assert gateway.asked == (1 if mode == "joint" else 2)


async def test_both_modes_propose_the_same_causes() -> None:
    documents = []
    for mode in ("separate", "joint"):
        store = MemoryStore()
        new_case(store)
        await run(store, ScriptedGateway(offline), mode)
        document = read_json(store, store.latest("BUG-1"), "analysis/hypotheses/0001/hypotheses.json")
        documents.append(document["hypotheses"])
    assert documents[0] == documents[1]


async def test_a_new_revision_plans_jointly_unless_it_started_otherwise() -> None:
    store, gateway = MemoryStore(), ScriptedGateway(offline)
    new_case(store)
    assert (await CaseInterpreter(store, gateway).build("BUG-1")).status is DONE
    assert (await HypothesisBuilder(store, gateway).build("BUG-1")).status is DONE
    assert [request.contract for request in gateway.requests] == ["case_plan_v2"]
    older = MemoryStore()
    new_case(older)
    stopped = CaseInterpreter(older, ScriptedGateway([Halted("retry_pending")]), SEPARATE)
    assert (await stopped.build("BUG-1")).status is not DONE
    gateway = ScriptedGateway(offline)
    assert (await CaseInterpreter(older, gateway, InterpretationConfig()).build("BUG-1")).status is DONE
    assert (await HypothesisBuilder(older, gateway).build("BUG-1")).status is DONE
    assert len(gateway.requests) == 2


DISPUTES: dict[str, Any] = {
    "technical_facts": [{"text": "OrderWriter reports no stage 3 for order 4711", "source_ids": ["S1"]}],
    "observed_behavior": [
        {"text": "order_items stays empty after accepting the order", "source_ids": ["S4"]},
        {"text": "It happens for every order.", "source_ids": ["S9"]},
    ],
    "summary": "",
    "entities": [{"kind": "x", "value": "nowhere", "label": "x", "source_ids": ["S1"]}],
    "failure_stage": {"text": "writing", "source_ids": ["S4"]},
    "tester_assumptions": "none",
    "lookups": [{"question": "q", "entity": "4711", "certainty": "certain"}],
}


@pytest.mark.parametrize("field", sorted(DISPUTES))
async def test_the_analyst_repairs_what_another_provider_left_disputed(field: str) -> None:
    broken = plan_answer()
    broken["interpretation"][field] = DISPUTES[field]

    def model(request: ModelRequest) -> dict[str, Any]:
        return broken if request.contract == "case_plan_v2" else offline(request)

    store = MemoryStore()
    new_case(store)
    gateway = ScriptedGateway(model)
    await run(store, gateway, "joint", attempts=2)
    assert gateway.requests[1].contract == "case_plan_statement_repair_v2"


@pytest.mark.parametrize("unclear", [(1,), (2,), (1, 3), (2, 3)], ids=str)
async def test_the_analyst_fills_positions_around_what_is_retained(unclear: tuple[int, ...]) -> None:
    broken = plan_answer()
    broken["interpretation"]["technical_facts"][0]["source_ids"] = ["S1"]
    reviews = [review(n, "uncertain" if n in unclear else "retain") for n in (1, 2, 3)]
    value = {"text": "OrderWriter reports no stage 3.", "source_ids": ["S4"]}
    repair = {"patches": [{"path": "/technical_facts/0", "value": value}], "reviews": reviews}

    def model(request: ModelRequest) -> dict[str, Any]:
        if request.contract == "case_plan_v2":
            return broken
        return repair if "repair" in request.contract else offline(request)

    store = MemoryStore()
    new_case(store)
    gateway = ScriptedGateway(model)
    await run(store, gateway, "joint", attempts=2)
    assert gateway.requests[2].sections("joint_retained")[0]["positions"] == 3
