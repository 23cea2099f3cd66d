"""Writes the golden package of joint planning version 1, as a release of the past left it.

Run once: `python -m tests.golden.make_planning_v1 FOLDER`. New revisions never use version 1; this package
shows that frozen ones still resume and replay. The script is kept to say how the bytes came to be.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.reading import new_case, plan_answer
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.common import artifact_path
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.context import context_document, load_case
from viano_assets.phases.outcomes import start_change
from viano_assets.phases.planning.start import joint_start
from viano_assets.phases.protocols import Phase, RequestLimits

CASE = "OLD-1"


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = CheckpointStore(Path(folder))
        head = new_case(store, case_id=CASE)  # type: ignore[arg-type]
        case, binding = load_case(store, head)
        start = joint_start(store, head, case, HypothesisConfig(), RequestLimits(), version=1)
        policy = {"planning_mode": "joint", "max_invalid_responses": 3}
        path = artifact_path(Phase.INTERPRETATION, 1, "context.json")
        put = {**start.put, path: context_document(head, binding, start.request, policy, start.generation)}
        pointers = {"interpretation_context": path, "hypothesis_policy": next(iter(start.put))}
        store.commit(head, start_change(Phase.INTERPRETATION, path, put, pointers, "INTERPRETING"))
        gateway = ScriptedGateway([plan_answer(version=1)])
        asyncio.run(CaseInterpreter(store, gateway).build(CASE))
        asyncio.run(HypothesisBuilder(store, gateway).build(CASE))
        source = Path(folder) / "cases" / CASE
        shutil.copytree(
            source, target / "cases" / CASE, ignore=shutil.ignore_patterns("lock", "tmp"), dirs_exist_ok=True
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
