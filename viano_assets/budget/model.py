"""Ledger entries, accounts and snapshots (docs/budget.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class EntryKind(StrEnum):
    """What an entry does to an account."""

    OPEN = "open"
    RESERVE = "reserve"
    SETTLE = "settle"
    REWARD = "reward"
    RELEASE = "release"
    CLOSE = "close"


class LedgerKey(NamedTuple):
    """Whose ledger it is; with a hypothesis id it is the account key."""

    case_id: str
    package_id: str
    analysis_revision: int


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Binding(_Stored):
    """An artifact named by path and content hash."""

    path: str
    sha256: str


class LedgerEntry(_Stored):
    """One line of the ledger.

    `amount` is the signed change of the balance, `balance` what stands after it, both in units.
    `duplicate` (reserve) says that the same look had been made before, `repeat` (settle) that nothing
    came back that was not already stored: neither can be rewarded. `reason` belongs to `close`.
    """

    seq: int
    kind: EntryKind
    hypothesis_id: str
    action_id: str | None = None
    amount: int
    balance: int
    dispatch: int
    duplicate: bool = False
    repeat: bool = False
    reason: str | None = None


class LedgerPiece(_Stored):
    """The entries of one generation; pieces are chained by hash and never rewritten."""

    schema_: Literal["ledger-v1"] = Field(default="ledger-v1", alias="schema")
    case_id: str
    package_id: str
    analysis_revision: int
    piece: int
    previous: Binding | None
    entries: tuple[LedgerEntry, ...]


class Account(_Stored):
    """One hypothesis' account, folded; units.

    `opened` = `balance` + `reserved` + `spent` - `rewarded`. `spent` counts the costs of settled actions
    before rewards.
    """

    hypothesis_id: str
    opened: int
    balance: int
    reserved: int = 0
    spent: int = 0
    rewarded: int = 0
    closed: str | None = None

    @property
    def terminal(self) -> bool:
        """True when the account is closed."""
        return self.closed is not None


class BudgetSnapshot(_Stored):
    """All accounts of one revision; `outstanding` maps reserved action ids to their cost."""

    case_id: str
    package_id: str
    analysis_revision: int
    entries: int
    accounts: Mapping[str, Account]
    outstanding: Mapping[str, int]

    @property
    def settled(self) -> bool:
        """True when no action is outstanding and every account is closed."""
        return not self.outstanding and all(account.terminal for account in self.accounts.values())

    @property
    def net_spent(self) -> int:
        """Units spent over all accounts, rewards deducted."""
        return sum(account.spent - account.rewarded for account in self.accounts.values())
