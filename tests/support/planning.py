"""Steps of joint planning over the small case: read, repair, propose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.memory_store import MemoryStore
from tests.support.reading import (
    LINES,
    new_case,
    plan_answer,
    review,
)
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig
from viano_assets.phases.protocols import DispatchStatus, PhaseResult

DONE = DispatchStatus.COMPLETED
ERROR = DispatchStatus.ERROR
JOINT = InterpretationConfig(planning=PlanningConfig(mode="joint"))
SEPARATE = InterpretationConfig(planning=PlanningConfig(mode="separate"))
READ = "analysis/interpretation/0001"
PROPOSED = "analysis/hypotheses/0001"


def case(lines: Any = LINES) -> MemoryStore:
    store = MemoryStore()
    new_case(store, lines)
    return store


async def read(store: Any, gateway: ScriptedGateway, attempt: int = 1, **options: Any) -> PhaseResult:
    builder = CaseInterpreter(store, gateway, options.pop("config", JOINT))
    return await builder.build("BUG-1", attempt_id=f"attempt-{attempt}", **options)


async def propose(store: Any, gateway: ScriptedGateway, attempt: int = 1) -> PhaseResult:
    return await HypothesisBuilder(store, gateway).build("BUG-1", attempt_id=f"attempt-{attempt}")


def plan(change: Callable[[dict[str, Any]], None] | None = None, count: int = 3) -> dict[str, Any]:
    answer = plan_answer(count)
    if change is not None:
        change(answer)
    return answer


def wrong_fact(answer: dict[str, Any]) -> None:
    answer["interpretation"]["technical_facts"][0]["source_ids"] = ["S1"]


GOOD_FACT = {"text": "OrderWriter reports no stage 3.", "source_ids": ["S4"]}


def repair(*reviews: Any, value: Any = GOOD_FACT, path: str = "/technical_facts/0") -> dict[str, Any]:
    return {"patches": [{"path": path, "value": value}], "reviews": list(reviews)}


ALL_RETAINED = (review(1), review(2), review(3))


async def adopted(
    reviews: Any, value: Any = GOOD_FACT, change: Any = wrong_fact, path: str = "/technical_facts/0"
) -> tuple[MemoryStore, ScriptedGateway]:
    store = case()
    answer: dict[str, Any] = {"patches": [{"path": path, "value": value}], "reviews": reviews}
    gateway = ScriptedGateway([plan(change), answer])
    await read(store, gateway)
    result = await read(store, gateway, 2)
    assert result.status is DONE
    return store, gateway


async def repaired(store: Any) -> Any:
    gateway = ScriptedGateway([plan(wrong_fact), repair(*ALL_RETAINED)])
    await read(store, gateway)
    await read(store, gateway, 2)
    return (await propose(store, gateway)).head
