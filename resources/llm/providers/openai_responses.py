"""The Responses API: `POST {base_url}/responses`.

Source of the format: OpenAI API reference, "Create a model response" and "Streaming events". Nothing is
stored at the provider (`store: false`). A streamed reply ends with `response.completed`,
`response.incomplete` or `response.failed`, each of which carries the whole response.
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
    refused,
    schema_name,
    text_of,
    truncated,
)
from resources.llm.schema_dialects import LLAMA, OPENAI
from viano_assets.phases.protocols import ModelRequest

_TERMINAL = {"response.completed", "response.incomplete", "response.failed"}


class OpenAIResponsesProvider(HttpProvider):
    """Adapter for the Responses format."""

    def payload(self, request: ModelRequest, mode: str) -> Payload:
        """Build the body; the input stands last, so that a stable prefix is one of bytes too."""
        body: dict[str, Any] = {
            "model": self.model,
            "store": False,
            "max_output_tokens": self.output_tokens(request),
        }
        if self.settings.temperature is not None:
            body["temperature"] = self.settings.temperature
        if self.settings.stream:
            body["stream"] = True
        unenforced: tuple[str, ...] = (UNENFORCED_WHOLE,)
        nulled = False
        messages = [(message.role, message.content) for message in request.messages]
        if mode == "json_schema":
            dialect = LLAMA if self.settings.dialect == "llama" else OPENAI
            schema, unenforced, nulled, strict = dialect_schema(request, dialect)
            form = {"type": "json_schema", "name": schema_name(request), "strict": strict, "schema": schema}
            body["text"] = {"format": form}
        else:
            messages.append(("user", instruction(request)))
        if mode == "json_object":
            body["text"] = {"format": {"type": "json_object"}}
        body["input"] = [
            {
                "role": role,
                "content": [
                    {"type": "output_text" if role == "assistant" else "input_text", "text": content}
                ],
            }
            for role, content in messages
        ]
        return Payload("/responses", body, unenforced, nulled)

    def read(self, envelope: dict[str, Any]) -> Finished:
        """Read a response object."""
        model = str(envelope.get("model", ""))
        tokens = _tokens(envelope.get("usage"))
        parts, refusal, called = _output(envelope)
        text = "".join(parts).encode("utf-8", "surrogatepass")
        status = envelope.get("status")
        if status == "incomplete":
            reason = mapping(envelope.get("incomplete_details")).get("reason")
            if reason == "content_filter":
                raise refused("content_filter", "filtered", model, tokens, text)
            raise truncated(text, model, tokens)
        if envelope.get("error"):
            raise error_in_reply(envelope["error"])
        if status != "completed":
            raise envelope_error("the response has no terminal status", text=text, tokens=tokens)
        if refusal:
            raise refused("refusal", refusal[:500], model, tokens, text)
        if called:
            raise invalid_answer(
                "unexpected_tool_call",
                "the model called a tool it was not given",
                text=text,
                served_model=model,
                tokens=tokens,
            )
        if not text.strip():
            raise invalid_answer(
                "empty_answer", "the model answered nothing", text=text, served_model=model, tokens=tokens
            )
        return Finished(text, model, tokens)

    def read_stream(self, events: Sequence[sse.Event]) -> Finished:
        """Read the response that the terminal event carries."""
        for event in reversed(events):
            data = sse.json_data(event) if event.data != "[DONE]" else {}
            kind = data.get("type", event.name)
            if kind in _TERMINAL:
                return self.read(mapping(data.get("response")))
            if kind == "error":
                raise error_in_reply(data.get("error", data))
        raise envelope_error("the stream ended without a terminal event")


def _output(envelope: dict[str, Any]) -> tuple[list[str], str, bool]:
    parts: list[str] = []
    refusal, called = "", False
    for item in listing(envelope.get("output")):
        if item.get("type") == "message":
            for content in listing(item.get("content")):
                if content.get("type") == "output_text":
                    parts.append(text_of(content.get("text"), "an output text"))
                elif content.get("type") == "refusal":
                    refusal = str(content.get("refusal") or "refused")
        elif str(item.get("type", "")).endswith("_call"):
            called = True
    return parts, refusal, called


def _tokens(usage: Any) -> Tokens:
    counts = mapping(usage)
    details = mapping(counts.get("input_tokens_details"))
    return Tokens(
        usable_count(counts.get("input_tokens")),
        usable_count(details.get("cached_tokens")),
        usable_count(counts.get("output_tokens")),
    )
