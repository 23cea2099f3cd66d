"""One bounded HTTP exchange: one total deadline, byte caps, complete framing, no redirects, no proxies.

Nothing of the environment takes part (`trust_env` is off), nothing is retried here, and the answer's
bytes are returned undecoded. A body without a length or chunks cannot be told from a cut one and is
refused; a content coding is undone by us, bounded, even though none was asked for.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from resources.llm.providers.addresses import Resolver, allowed_addresses, system_resolver
from resources.llm.providers.base import ErrorClass, ProviderFailure

TransportFactory = Callable[[], httpx.AsyncBaseTransport]

ERROR_BODY_LIMIT = 65_536
"""Bytes read of a reply that is no success; enough for every documented error shape."""

ADDRESSES_TRIED = 4
"""Addresses of one host that are tried in turn before anything was sent."""

CLIENT_REQUEST_ID = "x-client-request-id"


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Seconds and bytes of one exchange; which local targets may be reached."""

    deadline_s: float
    connect_timeout_s: float
    max_wire_bytes: int
    max_decoded_bytes: int
    allow_loopback: bool
    allow_private: bool


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A completely framed reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int


@dataclass(slots=True)
class _Progress:
    """How far the exchange got, for the classification of an interruption."""

    sent: bool = False
    status: int = 0
    received: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the moment from which the server may have the request."""
        del info
        if event.endswith("send_request_headers.started"):
            self.sent = True


class HttpSender:
    """Sends requests to one origin.

    Args:
        limits: the bounds.
        transport: builds the transport; None uses the network with verified TLS.
        resolver: turns a host name into addresses; only used with the network transport.
        tls: which certificates to trust; None trusts the shipped authorities and nothing of the environment.
    """

    def __init__(
        self,
        limits: HttpLimits,
        *,
        transport: TransportFactory | None = None,
        resolver: Resolver = system_resolver,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        self._transport = transport
        self._resolver = resolver
        self._tls = tls

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, deadline_s: float
    ) -> HttpReply:
        """Send `body` and return the whole reply.

        Raises:
            ProviderFailure: every interruption, classified; `unknown` from the first byte sent.
        """
        progress = _Progress()
        try:
            async with asyncio.timeout(min(deadline_s, self._limits.deadline_s)):
                return await self._exchange(url, headers, body, progress)
        except TimeoutError:
            raise self._late(progress) from None
        except httpx.HTTPError as error:
            raise self._broken(error, progress) from None
        except (httpx.InvalidURL, httpx.StreamError, UnicodeError, ValueError) as error:
            raise ProviderFailure(
                ErrorClass.CONFIGURATION, "request_unsendable", type(error).__name__, provider_wide=True
            ) from None
        except (OSError, ssl.SSLError) as error:
            raise ProviderFailure(
                ErrorClass.TRANSPORT, "connection_failed", type(error).__name__, unknown=progress.sent
            ) from None

    def _late(self, progress: _Progress) -> ProviderFailure:
        if not progress.sent:
            return ProviderFailure(
                ErrorClass.TRANSPORT, "connect_timeout", "no connection within the deadline"
            )
        return ProviderFailure(
            ErrorClass.TRANSPORT,
            "deadline_exceeded",
            "the reply was not complete within the deadline",
            unknown=progress.status in {0, 200},
        )

    def _broken(self, error: httpx.HTTPError, progress: _Progress) -> ProviderFailure:
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)) or not progress.sent:
            return ProviderFailure(ErrorClass.TRANSPORT, "connection_failed", type(error).__name__)
        return ProviderFailure(
            ErrorClass.TRANSPORT,
            "connection_broken",
            f"{type(error).__name__} after {progress.received} bytes",
            unknown=progress.status in {0, 200},
        )

    async def _exchange(
        self, url: str, headers: Mapping[str, str], body: bytes, progress: _Progress
    ) -> HttpReply:
        if self._transport is not None:
            progress.sent = True
            return await self._once(self._transport(), url, headers, body, progress, {})
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = await allowed_addresses(
            host,
            port,
            self._resolver,
            allow_loopback=self._limits.allow_loopback,
            allow_private=self._limits.allow_private,
        )
        secure = parts.scheme == "https"
        extensions: dict[str, Any] = {"sni_hostname": host} if secure else {}
        context = (self._tls or _tls_context()) if secure else _no_authorities()
        last: httpx.HTTPError = httpx.ConnectError("the host has no address")
        for address in addresses[:ADDRESSES_TRIED]:
            pinned = _pin(parts, address, port)
            transport = httpx.AsyncHTTPTransport(verify=context, trust_env=False, http1=True)
            try:
                return await self._once(
                    transport, pinned, {**headers, "host": parts.netloc}, body, progress, extensions
                )
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                last = error
        raise last

    async def _once(
        self,
        transport: httpx.AsyncBaseTransport,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        progress: _Progress,
        extensions: Mapping[str, Any],
    ) -> HttpReply:
        limits = self._limits
        timeout = httpx.Timeout(limits.deadline_s, connect=limits.connect_timeout_s)
        client = httpx.AsyncClient(
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            timeout=timeout,
            headers={"user-agent": "viano"},
        )
        async with (
            client,
            client.stream(
                "POST",
                url,
                headers={**headers, "accept-encoding": "identity"},
                content=body,
                extensions={**extensions, "trace": progress.trace},
            ) as response,
        ):
            progress.status = response.status_code
            return await self._read(response, progress)

    async def _read(self, response: httpx.Response, progress: _Progress) -> HttpReply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        success = response.status_code == 200
        if (
            success
            and "content-length" not in headers
            and "chunked" not in headers.get("transfer-encoding", "")
        ):
            raise ProviderFailure(
                ErrorClass.TRANSPORT,
                "incomplete_framing",
                "the reply has neither length nor chunks",
                unknown=True,
            )
        decoder = _Decoder(headers.get("content-encoding", ""), self._limits.max_decoded_bytes)
        body = bytearray()
        cap = self._limits.max_wire_bytes if success else ERROR_BODY_LIMIT
        async for chunk in response.aiter_raw(65_536):
            progress.received += len(chunk)
            if progress.received > cap:
                if not success:
                    break
                raise _too_long()
            body += decoder.feed(chunk)
            if len(body) > self._limits.max_decoded_bytes:
                raise _too_long()
        if success:
            decoder.finish()
        return HttpReply(response.status_code, headers, bytes(body), progress.received)


def _too_long() -> ProviderFailure:
    return ProviderFailure(
        ErrorClass.TRANSPORT, "reply_too_large", "the reply is larger than the configured cap", unknown=True
    )


class _Decoder:
    """Undoes gzip or deflate within a byte cap; any other coding is refused."""

    def __init__(self, coding: str, cap: int) -> None:
        self._cap = cap
        self._seen = 0
        name = coding.strip().lower()
        self._plain = name in {"", "identity"}
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | (16 if name in {"gzip", "x-gzip"} else 0))
        if not self._plain and name not in {"gzip", "x-gzip", "deflate"}:
            raise ProviderFailure(
                ErrorClass.TRANSPORT,
                "content_coding",
                "the reply uses a coding nobody asked for",
                unknown=True,
            )

    def feed(self, chunk: bytes) -> bytes:
        """Return the decoded bytes of one chunk."""
        if self._plain:
            return chunk
        try:
            data = self._inflate.decompress(chunk, self._cap + 1 - self._seen)
        except zlib.error:
            raise ProviderFailure(
                ErrorClass.TRANSPORT, "content_coding", "the reply's coding is damaged", unknown=True
            ) from None
        self._seen += len(data)
        if self._seen > self._cap or self._inflate.unconsumed_tail:
            raise _too_long()
        return data

    def finish(self) -> None:
        """Require that a coded body reached its own end."""
        if not self._plain and not self._inflate.eof:
            raise ProviderFailure(
                ErrorClass.TRANSPORT, "content_coding", "the reply's coding ends early", unknown=True
            )


def _pin(parts: SplitResult, address: str, port: int) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{parts.scheme}://{host}:{port}{parts.path}" + (f"?{parts.query}" if parts.query else "")


@functools.lru_cache(maxsize=1)
def _tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


@functools.lru_cache(maxsize=1)
def _no_authorities() -> ssl.SSLContext:
    """Return a context that trusts nobody, for plain connections: reading the authorities takes time."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
