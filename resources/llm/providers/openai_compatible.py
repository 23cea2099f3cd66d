"""Chat completions: OpenAI, vLLM, Ollama, llama.cpp server, LM Studio and others of that format.

Source of the format: OpenAI API reference, "Create chat completion"; llama.cpp server README. The
structured-output mode is detected: a server that rejects `json_schema` is asked for `json_object`, then by
prompt; each try is an attempt of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resources.llm.providers import sse
from resources.llm.providers.base import Tokens, envelope_error, invalid_answer, usable_count
from resources.llm.providers.http_provider import (
    UNENFORCED_WHOLE,
    Finished,
    HttpProvider,
    Payload,
    dialect_schema,
    error_in_reply,
    instruction,
    listing,
    mapping,
    merged,
    refused,
    schema_name,
    text_of,
    truncated,
)
from resources.llm.schema_dialects import LLAMA, OPENAI, Dialect
from viano_assets.phases.protocols import Message, ModelRequest


class OpenAICompatibleProvider(HttpProvider):
    """Adapter for `POST {base_url}/chat/completions`."""

    @property
    def dialect(self) -> Dialect:
        """The schema dialect: OpenAI's strict form at OpenAI, the grammar form elsewhere."""
        if self.settings.dialect == "auto":
            return OPENAI if self.origin == "https://api.openai.com" else LLAMA
        return OPENAI if self.settings.dialect == "openai" else LLAMA

    def payload(self, request: ModelRequest, mode: str) -> Payload:
        """Build the body; the messages stand last, so that a stable prefix is one of bytes too."""
        openai = self.dialect is OPENAI
        body: dict[str, Any] = {"model": self.model}
        body["max_completion_tokens" if openai else "max_tokens"] = self.output_tokens(request)
        if self.settings.temperature is not None:
            body["temperature"] = self.settings.temperature
        if self.settings.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        messages = list(request.messages)
        unenforced: tuple[str, ...] = (UNENFORCED_WHOLE,)
        nulled = False
        if mode == "json_schema":
            schema, unenforced, nulled, strict = dialect_schema(request, self.dialect)
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": schema_name(request), "strict": strict, "schema": schema},
            }
        else:
            messages.append(Message(role="user", content=instruction(request)))
        if mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        body["messages"] = [{"role": m.role, "content": m.content} for m in merged(messages)]
        return Payload("/chat/completions", body, unenforced, nulled)

    def read(self, envelope: dict[str, Any]) -> Finished:
        """Read a completion object."""
        if "error" in envelope and "choices" not in envelope:
            raise error_in_reply(envelope["error"])
        choices = listing(envelope.get("choices"))
        if len(choices) != 1:
            raise envelope_error("the reply does not hold exactly one choice")
        message = mapping(choices[0].get("message"))
        return _finished(
            message.get("content"),
            message,
            choices[0].get("finish_reason"),
            str(envelope.get("model", "")),
            _tokens(envelope.get("usage")),
        )

    def read_stream(self, events: Sequence[sse.Event]) -> Finished:
        """Read completion chunks up to `[DONE]`."""
        if not events or events[-1].data != "[DONE]":
            raise envelope_error("the stream ended without [DONE]")
        parts: list[str] = []
        seen: dict[str, Any] = {}
        finish: Any = None
        model, tokens = "", Tokens()
        for event in events[:-1]:
            chunk = sse.json_data(event)
            if "error" in chunk:
                raise error_in_reply(chunk["error"])
            model = str(chunk.get("model", "")) or model
            tokens = _tokens(chunk["usage"]) if chunk.get("usage") else tokens
            for choice in listing(chunk.get("choices"))[:1]:
                delta = mapping(choice.get("delta"))
                if delta.get("content") is not None:
                    parts.append(text_of(delta["content"], "a content delta"))
                seen |= {key: delta[key] for key in ("refusal", "tool_calls") if delta.get(key)}
                finish = choice.get("finish_reason") or finish
        return _finished("".join(parts), seen, finish, model, tokens)


def _tokens(usage: Any) -> Tokens:
    counts = mapping(usage)
    details = mapping(counts.get("prompt_tokens_details"))
    return Tokens(
        usable_count(counts.get("prompt_tokens")),
        usable_count(details.get("cached_tokens")),
        usable_count(counts.get("completion_tokens")),
    )


def _finished(content: Any, message: dict[str, Any], finish: Any, model: str, tokens: Tokens) -> Finished:
    text = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else b""
    if finish == "length":
        raise truncated(text, model, tokens)
    if finish == "content_filter" or message.get("refusal"):
        raise refused("content_filter", str(message.get("refusal") or "filtered")[:500], model, tokens, text)
    if message.get("tool_calls") or finish in {"tool_calls", "function_call"}:
        raise invalid_answer(
            "unexpected_tool_call",
            "the model called a tool it was not given",
            text=text,
            served_model=model,
            tokens=tokens,
        )
    if finish not in {"stop", "eos", "end_turn"}:
        raise envelope_error("the reply has no terminal stop reason", text=text, tokens=tokens)
    if not text.strip():
        raise invalid_answer(
            "empty_answer", "the model answered nothing", text=text, served_model=model, tokens=tokens
        )
    return Finished(text, model, tokens)
