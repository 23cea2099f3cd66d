from __future__ import annotations

from tests.support.memory_store import MemoryStore
from tests.support.reading import new_case, plan_answer
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig
from viano_assets.phases.protocols import DispatchStatus

JOINT = InterpretationConfig(planning=PlanningConfig(mode="joint"))


async def test_one_call_serves_both_phases() -> None:
    store = MemoryStore()
    new_case(store)
    gateway = ScriptedGateway([plan_answer()])
    read = await CaseInterpreter(store, gateway, JOINT).build("BUG-1")
    assert read.status is DispatchStatus.COMPLETED, read
    proposed = await HypothesisBuilder(store, gateway).build("BUG-1")
    assert proposed.status is DispatchStatus.COMPLETED, proposed
    assert gateway.asked == 1
    assert (await HypothesisBuilder(store, gateway).build("BUG-1")).replayed
