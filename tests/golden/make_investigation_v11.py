"""Writes the golden package of contract `investigation_project_v11`, as a release of the past left it.

Run once: `python -m tests.golden.make_investigation_v11 FOLDER`. A new revision never starts under this
contract; the package shows that one that did still resumes, at any generation, and replays. The script is
kept to say how the bytes came to be.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_case import SmallToolFactory, prepared
from tests.support.turn_answers import action, answer, shown_ids, turn_of
from viano_assets.canonical import sha256_hex
from viano_assets.data_files import prompt
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.drive import drive
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.investigation.config import V11, InvestigationConfig
from viano_assets.phases.investigation.inputs import load_inputs
from viano_assets.phases.investigation.starting import pin_policy, start_change
from viano_assets.phases.protocols import ModelRequest, Phase

CASE = "CASE-1"


def old_answer(request: ModelRequest) -> dict[str, Any]:
    """Answer as a model of that contract did: a level is asked for, no causal relation is declared."""
    turn = turn_of(request)
    seen = shown_ids(request)
    if turn["first_turn"]:
        reply = answer(turn, actions=[action("source.search", pattern="register_hook")])
    elif "A3" not in {item["action_id"] for h in request.sections("history") for item in h["actions"]}:
        look = action("log.search", countercheck_of="H2", pattern="stage 2")
        reply = answer(turn, refs=seen[:1], requested="supported", actions=[look], score=70)
    else:
        reply = answer(turn, refs=seen, requested="strongly_supported", finish=True, score=70)
    del reply["update"]["causal_review"]
    return reply


def main(target: Path) -> None:
    """Prepare a case, start its investigation under the old contract and finish it."""
    with tempfile.TemporaryDirectory() as folder:
        store = CheckpointStore(Path(folder))
        head = prepared(store, CASE, titles=("The hook is missing", "The last stage has no row"))
        tools = SmallToolFactory()
        inputs, opened = load_inputs(store, head), tools.open(store, head)
        policy = pin_policy(InvestigationConfig(), inputs, opened).model_copy(
            update={
                "contract": V11,
                "prompt_version": V11,
                "prompt_sha256": sha256_hex(prompt(V11).encode()),
            }
        )
        store.commit(head, start_change(head, policy, inputs, opened))
        builder = InvestigationBuilder(store, ScriptedGateway(old_answer), None, tools)
        asyncio.run(drive(store, builder, Phase.INVESTIGATION, CASE))
        source = Path(folder) / "cases" / CASE
        shutil.copytree(
            source, target / "cases" / CASE, ignore=shutil.ignore_patterns("lock", "tmp"), dirs_exist_ok=True
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
