"""Real processes that race for one case, die with its lock, and are stopped with it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.support.cases import first_change, grown, next_change
from tests.support.faulty_files import NoLocks
from tests.support.processes import first_line, go, worker
from viano_assets.errors import BusyError, StorageError
from viano_assets.package.filesystem import FileSystem, OsFileSystem
from viano_assets.package.locking import CaseLocks
from viano_assets.package.store import CheckpointStore


@pytest.mark.parametrize(("processes", "commits"), [(2, 8), (8, 2)])
def test_processes_on_one_case(home: Path, processes: int, commits: int) -> None:
    """Every acknowledged commit is there once, in the generation that was acknowledged."""
    CheckpointStore(home).create("c", first_change(b"small"))
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(worker("commit", str(home), "c", str(commits), f"w{n}"))
            for n in range(processes)
        ]
        assert [first_line(w) for w in workers] == ["ready"] * processes
        for each in workers:
            go(each)
        lines = [line.split() for w in workers for line in w.communicate(timeout=60)[0].splitlines()]
        assert [w.returncode for w in workers] == [0] * processes
    head = CheckpointStore(home).latest("c", audit_history=True)
    told = {int(generation): (name, int(n)) for generation, name, n in lines}
    stored = {c.generation: (c.detail["by"], c.detail["n"]) for c in head.checkpoints[1:]}
    assert len(told) == processes * commits
    assert told == stored


def test_a_killed_owner_frees_the_lock(store: CheckpointStore, home: Path) -> None:
    with worker("hold", str(home), "c") as owner:
        assert first_line(owner) == "held"
        with pytest.raises(BusyError) as caught, store.lock("c"):
            pass
        assert (caught.value.code, caught.value.exit_status) == ("case_busy", 3)
        assert store.latest("c").generation == 4
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
        start = time.monotonic()
        assert store.commit(store.latest("c"), next_change(5)).generation == 5
        assert time.monotonic() - start < 30


def test_a_stopped_owner_keeps_the_lock(store: CheckpointStore, home: Path) -> None:
    with worker("hold", str(home), "c") as owner:
        assert first_line(owner) == "held"
        os.kill(owner.pid, signal.SIGSTOP)
        with pytest.raises(BusyError), store.lock("c"):
            pass
        with pytest.raises(BusyError):
            store.collect_garbage("c", dry_run=False)


def test_a_forked_child_does_not_own_its_parents_lock(store: CheckpointStore) -> None:
    with store.lock("c"):
        child = os.fork()
        if child == 0:
            try:
                with store.lock("c"):
                    os._exit(1)
            except BusyError:
                os._exit(0)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with pytest.raises(BusyError), CheckpointStore(store.home).lock("c"):
            pass


def test_a_program_that_is_just_starting_keeps_no_case_busy(store: CheckpointStore) -> None:
    """Between fork and exec it holds a copy of every descriptor; threads of a batch found their case busy."""
    with store.lock("c"):
        starting = os.fork()
        if starting == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with CheckpointStore(store.home).lock("c"):
            pass
        assert not store.in_work("c")
    finally:
        os.kill(starting, signal.SIGKILL)
        os.waitpid(starting, 0)


def test_threads_share_one_store(home: Path) -> None:
    store = CheckpointStore(home)
    for number in range(4):
        store.create(f"c{number}", first_change(b"small"))
    failures: list[BaseException] = []

    def work(case_id: str) -> None:
        try:
            head = store.latest(case_id)
            for number in range(2, 12):
                with store.lock(case_id):
                    head = store.commit(store.latest(case_id), next_change(number))
            assert head.generation == 11
        except BaseException as error:  # noqa: BLE001 - the main thread asserts on it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"c{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(store.verify(f"c{n}", audit_history=True).good for n in range(4))


def test_two_creators_of_one_name(home: Path) -> None:
    """One wins, the other is told, whatever the letter case."""
    outcomes: list[str] = []
    barrier = threading.Barrier(6)

    def create(name: str) -> None:
        store = CheckpointStore(home)
        barrier.wait()
        try:
            grown(store, name, 1)
            outcomes.append("made")
        except Exception as error:  # noqa: BLE001 - the code is what matters
            outcomes.append(str(getattr(error, "code", error)))

    threads = [threading.Thread(target=create, args=(n,)) for n in ("Bug", "BUG", "bug") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["case_exists"] * 5 + ["made"]
    assert len(CheckpointStore(home).case_ids()) == 1


def test_creators_of_different_cases_do_not_disturb_each_other(home: Path) -> None:
    """A staging directory that is not locked yet looks like a dead builder's to the next creator's sweep."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)

    def create(name: str) -> None:
        store = CheckpointStore(home)
        barrier.wait()
        try:
            for number in range(3):
                store.create(f"{name}-{number}", first_change(b"small"))
        except BaseException as error:  # noqa: BLE001 - the main thread asserts on it
            failures.append(error)

    threads = [threading.Thread(target=create, args=(f"c{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(CheckpointStore(home).case_ids()) == 24
    assert [p.name for p in (home / "cases").iterdir() if p.name.startswith(".new")] == []


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(("disk", "real"), [(OsFileSystem(), True), (NoLocks(), False)])
def test_a_lock_is_taken_once_and_entered_again(tmp_path: Path, disk: FileSystem, *, real: bool) -> None:
    """Also where the file system has no locks: then it holds between the threads of one process."""
    locks, path = CaseLocks(disk), str(tmp_path / "lock")
    before = _open_files()
    acquired: list[bool] = []
    refused: list[str] = []

    def other() -> None:
        try:
            with locks.hold("c", path, acquired.append):
                refused.append("entered")
        except BusyError as error:
            refused.append(error.code)

    def from_another_thread() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    with locks.hold("c", path, acquired.append) as first:
        with locks.hold("c", path, acquired.append) as again:
            assert (first, again, acquired) == (real, real, [real])
        from_another_thread()
        assert locks.taken("c", path)
        with locks.hold("d", f"{path}-d", acquired.append):
            pass
    assert (refused, acquired) == (["case_busy"], [real, real])
    assert locks.taken("c", path) is not real
    from_another_thread()
    assert (refused[1:], acquired) == (["entered"], [real, real, real])
    assert _open_files() == before


def test_a_lock_that_is_refused_leaves_nothing_open(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    one, two = CaseLocks(OsFileSystem()), CaseLocks(OsFileSystem())
    acquired: list[bool] = []
    with one.hold("c", path, acquired.append):
        before = _open_files()
        with pytest.raises(BusyError), two.hold("c", path, acquired.append):
            pass
        assert two.taken("c", path)
        assert _open_files() == before
    assert acquired == [True]
    with pytest.raises(StorageError) as caught, two.hold("c", str(tmp_path / "no/lock"), acquired.append):
        pass
    assert caught.value.where.endswith("no/lock")
    assert two.taken("c", str(tmp_path / "no/lock"))


def test_a_lock_whose_first_step_fails_is_given_back(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    locks = CaseLocks(OsFileSystem())

    def fail(real: bool) -> None:
        raise StorageError("storage_failed", f"real: {real}")

    with pytest.raises(StorageError, match="real: True"), locks.hold("c", path, fail):
        pass
    assert not locks.taken("c", path)
