"""A model gateway that plays given replies and records every round as a generation, like the real one.

A saved accepted call is found by its operation and never asked again; an `Unusable` reply is recorded as
an invalid answer; a `Halted` reply is transport that did not answer, recorded too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.package.model import Change, Head
from viano_assets.phases.protocols import CallOutcome, ModelRequest, Operation, Store, Usage


@dataclass(frozen=True)
class Unusable:
    """A paid reply that is not one complete JSON object."""

    code: str = "truncated_output"
    raw: bytes = b'{"cut'


@dataclass(frozen=True)
class Halted:
    """Transport that gave no answer."""

    status: Literal["retry_pending", "deferred", "blocked"]
    code: str = "transport"
    not_before: str | None = None


Reply = Mapping[str, Any] | Unusable | Halted
Script = Sequence[Reply] | Callable[[ModelRequest], Reply]

USAGE = Usage(tokens_in=100, tokens_out=10, seconds=0.1)


@dataclass
class ScriptedGateway:
    """Implements `ModelGateway` over a list of replies or a function of the request."""

    script: Script
    requests: list[ModelRequest] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """Number of provider rounds carried out."""
        return len(self.requests)

    def _reply(self, request: ModelRequest) -> Reply:
        self.requests.append(request)
        if callable(self.script):
            return self.script(request)
        if len(self.requests) > len(self.script):
            raise AssertionError(f"the script has no reply number {len(self.requests)}")
        return self.script[len(self.requests) - 1]

    async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
        """Return the saved answer of the operation or play the next reply and record it."""
        head = head or store.latest(operation.case_id, operation.package_id)
        folder = call_folder(operation)
        rounds = sorted(p for p in head.files if p.startswith(f"{folder}/round-"))
        for path in rounds:
            saved = self._outcome(store, head, path)
            if saved.status in {"answered", "invalid"}:
                return saved
        self.operations.append(operation)
        reply = self._reply(operation.request)
        path = f"{folder}/round-{len(rounds) + 1:04d}.json"
        change = Change(
            event="model_round_recorded",
            phase=operation.phase.value,
            put={path: canonical_json(_record(operation, reply))},
            detail={"status": _status(reply)},
        )
        return self._outcome(store, store.commit(head, change), path)

    @staticmethod
    def _outcome(store: Store, head: Head, path: str) -> CallOutcome:
        record: Any = strict_loads(store.read(head, path))
        return CallOutcome(
            status=record["status"],
            head=head,
            answer=record["answer"],
            call_path=path,
            call_sha256=head.files[path].sha256,
            not_before=record["not_before"],
            code=record["code"],
            message=record["code"],
            usage=USAGE,
        )

    def spend(self, store: Store, head: Head) -> Usage:
        """Sum the recorded rounds of the current revision."""
        del store
        rounds = [p for p in head.files if f"/{head.revision:04d}/calls/" in p]
        return Usage(tokens_in=100 * len(rounds), tokens_out=10 * len(rounds), seconds=0.1 * len(rounds))


def call_folder(operation: Operation) -> str:
    """Return the folder of an operation's rounds."""
    identity = [
        operation.request.sha256,
        operation.case_id,
        operation.package_id,
        operation.analysis_revision,
        operation.attempt_id,
    ]
    name = sha256_hex(canonical_json(identity))[:16]
    return f"analysis/{operation.phase.value}/{operation.analysis_revision:04d}/calls/{name}"


def _status(reply: Reply) -> str:
    if isinstance(reply, Unusable):
        return "invalid"
    return reply.status if isinstance(reply, Halted) else "answered"


def _record(operation: Operation, reply: Reply) -> dict[str, Any]:
    return {
        "schema": "scripted-call-v1",
        "case_id": operation.case_id,
        "package_id": operation.package_id,
        "analysis_revision": operation.analysis_revision,
        "phase": operation.phase.value,
        "attempt_id": operation.attempt_id,
        "request": operation.request.model_dump(mode="json"),
        "request_sha256": operation.request.sha256,
        "status": _status(reply),
        "answer": dict(reply) if isinstance(reply, Mapping) else None,
        "code": "" if isinstance(reply, Mapping) else reply.code,
        "not_before": reply.not_before if isinstance(reply, Halted) else None,
    }
