"""Runs provider behaviours through the whole gateway and compares what came of them with what must."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.support.gateway_case import (
    CANARY,
    TurnedClock,
    config,
    gateway,
    leaks,
    new_case,
    operation,
    provider,
)
from tests.support.model_server import ModelServer, answers, fails
from tests.support.provider_behaviours import CAP, Behaviour
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import CallOutcome

Position = Literal["first", "middle", "last"]
POSITIONS: tuple[Position, ...] = ("first", "middle", "last")
WAITING = {"deadline_exceeded", "connect_timeout"}
DEADLINE_S = 1.5
PATIENCE_S = 60.0
TODAY = "2026-03-01"
NOT_SENT = {"connection_failed", "connect_timeout", "name_resolution", "address_refused", "key_missing"}


@dataclass
class Figures:
    """Sums over all runs; `wrong` lists every difference in words."""

    requests: int = 0
    ledger_entries: int = 0
    duplicates: int = 0
    canary_checks: int = 0
    canary_leaks: int = 0
    max_overrun_s: float = 0.0
    wrong: list[str] = field(default_factory=list)


class _Seen(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def listening_logs() -> Iterator[list[str]]:
    """Collect everything that is logged, down to the HTTP library's debug records."""
    root, seen = logging.getLogger(), _Seen()
    level = root.level
    root.addHandler(seen)
    root.setLevel(logging.DEBUG)
    try:
        yield seen.texts
    finally:
        root.removeHandler(seen)
        root.setLevel(level)


@contextmanager
def raw_listeners() -> Iterator[dict[str, int]]:
    """Offer a port that never answers and one that answers TLS with plain text."""
    silent, plain = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))

    def serve() -> None:
        while True:
            try:
                connection, _ = plain.accept()
            except OSError:
                return
            with connection:
                connection.recv(4_096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield {"silent": silent.getsockname()[1], "plain": plain.getsockname()[1]}
    finally:
        for listener in (silent, plain):
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def run(behaviour: Behaviour, position: Position, folder: Path, ports: dict[str, int], sums: Figures) -> None:
    """Run one behaviour at one position of a chain of three, twice, and add to the sums."""
    store, head = new_case(folder)
    at = POSITIONS.index(position)
    routes = {"p0": fails(500), "p1": fails(500), "p2": answers()}
    if position == "first":
        routes["p1"] = answers()
    routes[f"p{at}"] = behaviour.handler
    deadline_s = DEADLINE_S if behaviour.code in WAITING else PATIENCE_S
    with ModelServer(routes) as server, listening_logs() as logs:
        providers = {name: _settings(server, name, deadline_s) for name in routes}
        overrides = dict(behaviour.settings)
        if "base_url" in overrides:
            overrides["base_url"] = overrides["base_url"].format(**ports)
            overrides["api_key_env"] = "OTHER_KEY"
        providers[f"p{at}"] |= overrides
        environ = {"CANARY_KEY": CANARY, "OTHER_KEY": CANARY}
        made = gateway(config(providers), folder / "spend", TurnedClock(), environ)
        started = time.monotonic()
        outcome = asyncio.run(made.dispatch(store, operation(head)))
        sums.max_overrun_s = max(sums.max_overrun_s, time.monotonic() - started - deadline_s)
        requests = server.count()
        asyncio.run(made.dispatch(store, operation(head)))
        sums.duplicates += server.count() - requests
        entries = [entry for entry in made.ledger.entries(TODAY) if entry["kind"] == "reserve"]
    attempts = _attempts(store, outcome)
    _compare(behaviour, at, attempts, outcome, sums)
    sent = sum(attempt["code"] not in NOT_SENT for attempt in attempts)
    if not requests == sent == len(entries) - (len(attempts) - sent):
        sums.wrong.append(f"{behaviour.name} {position}: {requests} requests, {len(entries)} entries")
    sums.requests += requests
    sums.ledger_entries += len(entries) - (len(attempts) - sent)
    sums.canary_checks += 1
    texts = [*logs, outcome.message, repr(outcome)]
    found = leaks(folder) + [text[:80] for text in texts if CANARY in text]
    sums.canary_leaks += len(found)
    if found:
        sums.wrong.append(f"{behaviour.name} {position}: the key is in {found[:2]}")


def _settings(server: ModelServer, route: str, deadline_s: float) -> dict[str, Any]:
    caps = {"max_wire_bytes": CAP, "max_decoded_bytes": CAP, "deadline_s": deadline_s}
    return provider(server, route, structured="json_schema", **caps)


def _attempts(store: CheckpointStore, outcome: CallOutcome) -> list[dict[str, Any]]:
    record = json.loads(store.read(outcome.head, outcome.call_path or ""))
    attempts: list[dict[str, Any]] = record["attempts"]
    return attempts


def _compare(
    behaviour: Behaviour, at: int, attempts: list[dict[str, Any]], outcome: CallOutcome, sums: Figures
) -> None:
    attempt = attempts[at] if at < len(attempts) else {}
    found = (attempt.get("outcome"), attempt.get("code"), attempt.get("error_class"))
    wanted = (behaviour.outcome, behaviour.code, behaviour.error_class)
    if found != wanted:
        sums.wrong.append(f"{behaviour.name} at {at}: {found} instead of {wanted}: {attempt.get('message')}")
    if behaviour.wait_s is not None:
        clock = TurnedClock()
        clock.turn(behaviour.wait_s)
        if str(attempt.get("not_before"))[:19] != clock.now().isoformat()[:19]:
            sums.wrong.append(f"{behaviour.name}: due {attempt.get('not_before')}")
    ends = {"answered": "answered", "invalid": "invalid"}
    expected = ends.get(behaviour.outcome, "retry_pending" if at == 2 else "answered")
    if outcome.status != expected:
        sums.wrong.append(f"{behaviour.name} at {at}: {outcome.status} instead of {expected}")
