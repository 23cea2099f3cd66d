"""Power loss under a pessimistic disk (R2): what was not flushed may be there, half there or not at all.

A recorder notes every change of the disk while a workload runs. For every prefix of the record the legal
states are built: content that was not flushed is old, half new or new; names that were not flushed with
their directory are there or not, independently of each other. Each distinct state is put on a real disk
and opened.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.deep._faults_kill import Tally
from tests.support.cases import BIG, PACKAGE_ID, ManualClock, first_change, grown, next_change
from tests.support.faulty_files import WatchedFileSystem
from viano_assets.errors import PackageError, StorageError, VianoError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore

CASE = "c"
_MOST_STATES = 200


@dataclass
class _Inode:
    durable: bytes | None = None
    now: bytes = b""
    directory: bool = False


@dataclass(frozen=True)
class _Entry:
    """One change of a name: the directory's path, the name, the inode it now means (None: removed)."""

    directory: str
    name: str
    inode: int | None


@dataclass
class Disk:
    """The state of the modelled disk at one moment."""

    inodes: dict[int, _Inode] = field(default_factory=dict)
    names: dict[str, dict[str, int]] = field(default_factory=dict)
    pending: dict[str, list[_Entry]] = field(default_factory=dict)


class Recorder(WatchedFileSystem):
    """A real file system that notes every change as a step of the model."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = str(root)
        self.steps: list[Callable[[Disk], None]] = []
        self.acknowledged: list[tuple[int, int]] = []
        self.fail_flush_of = ""
        self.forget_flush_of = "nothing is forgotten"
        self._inode_of: dict[str, int] = {}
        self._next = itertools.count(1)

    def _local(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def _note(self, step: Callable[[Disk], None]) -> None:
        self.steps.append(step)

    def _entry(self, path: str, inode: int | None) -> None:
        directory, name = os.path.split(self._local(path))
        entry = _Entry(directory, name, inode)
        self._note(lambda disk: disk.pending.setdefault(directory, []).append(entry))

    def _new(self, path: str, *, directory: bool) -> int:
        inode = next(self._next)
        self._inode_of[self._local(path)] = inode

        def made(disk: Disk) -> None:
            disk.inodes[inode] = _Inode(directory=directory)

        self._note(made)
        self._entry(path, inode)
        return inode

    def known(self, path: str) -> int:
        """Return the inode a path means now, adopting what was there before the record."""
        return self._inode_of[self._local(path)]

    def create_file(self, path: str) -> int:
        descriptor = super().create_file(path)
        self._new(path, directory=False)
        return descriptor

    def open_lock(self, path: str) -> int:
        fresh = self.kind(path) is None
        descriptor = super().open_lock(path)
        if fresh:
            self._new(path, directory=False)
        return descriptor

    def mkdir(self, path: str) -> None:
        super().mkdir(path)
        self._new(path, directory=True)

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        super().write(descriptor, data)
        self._append(self.known(self.names[descriptor]), bytes(data))

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        super().write_at(descriptor, data, offset)
        inode, copy = self.known(self.names[descriptor]), bytes(data)

        def placed(disk: Disk) -> None:
            old = disk.inodes[inode].now.ljust(offset, b"\0")
            disk.inodes[inode].now = old[:offset] + copy + old[offset + len(copy) :]

        self._note(placed)

    def _append(self, inode: int, data: bytes) -> None:
        def written(disk: Disk) -> None:
            disk.inodes[inode].now += data

        self._note(written)

    def fsync(self, descriptor: int) -> None:
        path = self.names[descriptor]
        if self.fail_flush_of and self.fail_flush_of in path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        super().fsync(descriptor)
        if self.forget_flush_of in f"{path}/":
            return
        local = self._local(path)
        if os.path.isdir(path):  # noqa: PTH112
            self._note(lambda disk: _settle(disk, local))
        else:
            inode = self.known(path)

            def flushed(disk: Disk) -> None:
                disk.inodes[inode].durable = disk.inodes[inode].now

            self._note(flushed)

    def publish(self, source: str, target: str) -> None:
        os.link(source, target)
        inode = self.known(source)
        self._inode_of[self._local(target)] = inode
        self._entry(target, inode)
        self.unlink(source)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        here, there = self._local(source), self._local(target)
        for path, inode in list(self._inode_of.items()):
            if path == here or path.startswith(f"{here}/"):
                self._inode_of[there + path[len(here) :]] = inode
        inode = self._inode_of[there]
        moved = self._inode_of[there]

        def directories_follow(disk: Disk) -> None:
            if disk.inodes[moved].directory:
                for path in [p for p in disk.names if p == here or p.startswith(f"{here}/")]:
                    disk.names[there + path[len(here) :]] = dict(disk.names[path])
                for path in [p for p in disk.pending if p == here or p.startswith(f"{here}/")]:
                    disk.pending[there + path[len(here) :]] = list(disk.pending[path])

        self._note(directories_follow)
        self._entry(target, inode)
        self._entry(source, None)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._entry(path, None)

    def rmdir(self, path: str) -> None:
        super().rmdir(path)
        self._entry(path, None)

    def acknowledge(self, generation: int) -> None:
        """Note that everything up to `generation` is promised from here on."""
        self.acknowledged.append((len(self.steps), generation))


def _settle(disk: Disk, directory: str) -> None:
    names = disk.names.setdefault(directory, {})
    for entry in disk.pending.pop(directory, []):
        _put(names, entry)


def _put(names: dict[str, int], entry: _Entry) -> None:
    if entry.inode is None:
        names.pop(entry.name, None)
    else:
        names[entry.name] = entry.inode


def _contents(inode: _Inode) -> list[bytes]:
    """Return what a file may hold after the loss."""
    old = inode.durable if inode.durable is not None else b""
    if inode.durable == inode.now:
        return [inode.now]
    half = inode.now[: (len(old) + len(inode.now)) // 2]
    zeros = inode.now[: len(old)] + bytes(len(inode.now) - len(old))
    return list(dict.fromkeys([old, half, zeros, inode.now]))


State = dict[str, bytes | None]
"""Path to content; None is a directory."""


def states(disk: Disk, rng: random.Random) -> Iterator[State]:
    """Yield the states this moment may leave, all of them or a seeded sample when there are many."""
    changes = [entry for entries in disk.pending.values() for entry in entries]
    open_files = [i for i, inode in disk.inodes.items() if not inode.directory and len(_contents(inode)) > 1]
    total = 2 ** len(changes) * 4 ** len(open_files)
    if total <= _MOST_STATES:
        names = itertools.product([False, True], repeat=len(changes))
        for kept in names:
            for chosen in itertools.product(*(_contents(disk.inodes[i]) for i in open_files)):
                yield _state(disk, kept, dict(zip(open_files, chosen, strict=True)))
        return
    for number in range(_MOST_STATES):
        bias = (0.5, 0.15, 0.85)[number % 3]
        kept = tuple(rng.random() < bias for _ in changes)
        yield _state(disk, kept, {i: rng.choice(_contents(disk.inodes[i])) for i in open_files})


def _state(disk: Disk, kept: tuple[bool, ...], chosen: dict[int, bytes]) -> State:
    names = {directory: dict(entries) for directory, entries in disk.names.items()}
    flags = iter(kept)
    for directory, entries in disk.pending.items():
        for entry in entries:
            if next(flags):
                _put(names.setdefault(directory, {}), entry)
    result: State = {}

    def walk(directory: str, prefix: str) -> None:
        for name, inode in names.get(directory, {}).items():
            path = f"{prefix}{name}"
            node = disk.inodes[inode]
            if node.directory:
                result[path] = None
                walk(os.path.join(directory, name) if directory else name, f"{path}/")  # noqa: PTH118
            else:
                result[path] = chosen.get(inode, node.now)

    walk("", "")
    return result


def _fingerprint(state: State, promised: int) -> str:
    digest = hashlib.sha256(b"%d" % promised)
    for path, data in sorted(state.items()):
        digest.update(path.encode() + b"\0" + (b"-" if data is None else hashlib.sha256(data).digest()))
    return digest.hexdigest()


@dataclass(frozen=True)
class Workload:
    """What runs while it is recorded, and the events that may ever be seen, by generation."""

    name: str
    prepare: Callable[[Path], int]
    work: Callable[[CheckpointStore, Recorder, Path], None]
    events: dict[int, str]


def _nothing(root: Path) -> int:
    (root / "home").mkdir(parents=True)
    return 0


def _from_empty(store: CheckpointStore, disk: Recorder, root: Path) -> None:
    del root
    head = store.create(CASE, first_change(), package_id=PACKAGE_ID)
    disk.acknowledge(1)
    with store.lock(CASE):
        head = store.commit(head, next_change(2))
        disk.acknowledge(2)
        two: dict[str, bytes | Path] = {"big/1": BIG[::-1], "big/2": BIG[:-5], "s": b"small"}
        head = store.commit(head, Change("objects", put=two))
        disk.acknowledge(3)
        disk.fail_flush_of = "/tmp/t-"
        try:
            store.commit(head, Change("abandoned", put={"s": b"never"}))
        except StorageError:
            disk.fail_flush_of = ""
        head = store.commit(head, Change("after", put={"s": b"after", "big/3": BIG[::-1]}))
        disk.acknowledge(4)
        store.commit(head, next_change(5))
        disk.acknowledge(5)


def _long(root: Path) -> int:
    grown(CheckpointStore(root / "home", clock=ManualClock()), CASE, 254)
    return 254


def _over_a_snapshot(store: CheckpointStore, disk: Recorder, root: Path) -> None:
    del root
    with store.lock(CASE):
        for number in (255, 256, 257):
            store.commit(store.latest(CASE), next_change(number))
            disk.acknowledge(number)


def _with_export(root: Path) -> int:
    other = CheckpointStore(root.parent / f"{root.name}-other", clock=ManualClock())
    grown(other, CASE, 3)
    other.export(CASE, root.parent / f"{root.name}.zip")
    (root / "home").mkdir(parents=True)
    return 0


def _import(store: CheckpointStore, disk: Recorder, root: Path) -> None:
    store.import_package(root.parent / f"{root.name}.zip")
    disk.acknowledge(3)
    store.commit(store.latest(CASE), next_change(4))
    disk.acknowledge(4)


def _littered(root: Path) -> int:
    grown(CheckpointStore(root / "home", clock=ManualClock()), CASE, 3)
    for digit in "ab":
        (root / f"home/cases/{CASE}/objects/{digit * 64}").write_bytes(b"left over")
    return 3


def _collect(store: CheckpointStore, disk: Recorder, root: Path) -> None:
    del root
    store.collect_garbage(CASE, dry_run=False)
    store.commit(store.latest(CASE), next_change(4))
    disk.acknowledge(4)


_PLAIN = {1: "case_received", **dict.fromkeys(range(2, 300), "published")}
WORKLOADS = (
    Workload("create and commit", _nothing, _from_empty, {**_PLAIN, 3: "objects", 4: "after"}),
    Workload("across a snapshot", _long, _over_a_snapshot, _PLAIN),
    Workload("import", _with_export, _import, _PLAIN),
    Workload("garbage collection", _littered, _collect, _PLAIN),
)


def _adopt(recorder: Recorder, root: Path) -> Disk:
    """Take what lies on the disk before the record as durable."""
    disk = Disk()
    for folder, folders, files in os.walk(root):
        directory = os.path.relpath(folder, root)
        directory = "" if directory == "." else directory
        names = disk.names.setdefault(directory, {})
        for name in [*folders, *files]:
            path = Path(folder) / name
            inode = next(recorder._next)
            recorder._inode_of[os.path.relpath(path, root)] = inode
            data = path.read_bytes() if path.is_file() else b""
            disk.inodes[inode] = _Inode(data, data, path.is_dir())
            names[name] = inode
    return disk


def run_workload(
    workload: Workload, scratch: Path, seen: set[str], tally: Tally, forget: str | None = None
) -> None:
    """Record one workload and open every distinct state it may leave.

    `forget` names flushes that the record leaves out, to show that the model would notice.
    """
    root = scratch / "live"
    base = workload.prepare(root)
    recorder = Recorder(root)
    recorder.forget_flush_of = forget or recorder.forget_flush_of
    disk = _adopt(recorder, root)
    workload.work(CheckpointStore(root / "home", filesystem=recorder, clock=ManualClock()), recorder, root)
    rng = random.Random(7)
    pool = scratch / "pool"
    pool.mkdir()
    for number in range(len(recorder.steps) + 1):
        if number:
            recorder.steps[number - 1](disk)
        promised = max((g for at, g in recorder.acknowledged if at <= number), default=base)
        for state in states(disk, rng):
            mark = f"{workload.name} {forget} {_fingerprint(state, promised)}"
            if mark not in seen:
                seen.add(mark)
                _lay(state, pool, scratch / "state")
                _open(workload, promised, scratch / "state", tally)
                shutil.rmtree(scratch / "state")


def _lay(state: State, pool: Path, place: Path) -> None:
    """Put a state on disk; equal contents are linked from a pool, because the store never edits a file."""
    place.mkdir()
    for path, data in sorted(state.items()):
        if data is None:
            (place / path).mkdir(exist_ok=True)
            continue
        kept = pool / hashlib.sha256(data).hexdigest()
        if not kept.exists():
            kept.write_bytes(data)
        os.link(kept, place / path)


def _open(workload: Workload, promised: int, place: Path, tally: Tally) -> None:
    """Judge what the store makes of a state: nothing torn, nothing promised gone, nothing abandoned back."""
    where = f"{workload.name}, promised {promised}"
    try:
        store = CheckpointStore(place / "home", clock=ManualClock())
        if not store.exists(CASE):
            if promised:
                tally.note("lost", f"{where}: the case is gone")
            store.create(CASE, first_change(), package_id=PACKAGE_ID)
            return
        head = store.latest(CASE, audit_history=promised < 50)
        if head.generation < promised:
            tally.note("lost", f"{where}: ends with {head.generation}")
        odd = [c.event for c in head.checkpoints if workload.events[c.generation] != c.event]
        if odd or (promised and head.generation > promised + 1):
            tally.note("resurrected", f"{where}: {odd or head.generation}")
        store.commit(head, next_change(head.generation + 1))
        store.latest(CASE)
    except PackageError as error:
        tally.note("torn", f"{where}: {error}")
    except VianoError as error:
        tally.note("torn", f"{where}: not usable: {error}")


CONTROLS = {"the container": "/tmp/t-", "the generations' names": "/gens/", "the objects' names": "/objects/"}


def run(scratch: Path, tally: Tally) -> int:
    """Run all workloads and return the number of distinct states opened.

    Raises:
        AssertionError: leaving out a flush goes unnoticed, so the model proves nothing.
    """
    seen: set[str] = set()
    for number, workload in enumerate(WORKLOADS):
        folder = scratch / f"power{number}"
        folder.mkdir(parents=True)
        before = len(seen)
        run_workload(workload, folder, seen, tally)
        sys.stderr.write(f"power loss: {workload.name}: {len(seen) - before} states\n")
        shutil.rmtree(folder)
    for name, forget in CONTROLS.items():
        folder = scratch / "control"
        folder.mkdir()
        control = Tally(quiet=True)
        run_workload(WORKLOADS[0], folder, set(), control, forget)
        shutil.rmtree(folder)
        sys.stderr.write(f"power loss without flushing {name}: {control.torn} torn, {control.lost} lost\n")
        if not control.torn + control.lost:
            raise AssertionError(f"the model does not notice that {name} are not flushed")
    return len(seen)
