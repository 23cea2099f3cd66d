"""Drives an investigation of the small case in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_case import Creating, SmallToolFactory, prepared
from viano_assets.phases.drive import drive
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.investigation.record import InvestigationRecord
from viano_assets.phases.protocols import (
    DispatchStatus,
    ModelGateway,
    ModelRequest,
    Phase,
    PhaseResult,
    Store,
    ToolFactory,
)

Script = Callable[[ModelRequest], Mapping[str, Any]]


def builder_for(
    store: Store,
    gateway: ModelGateway,
    config: InvestigationConfig | None = None,
    tools: ToolFactory | None = None,
) -> InvestigationBuilder:
    """Return a builder over the small tools."""
    return InvestigationBuilder(store, gateway, config, tools or SmallToolFactory())


def one_dispatch(
    store: Store,
    gateway: ModelGateway,
    config: InvestigationConfig | None = None,
    tools: ToolFactory | None = None,
    attempt_id: str | None = None,
) -> PhaseResult:
    """Carry out one dispatch."""
    builder = builder_for(store, gateway, config, tools)
    return asyncio.run(builder.build("CASE-1", attempt_id=attempt_id))


def whole_loop(
    script: Script | Sequence[Any],
    config: InvestigationConfig | None = None,
    tools: ToolFactory | None = None,
    store: Creating | None = None,
    **case: Any,
) -> InvestigationRecord:
    """Prepare a case, drive its investigation to the end and return the record."""
    used = store or MemoryStore()
    prepared(used, **case)
    gateway = ScriptedGateway(script)
    builder = builder_for(used, gateway, config, tools)
    result = asyncio.run(drive(used, builder, Phase.INVESTIGATION, "CASE-1"))
    assert result.status is DispatchStatus.COMPLETED, f"{result.code}: {result.message}"
    return InvestigationRecord.load(used, result.head)
