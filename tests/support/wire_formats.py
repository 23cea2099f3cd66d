"""The documented replies of the four wire formats, written by hand from the providers' references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.model_server import completion


@dataclass(frozen=True)
class Format:
    """One wire format: how its replies look and where they are asked for."""

    name: str
    path: str
    key_header: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def reply(self, text: str = '{"ok":true}', stop: str = "done") -> dict[str, Any]:
        return _REPLIES[self.name](text, stop)

    def stream(self, text: str = '{"ok":true}', stop: str = "done") -> list[str]:
        return _STREAMS[self.name](text, stop)

    def error(self, word: str, message: str) -> dict[str, Any]:
        return _ERRORS[self.name](word, message)


STOPS: dict[str, dict[str, Any]] = {
    "openai_compatible": {"done": "stop", "length": "length", "filter": "content_filter", "none": None},
    "anthropic": {"done": "tool_use", "length": "max_tokens", "filter": "refusal", "none": None},
    "gemini": {"done": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY", "none": None},
}


def _chat(text: str, stop: str) -> dict[str, Any]:
    return completion(text, finish=STOPS["openai_compatible"][stop])


def _responses(text: str, stop: str) -> dict[str, Any]:
    reasons = {"length": "max_output_tokens", "filter": "content_filter"}
    return {
        "id": "resp_1",
        "object": "response",
        "status": {"done": "completed", "none": "in_progress"}.get(stop, "incomplete"),
        "error": None,
        "incomplete_details": {"reason": reasons[stop]} if stop in reasons else None,
        "model": "served-model",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            },
        ],
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 40},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 5},
        },
    }


def _anthropic(text: str, stop: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served-model",
        "content": [{"type": "tool_use", "id": "t1", "name": "answer", "input": value}],
        "stop_reason": STOPS["anthropic"][stop],
        "stop_sequence": None,
        "usage": {
            "input_tokens": 50,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 40,
            "output_tokens": 20,
        },
    }


def _gemini(text: str, stop: str) -> dict[str, Any]:
    candidate: dict[str, Any] = {
        "index": 0,
        "content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": text}]},
    }
    if STOPS["gemini"][stop] is not None:
        candidate["finishReason"] = STOPS["gemini"][stop]
    return {
        "candidates": [candidate],
        "modelVersion": "served-model",
        "usageMetadata": {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 40,
            "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5,
            "totalTokenCount": 120,
        },
    }


def _event(data: Mapping[str, Any] | str, name: str | None = None) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _chat_stream(text: str, stop: str) -> list[str]:
    base = {"id": "c1", "object": "chat.completion.chunk", "model": "served-model"}
    whole = _chat(text, stop)
    chunks: list[dict[str, Any]] = [
        {
            **base,
            "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}
            ],
        }
        for piece in _halves(text)
    ]
    finish = whole["choices"][0]["finish_reason"]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({**base, "choices": [], "usage": whole["usage"]})
    return [*(_event(chunk) for chunk in chunks), _event("[DONE]")]


def _responses_stream(text: str, stop: str) -> list[str]:
    whole = _responses(text, stop)
    created = _event({"type": "response.created", "response": {**whole, "output": []}}, "response.created")
    deltas = [
        _event({"type": "response.output_text.delta", "delta": piece}, "response.output_text.delta")
        for piece in _halves(text)
    ]
    kind = "response.completed" if stop == "done" else "response.incomplete"
    end = [] if stop == "none" else [_event({"type": kind, "response": whole}, kind)]
    return [created, *deltas, *end]


def _anthropic_stream(text: str, stop: str) -> list[str]:
    whole = _anthropic(text, stop)
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t1", "name": "answer", "input": {}},
        },
        {"type": "ping"},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in _halves(text)
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 20},
        },
    ]
    if stop != "none":
        events.append({"type": "message_stop"})
    return [_event(event, str(event["type"])) for event in events]


def _gemini_stream(text: str, stop: str) -> list[str]:
    first, second = _halves(text)
    begin = _gemini(first, "none")
    return [_event(begin), _event(_gemini(second, stop))]


def _openai_error(word: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": word}}


def _anthropic_error(word: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": word, "message": message}, "request_id": "req_1"}


def _gemini_error(word: str, message: str) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "status": word, "details": []}}


_REPLIES = {
    "openai_compatible": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
_STREAMS = {
    "openai_compatible": _chat_stream,
    "openai_responses": _responses_stream,
    "anthropic": _anthropic_stream,
    "gemini": _gemini_stream,
}
_ERRORS = {
    "openai_compatible": _openai_error,
    "openai_responses": _openai_error,
    "anthropic": _anthropic_error,
    "gemini": _gemini_error,
}

FORMATS = (
    Format("openai_compatible", "/a/chat/completions", "authorization"),
    Format("openai_responses", "/a/responses", "authorization"),
    Format("anthropic", "/a/v1/messages", "x-api-key"),
    Format("gemini", "/a/v1beta/models/model-a:generateContent", "x-goog-api-key"),
)
