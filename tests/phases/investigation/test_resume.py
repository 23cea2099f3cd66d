"""Interruptions, refusals and replay: nothing is paid twice, nothing is made up, nothing passes altered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.phases.investigation.test_loop import sensible
from tests.support.investigating import builder_for, one_dispatch, whole_loop
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import Halted, ScriptedGateway, Unusable
from tests.support.small_case import SmallToolFactory, prepared
from tests.support.turn_answers import action, answer, turn_of
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import (
    BlockedError,
    ConfigurationError,
    ContractError,
    InputError,
    VianoError,
)
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.drive import drive
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.investigation.record import InvestigationRecord
from viano_assets.phases.protocols import DispatchStatus, Phase

FOLDER = "analysis/investigation/0001"
RESULTS = ("investigation.json", "investigation.md", "evidence.json")


class KilledError(BaseException):
    """The process is gone; nothing may catch it."""


class KilledStore(MemoryStore):
    """Dies at one commit, before it exists or after."""

    kill_at: int | None = None
    after: bool = False
    commits: int = 0

    def commit(self, head: Head, change: Change) -> Head:
        self.commits += 1
        dies = self.commits == self.kill_at
        if dies and not self.after:
            raise KilledError
        new = super().commit(head, change)
        if dies:
            raise KilledError
        return new


def results(store: MemoryStore | CheckpointStore) -> list[bytes]:
    head = store.latest("CASE-1")
    return [store.read(head, f"{FOLDER}/{name}") for name in RESULTS]


def finish(store: MemoryStore, gateway: ScriptedGateway, tools: SmallToolFactory) -> None:
    builder = builder_for(store, gateway, InvestigationConfig(), tools)
    result = asyncio.run(drive(store, builder, Phase.INVESTIGATION, "CASE-1"))
    assert result.status is DispatchStatus.COMPLETED


def undisturbed() -> tuple[list[bytes], int, int]:
    store = KilledStore()
    prepared(store)
    start = store.commits
    gateway = ScriptedGateway(sensible)
    finish(store, gateway, SmallToolFactory())
    return results(store), store.commits - start, gateway.asked


EXPECTED, COMMITS, ASKED = undisturbed()


KILLS = [*((point, True) for point in range(1, COMMITS + 1)), *((point, False) for point in range(1, 7))]
"""Dying before a commit leaves what dying after the one before it leaves, except around a model round."""


@pytest.mark.parametrize(("point", "after"), KILLS)
def test_a_kill_at_any_generation_ends_with_the_same_bytes(point: int, *, after: bool) -> None:
    """An answer is asked for again only when it had not been recorded."""
    store = KilledStore()
    prepared(store)
    store.kill_at, store.after = store.commits + point, after
    gateway, tools = ScriptedGateway(sensible), SmallToolFactory()
    with pytest.raises(KilledError):
        finish(store, gateway, tools)
    killed = store.latest("CASE-1").checkpoints[-1].event
    finish(store, gateway, tools)
    assert results(store) == EXPECTED
    lost = 1 if not after and killed == "investigation_dispatch_started" else 0
    assert gateway.asked == ASKED + lost
    assert InvestigationRecord.load(store, store.latest("CASE-1")).budget.settled


def test_the_same_case_on_disk_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole_loop(sensible, InvestigationConfig(), store=CheckpointStore(tmp_path), initial_budget=100)
    fresh = CheckpointStore(tmp_path)
    assert [json.loads(b)["reason"] for b in results(fresh)[:1]] == ["confident"]
    result = one_dispatch_on(fresh)
    assert result.replayed


def one_dispatch_on(store: Any, **more: Any) -> Any:
    return one_dispatch(store, ScriptedGateway([]), **more)


def test_one_dispatch_is_four_generations_and_settles_before_it_runs() -> None:
    store = MemoryStore()
    head = prepared(store)
    result = one_dispatch(store, ScriptedGateway(sensible))
    assert result.status is DispatchStatus.PROGRESSED
    events = [c.event for c in result.head.checkpoints[head.generation :]]
    assert events == [
        "investigation_started",
        "investigation_dispatch_started",
        "model_round_recorded",
        "investigation_decided",
        "investigation_dispatched",
    ]
    decided = result.head.checkpoints[-2].declares
    assert sorted(path.rsplit("/", 1)[1] for path in decided) == ["decision-0001.json", "ledger-0001.json"]
    assert result.head.manifest.lifecycle == "INVESTIGATING_HYPOTHESES"
    assert result.head.pointer("investigation") is None


def test_a_rejected_answer_spends_nothing_and_is_corrected_once() -> None:
    store = MemoryStore()
    prepared(store)
    bad = {"update": "no"}
    tools = SmallToolFactory()
    gateway = ScriptedGateway([bad])
    result = one_dispatch(store, gateway, tools=tools)
    assert (result.status, result.code) == (DispatchStatus.ERROR, "invalid_answer")
    assert tools.runs == []
    assert f"{FOLDER}/ledger-0001.json" not in result.head.files
    again = one_dispatch(store, ScriptedGateway([]), tools=tools)
    assert again.code == "attempt_rejected"
    correcting = ScriptedGateway(sensible)
    result = one_dispatch(store, correcting, tools=tools, attempt_id="attempt-2")
    assert result.status is DispatchStatus.PROGRESSED
    (issues,) = correcting.requests[0].sections("validation_issues")
    assert {issue["category"] for issue in issues} == {"schema"}
    assert correcting.requests[0].messages[:-1] == gateway.requests[0].messages
    second = one_dispatch(store, gateway := ScriptedGateway(sensible), tools=tools)
    assert second.status is DispatchStatus.PROGRESSED
    assert gateway.requests[0].sections("validation_issues") == []
    finish(store, ScriptedGateway(sensible), tools)
    assert one_dispatch(store, ScriptedGateway([])).replayed


def test_invalid_answers_count_per_dispatch_and_then_block() -> None:
    store = MemoryStore()
    prepared(store)

    def script(request: Any) -> Any:
        if turn_of(request)["dispatch"] == 2:
            return Unusable() if not request.sections("validation_issues") else {"update": "no"}
        corrected = request.sections("validation_issues")
        return sensible(request) if corrected else {"update": "no"}

    builder = builder_for(store, ScriptedGateway(script), InvestigationConfig(max_invalid_responses=2))
    result = asyncio.run(drive(store, builder, Phase.INVESTIGATION, "CASE-1"))
    assert (result.status, result.code) == (DispatchStatus.BLOCKED, "invalid_answers_exhausted")
    assert f"{FOLDER}/dispatch-0001.json" in result.head.files
    assert f"{FOLDER}/decision-0002.json" not in result.head.files
    overlay = result.head.manifest.overlay
    assert overlay is not None
    assert overlay.kind == "blocked"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("retry_pending", DispatchStatus.RETRY_PENDING),
        ("deferred", DispatchStatus.DEFERRED),
        ("blocked", DispatchStatus.BLOCKED),
    ],
)
def test_transport_is_no_answer_and_changes_no_account(status: Any, expected: DispatchStatus) -> None:
    store = MemoryStore()
    prepared(store)
    due = None if status == "blocked" else "2030-01-01T00:00:00Z"
    result = one_dispatch(store, ScriptedGateway([Halted(status, "transport", due)]))
    assert (result.status, result.not_before) == (expected, due)
    assert f"{FOLDER}/decision-0001.json" not in result.head.files
    if status != "blocked":
        assert one_dispatch(store, ScriptedGateway(sensible)).status is DispatchStatus.PROGRESSED
        assert store.latest("CASE-1").manifest.overlay is None


def test_a_changed_policy_is_refused_and_the_old_one_kept() -> None:
    store = MemoryStore()
    prepared(store)
    one_dispatch(store, ScriptedGateway(sensible), InvestigationConfig(dispatch_limit=9))
    for changed in (
        InvestigationConfig(dispatch_limit=10),
        InvestigationConfig(max_actions=2),
        InvestigationConfig(tool_costs={"log.search": 5}),
    ):
        with pytest.raises(ConfigurationError) as caught:
            one_dispatch(store, ScriptedGateway(sensible), changed)
        assert caught.value.code == "policy_changed"
    assert one_dispatch(store, ScriptedGateway(sensible)).status is DispatchStatus.PROGRESSED
    same = InvestigationConfig(dispatch_limit=9, tool_costs={"log.search": 3})
    assert one_dispatch(store, ScriptedGateway(sensible), same).status is DispatchStatus.PROGRESSED


def test_an_input_added_after_the_start_is_stale() -> None:
    store = MemoryStore()
    prepared(store)
    one_dispatch(store, ScriptedGateway(sensible))
    path = "inputs/diagnostics/late.log"
    store.commit(store.latest("CASE-1"), Change(event="added", put={path: b"x"}, raw=frozenset({path})))
    with pytest.raises(InputError) as caught:
        one_dispatch(store, ScriptedGateway(sensible))
    assert caught.value.code == "stale_input"
    assert path in caught.value.where


def test_without_hypotheses_nothing_is_started() -> None:
    store = MemoryStore()
    store.create("CASE-1", Change(event="case_received", lifecycle="RECEIVED"))
    with pytest.raises(BlockedError) as caught:
        one_dispatch(store, ScriptedGateway([]))
    assert caught.value.code == "phase_missing"
    assert store.latest("CASE-1").generation == 1


ARTIFACTS = [
    "context.json",
    "policy.json",
    "context-0003.json",
    "decision-0002.json",
    "dispatch-0003.json",
    "evidence-0002.json",
    "ledger-0001.json",
    "investigation.json",
    "investigation.md",
    "evidence.json",
]


@pytest.mark.parametrize("name", ARTIFACTS)
def test_a_completed_investigation_is_replayed_and_any_altered_part_refused(name: str) -> None:
    store = MemoryStore()
    whole_loop(sensible, store=store)
    assert one_dispatch(store, ScriptedGateway([])).replayed
    head = store.latest("CASE-1")
    path = f"{FOLDER}/{name}"
    content = store.read(head, path)
    if name.endswith(".json"):
        data = json.loads(content)
        _alter(data)
        altered = canonical_json(data)
    else:
        altered = content + b"\n"
    assert altered != content
    store.commit(head, Change(event="forged", put={path: altered}))
    with pytest.raises(VianoError) as caught:
        one_dispatch(store, ScriptedGateway([]))
    assert isinstance(caught.value, ContractError)


def _alter(node: Any) -> None:
    """Change the last text or number found, deep inside."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    for key in reversed(keys):
        if isinstance(node[key], (dict, list)) and node[key]:
            _alter(node[key])
            return
        if isinstance(node[key], str) and key not in {"schema", "kind", "status"}:
            node[key] += "x"
            return
        if isinstance(node[key], int) and not isinstance(node[key], bool):
            node[key] += 1
            return


def test_a_decision_that_the_answer_does_not_lead_to_is_refused_although_all_hashes_fit() -> None:
    """A forger who rewrites a decision and every artifact that binds it still fails the replay."""
    store = MemoryStore()
    whole_loop(sensible, store=store)
    head = store.latest("CASE-1")
    put: dict[str, bytes] = {}
    old = store.read(head, f"{FOLDER}/decision-0007.json")
    data = json.loads(old)
    data["next_reason"] = "another reason"
    new = canonical_json(data)
    put[f"{FOLDER}/decision-0007.json"] = new
    for name in ("dispatch-0007.json", "investigation.json"):
        text = store.read(head, f"{FOLDER}/{name}").decode()
        for path, content in list(put.items()):
            text = text.replace(head.files[path].sha256, _sha(content))
        put[f"{FOLDER}/{name}"] = text.encode()
    declared = Change(event="forged", put=put)
    forged = MemoryStore()
    _copy(store, forged, declared)
    with pytest.raises(ContractError) as caught:
        one_dispatch(forged, ScriptedGateway([]))
    assert caught.value.code == "investigation_replay"


def _sha(content: bytes) -> str:
    return sha256_hex(content)


def _copy(old: MemoryStore, new: MemoryStore, forged: Change) -> None:
    """Rebuild the case generation by generation with forged bytes in their first place."""
    head = old.latest("CASE-1")
    copied: Head | None = None
    for generation in range(1, head.generation + 1):
        at = old.at_generation("CASE-1", generation)
        checkpoint = at.checkpoints[-1]
        before = old.at_generation("CASE-1", generation - 1) if generation > 1 else None
        paths = [p for p in at.files if before is None or before.files.get(p) != at.files[p]]
        put = {p: forged.put.get(p, old.read(at, p)) for p in paths}
        raw = frozenset(p for p in paths if p in at.raw_inputs())
        change = Change(
            event=checkpoint.event,
            phase=checkpoint.phase,
            put=put,
            raw=raw,
            pointers=dict(at.manifest.pointers),
            lifecycle=at.manifest.lifecycle,
            detail=checkpoint.detail,
        )
        copied = new.create("CASE-1", change) if copied is None else new.commit(copied, change)


def test_progress_is_told_while_it_works() -> None:
    store = MemoryStore()
    prepared(store)
    lines: list[str] = []
    builder = InvestigationBuilder(
        store,
        ScriptedGateway(sensible),
        None,
        SmallToolFactory(),
        progress=lambda event: lines.append(event.text),
    )
    asyncio.run(builder.build("CASE-1"))
    assert lines == [
        "asking about H1",
        "H1 unassessed, 97 units left",
        "A1 source.search: complete, E1 dock.cpp:2, 3 units",
    ]


def test_hostile_cell_text_survives_as_text() -> None:
    """A table cell with NUL and a log with a lone surrogate: stored, shown, reloaded equal."""
    files = {
        "inputs/report/report.md": "# T\nThe crane stops.\n",
        "inputs/source/a.cpp": "int a;\n",
        "inputs/diagnostics/t.csv": "contract,step\n41,a\0b\n",
        "inputs/diagnostics/s.log": "stage \ud83d done\n",
    }

    def script(request: Any) -> Any:
        turn = turn_of(request)
        request.sections("history")
        looks = {
            "H1": action("db.rows", table="t", column="contract", value="41"),
            "H2": action("log.search", pattern="stage"),
            "H3": action("source.search", pattern="a"),
        }
        first = turn["first_turn"]
        return answer(turn, actions=[looks[turn["selected_hypothesis"]]] if first else [], finish=not first)

    store = MemoryStore()
    record = whole_loop(script, store=store, files=files)
    contents = [item.content for item in record.evidence]
    assert contents[0] == '{"contract":"41","step":"a\\u0000b"}'
    assert contents[1] == "stage \\ud83d done"
    assert one_dispatch(store, ScriptedGateway([])).replayed
