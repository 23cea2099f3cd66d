"""Money and tokens: prices, worst cases, ceilings, the day ledger and the journal of the running call.

Every attempt at a remote provider is one entry of the day ledger, written and synced before anything is
sent and settled afterwards. An attempt whose outcome nobody knows (a time-out after sending, a killed
process) stays booked at its worst case. The journal of a case holds the attempts of the running round;
it is cleared when the round stands in the package, so whatever is found in it later belongs to a round
that was interrupted: its answer is recovered or its attempt is booked as `outcome_unknown`. Holding the
journal's lock also keeps two processes from calling for one case at once.

Amounts are decimal strings in the configuration's currency; a missing price is null, never zero.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from resources.llm.clock import Clock, iso
from resources.llm.config import LLMConfig, Price
from resources.llm.providers.base import Tokens
from viano_assets.canonical import canonical_json, strict_loads
from viano_assets.errors import BusyError, ContractError
from viano_assets.phases.protocols import ModelRequest

MILLION = Decimal(1_000_000)
OVERHEAD_TOKENS = 256
"""Tokens a provider may add around messages and schema."""


class Amount(NamedTuple):
    """Tokens (in plus out) and money; `cost` is None when the price is unknown."""

    tokens: int
    cost: Decimal | None


def worst_case_tokens(request: ModelRequest, max_output: int) -> tuple[int, int]:
    """Return the most tokens a call can take in and put out.

    A byte-level tokenizer never makes more tokens than bytes, so the bytes of messages and schema bound the
    input; the output is bounded by its own ceiling.
    """
    sent = sum(len(message.content.encode()) for message in request.messages)
    return sent + len(canonical_json(request.json_schema)) + OVERHEAD_TOKENS, max_output


class PriceTable:
    """Prices of the configuration, found by provider and model."""

    def __init__(self, config: LLMConfig) -> None:
        self._prices = {(price.provider, price.model): price for price in config.prices}

    def price(self, provider: str, *models: str) -> Price | None:
        """Return the price of the first model that has one, or None."""
        return next((p for m in models if (p := self._prices.get((provider, m))) is not None), None)

    @staticmethod
    def cost(price: Price | None, tokens: Tokens) -> Decimal | None:
        """Return what the counted tokens cost, or None when the price or a count is unknown."""
        if price is None or tokens.total_in is None or tokens.out is None:
            return None
        cached = min(tokens.cached or 0, tokens.total_in)
        cached_price = price.input if price.cached is None else price.cached
        total = (tokens.total_in - cached) * price.input + cached * cached_price + tokens.out * price.output
        return (total / MILLION).normalize() + Decimal(0)


def amount_text(cost: Decimal | None) -> str | None:
    """Return the stored form of an amount."""
    return None if cost is None else format(cost, "f")


def amount_value(text: object) -> Decimal | None:
    """Return the amount that `amount_text` wrote."""
    return Decimal(text) if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A ceiling that a reservation would pass: which one, its limit, what is spent and what was asked."""

    code: str
    limit: str
    spent: str
    wanted: str


class Ledger:
    """The day ledgers and case journals below one folder.

    Args:
        folder: `HOME/spend`; None keeps everything in memory, for tests and for offline-only use.
        clock: names the day (UTC) of an entry.
    """

    def __init__(self, folder: Path | None, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._memory: dict[str, list[bytes]] = {}
        self._held: set[str] = set()
        self._guard = threading.Lock()

    @contextmanager
    def journal(self, case_id: str) -> Iterator[Journal]:
        """Hold the journal of a case.

        Raises:
            BusyError: `call_in_flight` when another dispatch calls for this case.
        """
        if self._folder is None:
            with self._memory_lock(case_id):
                yield Journal(self._memory.setdefault(f"journal/{case_id}", []), None)
            return
        path = self._folder / "inflight" / f"{case_id}.journal"
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _busy(case_id) from None
            yield Journal(_lines(descriptor), descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _memory_lock(self, case_id: str) -> Iterator[None]:
        with self._guard:
            if case_id in self._held:
                raise _busy(case_id)
            self._held.add(case_id)
        try:
            yield
        finally:
            with self._guard:
                self._held.discard(case_id)

    def reserve(self, entry: Mapping[str, Any], worst: Amount, ceilings: LLMConfig) -> Ceiling | None:
        """Write the reservation of one attempt, unless it would pass a day ceiling.

        Returns:
            The ceiling that stands in the way; nothing is written then.
        """
        with self._locked():
            refused = self._day_ceiling(worst, ceilings)
            if refused is None:
                self._append({"kind": "reserve", "at": iso(self._clock.now()), **entry})
            return refused

    def settle(self, entry: Mapping[str, Any]) -> None:
        """Write how an attempt ended; `day` names the ledger that holds its reservation."""
        with self._locked():
            self._append({"kind": "settle", "at": iso(self._clock.now()), **entry})

    def day(self) -> str:
        """Return today's name, `YYYY-MM-DD` in UTC."""
        return self._clock.now().strftime("%Y-%m-%d")

    def entries(self, day: str) -> list[dict[str, Any]]:
        """Return the entries of one day in order; a torn last line never was acknowledged and is left out.

        Raises:
            ContractError: `ledger_damaged` naming the line.
        """
        lines = self._read(day)
        found: list[dict[str, Any]] = []
        for number, line in enumerate(lines, start=1):
            try:
                value = strict_loads(line)
            except ContractError as error:
                if number == len(lines):
                    break
                raise _damaged(day, number) from error
            if not isinstance(value, dict):
                raise _damaged(day, number)
            found.append(value)
        return found

    def day_total(self, day: str | None = None) -> Amount:
        """Return what a day has booked: settled amounts, and reservations that were never settled."""
        booked: dict[str, Amount] = {}
        for entry in self.entries(day or self.day()):
            booked[str(entry["entry"])] = Amount(int(entry["tokens"]), amount_value(entry["cost"]))
        costs = [amount.cost for amount in booked.values() if amount.cost is not None]
        return Amount(sum(amount.tokens for amount in booked.values()), sum(costs, Decimal(0)))

    def _day_ceiling(self, worst: Amount, config: LLMConfig) -> Ceiling | None:
        if config.max_cost_per_day is None and config.max_tokens_per_day is None:
            return None
        spent = self.day_total()
        return passes(
            spent, worst, config.max_cost_per_day, config.max_tokens_per_day, "day", config.currency
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._guard:
            if self._folder is None:
                yield
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(
                self._folder / "ledger.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)

    def _path(self, day: str) -> Path:
        assert_folder = self._folder or Path()
        return assert_folder / f"{day}.jsonl"

    def _read(self, day: str) -> list[bytes]:
        if self._folder is None:
            return list(self._memory.get(day, []))
        path = self._path(day)
        return path.read_bytes().splitlines() if path.is_file() else []

    def _append(self, entry: Mapping[str, Any]) -> None:
        line = canonical_json({"schema": "spend-ledger-v1", **entry})
        if self._folder is None:
            self._memory.setdefault(self.day(), []).append(line)
            return
        path = self._path(self.day())
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.ftruncate(descriptor, _whole_lines(descriptor, size))
            _write_all(descriptor, line + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not size:
            _sync_folder(path.parent)


class Journal:
    """The attempts of the round that runs now, durable before and after each call."""

    def __init__(self, lines: list[bytes], descriptor: int | None) -> None:
        self._lines = lines
        self._descriptor = descriptor

    def left_over(self) -> list[dict[str, Any]]:
        """Return what an interrupted round left behind; a torn last line never was acknowledged."""
        found: list[dict[str, Any]] = []
        for line in self._lines:
            try:
                value = strict_loads(line)
            except ContractError:
                break
            if isinstance(value, dict):
                found.append(value)
        return found

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append one entry and sync it."""
        line = canonical_json(entry)
        self._lines.append(line)
        if self._descriptor is not None:
            os.lseek(self._descriptor, 0, os.SEEK_END)
            _write_all(self._descriptor, line + b"\n")
            os.fsync(self._descriptor)

    def clear(self) -> None:
        """Forget the round: it stands in the package now."""
        self._lines.clear()
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.fsync(self._descriptor)


def passes(
    spent: Amount, worst: Amount, max_cost: Decimal | None, max_tokens: int | None, scope: str, currency: str
) -> Ceiling | None:
    """Return the ceiling that `spent + worst` would pass, or None."""
    if max_tokens is not None and spent.tokens + worst.tokens > max_tokens:
        return Ceiling(f"{scope}_token_ceiling", f"{max_tokens} tokens", str(spent.tokens), str(worst.tokens))
    booked = spent.cost or Decimal(0)
    if max_cost is not None and worst.cost is not None and booked + worst.cost > max_cost:
        return Ceiling(
            f"{scope}_cost_ceiling",
            f"{format(max_cost, 'f')} {currency}",
            format(booked, "f"),
            format(worst.cost, "f"),
        )
    return None


def _busy(case_id: str) -> BusyError:
    return BusyError(
        "call_in_flight",
        "another process is calling a model for this case",
        where=f"case {case_id}",
        hint="wait for it to end, then run the same command",
    )


def _damaged(day: str, number: int) -> ContractError:
    return ContractError(
        "ledger_damaged",
        "an entry of the spend ledger cannot be read",
        where=f"spend/{day}.jsonl, line {number}",
        hint="restore the file from a backup, or move it away to start the day's count anew",
    )


def _lines(descriptor: int) -> list[bytes]:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).splitlines() if size else []


def _whole_lines(descriptor: int, size: int) -> int:
    return os.pread(descriptor, size, 0).rfind(b"\n") + 1


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
