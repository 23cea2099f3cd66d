"""One attempt at one provider: reservation, the call itself, settlement, and its record.

An attempt never raises for what a provider does; it returns what became of it. What is written about it
holds no secret: keys are replaced by value before anything is decoded, cut or stored.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from resources.llm.accounting import (
    Amount,
    Ceiling,
    Journal,
    Ledger,
    PriceTable,
    amount_text,
    passes,
    worst_case_tokens,
)
from resources.llm.clock import Clock, iso
from resources.llm.config import LLMConfig, Price, RoundPolicy
from resources.llm.egress import Filtered
from resources.llm.keys import Redactor
from resources.llm.providers.base import (
    ErrorClass,
    Provider,
    ProviderFailure,
    ProviderReply,
    Tokens,
    invalid_answer,
)
from resources.llm.providers.http_provider import HttpProvider
from resources.llm.schema_dialects import drop_nulled
from viano_assets.canonical import strict_loads
from viano_assets.errors import ContractError
from viano_assets.phases.protocols import ModelRequest

MESSAGE_LIMIT = 300
SLOT_POLL_S = 0.01


class Link(NamedTuple):
    """One provider of a chain and the fingerprint of its configuration."""

    provider: Provider
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one attempt: its record, the reply's bytes and the decoded answer, if any."""

    record: dict[str, Any]
    raw: bytes | None = None
    answer: dict[str, Any] | None = None
    downgrade: str | None = None

    def journal_entry(self) -> dict[str, Any]:
        """Return the settled attempt as the journal keeps it."""
        raw = None if self.raw is None else base64.b64encode(self.raw).decode()
        return {"kind": "settle", "attempt": self.record, "raw": raw, "answer": self.answer}

    @classmethod
    def from_journal(cls, entry: Mapping[str, Any]) -> Attempt:
        """Return the attempt that `journal_entry` kept."""
        raw = entry["raw"]
        return cls(dict(entry["attempt"]), None if raw is None else base64.b64decode(raw), entry["answer"])


class Slot(NamedTuple):
    """Where an attempt stands: operation, round, order within the round and round within its series."""

    operation: str
    round_number: int
    order: int
    series_round: int

    @property
    def entry(self) -> str:
        """The attempt's id in ledger, journal and request header."""
        return f"{self.operation[:16]}-{self.round_number}-{self.order}"


class AttemptRunner:
    """Carries out attempts and accounts for them."""

    def __init__(
        self,
        config: LLMConfig,
        ledger: Ledger,
        clock: Clock,
        environ: Mapping[str, str],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._clock = clock
        self._environ = environ
        self._jitter = jitter
        self._prices = PriceTable(config)

    async def run(
        self,
        link: Link,
        request: ModelRequest,
        filtered: Filtered,
        slot: Slot,
        facts: Mapping[str, Any],
        spent: Amount,
        journal: Journal | None,
    ) -> Attempt | Ceiling:
        """Make one attempt, or name the ceiling that forbids it.

        Args:
            link: the provider.
            request: the original request, whose schema judges nulls.
            filtered: the request as it may leave.
            slot: the attempt's place.
            facts: case, package, revision and phase, for the ledger.
            spent: what the case has booked so far.
            journal: the case's journal; None for providers inside the process.
        """
        provider = link.provider
        base = self._base(link, filtered, slot)
        if not provider.remote or journal is None:
            return await self._call(provider, request, filtered, slot, base, None, Amount(0, None), (0, 0))
        price = self._prices.price(provider.name, provider.model)
        output = provider.output_tokens(request) if isinstance(provider, HttpProvider) else 0
        tokens = worst_case_tokens(filtered.request, output)
        worst = Amount(sum(tokens), PriceTable.cost(price, Tokens(tokens[0], 0, tokens[1])))
        base["reserved"] = {"tokens": worst.tokens, "cost": amount_text(worst.cost)}
        if price is None and self._config.refuses_unknown_price:
            return Ceiling("price_unknown", f"a price for {provider.name} {provider.model}", "", "")
        config = self._config
        ceiling = passes(spent, worst, config.max_cost, config.max_tokens, "case", config.currency)
        if ceiling is None:
            entry = {**facts, **self._entry(base, slot), **_booked(worst)}
            ceiling = self._ledger.reserve(entry, worst, config)
        if ceiling is not None:
            return ceiling
        open_attempt = _unknown(base, tokens, worst, "interrupted", "the process ended during the call")
        journal.write({"kind": "reserve", "attempt": open_attempt})
        attempt = await self._call(provider, request, filtered, slot, base, price, worst, tokens)
        journal.write(attempt.journal_entry())
        self._ledger.settle(
            {
                **facts,
                **self._entry(base, slot),
                "tokens": (attempt.record["tokens_in"] or 0) + (attempt.record["tokens_out"] or 0),
                "cost": attempt.record["cost"],
                "outcome": attempt.record["outcome"],
            }
        )
        return attempt

    def _base(self, link: Link, filtered: Filtered, slot: Slot) -> dict[str, Any]:
        provider = link.provider
        return {
            "entry": slot.entry,
            "provider": provider.name,
            "provider_fingerprint": link.fingerprint,
            "origin": provider.origin,
            "requested_model": provider.model,
            "at": iso(self._clock.now()),
            "egress": dict(sorted(filtered.applied.items())),
            "currency": self._config.currency,
            "reserved": {"tokens": 0, "cost": "0"},
        }

    @staticmethod
    def _entry(base: Mapping[str, Any], slot: Slot) -> dict[str, Any]:
        return {
            "entry": slot.entry,
            "operation": slot.operation,
            "round": slot.round_number,
            "provider": base["provider"],
            "model": base["requested_model"],
        }

    async def _call(
        self,
        provider: Provider,
        request: ModelRequest,
        filtered: Filtered,
        slot: Slot,
        base: dict[str, Any],
        price: Price | None,
        worst: Amount,
        worst_tokens: tuple[int, int],
    ) -> Attempt:
        redactor = self.redactor()
        async with _slot_of(provider):
            started = self._clock.monotonic()
            try:
                reply = await provider.complete(filtered.request, request_id=slot.entry)
                text = redactor.data(reply.text)
                answer = _decoded(reply, text, request)
            except ProviderFailure as failure:
                outcome: ProviderReply | ProviderFailure = failure
                text, answer = redactor.data(failure.text or b""), None
            else:
                outcome = reply
        base["latency_ms"] = max(0, round((self._clock.monotonic() - started) * 1_000))
        if isinstance(outcome, ProviderFailure) and outcome.unknown and provider.remote:
            message = _short(redactor, outcome.message)
            record = _unknown(base, worst_tokens, worst, outcome.code, message)
            record |= self._delivery(outcome, redactor) | self._failure(outcome, slot)
        else:
            record = {**base, **self._delivery(outcome, redactor)}
            record |= self._bill(provider, outcome, price, worst_tokens)
            record |= {"outcome": "answered", "error_class": None, "code": "", "message": ""}
            record |= {"not_before": None, "provider_wide": False}
            if isinstance(outcome, ProviderFailure):
                invalid = outcome.error_class is ErrorClass.INVALID_ANSWER
                record |= {"outcome": "invalid" if invalid else "failed"}
                record |= {"code": outcome.code, "message": _short(redactor, outcome.message)}
                record |= self._failure(outcome, slot)
        downgrade = outcome.downgrade if isinstance(outcome, ProviderFailure) else None
        return Attempt(record, text or None, answer, downgrade)

    def _delivery(self, outcome: ProviderReply | ProviderFailure, redactor: Redactor) -> dict[str, Any]:
        traffic = outcome.traffic
        return {
            "served_model": redactor.text(outcome.served_model)[:MESSAGE_LIMIT],
            "mode": outcome.mode,
            "unenforced": list(outcome.unenforced),
            "nulls_dropped": isinstance(outcome, ProviderReply) and outcome.nulled,
            "status": traffic.status,
            "sent_bytes": traffic.sent_bytes,
            "sent_sha256": traffic.sent_sha256,
            "received_bytes": traffic.received_bytes,
        }

    def _failure(self, failure: ProviderFailure, slot: Slot) -> dict[str, Any]:
        due = None
        if failure.error_class.retryable:
            seconds = wait_seconds(self._config.rounds, slot.series_round, failure.wait_s, self._jitter())
            due = iso(later(self._clock.now(), seconds))
        return {
            "error_class": failure.error_class.value,
            "not_before": due,
            "provider_wide": failure.provider_wide,
        }

    def _bill(
        self,
        provider: Provider,
        outcome: ProviderReply | ProviderFailure,
        price: Price | None,
        worst: tuple[int, int],
    ) -> dict[str, Any]:
        """Say what a finished attempt cost; a paid answer without usage is booked at its worst case."""
        price = self._prices.price(provider.name, outcome.served_model) or price
        tokens = outcome.tokens
        reported = tokens.total_in is not None and tokens.out is not None
        paid = isinstance(outcome, ProviderReply) or outcome.text is not None or reported
        if not provider.remote or not paid:
            tokens, price = Tokens(0, 0, 0), None
        elif not reported:
            tokens = Tokens(worst[0], 0, worst[1])
        free = not provider.remote or not paid
        cost = "0" if free else amount_text(PriceTable.cost(price, tokens))
        return {
            "tokens_in": tokens.total_in,
            "tokens_cached": tokens.cached,
            "tokens_out": tokens.out,
            "usage_reported": reported,
            "cached_share": _share(tokens),
            "cost": cost,
            "price": None if price is None else {"date": price.date, "source": price.source},
        }

    def redactor(self) -> Redactor:
        """Return what hides every key of the configuration."""
        variables = {settings.api_key_env for settings in self._config.providers.values()}
        return Redactor(self._environ.get(name, "").strip() for name in sorted(variables) if name)


def _booked(worst: Amount) -> dict[str, Any]:
    return {"tokens": worst.tokens, "cost": amount_text(worst.cost)}


def _unknown(
    base: Mapping[str, Any], tokens: tuple[int, int], worst: Amount, code: str, message: str
) -> dict[str, Any]:
    """Return the record of an attempt nobody knows the end of, booked at its worst case."""
    return {
        "latency_ms": 0,
        "served_model": "",
        "mode": "",
        "unenforced": [],
        "nulls_dropped": False,
        "status": 0,
        "sent_bytes": 0,
        "sent_sha256": "",
        "received_bytes": 0,
        **base,
        "outcome": "outcome_unknown",
        "error_class": ErrorClass.TRANSPORT.value,
        "code": code,
        "message": message,
        "not_before": None,
        "provider_wide": False,
        "tokens_in": tokens[0],
        "tokens_cached": None,
        "tokens_out": tokens[1],
        "usage_reported": False,
        "cached_share": None,
        "cost": amount_text(worst.cost),
        "price": None,
    }


def _decoded(reply: ProviderReply, text: bytes, request: ModelRequest) -> dict[str, Any]:
    """Decode an answer strictly; nothing is repaired.

    Raises:
        ProviderFailure: `invalid_answer` with the code of the rule that was broken.
    """
    try:
        value = strict_loads(text)
        problem = None if isinstance(value, dict) else ("not_an_object", "the answer is not a JSON object")
    except ContractError as error:
        value, problem = None, (error.code, error.message)
    except RecursionError:
        value, problem = None, ("nesting_depth", "the answer is nested too deeply")
    if problem is not None or not isinstance(value, dict):
        code, message = problem or ("not_an_object", "the answer is not a JSON object")
        failure = invalid_answer(
            code,
            message,
            text=text,
            tokens=reply.tokens,
            traffic=reply.traffic,
            served_model=reply.served_model,
        )
        failure.mode, failure.unenforced = reply.mode, reply.unenforced
        raise failure
    return dict(drop_nulled(request.json_schema, value)) if reply.nulled else value


@asynccontextmanager
async def _slot_of(provider: Provider) -> AsyncIterator[None]:
    """Take one of the provider's slots; they are shared by threads, so no event loop's lock can hold them."""
    if not isinstance(provider, HttpProvider):
        yield
        return
    while not provider.slots.acquire(blocking=False):  # noqa: ASYNC110  # an Event belongs to one loop only
        await asyncio.sleep(SLOT_POLL_S)
    try:
        yield
    finally:
        provider.slots.release()


def _short(redactor: Redactor, message: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in redactor.text(message))
    return " ".join(text.split())[:MESSAGE_LIMIT]


def _share(tokens: Tokens) -> float | None:
    if not tokens.total_in or tokens.cached is None:
        return None
    return round(min(tokens.cached, tokens.total_in) / tokens.total_in, 4)


def wait_seconds(policy: RoundPolicy, series_round: int, asked: float | None, jitter: float) -> float:
    """Return how long to wait: what the provider asked for, else the back-off; never above the maximum."""
    if asked is not None:
        return min(asked, policy.max_wait_s)
    backoff = policy.backoff_base_s * policy.backoff_factor ** min(series_round - 1, 64)
    return min(backoff * (1 + policy.jitter * jitter), policy.max_wait_s)


def later(moment: datetime, seconds: float) -> datetime:
    """Return `moment` plus `seconds`, saturating at the end of time."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=moment.tzinfo)
