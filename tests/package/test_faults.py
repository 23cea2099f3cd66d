"""Every single disk operation fails or is the last one; the package is whole before and after."""

from __future__ import annotations

import errno
import fcntl
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cases import BIG, ManualClock, first_change, grown, next_change
from tests.support.faulty_files import (
    CHANGING,
    Crash,
    FailNth,
    NoHardLinks,
    NoLocks,
    ShortWrites,
    WatchedFileSystem,
)
from viano_assets.canonical import sha256_hex
from viano_assets.errors import (
    BusyError,
    InputError,
    PackageError,
    StaleHeadError,
    StorageError,
    VianoError,
)
from viano_assets.package.files import Container, Containers, source_chunks, write_durably
from viano_assets.package.filesystem import OsFileSystem
from viano_assets.package.layout import CasePaths
from viano_assets.package.model import Change
from viano_assets.package.staging import Nursery
from viano_assets.package.store import CheckpointStore

MIB = 1 << 20
OTHER = BIG[::-1]
BIG_CHANGE = Change("big", put={"inputs/more.bin": OTHER, "small": b"1"}, raw=frozenset({"inputs/more.bin"}))


def _commit(store: CheckpointStore) -> None:
    store.commit(store.latest("c"), BIG_CHANGE)


def _create(store: CheckpointStore) -> None:
    store.create("d", first_change(OTHER))


def _until_untouched(
    home: Path, operation: Callable[[CheckpointStore], None], code: int | None, kinds: frozenset[str]
) -> list[tuple[FailNth, Path, BaseException]]:
    """Run `operation` on fresh copies, failing the 1st, 2nd, ... disk operation until none is hit."""
    grown(CheckpointStore(home / "seed"), "c", 3)
    outcomes: list[tuple[FailNth, Path, BaseException]] = []
    while True:
        copy = home / f"{len(outcomes)}"
        shutil.copytree(home / "seed", copy)
        fault = FailNth(len(outcomes) + 1, code, kinds)
        disk = WatchedFileSystem(fault)
        try:
            operation(CheckpointStore(copy, filesystem=disk))
        except (VianoError, Crash) as error:
            disk.die()
            outcomes.append((fault, copy, error))
        else:
            assert not fault.hit, f"{fault.where} failed and success was reported"
            return outcomes


def test_death_at_every_operation_of_a_commit(home: Path) -> None:
    """A death leaves the old head or the whole new one, and the next process carries on without repair."""
    outcomes = _until_untouched(home, _commit, None, CHANGING)
    assert len(outcomes) >= 15
    generations = []
    for fault, copy, _ in outcomes:
        store = CheckpointStore(copy)
        head = store.latest("c", audit_history=True)
        generations.append(head.generation)
        head = store.commit(head, next_change(head.generation + 1))
        assert store.latest("c", audit_history=True) == head
        assert list((copy / "cases/c/tmp").iterdir()) == [], fault.where
        store.collect_garbage("c", dry_run=False)
        assert store.latest("c", audit_history=True) == head
    assert generations == sorted(generations)
    assert set(generations) == {3, 4}


def test_death_at_every_operation_of_a_creation(home: Path) -> None:
    outcomes = _until_untouched(home, _create, None, CHANGING)
    assert len(outcomes) >= 20
    for _, copy, _ in outcomes:
        store = CheckpointStore(copy)
        if store.exists("d"):
            assert store.latest("d", audit_history=True).generation == 1
        else:
            assert store.create("d", first_change(OTHER)).generation == 1
        assert store.case_ids() == ["c", "d"]
        store.create("e", first_change())
        assert [p for p in (copy / "cases").iterdir() if p.name.startswith(".new")] == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOSPC, "storage_full"), (errno.EDQUOT, "storage_full"), (errno.EIO, "storage_failed"),
        (errno.EROFS, "storage_read_only"), (errno.EACCES, "storage_denied"), (errno.EFBIG, "file_too_big"),
        (errno.EMFILE, "too_many_open_files"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("operation", [_commit, _create], ids=["commit", "create"])
def test_every_operation_fails_once(
    home: Path, operation: Callable[[CheckpointStore], None], code: int, expected: str
) -> None:
    """The error is named, nothing half-made is visible, and the same step succeeds when the cause is gone."""
    kinds = CHANGING - {"point", "fsync", "unlink", "rmdir"}
    outcomes = _until_untouched(home, operation, code, kinds)
    assert len(outcomes) >= 5
    for fault, copy, error in outcomes:
        assert isinstance(error, StorageError), fault.where
        assert error.code == expected, fault.where
        assert error.where
        store = CheckpointStore(copy)
        assert store.latest("c", audit_history=True).generation == 3
        assert store.case_ids() == ["c"]
        operation(store)
        assert store.verify("c", audit_history=True).good


@pytest.mark.parametrize("operation", [_commit, _create], ids=["commit", "create"])
def test_every_flush_fails_once(home: Path, operation: Callable[[CheckpointStore], None]) -> None:
    outcomes = _until_untouched(home, operation, errno.EIO, frozenset({"fsync"}))
    assert len(outcomes) >= 4
    for fault, copy, error in outcomes:
        assert isinstance(error, StorageError), fault.where
        assert error.code == "fsync_failed", fault.where
        assert str(copy) in error.where
        head = CheckpointStore(copy).latest("c", audit_history=True)
        assert head.generation in {3, 4}
        assert [p.name for p in (copy / "cases/c/tmp").iterdir()] == []


def test_a_flush_that_failed_is_not_tried_again(home: Path) -> None:
    """The kernel may drop the pages and report success at the second try."""
    grown(CheckpointStore(home), "c", 3)
    files: list[str] = []
    failed: list[str] = []

    def before(operation: str, path: str) -> None:
        if operation == "fsync" and "/tmp/t-" in path:
            files.append(path)
            if not failed:
                failed.append(path)
                raise OSError(errno.EIO, "I/O error", path)

    store = CheckpointStore(home, filesystem=WatchedFileSystem(before))
    head = store.latest("c")
    with pytest.raises(StorageError):
        store.commit(head, next_change(4))
    assert store.commit(head, next_change(4)).generation == 4
    assert files.count(failed[0]) == 1


def test_after_an_unknown_outcome_this_process_commits_nothing_more(home: Path) -> None:
    grown(CheckpointStore(home), "c", 3)
    broken: list[bool] = []

    def before(operation: str, path: str) -> None:
        if operation == "fsync" and path.endswith("/gens") and broken:
            raise OSError(errno.EIO, "I/O error", path)

    store = CheckpointStore(home, filesystem=WatchedFileSystem(before))
    with store.lock("c"):
        broken.append(True)
        with pytest.raises(StorageError) as caught:
            store.commit(store.latest("c"), next_change(4))
        assert caught.value.code == "fsync_failed"
        broken.clear()
        with pytest.raises(StorageError) as caught:
            store.commit(store.latest("c"), next_change(5))
        assert caught.value.code == "outcome_unknown"
    fresh = CheckpointStore(home)
    assert fresh.commit(fresh.latest("c"), next_change(5)).generation == 5


@pytest.mark.parametrize("nth", [1, 2])
def test_a_short_write(home: Path, nth: int) -> None:
    grown(CheckpointStore(home), "c", 3)
    disk = ShortWrites(nth)
    with pytest.raises(StorageError) as caught:
        _commit(CheckpointStore(home, filesystem=disk))
    assert disk.hit
    assert caught.value.code == "storage_full"
    _commit(CheckpointStore(home))
    assert CheckpointStore(home).latest("c", audit_history=True).generation == 4


def test_two_flushes_a_commit(home: Path) -> None:
    disk = WatchedFileSystem()
    store = CheckpointStore(home, filesystem=disk)
    head = grown(store, "c", 3)
    with store.lock("c"):
        for _ in range(5):
            disk.counts.clear()
            head = store.commit(head, next_change(head.generation + 1))
            assert disk.counts["fsync"] == 2
    disk.counts.clear()
    store.commit(head, next_change(head.generation + 1))
    assert disk.counts["fsync"] == 2


def test_a_new_process_flushes_what_its_dead_predecessor_linked(home: Path) -> None:
    grown(CheckpointStore(home), "c", 3)
    synced: list[str] = []
    disk = WatchedFileSystem(lambda op, path: synced.append(path) if op == "fsync" else None)
    with CheckpointStore(home, filesystem=disk).lock("c"):
        assert [Path(p).name for p in synced] == ["gens", "objects"]


def test_an_object_that_is_already_there_is_hashed_not_trusted(home: Path) -> None:
    store = CheckpointStore(home)
    grown(store, "c", 3)
    path = home / f"cases/c/objects/{sha256_hex(OTHER)}"
    path.write_bytes(OTHER[:-1] + b"?")
    _commit(store)
    assert path.read_bytes() == OTHER
    assert store.latest("c").generation == 4


def test_damaged_content_is_not_reused(home: Path) -> None:
    """The same small content is stored once, unless the stored copy is bad."""
    store = CheckpointStore(home)
    grown(store, "c", 3)
    size = (home / "cases/c/gens/g00000003.zip").stat().st_size
    head = store.commit(store.latest("c"), Change("again", put={"copy": b'{"n":3}' * 1000}))
    again = store.commit(head, Change("again", put={"copy2": b'{"n":3}' * 1000}))
    assert (home / "cases/c/gens/g00000005.zip").stat().st_size < size + 500
    path = home / "cases/c/gens/g00000004.zip"
    path.write_bytes(path.read_bytes().replace(b'{"n":3}{"n":3}', b'{"n":3}{"m":3}', 1))
    fixed = store.commit(again, Change("again", put={"copy3": b'{"n":3}' * 1000, "copy": b"", "copy2": b""}))
    assert store.read(fixed, "copy3") == b'{"n":3}' * 1000
    assert store.latest("c").generation == 6


def test_without_locks_two_writers_still_cannot_both_win(home: Path) -> None:
    """Correctness comes from the name that must be free; without locks only the early warning is lost."""
    grown(CheckpointStore(home), "c", 3)
    won: list[int] = []
    lost: list[str] = []
    barrier = threading.Barrier(4)

    def writer(number: int) -> None:
        store = CheckpointStore(home, filesystem=NoLocks())
        head = store.latest("c")
        barrier.wait()
        try:
            store.commit(head, Change(f"writer{number}", put={"w": b"%d" % number}))
            won.append(number)
        except (StaleHeadError, StorageError, BusyError) as error:
            lost.append(error.code)

    threads = [threading.Thread(target=writer, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert set(lost) == {"stale_head"}
    head = CheckpointStore(home).latest("c", audit_history=True)
    assert head.checkpoints[-1].event == f"writer{won[0]}"
    (home / f"cases/c/objects/{'0' * 64}").write_bytes(b"")
    without = CheckpointStore(home, filesystem=NoLocks())
    with pytest.raises(VianoError) as caught:
        without.collect_garbage("c", dry_run=False)
    assert caught.value.code == "gc_without_lock"


def test_without_hard_links(home: Path) -> None:
    store = CheckpointStore(home, filesystem=NoHardLinks())
    head = grown(store, "c", 3)
    (home / "cases/c/gens/g00000004.zip").write_bytes(b"taken")
    with pytest.raises(StaleHeadError):
        store.commit(head, next_change(4))
    assert (home / "cases/c/gens/g00000004.zip").read_bytes() == b"taken"
    assert list((home / "cases/c/tmp").iterdir()) == []


def test_a_lock_files_content_means_nothing(store: CheckpointStore, home: Path) -> None:
    """A reused process id or a half-written file in it blocks nobody."""
    (home / "cases/c/lock").write_bytes(b"1\n\xff\x00half")
    assert store.commit(store.latest("c"), next_change(5)).generation == 5


@pytest.mark.parametrize("step", [-3_600, -86_400, -2_000_000_000, 10 * 366 * 86_400, 0])
def test_clock_jumps_change_no_order(home: Path, step: float) -> None:
    clock = ManualClock()
    store = CheckpointStore(home, clock=clock)
    head = grown(store, "c", 3)
    clock.step(step)
    head = store.commit(head, next_change(4))
    assert CheckpointStore(home, clock=clock).latest("c") == head
    assert [c.generation for c in head.checkpoints] == [1, 2, 3, 4]
    assert all(t.seconds >= 0 for t in store.telemetry.operations().values())


def test_leftovers_of_dead_writers_are_removed_and_others_kept(store: CheckpointStore, home: Path) -> None:
    folder = home / "cases/c/tmp"
    (folder / f"t-{'a' * 16}").write_bytes(b"half")
    (folder / "t-short").write_bytes(b"mine")
    (folder / "t-notours0000000000").mkdir()
    fresh = CheckpointStore(home)
    fresh.commit(fresh.latest("c"), next_change(5))
    assert sorted(p.name for p in folder.iterdir()) == ["t-notours0000000000", "t-short"]


def test_unknown_and_failed_creation_on_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"a file")
    with pytest.raises(StorageError) as caught:
        CheckpointStore(tmp_path / "home").create("c", first_change())
    assert caught.value.exit_status == 1


def test_nothing_happens_for_a_case_that_is_not_there(home: Path) -> None:
    store = CheckpointStore(home)
    for call in (store.latest, store.verify, store.collect_garbage):
        with pytest.raises(InputError) as caught:
            call("nope")
        assert caught.value.code == "case_not_found"
    with pytest.raises(InputError), store.lock("nope"):
        pass
    assert not home.exists()


def test_lookups_are_timed_and_nested_time_is_not_added(store: CheckpointStore) -> None:
    before = store.telemetry.wall_seconds
    store.latest("c")
    store.collect_garbage("c")
    times = store.telemetry.operations()
    assert times["checkpoint_lookup"].calls == 2
    assert times["checkpoint_lookup"].seconds > 0
    assert store.telemetry.wall_seconds - before <= sum(t.seconds for t in times.values())


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("kind", ["write", "fsync", "close"])
def test_a_failed_write_leaves_no_file_and_nothing_open(tmp_path: Path, kind: str) -> None:
    disk = WatchedFileSystem(FailNth(1, errno.EIO, frozenset({kind})))
    path = tmp_path / "new"
    before = _open_files()
    with pytest.raises(StorageError) as caught:
        write_durably(disk, str(path), [b"one", b"two"])
    assert caught.value.code == ("storage_failed" if kind == "write" else "fsync_failed")
    assert (_open_files(), path.exists()) == (before, False)


def test_content_that_breaks_off_leaves_no_file_and_nothing_open(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"one"
        raise InputError("input_too_big", "stop")

    before = _open_files()
    with pytest.raises(InputError):
        write_durably(OsFileSystem(), str(tmp_path / "new"), chunks())
    assert (_open_files(), list(tmp_path.iterdir())) == (before, [])


def test_an_input_over_the_limit_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"12345")
    told: list[int] = []
    assert list(source_chunks(source, 5, told.append)) == [b"12345"]
    with pytest.raises(InputError) as caught:
        list(source_chunks(source, 4, None))
    assert (caught.value.code, caught.value.where, told) == ("input_too_big", str(source), [5])


@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        ("open_file", errno.ENOENT, "artifact_missing"), ("open_file", errno.ELOOP, "not_a_regular_file"),
        ("open_file", errno.EMFILE, "too_many_open_files"), ("read", errno.EIO, "storage_failed"),
        ("read_into", errno.EIO, "storage_failed"),
    ],
)  # fmt: skip
def test_a_failed_read_of_a_generation_is_named_and_closes_it(
    tmp_path: Path, kind: str, code: int, expected: str
) -> None:
    path = tmp_path / "g"
    path.write_bytes(b"12345")
    disk = WatchedFileSystem(FailNth(1, code, frozenset({kind})))
    before = _open_files()
    with pytest.raises(VianoError) as caught:
        Container(disk, str(path), 5, bytearray(5) if kind == "read_into" else None)
    assert (caught.value.code, caught.value.where) == (expected, str(path))
    assert _open_files() == before


@pytest.mark.parametrize("lent", [True, False])
@pytest.mark.parametrize("size", [0, 5, MIB - 1, MIB, MIB + 5])
def test_a_generation_is_read_from_any_place(tmp_path: Path, size: int, *, lent: bool) -> None:
    """A small one once and for all: what happens to the file afterwards does not matter."""
    path = tmp_path / "g"
    data = (BIG * 2)[:size]
    path.write_bytes(data)
    with pytest.raises(PackageError) as caught:
        Container(OsFileSystem(), str(path), size - 1)
    assert caught.value.code == "generation_too_big"
    file = Container(OsFileSystem(), str(path), size, bytearray(MIB) if lent else None)
    if size <= MIB:
        path.unlink()
    assert file.whole() == data
    for offset, count in ((0, 3), (3, 100), (size, 1), (max(0, size - 2), 9)):
        assert bytes(file.read(offset, count)) == data[offset : offset + count]


def test_of_the_generations_read_64_mib_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.write_bytes(bytes(MIB))
    disk = WatchedFileSystem()
    files = Containers(disk, lambda _: str(path), MIB)
    for number in (*range(64), *range(64)):
        assert files.get(number).size == MIB
    assert disk.counts["open_file"] == 64
    files.get(64)
    files.get(64)
    assert disk.counts["open_file"] == 65
    files.get(0)
    assert disk.counts["open_file"] == 66


def _nursery(home: Path, disk: OsFileSystem, clock: ManualClock, token: str) -> Nursery:
    return Nursery(disk, clock, home, lambda: token * 16)


def test_a_case_being_built_is_not_swept_and_a_dead_builders_is(home: Path) -> None:
    clock = ManualClock()
    dead = CasePaths(f"{home}/cases/.new-{'d' * 16}")
    for folder in (dead.generations, dead.objects, dead.temporary):
        Path(folder).mkdir(parents=True)
    before = _open_files()
    with _nursery(home, OsFileSystem(), clock, "a").staged("a") as one:
        (Path(one.generations) / "g").write_bytes(b"half")
        assert not Path(dead.root).exists()
        with _nursery(home, OsFileSystem(), clock, "b").staged("b") as two:
            assert (Path(one.generations) / "g").read_bytes() == b"half"
            assert {p.name for p in (home / "cases").iterdir()} == {
                ".lock", Path(one.root).name, Path(two.root).name,
            }  # fmt: skip
    assert [p.name for p in (home / "cases").iterdir()] == [".lock"]
    assert _open_files() == before


def test_a_home_whose_naming_lock_stays_taken_is_busy_after_half_a_minute(home: Path) -> None:
    (home / "cases").mkdir(parents=True)
    clock = ManualClock()
    with (home / "cases/.lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        before = _open_files()
        with pytest.raises(BusyError) as caught, _nursery(home, OsFileSystem(), clock, "a").staged("a"):
            pass
        assert (caught.value.code, _open_files()) == ("home_busy", before)
    assert clock.seconds == pytest.approx(30, abs=0.1)
    with _nursery(home, OsFileSystem(), clock, "a").staged("a") as paths:
        assert Path(paths.objects).is_dir()


def test_a_case_is_durable_before_it_has_its_name(home: Path) -> None:
    log: list[str] = []

    def before(operation: str, path: str) -> None:
        if operation in {"fsync", "point", "rename"}:
            log.append(f"{operation} {path if operation == 'point' else Path(path).name}")

    nursery = _nursery(home, WatchedFileSystem(before), ManualClock(), "a")
    with nursery.staged("c") as paths:
        log.clear()
        nursery.adopt(paths, "c", lambda: log.append("witness"))
    assert log == [
        "fsync objects", "fsync gens", f"fsync .new-{'a' * 16}", "point create.staged", "witness",
        "rename c", "point create.named", "fsync cases",
    ]  # fmt: skip
