"""`CaseLLMRunner`: durable rounds over an ordered chain of providers; the only retry loop there is.

One dispatch finds the recorded end of an operation or carries out at most one round: every provider of
the chain in order until one answers. Nobody sleeps; a due time is recorded and the worker is free. What
was paid for is in the journal before it is in the package, so that neither a killed process nor a lost
race makes us pay a second time (module `accounting`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from resources.llm import draft as drafts
from resources.llm import plan as plans
from resources.llm.accounting import Amount, Ceiling, Journal, Ledger, amount_value
from resources.llm.attempts import Attempt, AttemptRunner, Link, Slot
from resources.llm.clock import Clock, iso
from resources.llm.config import LLMConfig
from resources.llm.draft import RoundDraft
from resources.llm.egress import EgressFilter, Filtered
from resources.llm.plan import Go, Halt, Skipped
from resources.llm.providers.http_provider import HttpProvider
from resources.llm.records import (
    PastRound,
    operation_id,
    past_rounds,
    provider_states,
    recorded_answers,
    spend_report,
)
from viano_assets.errors import BusyError, DefectError, InputError, StaleHeadError
from viano_assets.package.model import Head
from viano_assets.phases.protocols import CallOutcome, Operation, Store

COMMIT_PATIENCE_S = 20.0
"""How long a paid answer waits for a busy case before the journal keeps it for the next dispatch."""

COMMIT_PAUSE_S = 0.02
MAX_DOWNGRADES = 2
MAX_RETRY_ID = 200

FaultPoint = Callable[[str], None]


def _no_fault(name: str) -> None:
    del name


@dataclass(slots=True)
class _Round:
    """The round being carried out."""

    operation: Operation
    number: int
    go: Go
    filtered: Filtered
    journal: Journal | None
    spent: Amount
    attempts: list[Attempt] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    ceilings: list[Ceiling] = field(default_factory=list)


class CaseLLMRunner:
    """Carries out durable model operations over one chain of providers.

    Args:
        links: the providers in order with their fingerprints.
        fingerprint: the chain's fingerprint.
        config: policy, ceilings, prices and egress rules.
        attempts: makes the single attempts.
        ledger: the ledgers and journals.
        clock: wall and monotonic time.
        fault: named points at which a test may stop the process.
    """

    def __init__(
        self,
        links: Sequence[Link],
        fingerprint: str,
        config: LLMConfig,
        attempts: AttemptRunner,
        ledger: Ledger,
        clock: Clock,
        fault: FaultPoint = _no_fault,
    ) -> None:
        self._links = tuple(links)
        self._fingerprint = fingerprint
        self._config = config
        self._attempts = attempts
        self._ledger = ledger
        self._clock = clock
        self._egress = EgressFilter(config.egress)
        self._fault = fault
        self._remote = any(link.provider.remote for link in self._links)

    async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
        """Return the recorded end of the operation, or carry out and record at most one round.

        A chain that may cost something reads the head once more under the journal's lock; recording
        never relies on the caller's `head` still being the newest.

        Raises:
            BusyError: another process calls a model for the case.
            StaleHeadError: `revision_moved` when the case was reopened meanwhile.
            InputError: `invalid_retry_id`.
            ContractError: a recorded round is not what its checkpoint says.
        """
        _check_retry_id(operation.retry_id)
        head = self._of_revision(operation, head or store.latest(operation.case_id, operation.package_id))
        saved = self._saved(store, head, operation)
        if saved is not None:
            return saved
        with self._ledger.journal(operation.case_id) if self._remote else nullcontext(None) as journal:
            if journal is not None:
                newest = store.latest(operation.case_id, operation.package_id)
                head = await self._recover(store, self._of_revision(operation, newest), journal)
                saved = self._saved(store, head, operation)
                if saved is not None:
                    return saved
            return await self._next_round(store, head, operation, journal)

    @staticmethod
    def _of_revision(operation: Operation, head: Head) -> Head:
        if head.revision != operation.analysis_revision:
            raise StaleHeadError(
                "revision_moved",
                f"the operation belongs to analysis revision {operation.analysis_revision}",
                where=f"case {head.case_id}, generation {head.generation}",
                hint="run the case again; its current revision is another one",
            )
        return head

    @staticmethod
    def _saved(store: Store, head: Head, operation: Operation) -> CallOutcome | None:
        past = next(recorded_answers(head, operation), None)
        return None if past is None else drafts.replay(store, head, operation, past)

    async def _next_round(
        self, store: Store, head: Head, operation: Operation, journal: Journal | None
    ) -> CallOutcome:
        rounds = past_rounds(head, operation)
        now = self._clock.now()
        planned = plans.plan(rounds, self._fingerprint, operation.retry_id, now, self._config.rounds)
        if isinstance(planned, Halt):
            return _halted(planned, head)
        running = _Round(
            operation,
            len(rounds) + 1,
            planned,
            self._egress.apply(operation.request),
            journal,
            spend_report(head).amount(),
        )
        if journal is not None:
            journal.write({"kind": "round", "header": self._header(running)})
        await self._walk_chain(head, running)
        return await self._finish(store, head, running, now)

    async def _walk_chain(self, head: Head, running: _Round) -> None:
        states = provider_states(head)
        now = self._clock.now()
        for link in self._links:
            name = link.provider.name
            state = states.get(link.fingerprint)
            skipped = plans.skip(name, state, running.go.label, running.go.excluded, now, self._config.rounds)
            if skipped is not None:
                running.skipped.append(skipped)
                continue
            attempt = await self._try(link, running)
            if attempt is None:
                continue
            outcome = attempt.record["outcome"]
            if outcome in {"answered", "invalid"}:
                return
            if outcome == "outcome_unknown" and self._config.rounds.after_unknown == "stop":
                return

    async def _try(self, link: Link, running: _Round) -> Attempt | None:
        """Try one provider, again in a weaker structured-output mode when it rejects the stronger one."""
        last: Attempt | None = None
        for _ in range(MAX_DOWNGRADES + 1):
            slot = Slot(
                operation_id(running.operation),
                running.number,
                len(running.attempts) + 1,
                running.go.series_round,
            )
            facts = {
                "case_id": running.operation.case_id,
                "package_id": running.operation.package_id,
                "analysis_revision": running.operation.analysis_revision,
                "phase": running.operation.phase.value,
            }
            spent = _plus(running.spent, running.attempts)
            made = await self._attempts.run(
                link, running.operation.request, running.filtered, slot, facts, spent, running.journal
            )
            if isinstance(made, Ceiling):
                running.ceilings.append(made)
                running.skipped.append(Skipped(link.provider.name, made.code, None))
                return last
            self._fault("attempt_settled")
            running.attempts.append(made)
            last = made
            if made.downgrade is None or not isinstance(link.provider, HttpProvider):
                return made
            link.provider.use_mode(made.downgrade)
        return last

    async def _finish(self, store: Store, head: Head, running: _Round, now: datetime) -> CallOutcome:
        if not running.attempts:
            if running.journal is not None:
                running.journal.clear()
            return _halted(self._unsent(running, now), head)
        draft = RoundDraft.of(
            self._header(running),
            running.attempts,
            running.skipped,
            self._config.rounds,
            iso(self._clock.now()),
        )
        if running.ceilings and draft.code in drafts.BLOCKED_CODES and not draft.due:
            draft = draft.with_ceiling(self._ceiling(running.ceilings[0], now))
        head, past = await self._publish(store, head, running.operation, draft)
        self._fault("round_recorded")
        if running.journal is not None:
            running.journal.clear()
        return drafts.outcome(head, draft, past, running.go, self._config.rounds)

    def _header(self, running: _Round) -> dict[str, Any]:
        return drafts.header(running.operation, self._fingerprint, running.go)

    def _unsent(self, running: _Round, now: datetime) -> Halt:
        """Say why nothing could be sent: ceilings, waiting providers, or known configuration failures."""
        if running.ceilings:
            return self._ceiling(running.ceilings[0], now)
        dues = [skipped.not_before for skipped in running.skipped if skipped.not_before is not None]
        if dues:
            return Halt("retry_pending", "cooling", "every provider asked for time", min(dues))
        names = ", ".join(f"{skipped.provider} ({skipped.reason})" for skipped in running.skipped)
        return Halt(
            "blocked",
            "provider_configuration",
            f"no provider can be asked again with this configuration: {names};"
            " mend it, resume the case and run it with a new --retry-id",
        )

    def _ceiling(self, ceiling: Ceiling, now: datetime) -> Halt:
        if ceiling.code == "price_unknown":
            return Halt(
                "blocked",
                ceiling.code,
                f"money has a ceiling but llm.toml does not hold {ceiling.limit};"
                ' add it, or set unknown_price = "allow"',
            )
        message = (
            f"the next call may take {ceiling.wanted} on top of {ceiling.spent}; the limit is {ceiling.limit}"
        )
        if ceiling.code.startswith("day_"):
            tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            return Halt("deferred", ceiling.code, message, tomorrow)
        return Halt("blocked", ceiling.code, message)

    async def _publish(
        self, store: Store, head: Head, operation: Operation, draft: RoundDraft
    ) -> tuple[Head, PastRound]:
        """Commit the round on whatever the head is by now; what was paid for is never dropped.

        Raises:
            BusyError: the case stayed busy; the journal keeps the round for the next dispatch.
        """
        end = self._clock.monotonic() + COMMIT_PATIENCE_S
        while True:
            try:
                head = store.commit(head, draft.change(len(past_rounds(head, operation)) + 1))
                break
            except (StaleHeadError, BusyError) as error:
                if self._clock.monotonic() > end:
                    raise
                if isinstance(error, BusyError):
                    await asyncio.sleep(COMMIT_PAUSE_S)
            head = store.latest(operation.case_id, operation.package_id)
        rounds = past_rounds(head, operation)
        if not rounds:
            raise DefectError("round_lost", "a committed round is not in the history", where=head.case_id)
        first = next(recorded_answers(head, operation), rounds[-1])
        return head, first

    async def _recover(self, store: Store, head: Head, journal: Journal) -> Head:
        """Record what an interrupted round left in the journal: its answer, or what nobody knows."""
        entries = journal.left_over()
        if not entries:
            journal.clear()
            return head
        interrupted = drafts.interrupted(entries, head, self._config.rounds, iso(self._clock.now()))
        if interrupted is not None:
            operation_hash = str(interrupted.header["operation"])
            number = 1 + sum(
                checkpoint.detail.get("operation") == operation_hash for checkpoint in head.checkpoints
            )
            head = store.commit(head, interrupted.change(number))
        journal.clear()
        return head


def _check_retry_id(retry_id: str | None) -> None:
    if retry_id is None:
        return
    if not retry_id.strip() or len(retry_id) > MAX_RETRY_ID or not retry_id.isprintable():
        raise InputError(
            "invalid_retry_id",
            f"the retry id is blank, longer than {MAX_RETRY_ID} characters or unprintable",
            hint="use a short word such as new-key",
        )


def _plus(spent: Amount, attempts: Sequence[Attempt]) -> Amount:
    tokens = sum((a.record["tokens_in"] or 0) + (a.record["tokens_out"] or 0) for a in attempts)
    costs = [amount_value(a.record["cost"]) or Decimal(0) for a in attempts]
    return Amount(spent.tokens + tokens, (spent.cost or Decimal(0)) + sum(costs, Decimal(0)))


def _halted(halt: Halt, head: Head) -> CallOutcome:
    return CallOutcome(
        halt.status,
        head,
        not_before=None if halt.not_before is None else iso(halt.not_before),
        code=halt.code,
        message=halt.message,
    )
