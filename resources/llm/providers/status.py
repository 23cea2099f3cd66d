"""Classifies a reply that is no success: HTTP status, error body and `Retry-After` in both forms."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from resources.llm.providers.base import ErrorClass, ProviderFailure
from resources.llm.providers.http import HttpReply
from viano_assets.canonical import strict_loads
from viano_assets.errors import ContractError

_QUOTA = (
    "insufficient_quota",
    "quota_exhausted",
    "billing_hard_limit",
    "billing_not_active",
    "credit balance",
)
_TOO_LONG = (
    "context_length_exceeded",
    "exceed_context_size",
    "string_above_max_length",
    "prompt is too long",
    "maximum context length",
    "request_too_large",
    "exceeds the maximum number of tokens",
)
_FILTERED = ("content_filter", "content_policy_violation", "responsible_ai_policy")
_SCHEMA = (
    "response_format",
    "json_schema",
    "output_config",
    "response_json_schema",
    "grammar",
    "text.format",
)


class ErrorBody(NamedTuple):
    """The readable part of an error reply: machine words, a sentence, a wait; each possibly empty."""

    word: str
    message: str
    wait_s: float | None = None


def error_body(data: bytes) -> ErrorBody:
    """Read the documented error shapes of all providers; anything else gives empty texts."""
    try:
        value = strict_loads(data)
    except ContractError:
        return ErrorBody("", "")
    if isinstance(value, list) and value:
        value = value[0]
    inner: Any = value.get("error", value) if isinstance(value, dict) else None
    if isinstance(inner, str):
        return ErrorBody("", inner)
    if not isinstance(inner, dict):
        return ErrorBody("", "")
    words = [inner.get(key) for key in ("code", "type", "status")]
    message = inner.get("message", "")
    return ErrorBody(
        " ".join(word for word in words if isinstance(word, str)),
        message if isinstance(message, str) else "",
        _retry_info(inner.get("details")),
    )


def _retry_info(details: Any) -> float | None:
    """Read Gemini's `RetryInfo` (google.rpc), a duration such as `34s`."""
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and delay.endswith("s") and delay[:-1].replace(".", "", 1).isdigit():
            return float(delay[:-1])
    return None


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds a `Retry-After` asks for (RFC 9110, 10.2.3); None for anything unusable.

    Negative and past values ask for nothing; the policy's own back-off then applies.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12]) if int(text[:12]) > 0 else None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - now).total_seconds()
    return seconds if seconds > 0 else None


def _mentions(texts: tuple[str, ...], body: ErrorBody) -> bool:
    text = f"{body.word} {body.message}".lower()
    return any(word in text for word in texts)


def _sentence(status: int, body: ErrorBody) -> str:
    return f"HTTP {status}" + (f": {body.message}" if body.message else "")


def classify(reply: HttpReply, now: datetime, *, downgrade: str | None = None) -> ProviderFailure:
    """Return the failure that a reply other than 200 stands for.

    Args:
        reply: the reply.
        now: the wall time against which a date is read.
        downgrade: the structured-output mode to try when the provider refuses the current one.
    """
    status, body = reply.status, error_body(reply.body)
    message = _sentence(status, body)
    waited = retry_after(reply.headers.get("retry-after"), now)
    wait = body.wait_s if waited is None else waited
    return _temporary(status, body, message, wait) or _lasting(status, body, message, downgrade)


def _temporary(status: int, body: ErrorBody, message: str, wait: float | None) -> ProviderFailure | None:
    if status == 402 or (status == 429 and _mentions(_QUOTA, body)):
        return _configuration("quota_exhausted", message)
    if status == 429:
        return ProviderFailure(ErrorClass.RATE_LIMITED, "rate_limited", message, wait_s=wait)
    if status in {503, 529}:
        return ProviderFailure(ErrorClass.OVERLOADED, "overloaded", message, wait_s=wait)
    if status in {408, 409, 425} or status >= 500:
        return ProviderFailure(ErrorClass.TRANSPORT, f"http_{status}", message, wait_s=wait)
    if 200 < status < 300:
        return ProviderFailure(
            ErrorClass.TRANSPORT, "empty_reply", f"HTTP {status} has no answer", unknown=True
        )
    return None


def _lasting(status: int, body: ErrorBody, message: str, downgrade: str | None) -> ProviderFailure:
    if 300 <= status < 400:
        return _configuration("redirect_refused", f"HTTP {status}: redirects are not followed")
    if status == 413 or _mentions(_TOO_LONG, body):
        return ProviderFailure(ErrorClass.TOO_LARGE, "request_too_large", message)
    if _mentions(_FILTERED, body):
        return ProviderFailure(ErrorClass.REFUSED, "content_filter", message)
    if status in {401, 403}:
        return _configuration("unauthorized", message)
    if status == 404:
        return _configuration("unknown_model_or_path", message)
    return _bad_request(status, body, message, downgrade)


def _bad_request(status: int, body: ErrorBody, message: str, downgrade: str | None) -> ProviderFailure:
    text = f"{body.word} {body.message}".lower()
    if "api key not valid" in text or "api_key_invalid" in text:
        return _configuration("unauthorized", message)
    if any(word in text for word in _SCHEMA):
        return ProviderFailure(ErrorClass.CONFIGURATION, "schema_rejected", message, downgrade=downgrade)
    return ProviderFailure(ErrorClass.CONFIGURATION, f"http_{status}", message)


def _configuration(code: str, message: str) -> ProviderFailure:
    return ProviderFailure(ErrorClass.CONFIGURATION, code, message, provider_wide=True)
