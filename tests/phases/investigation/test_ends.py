"""Whose turn it is, how hypotheses and the loop end, and what stays in the accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.investigating import builder_for, one_dispatch, whole_loop
from tests.support.memory_store import MemoryStore
from tests.support.scripted_gateway import Halted, ScriptedGateway
from tests.support.small_case import SmallToolFactory, SmallTools, candidate, prepared
from tests.support.turn_answers import action, answer, shown_ids, turn_of
from viano_assets.budget.manager import BudgetManager
from viano_assets.budget.model import EntryKind
from viano_assets.budget.policy import BudgetPolicy
from viano_assets.canonical import strict_loads
from viano_assets.evidence.model import Completeness, ToolResult
from viano_assets.package.model import Change, Head
from viano_assets.phases.drive import drive
from viano_assets.phases.investigation.config import InvestigationConfig, InvestigationLimits
from viano_assets.phases.investigation.record import InvestigationRecord
from viano_assets.phases.protocols import DispatchStatus, ModelRequest, Phase, Store

LOOKS = [
    action("source.search", pattern="hook"),
    action("source.search", pattern="dispatch"),
    action("source.search", pattern="limit"),
    action("log.search", pattern="stage"),
    action("log.search", pattern="accept hook"),
    action("db.rows", table="stage", column="contract", value="41"),
    action("db.rows", table="stage", column="contract", value="42"),
    action("source.read", path="dock.cpp", line_start=1, line_end=3),
    action("source.read", path="dock.cpp", line_start=4, line_end=7),
    action("source.read", path="dock.cpp", line_start=6, line_end=6),
]


def number(request: ModelRequest) -> int:
    return int(turn_of(request)["dispatch"])


def next_look(request: ModelRequest) -> dict[str, Any]:
    return LOOKS[(number(request) - 1) % len(LOOKS)]


def ends(record: InvestigationRecord) -> dict[str, str]:
    return {h.hypothesis_id: h.terminal_reason for h in record.document.hypotheses}


def selected(record: InvestigationRecord) -> list[str]:
    return [context.selected for context in record.loop.contexts]


def test_bootstrap_gives_each_its_turn_then_confidence_balance_and_position_decide() -> None:
    """H2 becomes plausible on its second turn and keeps the turn; the tie before it went to the richer."""

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        if turn["first_turn"]:
            look = {"H1": LOOKS[5], "H2": LOOKS[7], "H3": LOOKS[3]}[turn["selected_hypothesis"]]
            return answer(turn, actions=[look])
        if turn["selected_hypothesis"] == "H2" and number(request) < 7:
            seen = shown_ids(request)
            return answer(
                turn, effect="neutral", refs=seen, requested="plausible", actions=[next_look(request)]
            )
        return answer(turn, finish=True)

    record = whole_loop(script)
    assert selected(record) == ["H1", "H2", "H3", "H2", "H2", "H2", "H2", "H3", "H1"]
    schedules = [context.schedule for context in record.loop.contexts]
    assert schedules[:3] == ["bootstrap"] * 3
    assert set(schedules[3:]) == {"confidence"}


def test_an_equal_level_and_balance_goes_to_the_earlier_position() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        return answer(
            turn, actions=[next_look(request)] if turn["first_turn"] else [], finish=not turn["first_turn"]
        )

    record = whole_loop(script)
    assert selected(record)[3:] == ["H1", "H2", "H3"]
    assert record.document.reason == "all_terminal"
    assert set(ends(record).values()) == {"abandoned"}


def test_finishing_strong_without_a_countercheck_does_not_end_the_loop() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        seen = shown_ids(request)
        if turn["first_turn"]:
            return answer(turn, actions=[next_look(request)])
        if turn["selected_hypothesis"] == "H1":
            return answer(
                turn, effect="supports", support=seen[:1], requested="strongly_supported", finish=True
            )
        return answer(turn, finish=True)

    record = whole_loop(script)
    assert record.document.reason == "all_terminal"
    assert ends(record) == {"H1": "finished", "H2": "abandoned", "H3": "abandoned"}
    (first, *_) = record.document.hypotheses
    assert first.notes == ("no early end of the loop: no look has tested an alternative yet",)


def test_a_countercheck_of_itself_is_none_and_one_of_an_alternative_ends_the_loop_later() -> None:
    """H1 finished first; the loop ends as soon as a look of an alternative's turn has tested that one."""

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        seen = shown_ids(request)
        name = turn["selected_hypothesis"]
        if turn["first_turn"]:
            look = {**next_look(request), "countercheck_of": "H1" if name == "H1" else None}
            return answer(turn, actions=[look])
        if name == "H1":
            return answer(
                turn, effect="supports", support=seen[:1], requested="strongly_supported", finish=True
            )
        return answer(turn, actions=[{**next_look(request), "countercheck_of": "H3"}])

    record = whole_loop(script)
    assert selected(record) == ["H1", "H2", "H3", "H1", "H2", "H3"]
    assert record.document.reason == "confident"
    assert ends(record)["H1"] == "finished"
    assert ends(record)["H2"] == "loop_finished"


def test_a_rejected_hypothesis_keeps_its_status_and_balance() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        seen = shown_ids(request)
        if turn["first_turn"]:
            return answer(turn, actions=[next_look(request)])
        if turn["selected_hypothesis"] == "H1":
            return answer(
                turn, effect="contradicts", against=seen[:1], requested="supported", status="rejected"
            )
        return answer(turn, finish=True)

    record = whole_loop(script)
    first = record.document.hypotheses[0]
    assert (first.status, first.terminal_reason, first.effective_confidence.value) == (
        "rejected",
        "rejected",
        "weakened",
    )
    account = record.budget.accounts["H1"]
    assert account.closed == "rejected"
    assert account.balance == 100 - 3 + account.rewarded


def test_three_uninformative_assessments_end_a_hypothesis_and_drop_its_looks() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        return answer(turn, score=19, actions=[next_look(request)])

    record = whole_loop(script, InvestigationConfig(dispatch_limit=24))
    assert set(ends(record).values()) == {"low_information"}
    assert record.document.reason == "all_terminal"
    dropped = [d for d in record.loop.decisions if d.dropped]
    assert len(dropped) == 3
    assert all("looks dropped" in " ".join(d.notes) for d in dropped)
    assert len(record.document.actions) == 9


def test_an_informative_assessment_between_starts_the_count_again() -> None:
    scores = {"H1": [10, 10, 80, 10, 10, 80]}

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        if turn["first_turn"]:
            return answer(turn, actions=[next_look(request)])
        if turn["selected_hypothesis"] != "H1" or not scores["H1"]:
            return answer(turn, finish=True)
        score = scores["H1"].pop(0)
        return answer(
            turn, score=score, refs=shown_ids(request), requested="plausible", actions=[next_look(request)]
        )

    record = whole_loop(script)
    assert ends(record)["H1"] == "abandoned"
    assert not scores["H1"]


def test_a_repeated_look_is_paid_not_run_again_and_earns_nothing() -> None:
    tools = SmallToolFactory()

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        return answer(turn, score=100, actions=[LOOKS[0]])

    record = whole_loop(script, tools=tools)
    assert tools.runs == ["source.search"]
    assert record.document.evidence_count == 1
    rewarded = [e.action_id for e in record.loop.ledger.entries if e.kind is EntryKind.REWARD]
    assert rewarded == ["A1"]
    reused = [a for a in record.document.actions if a.result.status == "reused"]
    assert {a.action.duplicate_of for a in reused} == {"A1"}
    assert all(a.action.cost == 3 for a in reused)
    assert set(ends(record).values()) == {"low_information"}


def test_an_empty_account_ends_its_hypothesis() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        affordable = turn["limits"]["units"] >= 3 and turn["limits"]["max_actions"] > 0
        look = [action("log.search", pattern=f"x{turn['dispatch']}")]
        return answer(turn, score=20, actions=look if affordable else [])

    record = whole_loop(script, initial_budget=7)
    assert set(ends(record).values()) == {"budget_exhausted"}
    assert [account.balance for account in record.budget.accounts.values()] == [1, 1, 1]


def test_the_dispatch_limit_settles_what_is_outstanding_without_reward() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        looks = [next_look(request)] if turn["limits"]["max_actions"] else []
        return answer(turn, score=100, actions=looks)

    record = whole_loop(script, InvestigationConfig(dispatch_limit=5))
    assert record.document.reason == "dispatch_limit"
    assert record.document.dispatches == 5
    assert set(ends(record).values()) == {"loop_finished"}
    assert record.budget.settled
    last = record.loop.contexts[-1]
    assert last.turn["limits"]["max_actions"] == 0
    closing = [e for e in record.loop.ledger.entries if e.dispatch == 6]
    assert {e.kind for e in closing} == {EntryKind.SETTLE, EntryKind.CLOSE}
    unassessed = {a.action.action_id for a in record.document.actions if not a.assessed}
    assert {e.action_id for e in closing if e.kind is EntryKind.SETTLE} == unassessed
    assert {n.subject for n in record.document.not_examined if n.kind == "look_unassessed"} == unassessed


def test_the_ceiling_of_money_ends_the_loop_with_what_is_known() -> None:
    store = MemoryStore()
    prepared(store)

    def script(request: ModelRequest) -> Any:
        if number(request) == 3:
            return Halted("blocked", "case_cost_ceiling")
        return answer(turn_of(request), actions=[next_look(request)])

    result = asyncio.run(
        drive(store, builder_for(store, ScriptedGateway(script)), Phase.INVESTIGATION, "CASE-1")
    )
    assert result.status is DispatchStatus.COMPLETED
    record = InvestigationRecord.load(store, result.head)
    assert record.document.reason == "cost_limit"
    assert record.document.dispatches == 2
    assert record.budget.settled
    assert one_dispatch(store, ScriptedGateway([])).replayed


def test_the_ceiling_before_the_first_dispatch_blocks_and_a_raised_one_goes_on() -> None:
    store = MemoryStore()
    prepared(store)
    result = one_dispatch(store, ScriptedGateway([Halted("blocked", "case_token_ceiling")]))
    assert (result.status, result.code) == (DispatchStatus.BLOCKED, "case_token_ceiling")
    head = store.latest("CASE-1")
    store.commit(head, Change(event="case_resumed", overlay=None))

    def script(request: ModelRequest) -> Mapping[str, Any]:
        return answer(turn_of(request), actions=[next_look(request)])

    assert one_dispatch(store, ScriptedGateway(script)).status is DispatchStatus.PROGRESSED
    opened = [e for e in BudgetManager(store).ledger(store.latest("CASE-1")).entries if e.dispatch == 0]
    assert len(opened) == 3


class _Slow(SmallTools):
    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        if tool != "db.rows":
            return super().run(tool, arguments)
        return ToolResult(
            tool=tool,
            arguments=dict(arguments),
            scope={"table": "stage"},
            completeness=Completeness.UNAVAILABLE,
            empty=True,
            cause="timeout",
        )


class _SlowFactory:
    def open(self, store: Store, head: Head) -> SmallTools:
        return _Slow(store, head)


def test_a_look_that_ran_out_of_time_says_so_and_is_charged_once() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        return answer(turn, actions=[LOOKS[5]] if turn["first_turn"] else [], finish=not turn["first_turn"])

    record = whole_loop(script, tools=_SlowFactory())
    assert record.loop.records[0].history["actions"][0]["cause"] == "timeout"
    kinds = [e.kind for e in record.loop.ledger.entries if e.action_id == "A1"]
    assert kinds == [EntryKind.RESERVE, EntryKind.SETTLE]
    assert record.budget.accounts["H1"].spent == 4
    assert "timeout" in " ".join(item.text for item in record.document.not_examined)


def test_a_request_over_the_ceiling_is_never_shortened() -> None:
    store = MemoryStore()
    prepared(store)
    tiny = InvestigationConfig(limits=InvestigationLimits(context_bytes=1_000))
    result = one_dispatch(store, ScriptedGateway([]), tiny)
    assert (result.status, result.code) == (DispatchStatus.BLOCKED, "context_too_large")

    sizes: list[int] = []

    def script(request: ModelRequest) -> Mapping[str, Any]:
        sizes.append(len(request.canonical()))
        return answer(turn_of(request), actions=[next_look(request)])

    whole_loop(script)
    limit = InvestigationConfig(limits=InvestigationLimits(context_bytes=sizes[4] - 1))
    record = whole_loop(script, limit)
    assert record.document.reason == "context_limit"
    assert record.document.dispatches == 4
    assert sizes[:4] == sorted(sizes[:4])


class _Broken(SmallTools):
    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        if tool == "source.search":
            raise RuntimeError("boom")
        return super().run(tool, arguments)


class _BrokenFactory:
    def open(self, store: Store, head: Head) -> SmallTools:
        return _Broken(store, head)


def test_a_tool_that_breaks_its_contract_is_recorded_released_and_can_be_asked_again() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        if turn["selected_hypothesis"] == "H1":
            again = [LOOKS[0], LOOKS[3]] if turn["limits"]["max_actions"] else []
            return answer(turn, actions=[LOOKS[0]] if turn["first_turn"] else again)
        return answer(turn, finish=True)

    record = whole_loop(script, InvestigationConfig(dispatch_limit=8), _BrokenFactory())
    first = record.document.actions[0]
    assert (first.result.status, first.result.cause) == ("failed", "tool_failed: RuntimeError")
    kinds = [e.kind for e in record.loop.ledger.entries if e.action_id == "A1"]
    assert kinds == [EntryKind.RESERVE, EntryKind.RELEASE]
    assert record.document.actions[1].action.duplicate_of is None


def test_a_created_hypothesis_gets_its_account_its_turn_and_its_place_in_the_history() -> None:
    store = MemoryStore()

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        created = candidate("A later one") if turn["dispatch"] == 1 else None
        looks = [next_look(request)] if turn["first_turn"] else []
        return answer(turn, actions=looks, finish=not looks, create=created)

    record = whole_loop(script, store=store, max_hypotheses=4)
    assert selected(record)[:4] == ["H1", "H2", "H3", "H4"]
    entry = record.document.hypotheses[3].entry
    assert (entry["id"], entry["role"], entry["title"]) == ("H4", "alternative", "A later one")
    assert record.budget.accounts["H4"].opened == 100
    head = store.latest("CASE-1")
    path = head.pointer("hypothesis_registry")
    assert path == "analysis/investigation/0001/registry-0001.json"
    registry: Any = strict_loads(store.read(head, path))
    assert (registry["created_count"], registry["remaining_slots"], registry["next_id"]) == (4, 0, "H5")
    origin = registry["creations"][3]["origin"]
    assert head.files[origin["path"]].sha256 == origin["sha256"]
    assert record.loop.records[0].history["created"]["id"] == "H4"


@pytest.mark.parametrize("title", ["the last STAGE has no row!", "A later one"])
def test_a_creation_above_the_cap_or_a_repeated_title_is_refused(title: str) -> None:
    store = MemoryStore()
    prepared(store, max_hypotheses=3 if title == "A later one" else 5)

    def script(request: ModelRequest) -> Mapping[str, Any]:
        return answer(turn_of(request), actions=[LOOKS[0]], create=candidate(title))

    result = one_dispatch(store, ScriptedGateway(script))
    assert result.status is DispatchStatus.ERROR
    assert ("no_slot" in result.message) is (title == "A later one")
    head = store.latest("CASE-1")
    assert head.pointer("hypothesis_registry") == "analysis/hypotheses/0001/registry.json"


def test_a_policy_is_taken_from_the_configuration() -> None:
    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        assert turn["tool_costs"]["log.search"] == 9
        looks = [LOOKS[3], LOOKS[4]] if turn["first_turn"] else []
        return answer(turn, actions=looks, finish=not looks, score=10)

    config = InvestigationConfig(
        bootstrap_actions=2,
        tool_costs={"log.search": 9},
        budget=BudgetPolicy(low_information_floor=5, low_information_streak=1),
    )
    record = whole_loop(script, config)
    assert [a.action.cost for a in record.document.actions] == [9] * 6
    assert set(ends(record).values()) == {"abandoned"}


@pytest.mark.parametrize(
    ("partial", "reason"), [(frozenset({"stage"}), "all_terminal"), (frozenset(), "confident")]
)
def test_an_empty_look_into_an_extract_tests_no_alternative(partial: frozenset[str], reason: str) -> None:
    """What a filtered extract does not hold refutes nothing, so the loop may not end early on it."""

    def script(request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        chosen = turn["selected_hypothesis"]
        if turn["first_turn"]:
            void = action("db.rows", countercheck_of="H2", table="stage", column="contract", value="99")
            return answer(turn, actions=[void if chosen == "H1" else action("source.search", pattern="hook")])
        found = [
            item["evidence_id"]
            for past in request.sections("history")
            for look in past["actions"]
            if look["tool"] == "source.search"
            for item in look["evidence"]
        ]
        if chosen == "H1" and found:
            strong: dict[str, Any] = {
                "effect": "supports",
                "requested": "strongly_supported",
                "support": found[:1],
                "score": 100,
            }
            return answer(turn, finish=True, **strong)
        return answer(turn, finish=True, effect="neutral", requested="unassessed", refs=[], score=0)

    record = whole_loop(script, tools=SmallToolFactory(partial=partial))
    assert record.document.reason == reason
