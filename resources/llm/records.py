"""How a round is kept: `analysis/<phase>/NNNN/calls/<operation16>/round-RRRR.json`, the raw reply beside it.

The record (schema `model-round-v1`) holds the operation's identity, every attempt with its outcome, tokens,
money and time, what was skipped and why, and the decoded answer when there is one. The checkpoint of its
generation repeats the small facts, so that the state of an operation and the spend of a revision are read
from the history alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from resources.llm.accounting import Amount, amount_value
from resources.llm.clock import parse_iso
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.package.model import Head
from viano_assets.phases.protocols import Operation, Usage
from viano_assets.phases.rounds import ROUND_RECORDED, model_rounds

SCHEMA = "model-round-v1"

RoundOutcome = Literal["answered", "invalid", "failed", "blocked", "unknown"]


def operation_id(operation: Operation) -> str:
    """Return the operation's identity: its request hash with case, package, revision, phase and attempt."""
    return sha256_hex(
        canonical_json(
            {
                "case_id": operation.case_id,
                "package_id": operation.package_id,
                "analysis_revision": operation.analysis_revision,
                "phase": operation.phase.value,
                "attempt_id": operation.attempt_id,
                "request_sha256": operation.request.sha256,
            }
        )
    )


def calls_dir(operation: Operation) -> str:
    """Return the folder of an operation's rounds."""
    revision = f"{operation.analysis_revision:04d}"
    return f"analysis/{operation.phase.value}/{revision}/calls/{operation_id(operation)[:16]}"


@dataclass(frozen=True, slots=True)
class PastRound:
    """The facts of one recorded round, as its checkpoint tells them.

    `label` is the retry id under which its series runs (empty: the first series); `excluded` names
    providers that must not get this request again in the series, with the reason.
    """

    number: int
    outcome: RoundOutcome
    code: str
    message: str
    at: datetime
    not_before: datetime | None
    fingerprint: str
    label: str
    path: str
    sha256: str
    excluded: Mapping[str, str]
    generation: int


@dataclass(frozen=True, slots=True)
class ProviderState:
    """What the revision last learned about one provider configuration."""

    state: Literal["ok", "cooling", "configuration"]
    not_before: datetime | None
    label: str
    at: datetime
    code: str


def past_rounds(head: Head, operation: Operation) -> list[PastRound]:
    """Return the recorded rounds of an operation in order."""
    wanted = operation_id(operation)
    found: list[PastRound] = []
    for checkpoint in head.checkpoints:
        detail = checkpoint.detail
        if checkpoint.event != ROUND_RECORDED or detail.get("operation") != wanted:
            continue
        path = str(detail["path"])
        found.append(
            PastRound(
                number=int(detail["round"]),
                outcome=detail["outcome"],
                code=str(detail["code"]),
                message=str(detail["message"]),
                at=parse_iso(detail["at"]),
                not_before=_moment(detail["not_before"]),
                fingerprint=str(detail["fingerprint"]),
                label=str(detail["retry_id"] or ""),
                path=path,
                sha256=checkpoint.declares[path],
                excluded=dict(detail["excluded"]),
                generation=checkpoint.generation,
            )
        )
    return found


def provider_states(head: Head) -> dict[str, ProviderState]:
    """Return what the current revision last learned about each provider, by provider fingerprint."""
    found: dict[str, ProviderState] = {}
    for checkpoint in model_rounds(head, head.revision):
        for entry in checkpoint.detail["providers"]:
            found[entry["fingerprint"]] = ProviderState(
                entry["state"],
                _moment(entry["not_before"]),
                str(checkpoint.detail["retry_id"] or ""),
                parse_iso(checkpoint.detail["at"]),
                str(entry["code"]),
            )
    return found


def _moment(text: object) -> datetime | None:
    return parse_iso(text) if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class SpendReport:
    """What the recorded calls cost.

    `known_cost` sums the calls whose price is known and `unpriced` counts the others; `unknown` counts
    attempts whose outcome nobody knows, which are contained at their worst case.
    """

    calls: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    known_cost: Decimal
    unpriced: int
    unknown: int
    seconds: float

    @property
    def cached_share(self) -> float | None:
        """Cached input tokens as a share of all input tokens; None without input."""
        return self.tokens_cached / self.tokens_in if self.tokens_in else None

    def usage(self) -> Usage:
        """Return the phases' form; the cost is None as soon as one call's price is unknown."""
        cost = None if self.unpriced else float(self.known_cost)
        return Usage(self.tokens_in, self.tokens_cached, self.tokens_out, cost, self.seconds)

    def amount(self) -> Amount:
        """Return what counts against a ceiling."""
        return Amount(self.tokens_in + self.tokens_out, self.known_cost)


def spend_report(head: Head, revision: int | None = None) -> SpendReport:
    """Sum the recorded calls of one revision, or of the whole case when `revision` is None."""
    totals = [
        checkpoint.detail["spend"]
        for checkpoint in head.checkpoints
        if checkpoint.event == ROUND_RECORDED and revision in {None, checkpoint.revision}
    ]
    return _sum(totals)


def _sum(totals: Sequence[Mapping[str, Any]]) -> SpendReport:
    return SpendReport(
        calls=sum(int(total["calls"]) for total in totals),
        tokens_in=sum(int(total["tokens_in"]) for total in totals),
        tokens_cached=sum(int(total["tokens_cached"]) for total in totals),
        tokens_out=sum(int(total["tokens_out"]) for total in totals),
        known_cost=sum((amount_value(total["cost"]) or Decimal(0) for total in totals), Decimal(0)),
        unpriced=sum(int(total["unpriced"]) for total in totals),
        unknown=sum(int(total["unknown"]) for total in totals),
        seconds=sum(int(total["milliseconds"]) for total in totals) / 1_000,
    )


def spend_of(attempts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the spend of one round's attempts, in the checkpoint's form."""
    costs = [amount_value(attempt["cost"]) for attempt in attempts]
    return {
        "calls": len(attempts),
        "tokens_in": sum(attempt["tokens_in"] or 0 for attempt in attempts),
        "tokens_cached": sum(attempt["tokens_cached"] or 0 for attempt in attempts),
        "tokens_out": sum(attempt["tokens_out"] or 0 for attempt in attempts),
        "cost": format(sum((cost for cost in costs if cost is not None), Decimal(0)), "f"),
        "unpriced": sum(cost is None for cost in costs),
        "unknown": sum(attempt["outcome"] == "outcome_unknown" for attempt in attempts),
        "milliseconds": sum(attempt["latency_ms"] for attempt in attempts),
    }


def usage_of(spend: Mapping[str, Any]) -> Usage:
    """Return the phases' form of one round's spend."""
    return _sum([spend]).usage()


def recorded_answers(head: Head, operation: Operation) -> Iterator[PastRound]:
    """Yield the rounds that ended an operation: an answer, or one that was paid for and cannot be used."""
    yield from (past for past in past_rounds(head, operation) if past.outcome in {"answered", "invalid"})
