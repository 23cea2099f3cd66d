from __future__ import annotations

from tests.support.memory_store import MemoryStore
from tests.support.reading import fair_model, new_case
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.protocols import DispatchStatus


async def test_separate_mode_asks_once_per_phase() -> None:
    store = MemoryStore()
    new_case(store)
    gateway = ScriptedGateway(fair_model)
    read = await CaseInterpreter(store, gateway).build("BUG-1")
    assert read.status is DispatchStatus.COMPLETED, read
    proposed = await HypothesisBuilder(store, gateway).build("BUG-1")
    assert proposed.status is DispatchStatus.COMPLETED, proposed
    assert gateway.asked == 2
    print(store.read(proposed.head, "analysis/hypotheses/0001/hypotheses.md").decode())
    print(store.read(proposed.head, "analysis/interpretation/0001/interpretation.md").decode())
    assert (await HypothesisBuilder(store, gateway).build("BUG-1")).replayed
