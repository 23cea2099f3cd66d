"""A scripted HTTP server on loopback that speaks bytes, so that a reply can be wrong in every way.

Each route (first component of the path) has one handler; every complete request is recorded before its
handler runs, so the record counts exactly what a provider would have billed.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass
class Exchange:
    """One request as it came in, and the raw way back."""

    route: str
    path: str
    headers: dict[str, str]
    body: bytes
    number: int
    writer: asyncio.StreamWriter = field(repr=False)
    reader: asyncio.StreamReader = field(repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(
        self,
        status: int,
        body: bytes | Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", f"content-length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + data)

    async def stream(self, events: list[str]) -> None:
        """Send server-sent events as chunks, one event a chunk."""
        await self.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for event in events:
            data = event.encode()
            await self.send(b"%x\r\n%s\r\n" % (len(data), data))
        await self.send(b"0\r\n\r\n")

    def abort(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()


Handler = Callable[[Exchange], Awaitable[None]]


class ModelServer:
    """Runs in a thread of its own; `requests` holds every complete request in order."""

    def __init__(self, routes: Mapping[str, Handler] | None = None) -> None:
        self.routes: dict[str, Handler] = dict(routes or {})
        self.requests: list[Exchange] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def url(self, route: str = "a") -> str:
        return f"http://127.0.0.1:{self.port}/{route}"

    def count(self, route: str | None = None) -> int:
        return sum(route is None or request.route == route for request in self.requests)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request_line, *lines = head.decode("latin-1").split("\r\n")
            path = request_line.split(" ")[1]
            headers = {}
            for line in lines:
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            route = path.split("/")[1]
            exchange = Exchange(route, path, headers, body, self.count(route) + 1, writer, reader)
            self.requests.append(exchange)
            await self.routes[route](exchange)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def completion(content: str, *, finish: str | None = "stop", **facts: Any) -> dict[str, Any]:
    """Return a chat completion envelope."""
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "served-model",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
        **facts,
    }


def answers(content: str = '{"ok":true}', **facts: Any) -> Handler:
    """Return a handler that always answers well."""

    async def handle(exchange: Exchange) -> None:
        await exchange.reply(200, completion(content, **facts))

    return handle


def fails(
    status: int, body: Mapping[str, Any] | bytes = b"", headers: Mapping[str, str] | None = None
) -> Handler:
    """Return a handler that always fails with one status."""

    async def handle(exchange: Exchange) -> None:
        await exchange.reply(status, body, headers)

    return handle


def in_turn(*handlers: Handler) -> Handler:
    """Return a handler that plays the given ones in order and then repeats the last."""

    async def handle(exchange: Exchange) -> None:
        await handlers[min(exchange.number, len(handlers)) - 1](exchange)

    return handle
