"""What a provider may do to us: one scripted behaviour each, with how it must be classified.

The replies speak the chat completions format. Wherever a provider could repeat our key it does.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.gateway_case import CANARY
from tests.support.model_server import Exchange, Handler, completion, fails

Outcome = Literal["answered", "invalid", "failed", "outcome_unknown"]

CAP = 262_144
"""Byte cap of the providers under test."""


@dataclass(frozen=True)
class Behaviour:
    """A scripted behaviour; `settings` override the provider's, `sent` says whether a request arrives."""

    name: str
    handler: Handler
    outcome: Outcome
    code: str
    error_class: str | None = "transport"
    settings: Mapping[str, Any] = field(default_factory=dict)
    sent: bool = True
    wait_s: float | None = None


async def _ok(exchange: Exchange) -> None:
    await exchange.reply(200, completion('{"ok":true}'))


def _text(content: str, **facts: Any) -> Handler:
    async def handle(exchange: Exchange) -> None:
        await exchange.reply(200, completion(content, **facts))

    return handle


def _raw(body: bytes, headers: Mapping[str, str] | None = None) -> Handler:
    async def handle(exchange: Exchange) -> None:
        await exchange.reply(200, body, headers)

    return handle


def _bytes(data: bytes, *, hang: bool = False, abort: bool = False) -> Handler:
    async def handle(exchange: Exchange) -> None:
        await exchange.send(data)
        if hang:
            await exchange.reader.read()
        if abort:
            exchange.abort()

    return handle


def _error(
    status: int, code: str = "", message: str = "", headers: Mapping[str, str] | None = None
) -> Handler:
    text = message or f"HTTP {status} for key {CANARY}"
    return fails(status, {"error": {"message": text, "code": code}}, {"x-echo": CANARY, **(headers or {})})


OK = json.dumps(completion('{"ok":true}')).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


async def _trickle_headers(exchange: Exchange) -> None:
    for byte in HEAD * 20:
        await exchange.send(bytes([byte]))
        await asyncio.sleep(0.05)


async def _trickle_body(exchange: Exchange) -> None:
    await exchange.send(HEAD + b"content-length: %d\r\n\r\n" % len(OK))
    for byte in OK:
        await exchange.send(bytes([byte]))
        await asyncio.sleep(0.05)


async def _hang(exchange: Exchange) -> None:
    await exchange.reader.read()


async def _reset(exchange: Exchange) -> None:
    exchange.abort()


async def _close(exchange: Exchange) -> None:
    exchange.writer.close()


async def _endless(exchange: Exchange) -> None:
    await exchange.send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    while True:
        await exchange.send(b"4000\r\n" + b" " * 0x4000 + b"\r\n")


async def _endless_error(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await exchange.send(b"4000\r\n" + b" " * 0x4000 + b"\r\n")


async def _continues(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)
    await _ok(exchange)


async def _endless_continues(exchange: Exchange) -> None:
    while True:
        await exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _foreign(exchange: Exchange) -> None:
    await exchange.reply(200, completion('{"ok":true}'), {"x-client-request-id": "another"})


def _bomb() -> bytes:
    return gzip.compress(b" " * (CAP * 64))


INVALID = "invalid_answer"
CONFIG = "configuration"


def _answers() -> list[Behaviour]:
    deep = '{"a":' * 201 + "1" + "}" * 201
    deeper = "[" * 100_000
    texts: list[tuple[str, str, str]] = [
        ("empty answer", "", "empty_answer"),
        ("blank answer", "  \n\t", "empty_answer"),
        ("html answer", "<html><body>busy</body></html>", "invalid_json"),
        ("null answer", "null", "not_an_object"),
        ("array answer", "[1]", "not_an_object"),
        ("fenced answer", '```json\n{"ok":true}\n```', "invalid_json"),
        ("two values", '{"ok":true}{"ok":false}', "invalid_json"),
        ("trailing comma", '{"ok":true,}', "invalid_json"),
        ("byte order mark", '\ufeff{"ok":true}', "byte_order_mark"),
        ("duplicate key", '{"ok":true,"ok":false}', "duplicate_key"),
        ("duplicate key escaped", '{"ok":true,"\\u006fk":false}', "duplicate_key"),
        ("nan", '{"ok":NaN}', "not_a_number"),
        ("infinity", '{"ok":-Infinity}', "not_a_number"),
        ("overflow", '{"ok":1e999}', "number_range"),
        ("huge integer", '{"ok":' + "9" * 5_000 + "}", "integer_range"),
        ("depth 201", deep, "nesting_depth"),
        ("depth 100000", deeper, "nesting_depth"),
        ("escaped NUL", '{"ok":"a\\u0000b"}', "invalid_text"),
        ("lone surrogate", '{"ok":"\\ud83d"}', "invalid_text"),
        ("cut answer", '{"hypotheses":[{"a":1},{"b":2}', "invalid_json"),
        ("bad escape", '{"ok":"gr\\xf6sse"}', "invalid_json"),
    ]
    found = [Behaviour(name, _text(text), "invalid", code, INVALID) for name, text, code in texts]
    found += [
        Behaviour("ok", _ok, "answered", "", None),
        Behaviour("true for an integer", _text('{"count":true}'), "answered", "", None),
        Behaviour("key repeated in the answer", _text(json.dumps({"k": CANARY})), "answered", "", None),
        Behaviour(
            "usage of wrong types", _text('{"ok":true}', usage={"prompt_tokens": True}), "answered", "", None
        ),
        Behaviour(
            "cut at the limit", _text('{"ok":true}', finish="length"), "invalid", "truncated_output", INVALID
        ),
        Behaviour(
            "content filter", _text("", finish="content_filter"), "failed", "content_filter", "refused"
        ),
        Behaviour("no stop reason", _text('{"ok":true}', finish=None), "outcome_unknown", "bad_envelope"),
    ]
    call = completion("", finish="tool_calls")
    call["choices"][0]["message"]["tool_calls"] = [{"id": "1", "function": {"name": "delete_all"}}]
    found.append(
        Behaviour(
            "unknown tool call", _raw(json.dumps(call).encode()), "invalid", "unexpected_tool_call", INVALID
        )
    )
    return found


def _envelopes() -> list[Behaviour]:
    bodies: list[tuple[str, bytes]] = [
        ("200 empty", b""),
        ("200 blank", b"  \r\n "),
        ("200 html", b"<html>captive portal</html>"),
        ("200 null", b"null"),
        ("200 bom", b"\xef\xbb\xbf" + OK),
        ("200 utf-16", OK.decode().encode("utf-16")),
        ("200 latin-1", OK.replace(b"served-model", b"m\xf6del")),
        ("200 invalid utf-8", OK.replace(b"served-model", b"\xff\xfe")),
        ("200 NUL", OK.replace(b"served-model", b"a\\u0000b")),
        ("200 duplicate keys", OK[:-1] + b',"model":"x"}'),
        ("200 NaN", OK.replace(b'"prompt_tokens": 100', b'"prompt_tokens": NaN')),
        ("200 two values", OK + OK),
        ("200 depth 100000", b"[" * 100_000),
        ("200 no choices", b'{"choices":[]}'),
        (
            "200 two choices",
            json.dumps({**completion("{}"), "choices": completion("{}")["choices"] * 2}).encode(),
        ),
    ]
    found = [Behaviour(name, _raw(body), "outcome_unknown", "bad_envelope") for name, body in bodies]
    found.append(
        Behaviour("200 error object", _raw(b'{"error":{"message":"x"}}'), "outcome_unknown", "error_in_reply")
    )
    return found


def _statuses() -> list[Behaviour]:
    def row(
        status: int, code: str, kind: str = "transport", outcome: Outcome = "failed", word: str = ""
    ) -> Behaviour:
        return Behaviour(f"{status} {word}".strip(), _error(status, word), outcome, code, kind)

    found = [
        Behaviour("204", fails(204), "outcome_unknown", "empty_reply"),
        row(400, "http_400", CONFIG),
        row(400, "request_too_large", "too_large", word="context_length_exceeded"),
        row(400, "content_filter", "refused", word="content_filter"),
        row(401, "unauthorized", CONFIG),
        row(402, "quota_exhausted", CONFIG),
        row(403, "unauthorized", CONFIG),
        row(404, "unknown_model_or_path", CONFIG),
        row(408, "http_408"),
        row(409, "http_409"),
        row(413, "request_too_large", "too_large"),
        row(422, "http_422", CONFIG),
        row(429, "quota_exhausted", CONFIG, word="insufficient_quota"),
        row(500, "http_500"),
        row(502, "http_502"),
        row(503, "overloaded", "overloaded"),
        row(504, "http_504"),
        row(529, "overloaded", "overloaded"),
    ]
    for status in (301, 302, 303, 307, 308):
        target = {"location": f"http://elsewhere.example/?key={CANARY}"}
        found.append(Behaviour(f"{status}", fails(status, b"", target), "failed", "redirect_refused", CONFIG))
    waits: list[tuple[str, str | None, float]] = [
        ("seconds", "30", 30),
        ("date", "Sun, 01 Mar 2026 12:01:00 GMT", 60),
        ("past date", "Sun, 01 Mar 2026 11:00:00 GMT", 2),
        ("1e9 s", "1000000000", 3_600),
        ("negative", "-7", 2),
        ("garbage", "soon\tish", 2),
        ("none", None, 2),
    ]
    for name, value, wait in waits:
        headers = {} if value is None else {"retry-after": value}
        found.append(
            Behaviour(
                f"429 {name}",
                _error(429, headers=headers),
                "failed",
                "rate_limited",
                "rate_limited",
                wait_s=wait,
            )
        )
    return found


def _wires() -> list[Behaviour]:
    length = b"content-length: %d\r\n\r\n"
    unknown: list[tuple[str, Handler, str]] = [
        ("header trickle", _trickle_headers, "deadline_exceeded"),
        ("body trickle", _trickle_body, "deadline_exceeded"),
        ("no reply", _hang, "deadline_exceeded"),
        ("hang after headers", _bytes(HEAD + length % len(OK), hang=True), "deadline_exceeded"),
        ("endless 100-continue", _endless_continues, "deadline_exceeded"),
        ("closed without a reply", _close, "connection_broken"),
        ("reset at once", _reset, "connection_broken"),
        ("closed after headers", _bytes(HEAD + length % len(OK)), "connection_broken"),
        ("reset in the body", _bytes(HEAD + length % len(OK) + OK[:9], abort=True), "connection_broken"),
        ("length too long", _bytes(HEAD + length % (len(OK) + 9) + OK), "connection_broken"),
        ("length too short", _bytes(HEAD + length % (len(OK) - 9) + OK), "bad_envelope"),
        ("no length", _bytes(HEAD + b"connection: close\r\n\r\n" + OK), "incomplete_framing"),
        (
            "chunked cut",
            _bytes(HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(OK) + OK[:20]),
            "connection_broken",
        ),
        (
            "chunked without end",
            _bytes(HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(OK) + OK + b"\r\n"),
            "connection_broken",
        ),
        ("bad chunk size", _bytes(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n"), "connection_broken"),
        ("endless chunks", _endless, "reply_too_large"),
        ("long body", _raw(b" " * (CAP + 1)), "reply_too_large"),
        ("gzip bomb", _raw(_bomb(), {"content-encoding": "gzip"}), "reply_too_large"),
        ("bad gzip", _raw(b"not gzip", {"content-encoding": "gzip"}), "content_coding"),
        ("cut gzip", _raw(gzip.compress(OK)[:-9], {"content-encoding": "gzip"}), "content_coding"),
        ("brotli", _raw(OK, {"content-encoding": "br"}), "content_coding"),
        (
            "200 KB header",
            _bytes(HEAD + b"x-long: " + b"a" * 200_000 + b"\r\n" + length % len(OK) + OK),
            "connection_broken",
        ),
        ("not http", _bytes(b"SSH-2.0-OpenSSH\r\n"), "connection_broken"),
        ("reply for another request", _foreign, "foreign_reply"),
    ]
    found = [Behaviour(name, handler, "outcome_unknown", code) for name, handler, code in unknown]
    found += [
        Behaviour("1000 x 100-continue", _continues, "answered", "", None),
        Behaviour("good gzip", _raw(gzip.compress(OK), {"content-encoding": "gzip"}), "answered", "", None),
        Behaviour("endless error body", _endless_error, "failed", "http_500"),
    ]
    return found


def _unreachable() -> list[Behaviour]:
    def row(name: str, code: str, url: str, kind: str = "transport", **facts: Any) -> Behaviour:
        return Behaviour(name, _ok, "failed", code, kind, {"base_url": url, **facts}, sent=False)

    return [
        row("connect refused", "connection_failed", "http://127.0.0.1:1/v1"),
        row("name not found", "name_resolution", "https://nowhere.invalid/v1"),
        row("tls against plain", "connection_failed", "https://127.0.0.1:{plain}/v1"),
        row("connect hang", "connect_timeout", "https://127.0.0.1:{silent}/v1"),
        row("metadata address", "address_refused", "https://169.254.169.254/v1", CONFIG),
        Behaviour("key missing", _ok, "failed", "key_missing", CONFIG, {"api_key_env": "ABSENT"}, sent=False),
    ]


def behaviours() -> list[Behaviour]:
    """Return every behaviour, in a stable order."""
    return [*_answers(), *_envelopes(), *_statuses(), *_wires(), *_unreachable()]
