"""Anthropic Messages: `POST {base_url}/v1/messages`.

Source of the format: Anthropic API reference, "Messages", "Streaming", "Prompt caching", "Structured
outputs". The answer is the input of one tool that the model must call, or, with
`structured = "output_format"`, text constrained by a schema. Cache breakpoints stand at the end of the
stable prefix and at the end of the history before the turn, which the next request repeats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from resources.llm.providers import sse
from resources.llm.providers.base import Tokens, envelope_error, invalid_answer, usable_count
from resources.llm.providers.http_provider import (
    Finished,
    HttpProvider,
    Payload,
    dialect_schema,
    error_in_reply,
    listing,
    mapping,
    refused,
    text_of,
    truncated,
)
from resources.llm.schema_dialects import ANTHROPIC, ANTHROPIC_TOOL
from viano_assets.phases.protocols import ModelRequest

API_VERSION = "2023-06-01"
TOOL = "answer"
UNENFORCED_TOOL = "/ everything: a tool's input is not bound to its schema"
_CACHE = {"type": "ephemeral"}


class _Block(NamedTuple):
    """One content block: its kind, a tool's name, and the pieces of its text or input."""

    kind: str
    name: str
    pieces: list[str]


class AnthropicProvider(HttpProvider):
    """Adapter for the Messages format."""

    key_header: ClassVar[str] = "x-api-key"
    key_prefix: ClassVar[str] = ""

    def first_mode(self) -> str:
        """Return the mode to begin with: the tool, which every model has."""
        return "tool" if self.settings.structured == "auto" else self.settings.structured

    def extra_headers(self) -> Mapping[str, str]:
        """Name the version of the format."""
        return {"anthropic-version": API_VERSION}

    def payload(self, request: ModelRequest, mode: str) -> Payload:
        """Build the body; system and messages stand last."""
        body: dict[str, Any] = {"model": self.model, "max_tokens": self.output_tokens(request)}
        if self.settings.temperature is not None:
            body["temperature"] = self.settings.temperature
        if self.settings.stream:
            body["stream"] = True
        if mode == "tool":
            transport = dialect_schema(request, ANTHROPIC_TOOL)
            tool = {"name": TOOL, "description": "Give the whole answer.", "input_schema": transport.schema}
            body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}
            unenforced: tuple[str, ...] = (UNENFORCED_TOOL, *transport.unenforced)
        else:
            transport = dialect_schema(request, ANTHROPIC)
            body["output_config"] = {"format": {"type": "json_schema", "schema": transport.schema}}
            unenforced = transport.unenforced
        system, messages = _conversation(request)
        body |= {"system": system, "messages": messages}
        return Payload("/v1/messages", body, unenforced, transport.nulled)

    def read(self, envelope: dict[str, Any]) -> Finished:
        """Read a message object."""
        if envelope.get("type") == "error":
            raise error_in_reply(envelope.get("error"))
        if not isinstance(envelope.get("content"), list):
            raise envelope_error("the reply holds no content")
        blocks = []
        for block in listing(envelope["content"]):
            text = text_of(block.get("text"), "a text block") if block.get("type") == "text" else ""
            if block.get("type") == "tool_use":
                text = json.dumps(block.get("input"), ensure_ascii=False, allow_nan=False)
            blocks.append(_Block(str(block.get("type")), str(block.get("name", "")), [text]))
        model, tokens = str(envelope.get("model", "")), _tokens(envelope.get("usage"))
        return self._finished(blocks, envelope.get("stop_reason"), model, tokens)

    def read_stream(self, events: Sequence[sse.Event]) -> Finished:
        """Read message events up to `message_stop`."""
        usage: dict[str, Any] = {}
        blocks: dict[Any, _Block] = {}
        model, stop, kind = "", None, ""
        for event in events:
            data = sse.json_data(event)
            kind = str(data.get("type"))
            if kind == "error":
                raise error_in_reply(data.get("error"))
            if kind == "message_start":
                message = mapping(data.get("message"))
                model, usage = str(message.get("model", "")), mapping(message.get("usage"))
            elif kind == "content_block_start":
                block = mapping(data.get("content_block"))
                blocks[data.get("index")] = _Block(str(block.get("type")), str(block.get("name", "")), [])
            elif kind == "content_block_delta":
                _append(blocks, data)
            elif kind == "message_delta":
                stop = mapping(data.get("delta")).get("stop_reason", stop)
                usage = {**usage, **mapping(data.get("usage"))}
        if kind != "message_stop":
            raise envelope_error("the stream ended without message_stop")
        return self._finished(list(blocks.values()), stop, model, _tokens(usage))

    def _finished(self, blocks: Sequence[_Block], stop: Any, model: str, tokens: Tokens) -> Finished:
        kind = "tool_use" if self.mode == "tool" else "text"
        mine = [b for b in blocks if b.kind == kind and (kind == "text" or b.name == TOOL)]
        strange = any(b.kind == "tool_use" and b not in mine for b in blocks)
        text = "".join(piece for block in mine for piece in block.pieces).encode("utf-8", "surrogatepass")
        if stop in {"max_tokens", "model_context_window_exceeded"}:
            raise truncated(text, model, tokens)
        if stop == "refusal":
            raise refused("refusal", "the model refused", model, tokens, text)
        if stop not in {"end_turn", "tool_use", "stop_sequence"}:
            raise envelope_error("the reply has no terminal stop reason", text=text, tokens=tokens)
        if strange or (kind == "tool_use" and len(mine) > 1):
            raise invalid_answer(
                "unexpected_tool_call",
                "the model called a tool it was not given, or twice",
                text=text,
                served_model=model,
                tokens=tokens,
            )
        if not text.strip():
            raise invalid_answer(
                "empty_answer", "the model gave no answer", text=text, served_model=model, tokens=tokens
            )
        return Finished(text, model, tokens)


def _append(blocks: Mapping[Any, _Block], data: Mapping[str, Any]) -> None:
    delta = mapping(data.get("delta"))
    piece = delta.get("partial_json", delta.get("text"))
    block = blocks.get(data.get("index"))
    if piece is not None and block is not None:
        block.pieces.append(text_of(piece, "a delta"))


def _conversation(request: ModelRequest) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return system blocks and messages, with cache breakpoints after the prefix and before the turn."""
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    for message in request.messages:
        block = {"type": "text", "text": message.content}
        blocks.append(block)
        if message.role == "system":
            system.append(block)
        elif messages and messages[-1]["role"] == message.role:
            messages[-1]["content"].append(block)
        else:
            messages.append({"role": message.role, "content": [block]})
    for position in {min(request.stable_messages, len(blocks)) - 1, len(blocks) - 2}:
        if position >= 0:
            blocks[position]["cache_control"] = _CACHE
    return system, messages


def _tokens(usage: Any) -> Tokens:
    """Read the counts; this format reports cached input apart from the rest."""
    counts = mapping(usage)
    fresh = usable_count(counts.get("input_tokens"))
    read = usable_count(counts.get("cache_read_input_tokens")) or 0
    written = usable_count(counts.get("cache_creation_input_tokens")) or 0
    total = None if fresh is None else fresh + read + written
    return Tokens(total, read, usable_count(counts.get("output_tokens")))
