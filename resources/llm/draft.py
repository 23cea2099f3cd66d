"""What a finished round is: its outcome from its attempts, its record, its change, its replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from resources.llm.attempts import Attempt
from resources.llm.clock import iso
from resources.llm.config import RoundPolicy
from resources.llm.plan import Go, Halt, Skipped, exhausted
from resources.llm.providers.base import ErrorClass
from resources.llm.records import (
    SCHEMA,
    PastRound,
    RoundOutcome,
    calls_dir,
    operation_id,
    spend_of,
    usage_of,
)
from resources.llm.schema_dialects import drop_nulled
from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.errors import ContractError
from viano_assets.package.model import Change, Head
from viano_assets.phases.protocols import CallOutcome, Operation, Store
from viano_assets.phases.rounds import ROUND_RECORDED

BLOCKED_CODES: Mapping[str, str] = {
    ErrorClass.CONFIGURATION.value: "provider_configuration",
    ErrorClass.TOO_LARGE.value: "request_too_large",
    ErrorClass.REFUSED.value: "provider_refused",
}
"""Error classes that no retry cures, with the code of the block, most actionable first."""

_MENDED = "mend it, resume the case and run it with a new --retry-id"


def header(operation: Operation, fingerprint: str, go: Go) -> dict[str, Any]:
    """Return what identifies a round apart from its number."""
    return {
        "case_id": operation.case_id,
        "package_id": operation.package_id,
        "analysis_revision": operation.analysis_revision,
        "phase": operation.phase.value,
        "attempt_id": operation.attempt_id,
        "contract": operation.request.contract,
        "prompt_version": operation.request.prompt_version,
        "request_sha256": operation.request.sha256,
        "operation": operation_id(operation),
        "folder": calls_dir(operation),
        "fingerprint": fingerprint,
        "retry_id": go.label or None,
        "series_round": go.series_round,
        "excluded": dict(sorted(go.excluded.items())),
    }


@dataclass(frozen=True, slots=True)
class RoundDraft:
    """A round that has ended and is not yet recorded."""

    header: Mapping[str, Any]
    attempts: Sequence[Mapping[str, Any]]
    skipped: Sequence[Skipped]
    at: str
    outcome: RoundOutcome
    code: str
    message: str
    due: str | None
    raw: bytes | None
    answer: Mapping[str, Any] | None

    @classmethod
    def of(
        cls,
        head: Mapping[str, Any],
        attempts: Sequence[Attempt],
        skipped: Sequence[Skipped],
        policy: RoundPolicy,
        at: str,
    ) -> RoundDraft:
        """Derive the outcome of a round from its attempts."""
        last = attempts[-1]
        records = [attempt.record for attempt in attempts]
        base = cls(head, records, tuple(skipped), at, "failed", "", "", None, None, None)
        if last.record["outcome"] == "answered":
            return replace(base, outcome="answered", raw=last.raw, answer=last.answer)
        if last.record["outcome"] == "invalid":
            record = last.record
            return replace(
                base, outcome="invalid", code=record["code"], message=record["message"], raw=last.raw
            )
        if last.raw is not None:
            base = replace(base, raw=last.raw)
        if last.record["outcome"] == "outcome_unknown" and policy.after_unknown == "stop":
            message = (
                f"{_told(last.record)}; nobody knows whether it was carried out: run with a new --retry-id"
            )
            return replace(base, outcome="blocked", code="outcome_unknown", message=message)
        return base.without_answer()

    def without_answer(self) -> RoundDraft:
        """Return the draft with the outcome of a round in which nobody answered."""
        finals = {record["provider"]: record for record in self.attempts}
        pending = [r for r in finals.values() if ErrorClass(r["error_class"]).retryable]
        dues = [str(r["not_before"]) for r in pending if r["not_before"] is not None]
        dues += [iso(skipped.not_before) for skipped in self.skipped if skipped.not_before is not None]
        if pending or dues:
            record = pending[-1] if pending else None
            code = record["error_class"] if record else "cooling"
            message = _told(record) if record else "the remaining providers asked for time"
            return replace(
                self, outcome="failed", code=str(code), message=message, due=min(dues, default=None)
            )
        classes = [ErrorClass(record["error_class"]).value for record in finals.values()]
        chosen = next(name for name in BLOCKED_CODES if name in classes)
        told = "; ".join(_told(record) for record in finals.values())
        return replace(
            self, outcome="blocked", code=BLOCKED_CODES[chosen], message=f"{told}; {_MENDED}"[:1_000]
        )

    def with_ceiling(self, halt: Halt) -> RoundDraft:
        """Return the round as ended by a ceiling: pending, so that a raised ceiling lets it go on."""
        due = None if halt.not_before is None else iso(halt.not_before)
        return replace(self, outcome="failed", code=halt.code, message=halt.message, due=due)

    def excluded(self) -> dict[str, str]:
        """Return the providers that the series does not ask again."""
        found = dict(self.header["excluded"])
        finals = {record["provider"]: record for record in self.attempts}
        for name, record in finals.items():
            if record["outcome"] == "failed" and not ErrorClass(record["error_class"]).retryable:
                found[name] = record["error_class"]
        return dict(sorted(found.items()))

    def states(self) -> list[dict[str, Any]]:
        """Return what the round taught about each provider it asked."""
        finals = {record["provider_fingerprint"]: record for record in self.attempts}
        return [_state(fingerprint, record) for fingerprint, record in sorted(finals.items())]

    def record(self, number: int) -> dict[str, Any]:
        """Return the round's record."""
        facts = {key: value for key, value in self.header.items() if key not in {"folder", "excluded"}}
        reply = None
        if self.raw is not None:
            reply = {
                "path": self.reply_path(number),
                "sha256": sha256_hex(self.raw),
                "bytes": len(self.raw),
            }
        return {
            "schema": SCHEMA,
            **facts,
            "round": number,
            "at": self.at,
            "outcome": self.outcome,
            "code": self.code,
            "message": self.message,
            "not_before": self.due,
            "attempts": [dict(attempt) for attempt in self.attempts],
            "skipped": [_skipped(skipped) for skipped in self.skipped],
            "spend": spend_of(self.attempts),
            "reply": reply,
            "answer": self.answer,
        }

    def path(self, number: int) -> str:
        """Return where the record of round `number` lies."""
        return f"{self.header['folder']}/round-{number:04d}.json"

    def reply_path(self, number: int) -> str:
        """Return where its raw reply lies."""
        return f"{self.header['folder']}/round-{number:04d}.reply.txt"

    def change(self, number: int) -> Change:
        """Return the generation that records the round as number `number` of its operation."""
        put: dict[str, bytes] = {self.path(number): canonical_json(self.record(number))}
        if self.raw is not None:
            put[self.reply_path(number)] = self.raw
        return Change(
            event=ROUND_RECORDED,
            phase=str(self.header["phase"]),
            put=put,
            detail={
                "operation": self.header["operation"],
                "path": self.path(number),
                "round": number,
                "outcome": self.outcome,
                "code": self.code,
                "message": self.message,
                "at": self.at,
                "not_before": self.due,
                "fingerprint": self.header["fingerprint"],
                "retry_id": self.header["retry_id"],
                "excluded": self.excluded(),
                "providers": self.states(),
                "spend": spend_of(self.attempts),
            },
        )


def _state(fingerprint: str, record: Mapping[str, Any]) -> dict[str, Any]:
    state = "ok"
    if record["provider_wide"]:
        state = "configuration"
    elif record["not_before"] is not None:
        state = "cooling"
    return {
        "fingerprint": fingerprint,
        "state": state,
        "not_before": record["not_before"],
        "code": record["code"],
    }


def _skipped(skipped: Skipped) -> dict[str, Any]:
    due = None if skipped.not_before is None else iso(skipped.not_before)
    return {"provider": skipped.provider, "reason": skipped.reason, "not_before": due}


def _told(record: Mapping[str, Any]) -> str:
    return f"{record['provider']}: {record['message']} ({record['code']})"


def outcome(head: Head, draft: RoundDraft, past: PastRound, go: Go, policy: RoundPolicy) -> CallOutcome:
    """Return the phases' view of a round that was just recorded as `past`."""
    usage = usage_of(spend_of(draft.attempts))
    facts: dict[str, Any] = {"call_path": past.path, "call_sha256": past.sha256, "usage": usage}
    if draft.outcome == "answered":
        return CallOutcome("answered", head, answer=draft.answer, **facts)
    if draft.outcome == "invalid":
        return CallOutcome("invalid", head, code=draft.code, message=draft.message, **facts)
    if draft.outcome == "blocked":
        return CallOutcome("blocked", head, code=draft.code, message=draft.message, **facts)
    if draft.code.endswith("_ceiling") or draft.code == "price_unknown":
        return CallOutcome(
            "deferred" if draft.due else "blocked",
            head,
            not_before=draft.due,
            code=draft.code,
            message=draft.message,
            **facts,
        )
    if go.series_round >= policy.max_rounds:
        halt = exhausted(policy, draft.message)
        return CallOutcome("blocked", head, code=halt.code, message=halt.message, **facts)
    return CallOutcome(
        "retry_pending", head, not_before=draft.due, code=draft.code, message=draft.message, **facts
    )


def replay(store: Store, head: Head, operation: Operation, past: PastRound) -> CallOutcome:
    """Return the recorded end of an operation after checking that the record still is what was recorded.

    Raises:
        ContractError: `call_record_mismatch` when record, checkpoint, request and raw reply do not agree.
    """
    entry = head.files.get(past.path)
    if entry is None or entry.sha256 != past.sha256:
        raise _mismatch(head, past, "the record is not the one its generation declared")
    record: Any = strict_loads(store.read(head, past.path))
    if record["operation"] != operation_id(operation) or record["request_sha256"] != operation.request.sha256:
        raise _mismatch(head, past, "the record belongs to another request")
    facts: dict[str, Any] = {
        "call_path": past.path,
        "call_sha256": past.sha256,
        "usage": usage_of(record["spend"]),
    }
    if record["outcome"] == "invalid":
        return CallOutcome("invalid", head, code=record["code"], message=record["message"], **facts)
    raw = store.read(head, record["reply"]["path"])
    answer: Any = strict_loads(raw)
    if record["attempts"][-1]["nulls_dropped"]:
        answer = drop_nulled(operation.request.json_schema, answer)
    if canonical_json(answer) != canonical_json(record["answer"]):
        raise _mismatch(head, past, "the answer is not what the raw reply says")
    return CallOutcome("answered", head, answer=answer, **facts)


def _mismatch(head: Head, past: PastRound, why: str) -> ContractError:
    return ContractError(
        "call_record_mismatch",
        f"a recorded model call cannot be trusted: {why}",
        where=f"case {head.case_id}, generation {head.generation}, {past.path}",
        hint="run `viano case verify`; restore the package or reopen the case",
    )


def interrupted(
    entries: Sequence[Mapping[str, Any]], head: Head, policy: RoundPolicy, at: str
) -> RoundDraft | None:
    """Return the round that a journal tells of, or None when the package already holds it or never will.

    A settled attempt is taken as it was; an attempt without its end is booked as `outcome_unknown`.
    """
    first = entries[0]
    if first.get("kind") != "round":
        return None
    facts: Mapping[str, Any] = first["header"]
    if facts["package_id"] != head.manifest.package_id:
        return None
    attempts = _journalled(entries[1:])
    if not attempts or _recorded(head, str(attempts[0].record["entry"]), str(facts["operation"])):
        return None
    draft = RoundDraft.of(facts, attempts, (), policy, at)
    if draft.outcome == "failed" and attempts[-1].record["code"] == "interrupted":
        return replace(draft, outcome="unknown", code="outcome_unknown", due=None)
    return draft


def _journalled(entries: Sequence[Mapping[str, Any]]) -> list[Attempt]:
    settled = {entry["attempt"]["entry"]: entry for entry in entries if entry["kind"] == "settle"}
    found: list[Attempt] = []
    for entry in entries:
        if entry["kind"] != "reserve":
            continue
        name = entry["attempt"]["entry"]
        found.append(
            Attempt.from_journal(settled[name]) if name in settled else Attempt(dict(entry["attempt"]))
        )
    return found


def _recorded(head: Head, entry: str, operation: str) -> bool:
    """Say whether the round of this attempt is in the package: entries number rounds as they are recorded."""
    number = int(entry.split("-")[1])
    return any(
        checkpoint.event == ROUND_RECORDED
        and checkpoint.detail["operation"] == operation
        and checkpoint.detail["round"] >= number
        for checkpoint in head.checkpoints
    )
