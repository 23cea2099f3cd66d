"""What the phases need from outside, as protocols; `resources` implements them.

Phases know a model only as `ModelGateway`, tools only as `CaseTools`, storage only as `Store`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.evidence.model import EvidenceRecord, ToolResult
from viano_assets.package.model import Change, Head


class Phase(StrEnum):
    """The phases in order; the values are also the asset selection of `--until`."""

    INTERPRETATION = "interpretation"
    HYPOTHESES = "hypotheses"
    INVESTIGATION = "investigation"
    DIAGNOSIS = "diagnosis"
    CHANGE_REQUEST = "change_request"


class DispatchStatus(StrEnum):
    """How one dispatch ended (docs/contracts.md, section 11)."""

    COMPLETED = "COMPLETED"
    PROGRESSED = "PROGRESSED"
    """An investigation dispatch was published and the loop is not done; dispatch again."""
    REJECTED = "REJECTED"
    RETRY_PENDING = "RETRY_PENDING"
    DEFERRED = "DEFERRED"
    BLOCKED = "BLOCKED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """The outcome of one dispatch.

    `not_before` (UTC, ISO 8601 with Z) accompanies RETRY_PENDING and DEFERRED; `code` and `hint` are
    stable and for people; `replayed` says that a finished phase was verified without a model call.
    """

    phase: Phase
    status: DispatchStatus
    head: Head
    code: str = ""
    message: str = ""
    hint: str = ""
    not_before: str | None = None
    replayed: bool = False


class Message(BaseModel):
    """One chat message. User content is one canonical JSON object `{"section": name, "data": …}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    role: Literal["system", "user", "assistant"]
    content: str


class RequestLimits(BaseModel):
    """Ceilings of one call: output tokens and total seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    max_output_tokens: int = 8_192
    deadline_s: int = 180


class ModelRequest(BaseModel):
    """One provider-neutral request; `stable_messages` leading messages are the cacheable prefix."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    phase: str
    contract: str
    prompt_version: str
    messages: tuple[Message, ...]
    json_schema: dict[str, Any]
    limits: RequestLimits = RequestLimits()
    stable_messages: int = 1

    def canonical(self) -> bytes:
        """Return the canonical bytes whose hash identifies the request."""
        return canonical_json(self.model_dump(mode="json"))

    @property
    def sha256(self) -> str:
        """Hash of the canonical form."""
        return sha256_hex(self.canonical())

    def sections(self, name: str) -> list[Any]:
        """Return the data of every user message whose section is `name`, in order."""
        return sections_of(self.messages, name)


def sections_of(messages: Iterable[Message], name: str) -> list[Any]:
    """Return the data of every user message whose section is `name`, in order."""
    found: list[Any] = []
    for message in messages:
        if message.role == "user":
            value = strict_loads(message.content.encode())
            if isinstance(value, dict) and value.get("section") == name:
                found.append(value["data"])
    return found


def section(name: str, data: object) -> Message:
    """Build the user message that carries `data` as section `name`."""
    return Message(role="user", content=canonical_json({"section": name, "data": data}).decode())


@dataclass(frozen=True, slots=True)
class Operation:
    """One durable model operation of a phase.

    Its identity is the request hash with case, package, revision and attempt; `retry_id` reopens an
    exhausted or misconfigured transport operation and nothing else (seed 000).
    """

    case_id: str
    package_id: str
    analysis_revision: int
    phase: Phase
    attempt_id: str
    request: ModelRequest
    retry_id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost: token counts, money in the price table's currency (None = price unknown), seconds."""

    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What became of an operation; `head` is the package after the round was recorded.

    answered: `answer` holds the strictly decoded JSON object, `call_path` its record.
    invalid: the provider answered, paid and recorded, but not with one complete JSON object.
    retry_pending, deferred, blocked: transport; `not_before` says when, `code` why.
    """

    status: Literal["answered", "invalid", "retry_pending", "deferred", "blocked"]
    head: Head
    answer: Mapping[str, Any] | None = None
    call_path: str | None = None
    call_sha256: str | None = None
    not_before: str | None = None
    code: str = ""
    message: str = ""
    usage: Usage = Usage()


class Store(Protocol):
    """The case store as the phases use it (implemented by `viano_assets.package.store.CheckpointStore`)."""

    def latest(self, case_id: str, package_id: str | None = None, audit_history: bool = False) -> Head:
        """Return the validated head; see docs/contracts.md for every guarantee."""
        ...

    def read(self, head: Head, path: str) -> bytes:
        """Return one artifact's bytes, hashed at the read."""
        ...

    def open(self, head: Head, path: str) -> BinaryIO:
        """Open one artifact for streaming; closing checks its hash."""
        ...

    def commit(self, head: Head, change: Change) -> Head:
        """Publish the next generation if and only if `head` still is the head."""
        ...

    def lock(self, case_id: str) -> AbstractContextManager[None]:
        """Take the non-blocking case lock without waiting; BusyError when another holds it."""
        ...


class ModelGateway(Protocol):
    """Anything that carries out one round of a durable model operation."""

    async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
        """Find the saved answer of `operation` or carry out at most one provider round and record it.

        Args:
            store: where the round is recorded.
            operation: what is asked.
            head: the case's head as the caller has just validated it; None reads it anew.
        """
        ...

    def spend(self, store: Store, head: Head) -> Usage:
        """Sum the recorded calls of the head's current analysis revision."""
        ...


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it: name, one-line purpose, JSON schema of the arguments, cost in units."""

    name: str
    purpose: str
    arguments: Mapping[str, Any]
    cost: int


class CaseTools(Protocol):
    """The read-only tools opened on one head's redacted inputs."""

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that can be asked for in this case, in stable order."""
        ...

    def overview(self) -> dict[str, Any]:
        """Say what is there without contents: source roots and languages, tables with completeness, logs."""
        ...

    def check(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """Return why these arguments are outside the tool's contract, or None."""
        ...

    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one tool; every failure is a result with completeness `unavailable`."""
        ...

    def still_holds(self, record: EvidenceRecord) -> str | None:
        """Re-resolve a record against the inputs; return what no longer holds, or None."""
        ...


class ToolFactory(Protocol):
    """Opens the tools for a head."""

    def open(self, store: Store, head: Head) -> CaseTools:
        """Open (and where needed build and cache) the views and indices of this head's inputs."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of live progress; `detail` holds numbers for a program."""

    case_id: str
    phase: str
    text: str
    detail: Mapping[str, Any]


ProgressSink = Callable[[Progress], None]
