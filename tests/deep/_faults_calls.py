"""Real SIGKILL before every changing system call of what is written outside the package too (R1, R12).

Two operations: investigation dispatches through the real builder and gateway with a provider on loopback
(context, spend reservation, journal, call record, settlement, actions, unit budget), and the append of a
calibration to the corpus files and to the evidence index. `strace` kills: ledgers, journals and Parquet
files are written by plain system calls, and it needs no cooperation of what it kills. The child is forked
from a warm parent and stops itself until the tracer has it. Where a tracer may not be used, the first
operation is killed at the changes of the package only, and this is said.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources.evidence_index import EvidenceIndex
from resources.llm.accounting import Ledger
from resources.llm.gateway import LLMGateway
from tests.deep._faults_kill import Tally, _killed_at, forked, in_child
from tests.support.cases import ManualClock
from tests.support.faulty_files import WatchedFileSystem
from tests.support.gateway_case import TurnedClock, config, gateway, provider
from tests.support.harbour_case import (
    CASE,
    HYPOTHESES,
    INTERPRETATION,
    HarbourToolFactory,
    Investigator,
    received,
)
from tests.support.model_server import Exchange, ModelServer, completion
from tests.support.planning import SEPARATE
from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.errors import VianoError
from viano_assets.evaluation.snapshot import keep_snapshot, make_snapshot
from viano_assets.evaluation.stored import calibration_rows
from viano_assets.package.filesystem import FileSystem
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.protocols import Message, ModelRequest
from viano_assets.phases.rounds import ROUND_RECORDED

CHANGING_CALLS = (
    "write,pwrite64,writev,pwritev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,"
    "unlink,unlinkat,mkdir,mkdirat,rmdir,openat,sendto"
)
DISPATCHES = 2
_LINE = re.compile(r"(?:\d+ +)?(?P<call>[a-z0-9_]+)\((?P<arguments>.*)")


@dataclass
class Asked(ModelServer):
    """A provider that answers as the harbour's investigator does, from the request alone.

    A reply starts with as many spaces as its request has a number, so that a package tells which requests
    it holds an answer to.
    """

    bodies: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__({"a": self._answer})

    async def _answer(self, exchange: Exchange) -> None:
        body = sha256_hex(exchange.body)
        number = self.numbers.setdefault(body, len(self.numbers) + 1)
        self.bodies.append(body)
        request = _request(exchange.json)
        done: Counter[str] = Counter()
        for history in request.sections("history"):
            done[history["hypothesis_id"]] += len(history["actions"])
        answer = Investigator(asked=dict(done))(request)
        await exchange.reply(200, completion(" " * number + canonical_json(answer).decode()))

    def recorded(self, store: CheckpointStore, head: Head) -> set[str]:
        """Return the requests whose answers the package holds."""
        names = {number: body for body, number in self.numbers.items()}
        replies = [p for p in head.files if re.search(r"/investigation/.*\.reply\.txt$", p)]
        raws = [store.read(head, path) for path in replies]
        return {names[len(raw) - len(raw.lstrip(b" "))] for raw in raws}


def _request(body: Mapping[str, Any]) -> ModelRequest:
    messages = []
    for message in body["messages"]:
        parts = message["content"].split("\n\n") if message["role"] == "user" else [message["content"]]
        messages += [Message(role=message["role"], content=part) for part in parts]
    return ModelRequest(
        phase="", contract="", prompt_version="", messages=tuple(messages), json_schema={"type": "object"}
    )


@dataclass(frozen=True)
class Work:
    """What is killed: how its home is made, what is done (again after a death), what must come of it."""

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path, FileSystem | None], None]
    judge: Callable[[Path], list[str]]
    package_only: bool = False


def _traced(child: int, options: list[str]) -> tuple[int, str]:
    """Let the stopped child run under the tracer; return its exit code and what the tracer wrote."""
    os.waitpid(child, os.WUNTRACED)
    tracer = subprocess.Popen(
        ["strace", "-f", "-p", str(child), "-s", "0", *options], stderr=subprocess.PIPE, text=True
    )
    assert tracer.stderr is not None
    first = tracer.stderr.readline()
    if "attached" not in first:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tracer.wait()
        raise PermissionError(first.strip())
    os.kill(child, signal.SIGCONT)
    text = tracer.stderr.read()
    tracer.wait()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def _stopped(work: Callable[[], None]) -> int:
    """Fork a child that stops itself, then works."""

    def stopped() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        work()

    return forked(stopped)


def _points(text: str) -> list[tuple[str, int]]:
    """Return the changing calls of an undisturbed run: name and how manieth of that name."""
    seen: Counter[str] = Counter()
    found = []
    for line in text.splitlines():
        match = _LINE.match(re.sub(r"^\[pid +\d+\] ", "", line))
        if match is None:
            continue
        seen[match["call"]] += 1
        if match["call"] != "openat" or "O_CREAT" in match["arguments"]:
            found.append((match["call"], seen[match["call"]]))
    return found


def _copy(seed: Path, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(seed, root)


def kill(work: Work, scratch: Path, tally: Tally, share: float) -> int:
    """Kill one operation before every changing call (or an even share of them); return how many."""
    seed, root = scratch / "seed", scratch / "root"
    seed.mkdir(parents=True)
    work.prepare(seed)
    _copy(seed, root)
    work.act(root, None)
    _copy(seed, root)
    try:
        code, text = _traced(_stopped(lambda: work.act(root, None)), ["-e", f"trace={CHANGING_CALLS}"])
    except (OSError, PermissionError) as error:
        sys.stderr.write(f"kill: {work.name}: no tracer here ({error})\n")
        return _kill_package(work, seed, root, tally) if work.package_only else 0
    if code:
        raise AssertionError(f"{work.name} fails undisturbed with {code}")
    every = _points(text)
    step = max(1, round(1 / share))
    points = 0
    for name, nth in every[::step]:
        _copy(seed, root)
        options = ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={nth}"]
        code, _ = _traced(_stopped(lambda: work.act(root, None)), options)
        if code != -signal.SIGKILL:
            tally.note("torn", f"{work.name}, before {name} {nth}: ended with {code}")
            continue
        points += 1
        _carry_on(work, root, f"{work.name}, before {name} {nth}", tally)
    shutil.rmtree(scratch)
    return points


def _kill_package(work: Work, seed: Path, root: Path, tally: Tally) -> int:
    nth = 0
    while True:
        nth += 1
        _copy(seed, root)
        disk = WatchedFileSystem(_killed_at(nth))
        if in_child(lambda d=disk: work.act(root, d)) == 0:  # type: ignore[misc]
            return nth - 1
        _carry_on(work, root, f"{work.name}, before change {nth} of the package", tally)


def _carry_on(work: Work, root: Path, where: str, tally: Tally) -> None:
    tally.points += 1
    try:
        for fault in work.judge(root):
            tally.note("lost", f"{where}: {fault}")
    except VianoError as error:
        tally.note("torn", f"{where}: {error.code}: {error}")


class Calls:
    """The dispatches of an investigation, with one provider for all of them."""

    def __init__(self, server: Asked) -> None:
        self._server = server
        self._whole: dict[str, bytes] | None = None

    def prepare(self, root: Path) -> None:
        """Make a case whose hypotheses are published."""

        async def read() -> None:
            store = self._store(root, None)
            received(store)
            reading = LLMGateway(offline=lambda _: INTERPRETATION, clock=TurnedClock())
            await CaseInterpreter(store, reading, SEPARATE).build(CASE)
            proposing = LLMGateway(offline=lambda _: HYPOTHESES, clock=TurnedClock())
            await HypothesisBuilder(store, proposing).build(CASE)

        asyncio.run(read())

    @staticmethod
    def _store(root: Path, disk: FileSystem | None) -> CheckpointStore:
        return CheckpointStore(root / "home", filesystem=disk, clock=ManualClock())

    def _gateway(self, root: Path) -> LLMGateway:
        settings = config({"a": provider(self._server)}, max_tokens_per_day=10_000_000)
        return gateway(settings, root / "home/spend", TurnedClock())

    def act(self, root: Path, disk: FileSystem | None) -> None:
        """Dispatch until two dispatches are published."""
        store = self._store(root, disk)
        builder = InvestigationBuilder(store, self._gateway(root), None, HarbourToolFactory())
        while len(_dispatches(store.latest(CASE))) < DISPATCHES:
            asyncio.run(builder.build(CASE))

    def judge(self, root: Path) -> list[str]:
        """Carry on after a death and compare with the undisturbed run."""
        if self._whole is None:
            self._whole = self._undisturbed(root)
        store = self._store(root, None)
        before = store.latest(CASE, audit_history=True)
        held = self._server.recorded(store, before)
        asked = len(self._server.bodies)
        self.act(root, None)
        head = store.latest(CASE, audit_history=True)
        faults = []
        if held & set(self._server.bodies[asked:]):
            faults.append("a recorded call was made again")
        if not before.files.items() <= head.files.items():
            faults.append("an artifact was changed or lost")
        unknown = sum(c.detail["spend"]["unknown"] for c in head.checkpoints if c.event == ROUND_RECORDED)
        if unknown > 1:
            faults.append(f"one death made {unknown} unknown outcomes")
        expected = self._whole if unknown == 0 else _without(self._whole)
        found = _published(store, head)
        if (found if unknown == 0 else _without(found)) != expected:
            faults.append(f"carrying on ends differently ({unknown} unknown outcomes)")
        return faults + self._money(root, store, head)

    def _undisturbed(self, root: Path) -> dict[str, bytes]:
        twin = root.parent / "whole"
        _copy(root.parent / "seed", twin)
        self.act(twin, None)
        store = self._store(twin, None)
        return _published(store, store.latest(CASE))

    def _money(self, root: Path, store: CheckpointStore, head: Head) -> list[str]:
        """The day ledger books at least what the recorded rounds say, every entry once at its end."""
        clock = TurnedClock()
        entries = Ledger(root / "home/spend", clock).entries(clock.now().strftime("%Y-%m-%d"))
        last = {entry["entry"]: entry for entry in entries}
        booked = sum(int(entry["tokens"]) for entry in last.values())
        records: list[Any] = [
            strict_loads(store.read(head, path))
            for path in head.files
            if re.search(r"/investigation/.*/calls/[^/]+/round-\d+\.json$", path)
        ]
        attempts = [attempt for record in records for attempt in record["attempts"]]
        told = sum(attempt["tokens_in"] + attempt["tokens_out"] for attempt in attempts)
        faults = []
        if {attempt["entry"] for attempt in attempts} - last.keys():
            faults.append("an attempt stands in no ledger")
        if booked < told:
            faults.append(f"the ledger books {booked} tokens, the package tells {told}")
        return faults


def _dispatches(head: Head) -> list[str]:
    return [p for p in head.files if re.search(r"/investigation/\d+/dispatch-\d+\.json$", p)]


def _published(store: CheckpointStore, head: Head) -> dict[str, bytes]:
    """Return the artifacts of a head."""
    return {path: store.read(head, path) for path in head.files if not path.startswith("inputs/")}


def _without(artifacts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Leave out the calls and what names them: after an unknown outcome a later round holds the answer."""
    return {path: _nameless(path, data) for path, data in artifacts.items() if "/calls/" not in path}


def _nameless(path: str, data: bytes) -> bytes:
    """Take out the call of a decision, and the hashes of what is compared itself."""
    if not path.endswith(".json"):
        return data
    data = re.sub(rb'"call":\{"[^{}]*\}', b"", data)
    return re.sub(rb'("path":"analysis/investigation/[^"]*",)"sha256":"[0-9a-f]*"', rb"\1", data)


def _snapshot(run: str, right: int) -> dict[str, Any]:
    scores = [
        {"confirmed": True, "effective_confidence": "supported", "root_cause_correct": number < right}
        for number in range(20)
    ]
    facts = {
        "corpus": "small", "corpus_sha256": "0" * 64, "run_id": run, "provider": "offline",
        "prompts_sha256": "1" * 64, "code_version": "test",
    }  # fmt: skip
    return make_snapshot(facts, scores, {}, "2030-01-01T00:00:00Z")


def _append(root: Path, run: str, right: int) -> None:
    """Store and publish a calibration, as the judging of a corpus run does."""
    snapshot = _snapshot(run, right)
    keep_snapshot(root, snapshot)
    EvidenceIndex(root).publish(snapshot["snapshot_id"], 1, {"calibration": calibration_rows(snapshot)})


def _calibrations(root: Path) -> tuple[object, ...]:
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted((root / "corpora").rglob("*.json"))
        if not path.name.startswith(".")
    }
    rows = EvidenceIndex(root).query("SELECT * FROM calibration ORDER BY ALL", limit=1_000).rows
    return files, rows


def _judge_calibration(root: Path) -> list[str]:
    earlier = _snapshot("small.r0001", 12)["snapshot_id"]
    names = EvidenceIndex(root).query("SELECT DISTINCT snapshot_id FROM calibration", limit=9).rows
    faults = [] if [earlier] in [list(row) for row in names] else ["an earlier calibration is gone"]
    _append(root, "small.r0002", 15)
    twin = root.parent / "whole"
    if not twin.exists():
        _copy(root.parent / "seed", twin)
        _append(twin, "small.r0002", 15)
    if _calibrations(root) != _calibrations(twin):
        faults.append("carrying on ends differently")
    return faults


CALIBRATION = Work(
    "calibration append",
    lambda root: _append(root, "small.r0001", 12),
    lambda root, _: _append(root, "small.r0002", 15),
    _judge_calibration,
)


def run(scratch: Path, tally: Tally, share: float = 1.0) -> None:
    """Kill both operations; `share` below 1 takes an even share of the points."""
    with Asked() as server:
        calls = Calls(server)
        works = (
            Work("call record and budget", calls.prepare, calls.act, calls.judge, package_only=True),
            CALIBRATION,
        )
        for number, work in enumerate(works):
            points = kill(work, scratch / f"calls{number}", tally, share)
            sys.stderr.write(f"kill: {work.name}: {points} points\n")
