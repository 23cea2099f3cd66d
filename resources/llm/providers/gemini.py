"""Gemini: `POST {base_url}/v1beta/models/{model}:generateContent`.

Source of the format: Gemini API reference, "Generating content" and "Structured output". The key goes in a
header, never in the URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote

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
    text_of,
    truncated,
)
from resources.llm.schema_dialects import GEMINI
from viano_assets.phases.protocols import ModelRequest

_FILTERED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"}


class GeminiProvider(HttpProvider):
    """Adapter for the generateContent format."""

    key_header: ClassVar[str] = "x-goog-api-key"
    key_prefix: ClassVar[str] = ""

    def payload(self, request: ModelRequest, mode: str) -> Payload:
        """Build the body; the contents stand last."""
        settings: dict[str, Any] = {"maxOutputTokens": self.output_tokens(request)}
        if self.settings.temperature is not None:
            settings["temperature"] = self.settings.temperature
        unenforced: tuple[str, ...] = (UNENFORCED_WHOLE,)
        messages = [(message.role, message.content) for message in request.messages]
        if mode == "json_schema":
            transport = dialect_schema(request, GEMINI)
            unenforced = transport.unenforced
            settings |= {"responseMimeType": "application/json", "responseJsonSchema": transport.schema}
        else:
            messages.append(("user", instruction(request)))
            if mode == "json_object":
                settings["responseMimeType"] = "application/json"
        contents: list[dict[str, Any]] = []
        for role, content in messages:
            if role == "system":
                continue
            name = "model" if role == "assistant" else "user"
            if contents and contents[-1]["role"] == name:
                contents[-1]["parts"].append({"text": content})
            else:
                contents.append({"role": name, "parts": [{"text": content}]})
        system = [{"text": content} for role, content in messages if role == "system"]
        body: dict[str, Any] = {"generationConfig": settings}
        if system:
            body["systemInstruction"] = {"parts": system}
        body["contents"] = contents
        verb = "streamGenerateContent?alt=sse" if self.settings.stream else "generateContent"
        return Payload(f"/v1beta/models/{quote(self.model, safe='')}:{verb}", body, unenforced, nulled=False)

    def read(self, envelope: dict[str, Any]) -> Finished:
        """Read a generateContent reply."""
        return _finished([envelope])

    def read_stream(self, events: Sequence[sse.Event]) -> Finished:
        """Read the chunks of a stream; the last one must carry a finish reason."""
        if not events:
            raise envelope_error("the stream is empty")
        return _finished([sse.json_data(event) for event in events])


def _finished(chunks: Sequence[dict[str, Any]]) -> Finished:
    parts: list[str] = []
    finish: Any = None
    called = False
    model, tokens, blocked = "", Tokens(), ""
    for chunk in chunks:
        if "error" in chunk:
            raise error_in_reply(chunk["error"])
        model = str(chunk.get("modelVersion", "")) or model
        tokens = _tokens(chunk["usageMetadata"]) if chunk.get("usageMetadata") else tokens
        blocked = str(mapping(chunk.get("promptFeedback")).get("blockReason") or "") or blocked
        for candidate in listing(chunk.get("candidates"))[:1]:
            finish = candidate.get("finishReason") or finish
            for part in listing(mapping(candidate.get("content")).get("parts")):
                called = called or "functionCall" in part
                if "text" in part and not part.get("thought"):
                    parts.append(text_of(part["text"], "a part"))
    return _end(parts, finish, model, tokens, blocked, called=called)


def _end(
    parts: Sequence[str], finish: Any, model: str, tokens: Tokens, blocked: str, *, called: bool
) -> Finished:
    text = "".join(parts).encode("utf-8", "surrogatepass")
    if blocked or finish in _FILTERED:
        raise refused("content_filter", f"blocked: {blocked or finish}", model, tokens, text)
    if finish == "MAX_TOKENS":
        raise truncated(text, model, tokens)
    if called or finish in {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"}:
        raise invalid_answer(
            "unexpected_tool_call",
            "the model called a tool it was not given",
            text=text,
            served_model=model,
            tokens=tokens,
        )
    if finish != "STOP":
        raise envelope_error("the reply has no terminal finish reason", text=text, tokens=tokens)
    if not text.strip():
        raise invalid_answer(
            "empty_answer", "the model answered nothing", text=text, served_model=model, tokens=tokens
        )
    return Finished(text, model, tokens)


def _tokens(usage: Any) -> Tokens:
    """Read the counts; thinking is paid as output."""
    counts = mapping(usage)
    out = usable_count(counts.get("candidatesTokenCount"))
    thoughts = usable_count(counts.get("thoughtsTokenCount")) or 0
    return Tokens(
        usable_count(counts.get("promptTokenCount")),
        usable_count(counts.get("cachedContentTokenCount")) or 0,
        None if out is None else out + thoughts,
    )
