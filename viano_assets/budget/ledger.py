"""The ledger folded in memory: every entry, read or appended, passes the same invariants.

Invariants (docs/budget.md): sequence without a gap; an account opens once with a positive amount and has
no entry after its close; cost > 0; balance >= 0 after every entry and equal to the sum of the amounts;
0 < reward < cost, once, after the settlement, never for a duplicate or an empty repeat; an action id is
reserved once in the whole ledger and settled or released exactly once; nothing outstanding at the close.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from viano_assets.budget.model import Account, BudgetSnapshot, EntryKind, LedgerEntry, LedgerKey
from viano_assets.budget.policy import BudgetPolicy
from viano_assets.errors import ContractError, DefectError


@dataclass(slots=True)
class _Action:
    hypothesis_id: str
    cost: int
    duplicate: bool
    state: EntryKind = EntryKind.RESERVE
    repeat: bool = False
    reward: int | None = None


class Ledger:
    """One revision's ledger: verified entries plus those appended and not yet stored.

    Args:
        key: case, package and analysis revision.
        entries: stored entries in order.

    Raises:
        ContractError: `ledger_invalid` when a stored entry breaks an invariant.
    """

    def __init__(self, key: LedgerKey, entries: Iterable[LedgerEntry] = ()) -> None:
        self.key = key
        self._entries: list[LedgerEntry] = []
        self._accounts: dict[str, Account] = {}
        self._actions: dict[str, _Action] = {}
        for entry in entries:
            broken = self._broken(entry)
            if broken:
                raise ContractError(
                    "ledger_invalid",
                    f"entry {entry.seq} ({entry.kind.value}) breaks the ledger: {broken}",
                    where=f"{key.case_id} r{key.analysis_revision}",
                    hint="the package was altered or damaged; restore it from an export",
                )
            self._apply(entry)
        self._stored = len(self._entries)

    @property
    def entries(self) -> Sequence[LedgerEntry]:
        """All entries in order, stored and staged."""
        return tuple(self._entries)

    @property
    def staged(self) -> Sequence[LedgerEntry]:
        """Entries appended since the ledger was read."""
        return tuple(self._entries[self._stored :])

    def account(self, hypothesis_id: str) -> Account:
        """Return the account of a hypothesis.

        Raises:
            DefectError: `unknown_account`.
        """
        try:
            return self._accounts[hypothesis_id]
        except KeyError:
            raise DefectError("unknown_account", f"{hypothesis_id} has no account") from None

    def balance(self, hypothesis_id: str) -> int:
        """Return the units that can be reserved now."""
        return self.account(hypothesis_id).balance

    def outstanding(self, hypothesis_id: str | None = None) -> dict[str, int]:
        """Return reserved action ids with their cost, of one hypothesis or of all."""
        return {
            action_id: action.cost
            for action_id, action in self._actions.items()
            if action.state is EntryKind.RESERVE and hypothesis_id in {None, action.hypothesis_id}
        }

    def snapshot(self) -> BudgetSnapshot:
        """Fold everything into one immutable view."""
        return BudgetSnapshot(
            case_id=self.key.case_id,
            package_id=self.key.package_id,
            analysis_revision=self.key.analysis_revision,
            entries=len(self._entries),
            accounts=dict(self._accounts),
            outstanding=self.outstanding(),
        )

    def open(self, hypothesis_id: str, units: int, *, dispatch: int) -> None:
        """Open an account with its one creation allocation."""
        self._append(EntryKind.OPEN, hypothesis_id, amount=units, dispatch=dispatch)

    def reserve(
        self, hypothesis_id: str, action_id: str, cost: int, *, dispatch: int, duplicate: bool = False
    ) -> None:
        """Take `cost` units out of the balance before the action runs."""
        self._append(
            EntryKind.RESERVE,
            hypothesis_id,
            action_id=action_id,
            amount=-cost,
            dispatch=dispatch,
            duplicate=duplicate,
        )

    def settle(
        self, action_id: str, policy: BudgetPolicy, score: int, *, dispatch: int, repeat: bool = False
    ) -> int:
        """Turn a reservation into spent units and pay the reward of `score`; return the reward."""
        action = self._reserved(action_id)
        self._append(
            EntryKind.SETTLE,
            action.hypothesis_id,
            action_id=action_id,
            amount=0,
            dispatch=dispatch,
            repeat=repeat,
        )
        reward = 0 if repeat or action.duplicate else policy.reward(action.cost, score)
        if reward:
            self._append(
                EntryKind.REWARD, action.hypothesis_id, action_id=action_id, amount=reward, dispatch=dispatch
            )
        return reward

    def release(self, action_id: str, *, dispatch: int) -> None:
        """Give a reservation back whole: the look never took place."""
        action = self._reserved(action_id)
        self._append(
            EntryKind.RELEASE,
            action.hypothesis_id,
            action_id=action_id,
            amount=action.cost,
            dispatch=dispatch,
        )

    def close(self, hypothesis_id: str, reason: str, *, dispatch: int) -> None:
        """End an account; what it holds stays, nothing is spent."""
        self._append(EntryKind.CLOSE, hypothesis_id, amount=0, dispatch=dispatch, reason=reason)

    def _reserved(self, action_id: str) -> _Action:
        action = self._actions.get(action_id)
        if action is None:
            raise DefectError("ledger_refused", f"action {action_id} was never reserved")
        return action

    def _append(
        self,
        kind: EntryKind,
        hypothesis_id: str,
        *,
        amount: int,
        dispatch: int,
        action_id: str | None = None,
        duplicate: bool = False,
        repeat: bool = False,
        reason: str | None = None,
    ) -> None:
        account = self._accounts.get(hypothesis_id)
        entry = LedgerEntry(
            seq=len(self._entries) + 1,
            kind=kind,
            hypothesis_id=hypothesis_id,
            action_id=action_id,
            amount=amount,
            balance=(account.balance if account else 0) + amount,
            dispatch=dispatch,
            duplicate=duplicate,
            repeat=repeat,
            reason=reason,
        )
        broken = self._broken(entry)
        if broken:
            raise DefectError("ledger_refused", f"{kind.value} for {hypothesis_id}: {broken}")
        self._apply(entry)

    def _broken(self, entry: LedgerEntry) -> str | None:
        """Name the first invariant that `entry` would break, or return None."""
        return next(self._violations(entry), None)

    def _violations(self, entry: LedgerEntry) -> Iterator[str]:
        account = self._accounts.get(entry.hypothesis_id)
        if entry.seq != len(self._entries) + 1:
            yield "the sequence has a gap"
        if self._entries and entry.dispatch < self._entries[-1].dispatch:
            yield "an earlier dispatch after a later one"
        if entry.kind is EntryKind.OPEN:
            yield from self._open_violations(entry, account)
            return
        if account is None:
            yield "the account was never opened"
            return
        if account.closed is not None:
            yield "the account is closed"
        if entry.balance != account.balance + entry.amount:
            yield "the balance is not the sum of the entries"
        if entry.balance < 0:
            yield "the balance would fall below zero"
        if entry.kind is EntryKind.CLOSE:
            yield from self._close_violations(entry)
        else:
            yield from self._action_violations(entry)

    @staticmethod
    def _open_violations(entry: LedgerEntry, account: Account | None) -> Iterator[str]:
        if account is not None:
            yield "the account is open already"
        if entry.amount <= 0 or entry.balance != entry.amount:
            yield "an account opens with a positive amount"
        if entry.action_id is not None or entry.duplicate or entry.repeat or entry.reason is not None:
            yield "an opening concerns no action"

    def _close_violations(self, entry: LedgerEntry) -> Iterator[str]:
        if entry.amount != 0 or entry.action_id is not None or entry.duplicate or entry.repeat:
            yield "a close moves nothing"
        if not entry.reason:
            yield "a close needs its reason"
        if self.outstanding(entry.hypothesis_id):
            yield "an action is outstanding"

    def _action_violations(self, entry: LedgerEntry) -> Iterator[str]:
        if not entry.action_id:
            yield "the action is not named"
        if entry.reason is not None:
            yield "only a close has a reason"
        if entry.duplicate and entry.kind is not EntryKind.RESERVE:
            yield "only a reservation is marked duplicate"
        if entry.repeat and entry.kind is not EntryKind.SETTLE:
            yield "only a settlement is marked repeat"
        action = self._actions.get(entry.action_id or "")
        if entry.kind is EntryKind.RESERVE:
            if action is not None:
                yield "the action was reserved before"
            if entry.amount >= 0:
                yield "a cost must be positive"
        elif action is None or action.hypothesis_id != entry.hypothesis_id:
            yield "the account never reserved this action"
        else:
            yield from self._ending_violations(entry, action)

    @staticmethod
    def _ending_violations(entry: LedgerEntry, action: _Action) -> Iterator[str]:
        if entry.kind is EntryKind.REWARD:
            yield from Ledger._reward_violations(entry, action)
            return
        if action.state is not EntryKind.RESERVE:
            yield "the reservation was settled or released before"
        if entry.amount != (action.cost if entry.kind is EntryKind.RELEASE else 0):
            yield "a release returns the whole cost, a settlement nothing"

    @staticmethod
    def _reward_violations(entry: LedgerEntry, action: _Action) -> Iterator[str]:
        if action.state is not EntryKind.SETTLE:
            yield "a reward follows a settlement"
        if action.reward is not None:
            yield "the action was rewarded before"
        if action.duplicate or action.repeat:
            yield "a duplicate or an empty repeat earns nothing"
        if not 0 < entry.amount < action.cost:
            yield "a reward lies between zero and the cost"

    def _apply(self, entry: LedgerEntry) -> None:
        self._entries.append(entry)
        if entry.kind is EntryKind.OPEN:
            self._accounts[entry.hypothesis_id] = Account(
                hypothesis_id=entry.hypothesis_id, opened=entry.amount, balance=entry.balance
            )
            return
        account = self._accounts[entry.hypothesis_id]
        change: dict[str, object] = {"balance": entry.balance}
        if entry.kind is EntryKind.CLOSE:
            change["closed"] = entry.reason
        else:
            change |= self._apply_action(entry, account)
        self._accounts[entry.hypothesis_id] = account.model_copy(update=change)

    def _apply_action(self, entry: LedgerEntry, account: Account) -> dict[str, object]:
        action_id = entry.action_id or ""
        if entry.kind is EntryKind.RESERVE:
            self._actions[action_id] = _Action(entry.hypothesis_id, -entry.amount, entry.duplicate)
            return {"reserved": account.reserved - entry.amount}
        action = self._actions[action_id]
        if entry.kind is EntryKind.REWARD:
            action.reward = entry.amount
            return {"rewarded": account.rewarded + entry.amount}
        action.state = entry.kind
        action.repeat = entry.repeat
        spent = action.cost if entry.kind is EntryKind.SETTLE else 0
        return {"reserved": account.reserved - action.cost, "spent": account.spent + spent}
