"""What the four HTTP adapters share: key, exact bytes, one exchange, classification, reply reading."""

from __future__ import annotations

import json
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from resources.llm.clock import Clock
from resources.llm.config import ProviderSettings
from resources.llm.keys import guard_logs, read_key, usable_key
from resources.llm.providers import sse
from resources.llm.providers.addresses import Resolver, system_resolver
from resources.llm.providers.base import (
    ErrorClass,
    ProviderFailure,
    ProviderReply,
    Tokens,
    Traffic,
    WireRequest,
    envelope_error,
    invalid_answer,
)
from resources.llm.providers.http import (
    CLIENT_REQUEST_ID,
    HttpLimits,
    HttpReply,
    HttpSender,
    TransportFactory,
)
from resources.llm.providers.status import classify
from resources.llm.schema_dialects import Dialect, InexpressibleSchema, Transport, transport_schema
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.phases.protocols import Message, ModelRequest

MODES = ("json_schema", "json_object", "prompted")
"""Ways to ask for structure, strongest first."""

UNENFORCED_WHOLE = "/ everything: the schema stands in the prompt only"

INSTRUCTION = (
    "Answer with exactly one JSON object that satisfies this JSON schema: no code fence, no text before"
    " or after it.\n"
)


class Payload(NamedTuple):
    """The JSON body of one request and what its schema form leaves open."""

    path: str
    body: Mapping[str, Any]
    unenforced: tuple[str, ...]
    nulled: bool


class Finished(NamedTuple):
    """What an adapter read from a reply: text, served model, token counts."""

    text: bytes
    served_model: str
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The injected outside of a provider."""

    clock: Clock
    environ: Mapping[str, str]
    transport: TransportFactory | None = None
    resolver: Resolver = system_resolver
    tls: ssl.SSLContext | None = None


class HttpProvider(ABC):
    """One provider reached over HTTP.

    Args:
        name: the provider's name in the configuration.
        settings: its settings.
        around: clock, environment, transport and resolver.
    """

    remote: bool = True
    key_header: ClassVar[str] = "authorization"
    key_prefix: ClassVar[str] = "Bearer "

    def __init__(self, name: str, settings: ProviderSettings, around: Surroundings) -> None:
        self.name = name
        self.model = settings.model
        self.origin = settings.origin
        self.settings = settings
        self._around = around
        self._mode = self.first_mode()
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._sender = HttpSender(
            HttpLimits(
                settings.deadline_s,
                settings.connect_timeout_s,
                settings.max_wire_bytes,
                settings.max_decoded_bytes,
                settings.allow_loopback,
                settings.allow_private,
            ),
            transport=around.transport,
            resolver=around.resolver,
            tls=around.tls,
        )

    @abstractmethod
    def payload(self, request: ModelRequest, mode: str) -> Payload:
        """Build the request body in this provider's format."""

    @abstractmethod
    def read(self, envelope: dict[str, Any]) -> Finished:
        """Read a whole reply; raises ProviderFailure for every end that is no finished answer."""

    @abstractmethod
    def read_stream(self, events: Sequence[sse.Event]) -> Finished:
        """Read a streamed reply; raises ProviderFailure as `read`, also when no terminal event came."""

    def first_mode(self) -> str:
        """Return the mode to begin with."""
        return MODES[0] if self.settings.structured == "auto" else self.settings.structured

    @property
    def mode(self) -> str:
        """The structured-output mode in use."""
        return self._mode

    def use_mode(self, mode: str) -> None:
        """Ask for structure in another way from now on (feature detection)."""
        self._mode = mode

    @property
    def slots(self) -> threading.BoundedSemaphore:
        """The provider's bounded concurrency, shared by all threads and event loops."""
        return self._slots

    def output_tokens(self, request: ModelRequest) -> int:
        """Return the ceiling of output tokens of one call."""
        return min(request.limits.max_output_tokens, self.settings.max_output_tokens or 10**9)

    def wire(self, request: ModelRequest) -> WireRequest:
        """Return the exact request, without its key.

        Raises:
            ProviderFailure: `inexpressible_schema`.
        """
        return self._wire(request)[0]

    def _wire(self, request: ModelRequest) -> tuple[WireRequest, bool]:
        mode = self._mode
        try:
            built = self.payload(request, mode)
        except InexpressibleSchema as error:
            raise ProviderFailure(ErrorClass.CONFIGURATION, "inexpressible_schema", str(error)) from None
        body = json.dumps(built.body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        wire = WireRequest(
            url=self.settings.url + built.path,
            body=body,
            headers={"content-type": "application/json", **self.extra_headers()},
            key_header=self.key_header,
            key_prefix=self.key_prefix,
            mode=mode,
            unenforced=built.unenforced,
        )
        return wire, built.nulled

    def extra_headers(self) -> Mapping[str, str]:
        """Return headers of the wire format besides content type and key."""
        return {}

    async def complete(self, request: ModelRequest, *, request_id: str) -> ProviderReply:
        """Carry out one exchange.

        Raises:
            ProviderFailure: every outcome but a finished answer.
        """
        wire, nulled = self._wire(request)
        traffic = Traffic(len(wire.body), sha256_hex(wire.body))
        try:
            headers = {**wire.headers, CLIENT_REQUEST_ID: request_id, **self._key(wire)}
            reply = await self._sender.post(
                wire.url, headers, wire.body, deadline_s=float(request.limits.deadline_s)
            )
            traffic = replace(traffic, received_bytes=reply.wire_bytes, status=reply.status)
            finished = self._finish(reply, request_id)
        except ProviderFailure as failure:
            failure.traffic = traffic
            if failure.code == "unauthorized":
                variable = self.settings.api_key_env
                remedy = f"check the key in {variable}" if variable else f"set api_key_env of {self.name}"
                failure.message = f"{remedy}: {failure.message}"
            failure.mode, failure.unenforced = wire.mode, wire.unenforced
            raise
        return ProviderReply(
            finished.text, finished.served_model, finished.tokens, traffic, wire.mode, wire.unenforced, nulled
        )

    def _key(self, wire: WireRequest) -> dict[str, str]:
        variable = self.settings.api_key_env
        if not variable:
            return {}
        key = read_key(self._around.environ, variable)
        if key is None:
            raise ProviderFailure(
                ErrorClass.CONFIGURATION, "key_missing", f"{variable} is not set", provider_wide=True
            )
        if not usable_key(key):
            raise ProviderFailure(
                ErrorClass.CONFIGURATION,
                "key_malformed",
                f"{variable} holds a character that no key has",
                provider_wide=True,
            )
        guard_logs(key)
        return {wire.key_header: wire.key_prefix + key}

    def _finish(self, reply: HttpReply, request_id: str) -> Finished:
        echoed = reply.headers.get(CLIENT_REQUEST_ID, request_id)
        if echoed != request_id:
            raise ProviderFailure(
                ErrorClass.TRANSPORT, "foreign_reply", "the reply belongs to another request", unknown=True
            )
        if reply.status != 200:
            raise classify(reply, self._around.clock.now(), downgrade=self._next_mode())
        if "event-stream" in reply.headers.get("content-type", ""):
            return self.read_stream(list(sse.events(reply.body)))
        return self.read(sse.json_object(reply.body, "the reply"))

    def _next_mode(self) -> str | None:
        if self.settings.structured != "auto" or self._mode not in MODES[:-1]:
            return None
        return MODES[MODES.index(self._mode) + 1]


def dialect_schema(request: ModelRequest, dialect: Dialect) -> Transport:
    """Return the contract's schema in a dialect."""
    return transport_schema(request.json_schema, dialect)


def schema_name(request: ModelRequest) -> str:
    """Return the contract's name as schema names may be spelled."""
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in request.contract)[:64] or "answer"


def instruction(request: ModelRequest) -> str:
    """Return the sentence and schema for servers that take structure only from the prompt."""
    return INSTRUCTION + canonical_json(request.json_schema).decode()


def merged(messages: Sequence[Message]) -> list[Message]:
    """Join neighbouring messages of one role; many chat templates demand alternating roles."""
    result: list[Message] = []
    for message in messages:
        if result and result[-1].role == message.role:
            text = f"{result[-1].content}\n\n{message.content}"
            result[-1] = Message(role=message.role, content=text)
        else:
            result.append(message)
    return result


def text_of(value: Any, what: str) -> str:
    """Return a text of the envelope.

    Raises:
        ProviderFailure: `bad_envelope`.
    """
    if not isinstance(value, str):
        raise envelope_error(f"{what} is no text")
    return value


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object of the envelope, or an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[dict[str, Any]]:
    """Return the JSON objects of an envelope's list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def truncated(text: bytes, model: str, tokens: Tokens) -> ProviderFailure:
    """Return the failure of an answer cut at the output limit, however complete it looks."""
    return invalid_answer(
        "truncated_output",
        "the provider stopped at the output limit",
        text=text,
        served_model=model,
        tokens=tokens,
    )


def refused(
    code: str, message: str, model: str, tokens: Tokens, text: bytes | None = None
) -> ProviderFailure:
    """Return the failure of a refusal, with what it cost."""
    return ProviderFailure(ErrorClass.REFUSED, code, message, text=text, served_model=model, tokens=tokens)


def error_in_reply(error: Any) -> ProviderFailure:
    """Return the failure of an error object inside a reply that claimed success."""
    detail = mapping(error)
    words = " ".join(str(detail.get(key, "")) for key in ("type", "code", "status")).lower()
    message = str(detail.get("message", ""))[:500] or "the reply holds an error"
    if "overloaded" in words:
        return ProviderFailure(ErrorClass.OVERLOADED, "overloaded", message, unknown=True)
    if "rate_limit" in words:
        return ProviderFailure(ErrorClass.RATE_LIMITED, "rate_limited", message, unknown=True)
    return ProviderFailure(ErrorClass.TRANSPORT, "error_in_reply", message, unknown=True)
