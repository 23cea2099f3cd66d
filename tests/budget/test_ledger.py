"""The invariants of the ledger, each by an entry that would break it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ledger_model import run_sequence
from viano_assets.budget.ledger import Ledger
from viano_assets.budget.model import EntryKind, LedgerEntry, LedgerKey
from viano_assets.budget.policy import BudgetPolicy, CurvePoint
from viano_assets.errors import ContractError, DefectError

KEY = LedgerKey("CASE-1", "package", 1)
POLICY = BudgetPolicy()


def entry(seq: int, kind: str, amount: int, balance: int, **more: object) -> LedgerEntry:
    data = {"seq": seq, "kind": kind, "hypothesis_id": "H1", "amount": amount, "balance": balance}
    return LedgerEntry.model_validate({**data, "dispatch": seq, **more})


OPEN = entry(1, "open", 100, 100)
RESERVE = entry(2, "reserve", -10, 90, action_id="A1")
SETTLE = entry(3, "settle", 0, 90, action_id="A1")
REWARD = entry(4, "reward", 4, 94, action_id="A1")

BROKEN = {
    "gap": [OPEN, entry(3, "close", 0, 100, reason="x")],
    "dispatch_goes_back": [OPEN, entry(2, "reserve", -1, 99, action_id="A1", dispatch=0)],
    "never_opened": [entry(1, "reserve", -1, -1, action_id="A1")],
    "opened_twice": [OPEN, entry(2, "open", 5, 105)],
    "opened_empty": [entry(1, "open", 0, 0)],
    "opened_with_other_balance": [entry(1, "open", 5, 6)],
    "opened_for_an_action": [entry(1, "open", 5, 5, action_id="A1")],
    "balance_is_not_the_sum": [OPEN, entry(2, "reserve", -10, 95, action_id="A1")],
    "below_zero": [OPEN, entry(2, "reserve", -101, -1, action_id="A1")],
    "free_action": [OPEN, entry(2, "reserve", 0, 100, action_id="A1")],
    "negative_cost": [OPEN, entry(2, "reserve", 5, 105, action_id="A1")],
    "nameless_action": [OPEN, entry(2, "reserve", -5, 95)],
    "reserved_twice": [OPEN, RESERVE, entry(3, "reserve", -10, 80, action_id="A1")],
    "settled_twice": [OPEN, RESERVE, SETTLE, entry(4, "settle", 0, 90, action_id="A1")],
    "released_after_settlement": [OPEN, RESERVE, SETTLE, entry(4, "release", 10, 100, action_id="A1")],
    "settlement_moves_units": [OPEN, RESERVE, entry(3, "settle", 1, 91, action_id="A1")],
    "partial_release": [OPEN, RESERVE, entry(3, "release", 9, 99, action_id="A1")],
    "settled_unreserved": [OPEN, entry(2, "settle", 0, 100, action_id="A1")],
    "reward_before_settlement": [OPEN, RESERVE, entry(3, "reward", 1, 91, action_id="A1")],
    "reward_twice": [OPEN, RESERVE, SETTLE, REWARD, entry(5, "reward", 1, 95, action_id="A1")],
    "reward_of_the_whole_cost": [OPEN, RESERVE, SETTLE, entry(4, "reward", 10, 100, action_id="A1")],
    "reward_of_nothing": [OPEN, RESERVE, SETTLE, entry(4, "reward", 0, 90, action_id="A1")],
    "negative_reward": [OPEN, RESERVE, SETTLE, entry(4, "reward", -1, 89, action_id="A1")],
    "rewarded_duplicate": [
        OPEN,
        entry(2, "reserve", -10, 90, action_id="A1", duplicate=True),
        SETTLE,
        REWARD,
    ],
    "rewarded_repeat": [OPEN, RESERVE, entry(3, "settle", 0, 90, action_id="A1", repeat=True), REWARD],
    "duplicate_settlement": [OPEN, RESERVE, entry(3, "settle", 0, 90, action_id="A1", duplicate=True)],
    "repeated_reservation": [OPEN, entry(2, "reserve", -10, 90, action_id="A1", repeat=True)],
    "reason_outside_a_close": [OPEN, entry(2, "reserve", -10, 90, action_id="A1", reason="x")],
    "closed_while_outstanding": [OPEN, RESERVE, entry(3, "close", 0, 90, reason="x")],
    "closed_without_reason": [OPEN, entry(2, "close", 0, 100)],
    "close_spends": [OPEN, entry(2, "close", -100, 0, reason="x")],
    "entry_after_close": [
        OPEN,
        entry(2, "close", 0, 100, reason="x"),
        entry(3, "reserve", -1, 99, action_id="A1"),
    ],
    "foreign_action": [
        OPEN,
        RESERVE,
        LedgerEntry(seq=3, kind=EntryKind.OPEN, hypothesis_id="H2", amount=9, balance=9, dispatch=3),
        LedgerEntry(
            seq=4,
            kind=EntryKind.SETTLE,
            hypothesis_id="H2",
            action_id="A1",
            amount=0,
            balance=9,
            dispatch=4,
        ),
    ],
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_stored_entry_that_breaks_an_invariant_is_refused(name: str) -> None:
    *good, bad = BROKEN[name]
    Ledger(KEY, good)
    with pytest.raises(ContractError) as caught:
        Ledger(KEY, [*good, bad])
    assert caught.value.code == "ledger_invalid"


def test_a_sound_history_folds_to_its_sum() -> None:
    ledger = Ledger(KEY, [OPEN, RESERVE, SETTLE, REWARD, entry(5, "close", 0, 94, reason="finished")])
    account = ledger.account("H1")
    assert (account.balance, account.spent, account.rewarded, account.closed) == (94, 10, 4, "finished")
    assert ledger.snapshot().settled


def test_an_illegal_append_changes_nothing() -> None:
    ledger = Ledger(KEY, [OPEN])
    with pytest.raises(DefectError) as caught:
        ledger.reserve("H1", "A1", 101, dispatch=1)
    assert caught.value.code == "ledger_refused"
    assert ledger.staged == ()
    assert ledger.balance("H1") == 100


def test_settling_pays_by_the_curve_and_nothing_for_duplicates_and_repeats() -> None:
    ledger = Ledger(KEY)
    ledger.open("H1", 100, dispatch=0)
    for name, duplicate in (("A1", False), ("A2", True), ("A3", False)):
        ledger.reserve("H1", name, 10, dispatch=1, duplicate=duplicate)
    assert ledger.settle("A1", POLICY, 100, dispatch=2) == 7
    assert ledger.settle("A2", POLICY, 100, dispatch=2) == 0
    assert ledger.settle("A3", POLICY, 100, dispatch=2, repeat=True) == 0
    assert ledger.balance("H1") == 77


@given(st.integers(1, 1_000), st.integers(0, 100))
def test_a_reward_is_never_the_whole_cost_and_never_falls_with_the_score(cost: int, score: int) -> None:
    full = BudgetPolicy(reward_curve=(CurvePoint(0, 0), CurvePoint(50, 90), CurvePoint(100, 100)))
    for policy in (POLICY, full):
        reward = policy.reward(cost, score)
        assert 0 <= reward < cost
        assert reward <= policy.reward(cost, min(100, score + 1))


@pytest.mark.parametrize(
    "curve",
    [
        [[0, 0]],
        [[0, 5], [100, 50]],
        [[1, 0], [100, 50]],
        [[0, 0], [90, 50]],
        [[0, 0], [50, 60], [100, 50]],
        [[0, 0], [50, 10], [50, 20], [100, 50]],
        [[0, 0], [100, 101]],
        [[0, 0], [100]],
    ],
)
def test_a_curve_that_could_pay_for_nothing_is_refused(curve: list[list[int]]) -> None:
    with pytest.raises(ValueError, match=r"reward_curve|CurvePoint|valid"):
        BudgetPolicy.model_validate({"reward_curve": curve})


@pytest.mark.parametrize("seed", range(25))
def test_random_sequences_with_crashes_equal_the_reference_model(seed: int) -> None:
    assert run_sequence(seed, 30) == []
