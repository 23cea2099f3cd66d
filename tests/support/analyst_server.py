"""The offline analyst behind a real HTTP endpoint, so that every model call can be counted from outside.

Each distinct request gets a number; its reply starts with that many spaces. The raw reply is stored beside
its round, so a package tells which requests it has an answer to, and a repeated request is recognised.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resources.llm.providers.offline.analyst import answer
from tests.support.model_server import Exchange, ModelServer, completion
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.package.model import Head
from viano_assets.phases.protocols import Message, ModelRequest, Store

PROVIDER = """type = "openai_compatible"
model = "analyst"
base_url = "{url}"
structured = "json_schema"
dialect = "llama"
allow_loopback = true
deadline_s = 120
"""
"""How a provider of this server is set up, below its heading."""

SETTINGS = f"""default_profile = "counted"
[rounds]
jitter = 0
[providers.counted]
{PROVIDER}"""


class AnalystServer(ModelServer):
    """Answers every contract; `delay_s` is how long a call takes at least.

    `asked` holds the number of every complete request in the order of arrival; `refusals` are answered
    first, each a status and its headers.
    """

    def __init__(self, delay_s: float = 0.1, refusals: Sequence[tuple[int, dict[str, str]]] = ()) -> None:
        super().__init__({"v1": self._answer})
        self.delay_s = delay_s
        self.asked: list[int] = []
        self._refusals = list(refusals)
        self._numbers: dict[str, int] = {}

    def configure(self, home: Path) -> None:
        """Make this server the default provider of a home."""
        (home / "config").mkdir(parents=True, exist_ok=True)
        text = SETTINGS.format(url=self.url("v1"))
        (home / "config" / "llm.local.toml").write_text(text, encoding="utf-8")

    async def _answer(self, exchange: Exchange) -> None:
        if self._refusals:
            status, headers = self._refusals.pop(0)
            await exchange.reply(status, b"{}", headers)
            return
        number = self._numbers.setdefault(sha256_hex(exchange.body), len(self._numbers) + 1)
        self.asked.append(number)
        text = canonical_json(answer(_request(exchange.json))).decode()
        await asyncio.sleep(self.delay_s)
        await exchange.reply(200, completion(" " * number + text))


def _request(body: dict[str, Any]) -> ModelRequest:
    messages = []
    for message in body["messages"]:
        # Neighbouring messages come joined by an empty line, which canonical JSON never holds.
        parts = message["content"].split("\n\n") if message["role"] == "user" else [message["content"]]
        messages += [Message(role=message["role"], content=part) for part in parts]
    return ModelRequest(
        phase="",
        contract=body["response_format"]["json_schema"]["name"],
        prompt_version="",
        messages=tuple(messages),
        json_schema={},
    )


def recorded(store: Store, head: Head) -> set[int]:
    """Return the numbers of the requests whose answers the package holds."""
    found = set()
    for path in head.files:
        if re.search(r"/calls/.*\.reply\.txt$", path):
            raw = store.read(head, path)
            found.add(len(raw) - len(raw.lstrip(b" ")))
    return found
