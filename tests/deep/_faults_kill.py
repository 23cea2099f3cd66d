"""Real SIGKILL between every two disk operations of everything that writes a package (R1).

Each operation runs in a forked child whose disk seam kills the process before its n-th change, for n = 1,
2, ... until it runs through. After each death the package must be whole, nothing acknowledged may be gone,
and carrying on must end in the same records as an undisturbed run.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.cases import BIG, PACKAGE_ID, ManualClock, first_change, grown, next_change
from tests.support.faulty_files import CHANGING, WatchedFileSystem
from viano_assets.case.assembler import CaseAssembler
from viano_assets.case.intake import import_case
from viano_assets.errors import PackageError
from viano_assets.package.anchor import Anchor
from viano_assets.package.filesystem import FileSystem
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore

CASE = "c"
KEY = b"a key for the kill suite, 32 bytes+"


@dataclass
class Tally:
    """What was found; `torn` counts packages that do not open, `lost` acknowledged work that is gone."""

    points: int = 0
    torn: int = 0
    lost: int = 0
    resurrected: int = 0
    quiet: bool = False

    def note(self, kind: str, text: str) -> None:
        """Count one violation and tell it."""
        setattr(self, kind, getattr(self, kind) + 1)
        if not self.quiet:
            sys.stderr.write(f"{kind}: {text}\n")


@dataclass(frozen=True)
class Operation:
    """One thing to be killed: how the home is made, what is done (again after a death), which case it is."""

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[CheckpointStore, Path], None]
    anchored: bool = False
    repeatable: bool = True


def open_store(root: Path, disk: FileSystem | None = None, *, anchored: bool = False) -> CheckpointStore:
    """Open the home with a fixed clock, so that the same work gives the same records."""
    anchor = Anchor(root / "anchors", KEY, disk) if anchored else None
    return CheckpointStore(root / "home", filesystem=disk, clock=ManualClock(), anchor=anchor)


def _commit(change: Callable[[int], Change], after: int) -> Callable[[CheckpointStore, Path], None]:
    def act(store: CheckpointStore, root: Path) -> None:
        del root
        with store.lock(CASE):
            head = store.latest(CASE)
            if head.generation == after:
                store.commit(head, change(after + 1))

    return act


def _big(number: int) -> Change:
    put: dict[str, bytes | Path] = {
        "big/1": bytes([number % 256]) * (1 << 20), "big/2": BIG[::-1], "small": b"%d" % number,
    }  # fmt: skip
    return Change("big", put=put)


def _create(store: CheckpointStore, root: Path) -> None:
    del root
    if not store.exists(CASE):
        store.create(CASE, first_change(), package_id=PACKAGE_ID)


def _import(store: CheckpointStore, root: Path) -> None:
    if not store.exists(CASE):
        store.import_package(root / "c.zip")


def _export(store: CheckpointStore, root: Path) -> None:
    store.export(CASE, root / "out.zip", overwrite=True)


def _collect(store: CheckpointStore, root: Path) -> None:
    del root
    store.collect_garbage(CASE, dry_run=False)


def _intake(store: CheckpointStore, root: Path) -> None:
    if not store.exists(CASE):
        import_case(
            store, case_id=CASE, report=root / "report.md", diagnostics=root / "logs", randomness=bytes
        )
    else:
        head = store.latest(CASE)
        if head.generation == 1:
            CaseAssembler(store).assemble(head)


def _grown(generations: int, *, anchored: bool = False) -> Callable[[Path], None]:
    def prepare(root: Path) -> None:
        grown(open_store(root, anchored=anchored), CASE, generations)

    return prepare


def _exported(root: Path) -> None:
    other = CheckpointStore(root / "elsewhere", clock=ManualClock())
    head = grown(other, CASE, 5)
    other.commit(head, Change("big", put={"inputs2": BIG[:-3]}))
    other.export(CASE, root / "c.zip")
    shutil.rmtree(root / "elsewhere")


def _littered(root: Path) -> None:
    grown(open_store(root), CASE, 3)
    for digit in "abc":
        (root / f"home/cases/{CASE}/objects/{digit * 64}").write_bytes(b"left by a dead writer")


def _reported(root: Path) -> None:
    (root / "report.md").write_text("# Crash\n\n## Observed\nIt crashes.\n\n## Expected\nIt does not.\n")
    (root / "logs").mkdir()
    (root / "logs/server.log").write_text("2031-01-01 00:00:00 start\n" * 50_000)


OPERATIONS = (
    Operation("create", lambda root: root.mkdir(exist_ok=True), _create),
    Operation("commit", _grown(3), _commit(next_change, 3)),
    Operation("commit with objects", _grown(3), _commit(_big, 3)),
    Operation("commit of a snapshot", _grown(255), _commit(next_change, 255)),
    Operation("commit under the anchor", _grown(3, anchored=True), _commit(next_change, 3), anchored=True),
    Operation("create under the anchor", lambda root: root.mkdir(exist_ok=True), _create, anchored=True),
    Operation("import of a package", _exported, _import),
    Operation("export", _grown(5), _export),
    Operation("garbage collection", _littered, _collect),
    Operation("case import", _reported, _intake, repeatable=False),
)


def _killed_at(nth: int) -> Callable[[str, str], None]:
    seen = 0

    def before(operation: str, path: str) -> None:
        nonlocal seen
        del path
        if operation in CHANGING:
            seen += 1
            if seen == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    return before


def forked(work: Callable[[], None]) -> int:
    """Start a forked child that does `work` and exits with 0, or with 1 and the error told; return its id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001 - the parent judges by the code
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(code)
    return child


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child and return its exit code; negative is the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1])


def _result(operation: Operation, root: Path) -> tuple[object, ...]:
    """Return what must be the same after any interruption."""
    store = open_store(root, anchored=operation.anchored)
    head = store.latest(CASE, audit_history=True)
    exported = (root / "out.zip").read_bytes() if (root / "out.zip").exists() else b""
    if operation.repeatable:
        return (head.record_sha256, exported)
    return (head.generation, head.manifest.lifecycle, sorted(head.files), exported)


def run_operation(operation: Operation, scratch: Path, tally: Tally) -> int:
    """Kill one operation at every point and return how many points it has."""
    seed = scratch / "seed"
    seed.mkdir(parents=True)
    operation.prepare(seed)
    whole = scratch / "whole"
    shutil.copytree(seed, whole)
    operation.act(open_store(whole, anchored=operation.anchored), whole)
    expected = _result(operation, whole)
    nth = 0
    while True:
        nth += 1
        root = scratch / f"{nth}"
        shutil.copytree(seed, root)
        disk = WatchedFileSystem(_killed_at(nth))
        store = open_store(root, disk, anchored=operation.anchored)
        code = in_child(lambda s=store, r=root: operation.act(s, r))  # type: ignore[misc]
        if code == 0:
            break
        where = f"{operation.name}, before change {nth}"
        if code != -signal.SIGKILL:
            tally.note("torn", f"{where}: ended with {code}")
        _judge(operation, root, expected, where, tally)
        shutil.rmtree(root)
    if _result(operation, root) != expected:
        tally.note("lost", f"{operation.name}: acknowledged work is not there")
    shutil.rmtree(scratch)
    return nth - 1


def _judge(operation: Operation, root: Path, expected: tuple[object, ...], where: str, tally: Tally) -> None:
    tally.points += 1
    try:
        store = open_store(root, anchored=operation.anchored)
        if store.exists(CASE):
            store.latest(CASE, audit_history=True)
        operation.act(store, root)
        if _result(operation, root) != expected:
            tally.note("lost", f"{where}: carrying on ends differently")
    except PackageError as error:
        tally.note("torn", f"{where}: {error}")


def run(scratch: Path, tally: Tally) -> None:
    """Kill every operation at every point."""
    for number, operation in enumerate(OPERATIONS):
        points = run_operation(operation, scratch / f"op{number}", tally)
        sys.stderr.write(f"kill: {operation.name}: {points} points\n")
