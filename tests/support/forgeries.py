"""R13: a finished case, every bound field of it flipped in a package that is well-formed again.

Each forgery names the phase whose replay must refuse it, and the code. `plain` forgeries change an artifact
and its declaration; `followed` ones also every hash of it that anything later names.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from resources.llm.gateway import LLMGateway
from tests.support.diagnosis_answers import confirmed, inputs_of
from tests.support.forger import (
    Edit,
    bend_pointer,
    flip_detail,
    flip_leaf,
    history,
    leaves,
    recast,
)
from tests.support.gateway_case import TurnedClock
from tests.support.harbour_case import (
    CASE,
    HYPOTHESES,
    INTERPRETATION,
    REPORT,
    HarbourToolFactory,
    Investigator,
    received,
)
from tests.support.memory_store import MemoryStore
from tests.support.planning import SEPARATE
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.errors import VianoError
from viano_assets.package.model import Change, Head
from viano_assets.phases.change_request.builder import ChangeRequestBuilder
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.protocols import DispatchStatus, ModelRequest

_BUILDERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "interpretation": lambda store, gateway: CaseInterpreter(store, gateway, SEPARATE),
    "hypotheses": HypothesisBuilder,
    "investigation": lambda store, gateway: InvestigationBuilder(store, gateway, None, HarbourToolFactory()),
    "diagnosis": DiagnosisBuilder,
    "change_request": lambda store, _: ChangeRequestBuilder(store),
}
PHASES = tuple(_BUILDERS)
ACCEPTED = "accepted"


class Finished(NamedTuple):
    """A finished case and the changes that led to it."""

    store: MemoryStore
    head: Head
    changes: list[Change]


@lru_cache(maxsize=1)
def finished() -> Finished:
    """Return a case taken through all phases by the real builders and the real gateway."""
    store = MemoryStore()
    received(store)

    def drive(phase: str, answer: Callable[[ModelRequest], Mapping[str, Any]]) -> None:
        gateway = LLMGateway(offline=answer, clock=TurnedClock())
        builder = _BUILDERS[phase](store, gateway)
        result = asyncio.run(builder.build(CASE))
        while result.status in {DispatchStatus.PROGRESSED, DispatchStatus.REJECTED}:
            result = asyncio.run(builder.build(CASE))
        assert result.status is DispatchStatus.COMPLETED, result

    drive("interpretation", lambda _: INTERPRETATION)
    drive("hypotheses", lambda _: HYPOTHESES)
    drive("investigation", Investigator())
    names = inputs_of(store, store.latest(CASE))[1]
    wrong = {"status": "confirmed"}
    drive("diagnosis", lambda r: confirmed(names) if r.sections("validation_issues") else wrong)
    drive("change_request", lambda _: wrong)
    head = store.latest(CASE)
    return Finished(store, head, history(store, CASE))


def replay(store: Any, phase: str, case_id: str = CASE) -> str:
    """Run one phase again without a provider; return `accepted` or the code of the refusal.

    Raises:
        AssertionError: a model was asked, or the phase was built anew.
    """
    gateway = ScriptedGateway([])
    try:
        result = asyncio.run(_BUILDERS[phase](store, gateway).build(case_id))
    except VianoError as error:
        return error.code
    assert result.replayed, f"{phase} was built anew: {result.status}"
    return ACCEPTED


def forged(edit: Edit, phase: str, *, follow: bool) -> str:
    """Forge the finished case and return what the replay of a phase says."""
    made = finished()
    store = MemoryStore()
    recast(store, made.head, made.changes, edit, follow=follow)
    return replay(store, phase)


def _last_call(phase: str) -> str:
    found = [
        path
        for change in finished().changes
        for path in change.put
        if change.phase == phase and "/calls/" in path and path.endswith(".json")
    ]
    return found[-1]


_IDENTITY = ("/case_id", "/package_id", "/analysis_revision")
_CALL = (*_IDENTITY, "/phase", "/attempt_id", "/request_sha256")
_NAMED_CALL = ("/path", "/sha256", "/request_sha256", "/attempt_id")
_BOUND: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "interpretation": (
        ("interpretation.json", (*_IDENTITY, "/context/sha256", "/case/sha256", "/interpretation/summary")),
        ("interpretation.json", tuple(f"/calls/0{leaf}" for leaf in _NAMED_CALL)),
        ("interpretation.md", ("",)),
    ),
    "hypotheses": (
        ("policy.json", ("/initial_budget", "/max_hypotheses", "/min_hypotheses", "/max_invalid_responses")),
        ("hypotheses.json", (*_IDENTITY, "/context/sha256", "/policy/sha256", "/interpretation/sha256")),
        ("hypotheses.json", ("/hypotheses/0/title", "/hypotheses/1/budget_allocation/initial")),
        ("hypotheses.json", tuple(f"/calls/0{leaf}" for leaf in _NAMED_CALL)),
        ("registry.json", (*_IDENTITY, "/max_hypotheses", "/remaining_slots", "/creations/0/origin/sha256")),
        ("hypotheses.md", ("",)),
    ),
    "investigation": (
        ("policy.json", ("/initial_budget", "/max_actions", "/tool_costs/db.rows", "/prompt_version")),
        ("policy.json", ("/dispatch_limit", "/budget/low_information_floor", "/contract")),
        ("context-0002.json", ("/selected", "/request_sha256", "/start/sha256", "/previous/sha256")),
        ("context-0002.json", ("/schedule", "/limits/max_output_tokens", "/turn/dispatch")),
        ("decision-0004.json", ("/selected", "/context/sha256", "/actions/0/cost", "/actions/0/action_id")),
        ("decision-0004.json", ("/settled/0/reward", "/review/reason", "/finish", "/loop_end")),
        ("decision-0004.json", tuple(f"/call{leaf}" for leaf in _NAMED_CALL)),
        ("dispatch-0004.json", ("/decision/sha256", "/evidence/sha256", "/results/0/action_id")),
        ("dispatch-0009.json", ("/history/update/reason", "/history/dispatch", "/dispatch")),
        ("ledger-0004.json", ("/entries/0/amount", "/entries/0/balance", "/entries/0/seq")),
        ("evidence-0004.json", ("/records/0/content", "/records/0/evidence_id")),
        ("investigation.json", (*_IDENTITY, "/evidence_count", "/reason", "/policy/sha256")),
        ("evidence.json", ("/schema",)),
        ("investigation.md", ("",)),
    ),
    "diagnosis": (
        ("diagnosis_result.json", (*_IDENTITY, "/context/sha256", "/controller", "/title")),
        ("diagnosis_result.json", ("/effective_confidence", "/not_examined/0", "/shown_evidence/0")),
        ("diagnosis_result.json", (*(f"/call{leaf}" for leaf in _NAMED_CALL), "/rejected_answers/0/sha256")),
        ("diagnosis_result.md", ("",)),
        ("diagnosis.html", ("",)),
    ),
}
"""Artifact and bound fields of each phase; the frozen contexts are in `_fields`."""


def _fields() -> Iterator[tuple[str, str, str]]:
    """Yield phase, artifact and field of everything that is bound."""
    place = "analysis/{0}/0001/{1}".format
    request = ("/request/contract", "/request/messages/0/content", "/request/limits/max_output_tokens")
    contexts = {
        "interpretation": ("/case/sha256", "/policy/max_invalid_responses", "/prompt_sha256", *request),
        "hypotheses": ("/interpretation/sha256", "/policy/sha256", *request),
        "investigation": ("/policy/sha256", "/bindings/hypotheses/sha256", "/messages/0/content"),
        "diagnosis": ("/policy/max_invalid_responses",),
    }
    for phase, fields in contexts.items():
        document = json.loads(_content(place(phase, "context.json")))
        found = [leaf for leaf in leaves(document) if leaf in _IDENTITY or leaf in fields]
        yield from ((phase, place(phase, "context.json"), leaf) for leaf in found)
        raw = next(leaf for leaf in leaves(document) if leaf.startswith("/raw_inputs/"))
        yield phase, place(phase, "context.json"), raw
        yield from ((phase, _last_call(phase), leaf) for leaf in _CALL)
    for phase, artifacts in _BOUND.items():
        yield from ((phase, place(phase, path), leaf) for path, fields in artifacts for leaf in fields)
    document = json.loads(_content(place("change_request", "change_request.json")))
    for leaf in list(leaves(document))[:12]:
        yield "change_request", place("change_request", "change_request.json"), leaf
    yield "change_request", place("change_request", "change_request.md"), ""
    yield "interpretation", "case/0001/case.json", next(leaves(json.loads(_content("case/0001/case.json"))))


def _content(path: str) -> bytes:
    made = finished()
    return made.store.read(made.head, path)


def edits() -> Iterator[tuple[str, str, Edit]]:
    """Yield name, phase and edit of every forgery of the table."""
    for phase, path, leaf in _fields():
        short = path.removeprefix(f"analysis/{phase}/0001/")
        if "/calls/" in path:
            short = "call"
        document = json.loads(_content(path)) if path.endswith(".json") else None
        assert document is None or leaf in set(leaves(document)), f"{path} has no {leaf}"
        yield f"{phase} {short} {leaf}".strip(), phase, flip_leaf(path, leaf)
    made = finished()
    for name, path in sorted(made.head.manifest.pointers.items()):
        phase = path.split("/")[1] if path.startswith("analysis/") else "interpretation"
        if name == "outbox":
            phase = "change_request"
        yield f"{phase} pointer {name} lost", phase, bend_pointer(name, None)
        target = REPORT if name == "case" else "case/0001/case.json"
        yield f"{phase} pointer {name} bent", phase, bend_pointer(name, target)
    for phase in PHASES[:-1]:
        yield f"{phase} start hash", phase, flip_detail(f"{phase}_started", "context_sha256")


def sampled_leaves(step: int, offset: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield phase, artifact and field of every `step`-th leaf of all artifacts but the recorded calls.

    A call record also tells what the call cost and how long it took; replay binds its identity and its
    answer only, and the table has those.
    """
    made = finished()
    every = [
        (path.split("/")[1], path, leaf)
        for path in sorted(made.head.files)
        if path.startswith("analysis/") and "/calls/" not in path and "/errors/" not in path
        for leaf in (leaves(json.loads(_content(path))) if path.endswith(".json") else ("",))
    ]
    yield from every[offset::step]


TABLE = Path(__file__).with_name("forgeries.json")
"""The code of every forgery: name to [plain, followed]. Written by `python -m tests.support.forgeries`."""

ORIGINS = frozenset(
    {
        "diagnosis context.json /policy/max_invalid_responses",
        "interpretation context.json /policy/max_invalid_responses",
        "interpretation context.json /prompt_sha256",
    }
)
"""Fields that nothing else follows from: forged with every hash of them, only the anchor knows."""


_ORIGINS = ("/policy/", "/prompt_sha256", "/prior_generations", "/schema")
"""Such fields of a frozen context."""


def expected() -> dict[str, list[str]]:
    """Return the table."""
    table: dict[str, list[str]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def faults(number: int = 0, of: int = 1) -> list[str]:
    """Play one part of the table and return what is not as it stands there."""
    table, found, seen = expected(), [], set()
    for index, (name, phase, edit) in enumerate(edits()):
        seen.add(name)
        if index % of != number:
            continue
        codes = [forged(edit, phase, follow=follow) for follow in (False, True)]
        if codes != table.get(name):
            found.append(f"{name}: {codes}, the table has {table.get(name)}")
        if codes[0] == ACCEPTED or (codes[1] == ACCEPTED) != (name in ORIGINS):
            found.append(f"{name}: accepted")
    return found + [f"{name} is not played" for name in sorted(table.keys() - seen)]


def leaf_faults(step: int) -> tuple[int, list[str]]:
    """Flip every `step`-th leaf of all artifacts, forged with every hash; return how many and what passed."""
    found = []
    count = 0
    for phase, path, leaf in sampled_leaves(step):
        count += 1
        try:
            code = forged(flip_leaf(path, leaf), phase, follow=True)
        except Exception as error:  # noqa: BLE001 - any error that is not declared is a finding
            found.append(f"{path} {leaf}: {type(error).__name__}: {str(error)[:200]}")
            continue
        origin = path.endswith("/context.json") and leaf.startswith(_ORIGINS)
        if code == ACCEPTED and not origin:
            found.append(f"{path} {leaf}: accepted")
    return count, found


def replay_thrice(store: Any, case_id: str, phases: Sequence[str]) -> list[str]:
    """Replay phases three times over; return what was not byte for byte as before."""
    before = store.latest(case_id)
    contents = {path: store.read(before, path) for path in before.files}
    found = []
    for _ in range(3):
        for phase in phases:
            code = replay(store, phase, case_id)
            head = store.latest(case_id)
            if code != ACCEPTED or head != before:
                found.append(f"{case_id} {phase}: {code}, generation {head.generation}")
            found += [
                f"{case_id} {path} changed" for path in contents if store.read(head, path) != contents[path]
            ]
    return found


if __name__ == "__main__":
    table = {
        name: [forged(edit, phase, follow=follow) for follow in (False, True)]
        for name, phase, edit in edits()
    }
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")
