"""Each adapter against a local server that speaks its provider's documented wire format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.llm.providers.base import ErrorClass, ProviderFailure, ProviderReply
from resources.llm.providers.http_provider import HttpProvider
from tests.support.gateway_case import CANARY, config, gateway, provider, request
from tests.support.model_server import Exchange, Handler, ModelServer, fails
from tests.support.wire_formats import FORMATS, Format
from viano_assets.phases.protocols import Message, ModelRequest, section

BY_NAME = pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.name)
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def handler(wire: Format, text: str = '{"ok":true}', stop: str = "done") -> Handler:
    async def handle(exchange: Exchange) -> None:
        if "stream" in exchange.path or b'"stream":true' in exchange.body:
            await exchange.stream(wire.stream(text, stop))
        else:
            await exchange.reply(200, wire.reply(text, stop))

    return handle


def adapter(server: ModelServer, wire: Format, **facts: Any) -> HttpProvider:
    settings = config({"a": provider(server, type=wire.name, **facts)})
    found = gateway(settings).links[0].provider
    assert isinstance(found, HttpProvider)
    return found


async def ask(
    server: ModelServer, wire: Format, wanted: ModelRequest | None = None, **facts: Any
) -> ProviderReply:
    return await adapter(server, wire, **facts).complete(wanted or request(), request_id="r-1")


async def failure(server: ModelServer, wire: Format, **facts: Any) -> ProviderFailure:
    with pytest.raises(ProviderFailure) as caught:
        await ask(server, wire, **facts)
    return caught.value


@BY_NAME
@STREAM
async def test_a_finished_answer_comes_with_text_model_and_tokens(wire: Format, stream: bool) -> None:
    with ModelServer({"a": handler(wire, '{"ok":true,"ä":[1]}')}) as server:
        reply = await ask(server, wire, stream=stream)
        sent = server.requests[0]
    assert json.loads(reply.text) == {"ok": True, "ä": [1]}
    assert reply.served_model == "served-model"
    assert (reply.tokens.total_in, reply.tokens.cached, reply.tokens.out) == (100, 40, 20)
    assert sent.path.split("?")[0] == wire.path.replace(
        ":generateContent", ":streamGenerateContent" if stream else ":generateContent"
    )
    assert CANARY in sent.headers[wire.key_header]
    assert sent.headers["accept-encoding"] == "identity"
    assert CANARY.encode() not in sent.body
    assert CANARY not in sent.path


@BY_NAME
@STREAM
async def test_a_cut_answer_is_invalid_however_whole_it_looks(wire: Format, stream: bool) -> None:
    with ModelServer({"a": handler(wire, stop="length")}) as server:
        found = await failure(server, wire, stream=stream)
    assert (found.error_class, found.code) == (ErrorClass.INVALID_ANSWER, "truncated_output")
    assert found.tokens.out == 20


@BY_NAME
@STREAM
async def test_a_refusal_is_told_apart_from_an_answer(wire: Format, stream: bool) -> None:
    with ModelServer({"a": handler(wire, stop="filter")}) as server:
        found = await failure(server, wire, stream=stream)
    assert found.error_class is ErrorClass.REFUSED
    assert not found.unknown


@BY_NAME
@STREAM
async def test_a_reply_without_a_terminal_stop_reason_is_no_answer(wire: Format, stream: bool) -> None:
    with ModelServer({"a": handler(wire, stop="none")}) as server:
        found = await failure(server, wire, stream=stream)
    assert (found.error_class, found.code) == (ErrorClass.TRANSPORT, "bad_envelope")
    assert found.unknown


@BY_NAME
async def test_a_stream_that_ends_inside_an_event_is_no_answer(wire: Format) -> None:
    async def cut(exchange: Exchange) -> None:
        events = wire.stream()
        await exchange.stream([*events[:-1], events[-1][: len(events[-1]) // 2]])

    with ModelServer({"a": cut}) as server:
        found = await failure(server, wire, stream=True)
    assert (found.error_class, found.unknown) == (ErrorClass.TRANSPORT, True)


@BY_NAME
@pytest.mark.parametrize(
    ("status", "word", "message", "expected", "code"),
    [
        (400, "invalid_request_error", "max_tokens must be positive", "configuration", "http_400"),
        (400, "context_length_exceeded", "maximum context length is 10", "too_large", "request_too_large"),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", "too_large", "request_too_large"),
        (401, "authentication_error", f"bad key {CANARY}", "configuration", "unauthorized"),
        (403, "permission_error", "no", "configuration", "unauthorized"),
        (404, "not_found_error", "no such model", "configuration", "unknown_model_or_path"),
        (413, "request_too_large", "too big", "too_large", "request_too_large"),
        (422, "unprocessable", "no", "configuration", "http_422"),
        (429, "rate_limit_error", "slow down", "rate_limited", "rate_limited"),
        (429, "insufficient_quota", "you exceeded your quota", "configuration", "quota_exhausted"),
        (500, "api_error", "oops", "transport", "http_500"),
        (503, "UNAVAILABLE", "loading", "overloaded", "overloaded"),
        (529, "overloaded_error", "busy", "overloaded", "overloaded"),
    ],
)
async def test_every_documented_error_shape_is_classified(
    wire: Format, status: int, word: str, message: str, expected: str, code: str
) -> None:
    with ModelServer({"a": fails(status, wire.error(word, message))}) as server:
        found = await failure(server, wire, structured="auto" if wire.name == "anthropic" else "prompted")
        assert server.count() == 1
    assert (found.error_class.value, found.code) == (expected, code)
    assert not found.unknown
    assert found.tokens.total_in is None


async def test_anthropic_marks_the_stable_prefix_and_the_history_for_its_cache() -> None:
    wire = FORMATS[2]
    messages = (
        Message(role="system", content="Be exact."),
        section("case", {"title": "t"}),
        section("history", {"dispatch": 1}),
        section("turn", {"dispatch": 2}),
    )
    wanted = request().model_copy(update={"messages": messages, "stable_messages": 2})
    with ModelServer({"a": handler(wire)}) as server:
        await ask(server, wire, wanted)
        body = server.requests[0].json
    (user,) = body["messages"]
    assert "cache_control" not in body["system"][0]
    assert ["cache_control" in block for block in user["content"]] == [True, True, False]
    assert body["tool_choice"] == {"type": "tool", "name": "answer"}


async def test_a_gemini_wait_in_the_error_body_is_read() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    body = {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}}
    with ModelServer({"a": fails(429, body)}) as server:
        assert (await failure(server, FORMATS[3])).wait_s == 34


async def test_the_structured_mode_is_detected_and_each_try_is_an_attempt_of_its_own(tmp_path: Path) -> None:
    from tests.support.gateway_case import new_case, operation
    from tests.support.model_server import answers

    seen: list[str | None] = []

    async def picky(exchange: Exchange) -> None:
        form = exchange.json.get("response_format", {}).get("type")
        seen.append(form)
        if form is not None:
            message = f"response_format {form} is not supported"
            await exchange.reply(400, {"error": {"message": message, "code": 400}})
        else:
            await answers()(exchange)

    store, head = new_case(tmp_path)
    with ModelServer({"a": picky}) as server:
        made = gateway(config({"a": provider(server)}), tmp_path / "spend")
        outcome = await made.dispatch(store, operation(head))
        assert seen == ["json_schema", "json_object", None]
        await made.dispatch(store, operation(head, attempt_id="attempt-2"))
        assert seen[3:] == [None]
        assert "JSON schema" in server.requests[-1].json["messages"][-1]["content"]
    assert outcome.status == "answered"
    assert len(made.ledger.entries("2026-03-01")) == 8


async def test_openai_itself_gets_its_strict_form_and_token_limit() -> None:
    wire = FORMATS[0]
    with ModelServer({"a": handler(wire)}) as server:
        await ask(server, wire, dialect="openai")
        body = server.requests[0].json
    assert body["max_completion_tokens"] == 100
    assert "max_tokens" not in body
    assert body["response_format"]["json_schema"]["strict"] is True


@BY_NAME
async def test_two_dispatches_of_one_case_share_the_longest_possible_prefix(wire: Format) -> None:
    """Everything that is constant stands before the messages, so that the bytes differ only in the turn."""
    stable = [Message(role="system", content="Be exact."), section("case", {"title": "t" * 500})]
    history = [section("history", {"dispatch": number, "text": "h" * 300}) for number in range(1, 4)]
    with ModelServer({"a": handler(wire)}) as server:
        one = adapter(server, wire, structured="auto")
        bodies = []
        for known in (2, 3):
            messages = (*stable, *history[:known], section("turn", {"dispatch": known}))
            wanted = request().model_copy(update={"messages": messages, "stable_messages": 2})
            bodies.append(one.wire(wanted).body)
    for message in (*stable, *history[:2]):
        escaped = json.dumps(message.content, ensure_ascii=False)[1:-1].encode()
        assert bodies[0].find(escaped) == bodies[1].find(escaped) > 0
    without_marks = [body.replace(b',"cache_control":{"type":"ephemeral"}', b"") for body in bodies]
    shared = next(i for i, (a, b) in enumerate(zip(*without_marks, strict=False)) if a != b)
    turn = without_marks[0].find(b"section", without_marks[0].rfind(b"h" * 300))
    assert shared >= turn
