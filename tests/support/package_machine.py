"""The package store against a model of a few lines, under any sequence of use, death and tampering."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.cases import ManualClock
from tests.support.faulty_files import CHANGING, Crash, FailNth, WatchedFileSystem
from viano_assets.errors import ContractError, PackageError, StaleHeadError, StorageError
from viano_assets.package.model import Change, Head
from viano_assets.package.reader import StoredHead
from viano_assets.package.store import CheckpointStore

CASE = "M"
_PATHS = st.sampled_from(["a.json", "b/c.json", "b/d.json", "e.bin"])
_SMALL = st.binary(max_size=40)
_BIG = st.integers(0, 3).map(lambda n: bytes([n]) * ((1 << 20) + n))


class PackageMachine(RuleBasedStateMachine):
    """Model: the committed contents, one dictionary per generation."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="viano-machine-"))
        self.home = self.root / "home"
        self.clock = ManualClock()
        self.store = self._open()
        self.model: list[dict[str, bytes]] = []
        self.events: list[str] = []
        self.stale: Head | None = None
        self.head: Head | None = None
        self.exports = 0

    def _open(self, disk: WatchedFileSystem | None = None) -> CheckpointStore:
        return CheckpointStore(self.home, filesystem=disk, clock=self.clock)

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize(report=_SMALL)
    def create(self, report: bytes) -> None:
        put: dict[str, bytes | Path] = {"in/report": report}
        change = Change("created", put=put, raw=frozenset(put), lifecycle="RECEIVED")
        self.head = self.store.create(CASE, change)
        self.model.append({"in/report": report})
        self.events.append("created")

    @rule(put=st.dictionaries(_PATHS, _SMALL | _BIG, max_size=3), number=st.integers(0, 99))
    def commit(self, put: dict[str, bytes], number: int) -> None:
        assert self.head is not None
        self.stale = self.head
        self.head = self.store.commit(self.head, Change(f"e{number}", put=dict(put), detail={"n": number}))
        self.model.append({**self.model[-1], **put})
        self.events.append(f"e{number}")

    @precondition(lambda self: self.stale is not None)
    @rule()
    def commit_from_a_stale_head(self) -> None:
        assert self.stale is not None
        try:
            self.store.commit(self.stale, Change("stale"))
        except StaleHeadError:
            return
        raise AssertionError("a stale head was committed")

    @rule()
    def commit_something_forbidden(self) -> None:
        assert self.head is not None
        try:
            self.store.commit(self.head, Change("x", put={"in/report": b"changed", "../x": b""}))
        except ContractError:
            return
        raise AssertionError("a forbidden change was committed")

    @rule(
        put=st.dictionaries(_PATHS, _SMALL | _BIG, min_size=1, max_size=2),
        nth=st.integers(1, 30),
        dies=st.booleans(),
    )
    def commit_on_a_failing_disk(self, put: dict[str, bytes], nth: int, dies: bool) -> None:
        assert self.head is not None
        fault = FailNth(nth, None if dies else 5, CHANGING)
        disk = WatchedFileSystem(fault)
        store = self._open(disk)
        self.stale = None
        acknowledged = False
        try:
            store.commit(store.latest(CASE), Change("faulty", put=dict(put)))
            acknowledged = True
        except (Crash, StorageError):
            disk.die()
        self.store = self._open()
        self.head = self.store.latest(CASE)
        grown = self.head.generation - len(self.model)
        assert grown in ({1} if acknowledged else {0, 1})
        if grown:
            self.model.append({**self.model[-1], **put})
            self.events.append("faulty")

    @rule()
    def start_anew(self) -> None:
        self.store = self._open()
        self.head = self.store.latest(CASE)

    @rule(seconds=st.sampled_from([-86_400.0, -1.0, 0.5, 3.2e8]))
    def step_the_clock(self, seconds: float) -> None:
        self.clock.step(seconds)

    @rule(choice=st.integers(0, 10**6), bit=st.integers(0, 7))
    def tamper_with_a_live_byte(self, choice: int, bit: int) -> None:
        """Flip one bit of live content, keep size and times; every lookup must refuse; then put it back."""
        head = self.store.latest(CASE)
        assert isinstance(head, StoredHead)
        live = [s for s in head.entries.values() if s.size]
        if not live:
            return
        stored = live[choice % len(live)]
        folder = self.home / "cases" / CASE
        path = (
            folder / f"gens/g{stored.generation:08d}.zip"
            if stored.generation
            else folder / f"objects/{stored.sha256}"
        )
        times = path.stat()
        original = path.read_bytes()
        data = bytearray(original)
        data[stored.offset + choice % stored.size] ^= 1 << bit
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        try:
            self.store.latest(CASE)
        except PackageError:
            path.write_bytes(original)
            return
        raise AssertionError("a changed live byte went unnoticed")

    @rule()
    def collect(self) -> None:
        self.store.collect_garbage(CASE, dry_run=False)
        assert self.store.collect_garbage(CASE).objects == ()

    @rule()
    def transfer(self) -> None:
        assert self.head is not None
        self.exports += 1
        target = self.root / f"{self.exports}.zip"
        self.store.export(CASE, target)
        other = CheckpointStore(self.root / f"other{self.exports}")
        assert other.import_package(target) == self.head
        target.unlink()
        shutil.rmtree(other.home)

    @invariant()
    def the_store_is_the_model(self) -> None:
        if not self.model:
            return
        head = self.store.latest(CASE)
        assert head == self.head
        assert head.generation == len(self.model)
        assert {path: self.store.read(head, path) for path in head.files} == self.model[-1]
        assert [c.event for c in head.checkpoints] == self.events
        assert [c.generation for c in head.checkpoints] == list(range(1, len(self.model) + 1))
        assert set(head.raw_inputs()) == {"in/report"}
