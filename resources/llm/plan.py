"""Decides, from the recorded rounds alone, whether an operation may be sent now, later or not at all.

A *series* is a run of rounds under one provider configuration and one retry id. Its rounds are bounded. A
new retry id opens the next series only when the last one is exhausted or blocked; it never shortens a
wait. Due times are compared with the clock at which they were set: a clock that was put back makes them
due instead of holding a case for a day, and no wait is longer than the policy's maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from resources.llm.config import RoundPolicy
from resources.llm.records import PastRound, ProviderState

TOLERANCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Halt:
    """The operation is not sent now."""

    status: Literal["retry_pending", "deferred", "blocked"]
    code: str
    message: str
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Go:
    """The operation is sent: under which retry label, as which round of the series, without whom."""

    label: str
    series_round: int
    excluded: Mapping[str, str] = field(default_factory=dict)


class Skipped(NamedTuple):
    """A provider that is not asked in this round."""

    provider: str
    reason: str
    not_before: datetime | None


def due_at(not_before: datetime | None, at: datetime, now: datetime, policy: RoundPolicy) -> datetime | None:
    """Return when a wait set at `at` ends, or None when it has ended."""
    if not_before is None or now < at - TOLERANCE:
        return None
    limit = at + timedelta(seconds=policy.max_wait_s)
    due = min(not_before, limit)
    return None if now >= due else due


def plan(
    rounds: Sequence[PastRound], fingerprint: str, retry_id: str | None, now: datetime, policy: RoundPolicy
) -> Go | Halt:
    """Return what may happen with an operation that has no accepted answer yet."""
    mine = [past for past in rounds if past.fingerprint == fingerprint]
    if not mine:
        return Go(retry_id or "", 1)
    last = mine[-1]
    waiting = due_at(last.not_before, last.at, now, policy)
    if waiting is not None:
        return Halt("retry_pending", last.code, last.message, waiting)
    series = [past for past in mine if past.label == last.label]
    ended = _ended(series, policy)
    if ended is None:
        return Go(last.label, len(series) + 1, dict(last.excluded))
    used = {past.label for past in mine}
    if retry_id is not None and retry_id not in used:
        return Go(retry_id, 1)
    return ended


def _ended(series: Sequence[PastRound], policy: RoundPolicy) -> Halt | None:
    last = series[-1]
    if last.outcome == "blocked":
        return Halt("blocked", last.code, last.message)
    if len(series) >= policy.max_rounds:
        return exhausted(policy, last.message)
    return None


def exhausted(policy: RoundPolicy, message: str) -> Halt:
    """Return the halt after the last allowed round."""
    return Halt(
        "blocked",
        "rounds_exhausted",
        f"{policy.max_rounds} rounds failed, the last with: {message}; when the provider works again,"
        " resume the case and run it with a new --retry-id",
    )


def skip(
    provider: str,
    state: ProviderState | None,
    label: str,
    excluded: Mapping[str, str],
    now: datetime,
    policy: RoundPolicy,
) -> Skipped | None:
    """Return why a provider is not asked in this round, or None.

    A provider that refused this request or its own configuration is not asked again in the series; one
    whose configuration failed in this revision waits for a new retry id; one that asked for time gets it.
    """
    if provider in excluded:
        return Skipped(provider, excluded[provider], None)
    if state is None or state.state == "ok":
        return None
    if state.state == "configuration":
        reopened = bool(label) and label != state.label
        return None if reopened else Skipped(provider, "configuration", None)
    due = due_at(state.not_before, state.at, now, policy)
    return None if due is None else Skipped(provider, "cooling", due)
