"""Every provider behaviour at every position, races for one operation, kills around a call.

R8, R11 and R12 of the reliability matrix: what a provider does is classified, each request is one ledger
entry, nothing recorded is paid for again, no output holds the key and no wait exceeds its deadline.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import tracemalloc
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from resources.llm.records import recorded_answers, spend_report
from tests.support.behaviour_run import POSITIONS, Figures, raw_listeners, run
from tests.support.gateway_case import config, gateway, new_case, operation
from tests.support.model_server import Exchange, ModelServer, answers
from tests.support.provider_behaviours import CAP, Behaviour, behaviours
from viano_assets.errors import BlockedError
from viano_assets.package.store import CheckpointStore

RACES = 200
KILLS = 30


def main() -> dict[str, object]:
    sums = Figures()
    with tempfile.TemporaryDirectory() as place, raw_listeners() as ports:
        root = Path(place)
        _behaviours(root, ports, sums)
        for processes in (2, 8):
            _races(root / f"race-{processes}", processes, sums)
        _kills(root / "kills", sums)
    if sums.wrong:
        sys.stderr.write("\n".join(sums.wrong) + "\n")
        raise SystemExit(f"{len(sums.wrong)} differences")
    return {
        "behaviours": len(behaviours()),
        "positions": len(POSITIONS),
        "requests": sums.requests,
        "ledger_entries": sums.ledger_entries,
        "duplicates_after_record": sums.duplicates,
        "canary_checks": sums.canary_checks,
        "canary_leaks": sums.canary_leaks,
        "max_overrun_s": round(max(sums.max_overrun_s, 0.0), 3),
    }


def _behaviours(root: Path, ports: dict[str, int], sums: Figures) -> None:
    every = behaviours()
    run(every[0], "first", root / "imports", ports, Figures())
    for number, behaviour in enumerate(every):
        for position in POSITIONS:
            run(behaviour, position, root / f"{number}-{position}", ports, sums)
        if number % 20 == 0:
            sys.stderr.write(f"{number}/{len(every)} behaviours\n")
    if sums.max_overrun_s > 1:
        sums.wrong.append(f"a dispatch took {sums.max_overrun_s:.2f} s longer than its deadline")
    calm = _peak(every, "ok", root, ports)
    for name in ("endless chunks", "endless error body", "gzip bomb", "long body", "depth 100000"):
        growth = _peak(every, name, root, ports) - calm
        sys.stderr.write(f"{name}: {growth / CAP:.2f} body caps of memory more than a plain answer\n")
        if growth > 3 * CAP:
            sums.wrong.append(f"{name}: memory grew by {growth} bytes, the cap is {CAP}")


def _peak(every: list[Behaviour], name: str, root: Path, ports: dict[str, int]) -> int:
    """Return the most bytes Python held while a behaviour ran, the scripted server included."""
    behaviour = next(candidate for candidate in every if candidate.name == name)
    tracemalloc.start()
    try:
        run(behaviour, "first", root / f"memory-{name}", ports, Figures())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _settings(url: str) -> dict[str, Any]:
    return {"type": "openai_compatible", "model": "model-a", "base_url": url, "allow_loopback": True}


def _racer(home: Path, url: str, barrier: Barrier, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    store = CheckpointStore(home)
    made = gateway(config({"a": _settings(url)}), home / "spend")
    head = store.latest("BUG-1")
    for number in range(rounds):
        barrier.wait()
        time.sleep(chance.random() * 0.01)
        wanted = operation(head, attempt_id=f"attempt-{number}")
        while True:
            try:
                outcome = asyncio.run(made.dispatch(store, wanted))
                assert outcome.answer == {"ok": True}, outcome
                break
            except BlockedError:
                time.sleep(0.01)
        barrier.wait()


def _races(home: Path, processes: int, sums: Figures) -> None:
    new_case(home)

    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.005)
        await answers()(exchange)

    context = multiprocessing.get_context("spawn")
    with ModelServer({"a": slow}) as server:
        barrier = context.Barrier(processes)
        workers = [
            context.Process(target=_racer, args=(home, server.url(), barrier, RACES, seed))
            for seed in range(processes)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            if worker.exitcode:
                sums.wrong.append(f"a racer of {processes} ended with {worker.exitcode}")
        requests = server.count()
    report = spend_report(CheckpointStore(home).latest("BUG-1"))
    entries = [
        e
        for e in gateway(config({}, default_profile="offline", profiles={}), home / "spend").ledger.entries(
            "2026-03-01"
        )
        if e["kind"] == "reserve"
    ]
    sys.stderr.write(f"{processes} processes: {requests} requests for {RACES} operations\n")
    if not requests == report.calls == len(entries) == RACES:
        sums.wrong.append(
            f"{processes} racers: {requests} requests, {report.calls} calls, {len(entries)} entries"
        )
    sums.duplicates += max(0, requests - RACES)
    sums.requests += requests
    sums.ledger_entries += len(entries)


def _victim(home: Path, url: str, attempt: str) -> None:
    store = CheckpointStore(home)
    made = gateway(config({"a": _settings(url)}), home / "spend")
    asyncio.run(made.dispatch(store, operation(store.latest("BUG-1"), attempt_id=attempt)))


def _kills(home: Path, sums: Figures) -> None:
    """Kill a dispatch at a random moment; afterwards every request is booked and every answer is kept."""
    store, head = new_case(home)
    chance = random.Random(4)
    context = multiprocessing.get_context("fork")

    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.03)
        await answers()(exchange)

    with ModelServer({"a": slow}) as server:
        for number in range(KILLS):
            attempt = f"attempt-{number}"
            child = context.Process(target=_victim, args=(home, server.url(), attempt))
            child.start()
            time.sleep(chance.random() * 0.15)
            if child.pid is not None and child.is_alive():
                os.kill(child.pid, signal.SIGKILL)
            child.join()
            answered_before = _answered(store, attempt)
            before = server.count()
            made = gateway(config({"a": _settings(server.url())}), home / "spend")
            outcome = asyncio.run(made.dispatch(store, operation(head, attempt_id=attempt)))
            if answered_before:
                sums.duplicates += server.count() - before
            if outcome.answer != {"ok": True}:
                sums.wrong.append(f"kill {number}: {outcome.status} {outcome.code}")
        requests = server.count()
    report = spend_report(store.latest("BUG-1"))
    unknown = report.unknown
    sys.stderr.write(
        f"{KILLS} kills: {requests} requests, {report.calls} calls, {unknown} of unknown outcome\n"
    )
    if not requests <= report.calls <= requests + unknown:
        sums.wrong.append(f"kills: {requests} requests but {report.calls} calls, {unknown} unknown")


def _answered(store: CheckpointStore, attempt: str) -> bool:
    head = store.latest("BUG-1")
    wanted = operation(head, attempt_id=attempt)
    return next(recorded_answers(head, wanted), None) is not None
