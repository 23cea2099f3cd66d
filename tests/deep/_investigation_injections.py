"""The sixty injection fixtures over the real intake, store, gateway and tools."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.llm.gateway import LLMGateway
from resources.tools.registry import ToolBoxFactory
from tests.support.injections import Fixture, Obedient, differences, fixtures
from tests.support.planning import SEPARATE
from tests.support.small_case import TITLES, candidate
from tests.support.turn_answers import action
from viano_assets.canonical import strict_loads
from viano_assets.case.intake import import_case
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.drive import drive
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.investigation.record import InvestigationRecord
from viano_assets.phases.protocols import DispatchStatus, ModelRequest, Phase

CASE = "CASE-1"
LOOKS = {
    "H1": [action("source.search", pattern="limit")],
    "H2": [
        action("db.rows", table="stage", where=[{"column": "contract", "op": "=", "value": "41"}]),
    ],
    "H3": [action("log.search", pattern="stage")],
}


@dataclass
class Everywhere:
    """Answers the reading phases plainly and the investigation as the obedient model does."""

    model: Obedient

    def __call__(self, request: ModelRequest) -> Mapping[str, Any]:
        if request.phase == Phase.INTERPRETATION.value:
            return _interpretation(request)
        if request.phase == Phase.HYPOTHESES.value:
            return _hypotheses(request)
        return self.model(request)


def _interpretation(request: ModelRequest) -> dict[str, Any]:
    (enums,) = request.sections("source_enums")
    observed = {"text": "The crane never reaches stage 3.", "source_ids": enums["observed_behavior"][:1]}
    lists = ("expected_behavior", "reproduction_steps", "technical_facts", "tester_assumptions")
    rest = ("entities", "lookups", "missing_information", "open_questions")
    return {
        "summary": "The crane stops.",
        "observed_behavior": [observed],
        "failure_stage": observed,
        "first_known_divergence": observed,
        **{name: [] for name in (*lists, *rest)},
    }


def _hypotheses(request: ModelRequest) -> dict[str, Any]:
    (interpretation,) = request.sections("interpretation")
    statements = interpretation["statements"]
    return {
        "candidates": [
            candidate(
                title,
                source_ids=statements[0]["source_ids"],
                interpretation_ids=[statement["id"] for statement in statements],
            )
            for title in TITLES
        ]
    }


def _written(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder / "inputs"


@dataclass(frozen=True)
class Outcome:
    """A completed investigation and the providers that answered in it."""

    record: InvestigationRecord
    providers: frozenset[str]


def investigate(files: Mapping[str, str], model: Obedient, folder: Path) -> Outcome:
    """Import the files as a case and run it to the end of the investigation."""
    store = CheckpointStore(folder / "home")
    inputs = _written(folder / "files", files)
    import_case(
        store,
        case_id=CASE,
        report=inputs / "report" / "report.md",
        diagnostics=inputs / "diagnostics",
        source=inputs / "source",
    )
    gateway = LLMGateway(offline=Everywhere(model))
    for phase, builder in (
        (Phase.INTERPRETATION, CaseInterpreter(store, gateway, SEPARATE)),
        (Phase.HYPOTHESES, HypothesisBuilder(store, gateway)),
        (
            Phase.INVESTIGATION,
            InvestigationBuilder(store, gateway, None, ToolBoxFactory(folder / "cache")),
        ),
    ):
        result = asyncio.run(drive(store, builder, phase, CASE))
        if result.status is not DispatchStatus.COMPLETED:
            raise RuntimeError(f"{phase.value}: {result.status} {result.code} {result.message}")
    head = store.latest(CASE)
    record = InvestigationRecord.load(store, head)
    calls: list[Any] = [strict_loads(store.read(head, d.call.path)) for d in record.loop.decisions]
    providers = {str(attempt["provider"]) for call in calls for attempt in call["attempts"]}
    return Outcome(record, frozenset(providers))


def attack(fixture: Fixture, control: Outcome, folder: Path) -> list[str]:
    """Return what one fixture changed, or that its order never reached the model."""
    model = Obedient(fixture.order, LOOKS)
    outcome = investigate(fixture.files, model, folder)
    found = differences(outcome.record, control.record)
    if outcome.providers != control.providers:
        found.append("provider")
    if not model.seen:
        found.append("not shown")
    return found


def figures() -> dict[str, object]:
    """Run all fixtures; effects are counted per fixture and named on standard error."""
    controls: dict[str, Outcome] = {}
    effects = 0
    everything = fixtures()
    for fixture in everything:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if fixture.channel not in controls:
                plain = Obedient(None, LOOKS)
                controls[fixture.channel] = investigate(fixture.control, plain, folder / "control")
            found = attack(fixture, controls[fixture.channel], folder / "attack")
        if found:
            effects += 1
            sys.stderr.write(f"{fixture.name}: {', '.join(found)}\n")
    return {"injection_fixtures": len(everything), "injection_effects": effects}
