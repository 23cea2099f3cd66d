"""Reads server-sent events (WHATWG HTML, section 9.2) from a completely received body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from resources.llm.providers.base import envelope_error
from viano_assets.canonical import strict_loads
from viano_assets.errors import ContractError


class Event(NamedTuple):
    """One dispatched event; `name` is empty when the stream gave none."""

    name: str
    data: str


def events(body: bytes) -> Iterator[Event]:
    """Yield the complete events; one that the stream cut off is not dispatched.

    Raises:
        ProviderFailure: `bad_envelope` for bytes that are not UTF-8.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise envelope_error("the stream is not UTF-8") from None
    name = ""
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        if not line:
            if data:
                yield Event(name, "\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)


def json_data(event: Event) -> dict[str, Any]:
    """Decode an event's data as one JSON object.

    Raises:
        ProviderFailure: `bad_envelope`.
    """
    return json_object(event.data.encode(), "an event of the stream")


def json_object(data: bytes, what: str) -> dict[str, Any]:
    """Decode strictly and require an object.

    Raises:
        ProviderFailure: `bad_envelope` naming the rule that was broken.
    """
    try:
        value = strict_loads(data)
    except (ContractError, RecursionError) as error:
        reason = error.code if isinstance(error, ContractError) else "nesting_depth"
        raise envelope_error(f"{what} is not strict JSON ({reason})", text=data) from None
    if not isinstance(value, dict):
        raise envelope_error(f"{what} is not a JSON object", text=data)
    return value
