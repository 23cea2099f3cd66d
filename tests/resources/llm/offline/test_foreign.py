"""The analyst carries on a registry that another author wrote."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from resources.llm.providers.offline import answer
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_case import FILES, SOURCE, SmallToolFactory, prepared
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.drive import drive
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.protocols import DispatchStatus, Phase

WITHOUT_HOOK = "void dispatch(int id) {\n  if (id > limit) { return; }\n}\n"


@pytest.mark.parametrize(("code", "effect"), [(FILES[SOURCE], "contradicts"), (WITHOUT_HOOK, "supports")])
def test_what_is_said_to_be_absent_is_looked_for(tmp_path: Path, code: str, effect: str) -> None:
    """A matching hook in the source speaks against "the hook is missing", not for it."""
    store = CheckpointStore(tmp_path)
    prepared(store, files={**FILES, SOURCE: code})
    builder = InvestigationBuilder(store, ScriptedGateway(answer), InvestigationConfig(), SmallToolFactory())
    result = asyncio.run(drive(store, builder, Phase.INVESTIGATION, "CASE-1"))
    assert result.status is DispatchStatus.COMPLETED
    head = store.latest("CASE-1")
    paths = sorted(path for path in head.files if "/investigation/" in path and "/dispatch-" in path)
    updates = [json.loads(store.read(head, path))["history"] for path in paths]
    last = [entry["update"] for entry in updates if entry["hypothesis_id"] == "H1"][-1]
    assert last["effect"] == effect
