"""A small reference model of the ledger, and random sequences with crashes run against both.

The model knows nothing of entries: it keeps balances and the state of each action. Every step is one
generation. A crash strikes before the generation exists or after it, and the survivor starts again from
what is stored, repeating the step only when the store does not show it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.support.memory_store import MemoryStore
from viano_assets.budget.ledger import Ledger
from viano_assets.budget.manager import POINTER, BudgetManager
from viano_assets.budget.model import Account
from viano_assets.budget.policy import BudgetPolicy
from viano_assets.errors import DefectError
from viano_assets.package.model import Change, Head

POLICY = BudgetPolicy()
KINDS = (*["reserve"] * 8, *["settle"] * 6, *["release"] * 2, *["open"] * 3, "close")


@dataclass
class Model:
    """Balances, and per action: hypothesis, cost, whether it can be rewarded, and how it ended."""

    balance: dict[str, int] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    actions: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)

    def live(self, name: str) -> bool:
        return name in self.balance and name not in self.closed

    def outstanding(self, name: str) -> list[str]:
        return [a for a, (owner, _, _) in self.actions.items() if owner == name and a not in self.ended]

    def apply(self, step: Step) -> bool:
        """Carry a step out if the rules allow it; say whether they do."""
        done = {
            "open": self._open,
            "reserve": self._reserve,
            "settle": self._end,
            "release": self._end,
            "close": self._close,
        }[step.kind](step)
        return bool(done)

    def _open(self, step: Step) -> bool:
        if step.name in self.balance or step.units <= 0:
            return False
        self.balance[step.name] = self.opened[step.name] = step.units
        self.spent[step.name] = 0
        return True

    def _reserve(self, step: Step) -> bool:
        fits = 0 < step.units <= self.balance.get(step.name, 0)
        if not self.live(step.name) or step.action in self.actions or not fits:
            return False
        self.actions[step.action] = (step.name, step.units, not step.flag)
        self.balance[step.name] -= step.units
        return True

    def _end(self, step: Step) -> bool:
        if step.action not in self.actions or step.action in self.ended:
            return False
        name, cost, rewardable = self.actions[step.action]
        if not self.live(name):
            return False
        self.ended[step.action] = step.kind
        if step.kind == "release":
            self.balance[name] += cost
            return True
        self.spent[name] += cost
        if rewardable and not step.flag:
            self.balance[name] += POLICY.reward(cost, step.units % 101)
        return True

    def _close(self, step: Step) -> bool:
        if not self.live(step.name) or self.outstanding(step.name):
            return False
        self.closed.add(step.name)
        return True


@dataclass(frozen=True)
class Step:
    """One attempted entry: `units` is an amount, a cost or a score; `flag` duplicate or repeat."""

    kind: str
    name: str
    action: str
    units: int
    flag: bool


def random_step(rng: random.Random, model: Model) -> Step:
    """Return a step that is often, but not always, allowed."""
    kind = rng.choice(KINDS)
    name = f"H{rng.randint(1, 4)}"
    known = sorted(model.actions)
    new = f"A{len(known) + 1}"
    action = new if kind == "reserve" and rng.random() < 0.9 else rng.choice(known or [new])
    units = rng.randint(-1, 40) if kind == "reserve" else rng.randint(0, 100)
    return Step(kind, name, action, units, rng.random() < 0.2)


def attempt(ledger: Ledger, step: Step, dispatch: int) -> bool:
    """Try a step on the real ledger; say whether it was taken."""
    try:
        if step.kind == "open":
            ledger.open(step.name, step.units, dispatch=dispatch)
        elif step.kind == "reserve":
            ledger.reserve(step.name, step.action, step.units, dispatch=dispatch, duplicate=step.flag)
        elif step.kind == "settle":
            ledger.settle(step.action, POLICY, step.units % 101, dispatch=dispatch, repeat=step.flag)
        elif step.kind == "release":
            ledger.release(step.action, dispatch=dispatch)
        else:
            ledger.close(step.name, "over", dispatch=dispatch)
    except DefectError:
        return False
    return True


class CrashError(Exception):
    """The process is gone."""


def commit(store: MemoryStore, head: Head, ledger: Ledger, rng: random.Random) -> None:
    """Publish the staged entries; sometimes crash before, sometimes after."""
    fate = rng.random()
    if fate < 0.15:
        raise CrashError
    piece = BudgetManager.stage(head, ledger)
    if piece is not None:
        put = {piece.path: piece.content}
        store.commit(head, Change(event="step", put=put, pointers={POINTER: piece.path}))
    if fate > 0.85:
        raise CrashError


def violations(model: Model, ledger: Ledger) -> list[str]:
    """Return where the folded ledger differs from the model or an invariant does not hold."""
    snapshot = ledger.snapshot()
    found = []
    balances = {name: account.balance for name, account in snapshot.accounts.items()}
    if balances != model.balance:
        found.append(f"balances {balances} instead of {model.balance}")
    outstanding = {a: cost for a, (_, cost, _) in model.actions.items() if a not in model.ended}
    if dict(snapshot.outstanding) != outstanding:
        found.append(f"outstanding {dict(snapshot.outstanding)} instead of {outstanding}")
    if {name for name, account in snapshot.accounts.items() if account.terminal} != model.closed:
        found.append("closed accounts differ")
    for name, account in snapshot.accounts.items():
        found.extend(_account(name, account, model, ledger))
    return found


def _account(name: str, account: Account, model: Model, ledger: Ledger) -> list[str]:
    total = sum(entry.amount for entry in ledger.entries if entry.hypothesis_id == name)
    wrong = {
        "negative": account.balance < 0,
        "sum": total != account.balance,
        "identity": account.opened != account.balance + account.reserved + account.spent - account.rewarded,
        "spent": account.spent != model.spent[name],
        "opened": account.opened != model.opened[name],
    }
    return [f"{name}: {what}" for what, is_wrong in wrong.items() if is_wrong]


def run_sequence(seed: int, steps: int) -> list[str]:
    """Run one random sequence; return what went wrong, empty when nothing did."""
    rng = random.Random(seed)
    store = MemoryStore()
    store.create("L", Change(event="made", lifecycle="RECEIVED"))
    manager = BudgetManager(store)
    model = Model()
    found: list[str] = []
    for number in range(1, steps + 1):
        step = random_step(rng, model)
        head = store.latest("L")
        ledger = manager.ledger(head)
        taken = attempt(ledger, step, number)
        if taken:
            _publish(store, manager, step, number, rng)
        if taken != model.apply(step):
            found.append(f"step {number} {step}: taken is {taken}")
        found.extend(violations(model, manager.ledger(store.latest("L"))))
    return [f"seed {seed}: {text}" for text in found]


def _publish(store: MemoryStore, manager: BudgetManager, step: Step, number: int, rng: random.Random) -> None:
    """Publish a step, starting again after each crash; done once the store shows it."""
    before = len(manager.ledger(store.latest("L")).entries)
    while len(manager.ledger(store.latest("L")).entries) == before:
        head = store.latest("L")
        ledger = manager.ledger(head)
        attempt(ledger, step, number)
        try:
            commit(store, head, ledger, rng)
        except CrashError:
            continue
