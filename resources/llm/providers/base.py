"""What every provider does and how it fails; the runner knows providers only through this page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from viano_assets.phases.protocols import ModelRequest


class ErrorClass(StrEnum):
    """Why an attempt failed (docs/contracts.md, section 12)."""

    TRANSPORT = "transport"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    CONFIGURATION = "configuration"
    REFUSED = "refused"
    INVALID_ANSWER = "invalid_answer"
    TOO_LARGE = "too_large"

    @property
    def retryable(self) -> bool:
        """True when the same request may succeed later at the same provider."""
        return self in {ErrorClass.TRANSPORT, ErrorClass.RATE_LIMITED, ErrorClass.OVERLOADED}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts as the provider reported them; None where it said nothing usable.

    `total_in` includes the `cached` ones.
    """

    total_in: int | None = None
    cached: int | None = None
    out: int | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went over the wire: sizes in bytes, the hash of the body sent, the HTTP status (0: none)."""

    sent_bytes: int = 0
    sent_sha256: str = ""
    received_bytes: int = 0
    status: int = 0


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """A finished answer: `text` is the structured answer as the provider gave it, not yet decoded.

    `nulled`: the dialect made optional fields nullable, so a null may stand for an absent field.
    """

    text: bytes
    served_model: str = ""
    tokens: Tokens = Tokens()
    traffic: Traffic = Traffic()
    mode: str = ""
    unenforced: tuple[str, ...] = ()
    nulled: bool = False


class ProviderFailure(Exception):  # noqa: N818  # it is an outcome that the runner records, not an error
    """An attempt that gave no finished answer.

    Args:
        error_class: decides what the runner does next.
        code: stable refinement of the class.
        message: for people; the runner takes secrets out of it.
        wait_s: seconds the provider asked for, from either form of `Retry-After`.
        unknown: the request may have been carried out and charged though no answer arrived.
        provider_wide: a configuration failure that any request to this provider would meet.
        tokens, text, served_model: what was paid and said, for a refused or invalid answer.
        downgrade: another structured-output mode with which the same provider may accept the request.
    """

    def __init__(
        self,
        error_class: ErrorClass,
        code: str,
        message: str,
        *,
        wait_s: float | None = None,
        unknown: bool = False,
        provider_wide: bool = False,
        tokens: Tokens | None = None,
        text: bytes | None = None,
        served_model: str = "",
        traffic: Traffic | None = None,
        downgrade: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.error_class = error_class
        self.code = code
        self.message = message
        self.wait_s = wait_s
        self.unknown = unknown
        self.provider_wide = provider_wide
        self.tokens = tokens or Tokens()
        self.text = text
        self.served_model = served_model
        self.traffic = traffic or Traffic()
        self.downgrade = downgrade
        self.mode = ""
        self.unenforced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WireRequest:
    """The exact HTTP request of one attempt, without its key.

    `key_header` names the header that carries the key and `key_prefix` what stands before it.
    """

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    mode: str = ""
    unenforced: tuple[str, ...] = ()


class Provider(Protocol):
    """One configured provider. `remote` providers cost money or leave the process."""

    name: str
    model: str
    remote: bool
    origin: str

    def wire(self, request: ModelRequest) -> WireRequest | None:
        """Return the exact request that would be sent, or None for a provider inside the process.

        Raises:
            ProviderFailure: `inexpressible_schema` when the dialect cannot carry the schema's shape.
        """
        ...

    async def complete(self, request: ModelRequest, *, request_id: str) -> ProviderReply:
        """Carry out one attempt within the provider's deadline.

        Raises:
            ProviderFailure: every other outcome.
        """
        ...


def usable_count(value: Any) -> int | None:
    """Return a token count, or None for anything but a non-negative integer (`true` is none)."""
    return value if type(value) is int and 0 <= value < 10**12 else None


def envelope_error(message: str, **facts: Any) -> ProviderFailure:
    """Return the failure of a complete reply that is not in the provider's own format.

    The provider was reached and may have charged, so the outcome is unknown.
    """
    return ProviderFailure(ErrorClass.TRANSPORT, "bad_envelope", message, unknown=True, **facts)


def invalid_answer(code: str, message: str, **facts: Any) -> ProviderFailure:
    """Return the failure of an answer that was paid for and cannot be used."""
    return ProviderFailure(ErrorClass.INVALID_ANSWER, code, message, **facts)
