"""Live damage is an error, never a rollback; obsolete damage is the audit's business."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.support.cases import BIG, first_change, grown, next_change
from tests.support.faulty_files import WatchedFileSystem
from viano_assets.canonical import sha256_hex
from viano_assets.errors import NewerFormatError, PackageError, VianoError
from viano_assets.package import container, record
from viano_assets.package.filesystem import DirEntry, OsFileSystem
from viano_assets.package.history import seal
from viano_assets.package.layout import read_listing
from viano_assets.package.limits import PackageLimits
from viano_assets.package.model import Change, Checkpoint, Manifest
from viano_assets.package.reader import PackageReader, StoredHead
from viano_assets.package.record import Segment, Snapshot
from viano_assets.package.store import CheckpointStore


def _gen(home: Path, number: int) -> Path:
    return home / f"cases/c/gens/g{number:08d}.zip"


def _flip(path: Path, position: int) -> None:
    """Change one byte and keep size and times."""
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[position] ^= 0x20
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _refused(store: CheckpointStore, *codes: str) -> None:
    """A warm and a cold store refuse alike, and nobody falls back."""
    for each in (store, CheckpointStore(store.home)):
        with pytest.raises(PackageError) as caught:
            each.latest("c")
        assert caught.value.code in codes
        report = each.verify("c")
        assert not report.good
        assert {p.code for p in report.problems} & set(codes)


def test_an_untouched_package_is_good(store: CheckpointStore) -> None:
    head = store.latest("c", audit_history=True)
    assert head.generation == 4
    report = store.verify("c", audit_history=True)
    assert report.good
    assert (report.generations_checked, report.files, report.strangers) == (4, 6, ())


def test_every_byte_of_the_head_is_covered(store: CheckpointStore, home: Path) -> None:
    path = _gen(home, 4)
    original = path.read_bytes()
    store.latest("c")
    for position in sorted(
        {*range(0, len(original), 7), *range(60), *range(len(original) - 150, len(original))}
    ):
        _flip(path, position)
        with pytest.raises(PackageError):
            store.latest("c")
        path.write_bytes(original)
    assert store.latest("c").generation == 4


@pytest.mark.parametrize("cut", [1, 22, 100, 400])
def test_a_truncated_head_is_an_error(store: CheckpointStore, home: Path, cut: int) -> None:
    path = _gen(home, 4)
    path.write_bytes(path.read_bytes()[:-cut])
    _refused(store, "container_damaged")


def test_trailing_bytes_are_an_error(store: CheckpointStore, home: Path) -> None:
    with _gen(home, 4).open("ab") as stream:
        stream.write(b"\0")
    _refused(store, "container_damaged")


def test_an_empty_head_is_an_error(store: CheckpointStore, home: Path) -> None:
    _gen(home, 4).write_bytes(b"")
    _refused(store, "container_damaged")


def test_a_live_byte_in_an_older_container(store: CheckpointStore, home: Path) -> None:
    """Same size, same time, after a warm lookup: a cache that trusts either would miss it."""
    data = _gen(home, 3).read_bytes()
    _flip(_gen(home, 3), data.index(b'{"n":3}') + 5)
    _refused(store, "artifact_damaged")
    head = grown(CheckpointStore(home / "other"), "c")
    assert store.read(head, "inputs/report/report.md")
    with pytest.raises(PackageError) as caught:
        store.read(head, "analysis/0003.json")
    assert caught.value.code == "artifact_damaged"


def test_a_record_byte_in_an_older_generation(store: CheckpointStore, home: Path) -> None:
    _flip(_gen(home, 2), container.RECORD_START + 12)
    _refused(store, "container_damaged", "chain_broken")


def test_a_record_that_was_rewritten_well_formed(store: CheckpointStore, home: Path) -> None:
    data = _gen(home, 2).read_bytes()
    raw = container.read_record(data, 1 << 20, "x")
    changed = raw.replace(b'"number":2', b'"number":7')
    _gen(home, 2).write_bytes(container.build(changed, []))
    _refused(store, "chain_broken")


@pytest.mark.parametrize("position", [0, 1 << 19, len(BIG) - 1])
def test_a_byte_of_an_object(store: CheckpointStore, home: Path, position: int) -> None:
    path = home / f"cases/c/objects/{sha256_hex(BIG)}"
    _flip(path, position)
    _refused(store, "artifact_damaged")
    head = grown(CheckpointStore(home / "other"), "c")
    with pytest.raises(PackageError), store.open(head, "inputs/source/source.zip") as stream:
        stream.read(10)


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d + b"x", lambda _: b""])
def test_an_object_of_another_size(
    store: CheckpointStore, home: Path, change: Callable[[bytes], bytes]
) -> None:
    (home / f"cases/c/objects/{sha256_hex(BIG)}").write_bytes(change(BIG))
    _refused(store, "artifact_damaged")


def test_missing_pieces(store: CheckpointStore, home: Path) -> None:
    (home / f"cases/c/objects/{sha256_hex(BIG)}").unlink()
    _refused(store, "artifact_missing")


def test_a_missing_link_of_the_chain(store: CheckpointStore, home: Path) -> None:
    _gen(home, 3).unlink()
    _refused(store, "artifact_missing")


def test_no_generation_at_all(store: CheckpointStore, home: Path) -> None:
    for number in range(1, 5):
        _gen(home, number).unlink()
    _refused(store, "no_generation")


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
@pytest.mark.parametrize("number", [2, 4, 5])
def test_special_files_as_generations(store: CheckpointStore, home: Path, kind: str, number: int) -> None:
    path = _gen(home, number)
    if path.exists():
        path.rename(home / "moved.zip")
    else:
        shutil.copy(_gen(home, 4), home / "moved.zip")
    if kind == "link":
        path.symlink_to(home / "moved.zip")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    _refused(store, "not_a_regular_file")


@pytest.mark.parametrize("folder", ["gens", "objects", ""])
def test_linked_directories(store: CheckpointStore, home: Path, folder: str) -> None:
    path = home / "cases/c" / folder
    path.rename(home / "moved")
    path.symlink_to(home / "moved")
    with pytest.raises(PackageError) as caught:
        store.latest("c")
    assert caught.value.code == "not_a_directory"


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_special_files_as_objects(store: CheckpointStore, home: Path, kind: str) -> None:
    path = home / f"cases/c/objects/{sha256_hex(BIG)}"
    path.rename(home / "moved")
    if kind == "link":
        path.symlink_to(home / "moved")
    else:
        os.mkfifo(path)
    _refused(store, "not_a_regular_file")


@pytest.mark.parametrize(
    "name",
    ["g4.zip", "g000000005.zip", "g00000000.zip", "G00000005.zip", "g00000004.zip.bak", "g0000000٥.zip",
     "g00000005.ZIP", "7.gen", "g-0000005.zip", "g00000005.zip ", "g00000005.zip\n", " g00000005.zip",
     "g00000005.zip\ng00000006.zip", "x.zip"],
)  # fmt: skip
def test_malformed_generation_names(store: CheckpointStore, home: Path, name: str) -> None:
    shutil.copy(_gen(home, 4), home / "cases/c/gens" / name)
    _refused(store, "malformed_generation_name")


@pytest.mark.parametrize("name", ["notes.txt", ".DS_Store", "thumbs.db"])
def test_strangers_are_left_alone_and_listed(store: CheckpointStore, home: Path, name: str) -> None:
    for folder in ("gens", "objects", "tmp", ""):
        (home / "cases/c" / folder / name).write_bytes(b"mine")
    head = store.commit(store.latest("c"), next_change(5))
    assert store.latest("c", audit_history=True).generation == 5
    report = store.verify("c", audit_history=True)
    assert report.good
    assert set(report.strangers) == {name, f"gens/{name}", f"objects/{name}", f"tmp/{name}"}
    store.collect_garbage("c", dry_run=False)
    assert (home / "cases/c/objects" / name).read_bytes() == b"mine"
    assert head.generation == 5


def test_numbers_beyond_eight_digits_are_ordered_as_numbers(store: CheckpointStore, home: Path) -> None:
    """Names only select: a far number whose record says otherwise is an error and not the head."""
    shutil.copy(_gen(home, 4), _gen(home, 100_000_000))
    shutil.copy(_gen(home, 4), _gen(home, 99_999_999))
    with pytest.raises(PackageError) as caught:
        store.latest("c")
    assert caught.value.code == "wrong_identity"
    assert caught.value.where.endswith("g100000000.zip")


def test_a_copy_of_the_head_as_the_next_generation(store: CheckpointStore, home: Path) -> None:
    shutil.copy(_gen(home, 4), _gen(home, 5))
    _refused(store, "wrong_identity")


def test_another_cases_generation(store: CheckpointStore, home: Path) -> None:
    grown(store, "d", 5)
    shutil.copy(home / "cases/d/gens/g00000005.zip", _gen(home, 5))
    _refused(store, "wrong_identity")


def test_another_packages_generation(store: CheckpointStore, home: Path) -> None:
    other = CheckpointStore(home / "other")
    head = other.create("c", first_change())
    while head.generation < 5:
        head = other.commit(head, next_change(head.generation + 1))
    shutil.copy(home / "other/cases/c/gens/g00000005.zip", _gen(home, 5))
    _refused(store, "chain_broken")


def test_a_forged_next_generation_is_accepted_without_the_anchor(store: CheckpointStore, home: Path) -> None:
    """The limit of hash chains, stated in docs/package.md; `test_anchor` shows the same forgery refused."""
    forged = CheckpointStore(home / "copy")
    shutil.copytree(home / "cases", home / "copy/cases")
    forged.commit(forged.latest("c"), Change("forged"))
    shutil.copy(home / "copy/cases/c/gens/g00000005.zip", _gen(home, 5))
    assert store.latest("c").checkpoints[-1].event == "forged"


def test_obsolete_damage_is_found_by_the_audit_alone(home: Path) -> None:
    """Superseded content and generations before the snapshot do not block a valid case."""
    store = CheckpointStore(home)
    grown(store, "c", 260)
    data = _gen(home, 100).read_bytes()
    _flip(_gen(home, 100), data.index(b"[100]") + 1)
    _flip(_gen(home, 50), container.RECORD_START + 40)
    assert store.latest("c").generation == 260
    with pytest.raises(PackageError):
        store.latest("c", audit_history=True)
    report = store.verify("c", audit_history=True)
    assert {p.code for p in report.problems} >= {"artifact_damaged"} or len(report.problems) >= 2
    assert store.verify("c").good
    assert store.commit(store.latest("c"), next_change(261)).generation == 261


def test_a_missing_obsolete_generation_without_live_content(home: Path) -> None:
    store = CheckpointStore(home)
    head = store.create("c", first_change())
    with store.lock("c"):
        for number in range(2, 260):
            head = store.commit(head, Change("e", put={"a": b"%d" % number}))
    _gen(home, 77).unlink()
    assert store.latest("c").generation == 259
    with pytest.raises(PackageError) as caught:
        store.latest("c", audit_history=True)
    assert caught.value.code == "generation_missing"
    assert [p.code for p in store.verify("c", audit_history=True).problems] == ["generation_missing"]


def test_history_damage_is_live_damage(home: Path) -> None:
    store = CheckpointStore(home)
    grown(store, "c", 258)
    path = _gen(home, 256)
    _flip(path, path.read_bytes().rindex(b'"event":"published"') + 10)
    _refused(store, "history_damaged")


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "newer schema": lambda raw: raw.replace(b'"package-v1"', b'"package-v2"'),
    "unknown schema": lambda raw: raw.replace(b'"package-v1"', b'"package-vx"'),
    "duplicate key": lambda raw: raw[:-1] + b',"gen":4}',
    "spaces": lambda raw: raw.replace(b'"gen":4', b'"gen": 4'),
    "float generation": lambda raw: raw.replace(b'"gen":4', b'"gen":4.0'),
    "true as number": lambda raw: raw.replace(b'"gen":4', b'"gen":true'),
    "parent path": lambda raw: raw.replace(b"analysis/0004.json", b"analysis/../4.json"),
    "absolute path": lambda raw: raw.replace(b"analysis/0004.json", b"/nalysis/0004.json"),
    "empty part": lambda raw: raw.replace(b"analysis/0004.json", b"analysis//004.json"),
    "backslash": lambda raw: raw.replace(b"analysis/0004.json", b"analysis\\\\004.json"),
    "NUL": lambda raw: raw.replace(b"analysis/0004.json", b"analysis/\\u0000.json"),
    "short hash": lambda raw: raw.replace(b'"prev":"', b'"prev":"0', 1),
    "no prev": lambda raw: b"" if b'"prev":null' in raw else raw.replace(b'"prev":"', b'"prex":"'),
    "unknown field": lambda raw: raw[:-1] + b',"zzz":1}',
    "negative size": lambda raw: raw.replace(b'",7,4,', b'",-7,4,'),
    "future place": lambda raw: raw.replace(b'",7,4,', b'",7,5,'),
    "object with offset": lambda raw: raw.replace(b'",7,4,', b'",7,0,'),
    "dangling pointer": lambda raw: raw.replace(b'{"latest":"analysis/l', b'{"latest":"analysis/n'),
    "not JSON": lambda raw: raw[:-1],
    "deep": lambda _: b"[" * 100_000,
    "no object": lambda _: b"[]",
    "empty lifecycle": lambda raw: raw.replace(b'"lifecycle":"ASSEMBLED"', b'"lifecycle":""'),
    "revision zero": lambda raw: raw.replace(b'"revision":1', b'"revision":0'),
}  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_record_that_breaks_its_form(
    store: CheckpointStore, home: Path, forge: Callable[[bytes], bytes]
) -> None:
    data = _gen(home, 4).read_bytes()
    raw = container.read_record(data, 1 << 20, "x")
    parsed = record.decode(raw, "x")
    members = [container.Member(name, data[offset : offset + size]) for offset, size, name in _places(parsed)]
    changed = forge(raw)
    assert changed != raw
    _gen(home, 4).write_bytes(container.build(changed, members))
    with pytest.raises(PackageError) as caught:
        CheckpointStore(home).latest("c")
    expected = "newer_format" if b"package-v2" in changed else None
    assert expected is None or caught.value.code == expected
    assert isinstance(caught.value, VianoError)


def _places(parsed: record.Record) -> list[tuple[int, int, str]]:
    from viano_assets.package.reader import member_places

    return member_places(parsed)


def test_a_newer_container_format_has_its_code(store: CheckpointStore, home: Path) -> None:
    path = _gen(home, 4)
    path.write_bytes(path.read_bytes().replace(b"viano-package-v1", b"viano-package-v2"))
    with pytest.raises(NewerFormatError) as caught:
        store.latest("c")
    assert caught.value.code == "newer_format"
    assert caught.value.hint


def test_a_person_can_open_a_generation_with_a_zip_tool(store: CheckpointStore, home: Path) -> None:
    import zipfile

    with zipfile.ZipFile(_gen(home, 3)) as archive:
        assert archive.namelist() == ["record.json", "files/analysis/0003.json", "files/analysis/latest.json"]
        assert archive.testzip() is None
        assert archive.read("files/analysis/0003.json") == b'{"n":3}'


@pytest.mark.parametrize("kind", ["link", "directory", "other"])
def test_a_listing_with_a_generation_that_is_no_file(kind: Literal["link", "directory", "other"]) -> None:
    plain = [DirEntry(f"g0000000{n}.zip", "file") for n in (2, 1)]
    assert read_listing(plain, "x").numbers == [2, 1]
    assert read_listing([*plain, DirEntry("notes", kind)], "x").unknown == ["notes"]
    with pytest.raises(PackageError) as caught:
        read_listing([*plain, DirEntry("g00000003.zip", kind)], "x")
    assert (caught.value.code, caught.value.where) == ("not_a_regular_file", "x/g00000003.zip")


KEY, OTHER_KEY = b"k" * 32, b"o" * 32


@pytest.mark.parametrize(
    ("sealed", "given", "code"),
    [
        (None, None, None), (KEY, KEY, None), (KEY, None, "key_missing"), (None, KEY, "unkeyed_generation"),
        (KEY, OTHER_KEY, "container_damaged"),
    ],
)  # fmt: skip
def test_a_container_needs_the_key_it_was_sealed_with(
    sealed: bytes | None, given: bytes | None, code: str | None
) -> None:
    members = [container.Member("files/a", b"content")]
    data = container.build(b"{}", members, sealed)
    if code is None:
        container.check(data, b"{}", members, given, "x")
        return
    with pytest.raises(PackageError) as caught:
        container.check(data, b"{}", members, given, "x")
    assert caught.value.code == code


def test_the_size_of_a_record_is_known_from_the_header_alone() -> None:
    data = container.build(b"{}", [])
    assert container.record_size(data[: container.RECORD_START], "x") == 2
    for head in (data[: container.RECORD_START - 1], b"", b"PK\x01\x02" + data[4:]):
        with pytest.raises(PackageError) as caught:
            container.record_size(head, "x")
        assert caught.value.code == "container_damaged"


def test_a_package_over_the_limits_is_not_read(store: CheckpointStore, home: Path) -> None:
    head = store.latest("c")
    sizes = [
        len(container.read_record(_gen(home, number).read_bytes(), 1 << 20, "x")) for number in range(1, 5)
    ]
    exact = {
        "files": len(head.files),
        "total_bytes": sum(entry.size for entry in head.files.values()),
        "record_bytes": max(sizes),
        "container_bytes": max(_gen(home, number).stat().st_size for number in range(1, 5)),
    }
    assert CheckpointStore(home, limits=PackageLimits(**exact)).latest("c") == head
    for name, code in (
        ("files", "package_too_big"), ("total_bytes", "package_too_big"),
        ("record_bytes", "container_damaged"), ("container_bytes", "generation_too_big"),
    ):  # fmt: skip
        limits = PackageLimits(**{**exact, name: exact[name] - 1})
        with pytest.raises(PackageError) as caught:
            CheckpointStore(home, limits=limits).latest("c", audit_history=True)
        assert caught.value.code == code, name


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_byte_behind_an_older_record_is_found_by_the_audit(
    store: CheckpointStore, home: Path, number: int
) -> None:
    """The record chain and the live bytes hold; the container around them does not."""
    _flip(_gen(home, number), -1)
    assert store.latest("c").generation == 4
    assert store.verify("c").good
    report = store.verify("c", audit_history=True)
    assert [(p.code, p.where) for p in report.problems] == [("container_damaged", str(_gen(home, number)))]


def test_a_chain_that_ends_in_another_head(store: CheckpointStore, home: Path) -> None:
    head = store.latest("c")
    assert isinstance(head, StoredHead)
    reader = PackageReader(OsFileSystem(), PackageLimits(), None)
    raws = [raw for raw, _ in reader.records(store.paths("c"), head)]
    assert [sha256_hex(raw) for raw in raws][-1] == head.record_sha256
    shutil.copytree(home / "cases", home / "copy/cases")
    (home / "copy/cases/c/gens/g00000004.zip").unlink()
    forged = CheckpointStore(home / "copy")
    forged.commit(forged.latest("c"), Change("forged"))
    shutil.copy(home / "copy/cases/c/gens/g00000004.zip", _gen(home, 4))
    with pytest.raises(PackageError) as caught:
        list(reader.records(store.paths("c"), head))
    assert caught.value.code == "chain_broken"
    (home / "copy/cases/c/gens/g00000004.zip").unlink()
    shutil.copy(home / "copy/cases/c/gens/g00000003.zip", _gen(home, 2))
    with pytest.raises(PackageError):
        list(reader.records(store.paths("c"), head))


def _forged_pair(home: Path, package: str, revision: int) -> None:
    """Write two generations whose hashes are right, both snapshots; the second has its own identity."""
    folder = home / "cases/c/gens"
    (home / "cases/c/objects").mkdir(parents=True)
    folder.mkdir()
    first = Checkpoint(1, 2, "e", None, {}, {}, "2030")
    one = record.encode(Manifest("c", "p", 1, 2, "RECEIVED", {}), None, {}, first, Snapshot({}, ()))
    (folder / "g00000001.zip").write_bytes(container.build(one, []))
    history = seal([first])
    name = "history/1-1.jsonl"
    segment = Segment(sha256_hex(history), len(history), 2, container.member_overhead(name), 1, 1)
    two = record.encode(
        Manifest("c", package, 2, revision, "RECEIVED", {}),
        sha256_hex(one),
        {},
        Checkpoint(2, revision, "e", None, {}, {}, "2030"),
        Snapshot({}, (segment,)),
    )
    (folder / "g00000002.zip").write_bytes(container.build(two, [container.Member(name, history)]))


@pytest.mark.parametrize(
    ("package", "revision", "codes"),
    [("p", 2, []), ("p", 3, []), ("q", 2, ["wrong_identity"]), ("p", 1, ["wrong_identity"])],
)
def test_the_audit_finds_a_snapshot_that_does_not_follow(
    home: Path, package: str, revision: int, codes: list[str]
) -> None:
    _forged_pair(home, package, revision)
    store = CheckpointStore(home)
    assert store.latest("c").revision == revision
    assert [p.code for p in store.verify("c", audit_history=True).problems] == codes


def test_an_object_that_many_generations_name_is_hashed_once_in_an_audit(home: Path) -> None:
    head = grown(CheckpointStore(home), "c", 2)
    for number in range(2):
        head = CheckpointStore(home).commit(head, Change("e", put={f"copy{number}": BIG}))
    opened: list[str] = []
    disk = WatchedFileSystem(
        lambda operation, path: opened.append(path) if operation == "open_file" else None
    )
    store = CheckpointStore(home, filesystem=disk)
    place = str(home / f"cases/c/objects/{sha256_hex(BIG)}")
    store.latest("c")
    plain = opened.count(place)
    opened.clear()
    store.latest("c", audit_history=True)
    assert opened.count(place) == plain + 1


def test_a_head_prints_without_the_places_of_its_content(store: CheckpointStore) -> None:
    text = repr(store.latest("c"))
    assert "record_sha256=" in text
    assert [name for name in ("entries", "segments", "chain", "total_bytes") if f" {name}=" in text] == []
