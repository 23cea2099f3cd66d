"""Small facts of the small parts: history, records, names, streams, telemetry."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path

import pytest

from tests.support.cases import BIG, ManualClock, grown
from tests.support.memory_store import MemoryStore
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import DefectError, InputError, PackageError
from viano_assets.package import container, record
from viano_assets.package.history import History, SealedSegment, seal
from viano_assets.package.model import Change, Checkpoint, Manifest, Overlay
from viano_assets.package.names import NameIndex, name_problem
from viano_assets.package.record import Segment, Snapshot, Stored
from viano_assets.package.store import CheckpointStore
from viano_assets.package.telemetry import Telemetry

HASH = "a" * 64


def _entry(number: int) -> Checkpoint:
    return Checkpoint(number, 1, f"e{number}", None, {"p": HASH}, {"ä": [number]}, "2030")


def test_history_reads_like_one_list() -> None:
    entries = [_entry(n) for n in range(1, 11)]
    sealed = (
        SealedSegment(seal(entries[:4]), 1, 4, "x"),
        SealedSegment(seal(entries[4:6]), 5, 6, "x"),
    )
    history = History(sealed, tuple(entries[6:]))
    assert list(history) == entries
    assert list(reversed(history)) == entries[::-1]
    assert [history[i] for i in range(-10, 10)] == [entries[i] for i in range(-10, 10)]
    assert history[3:8] == entries[3:8]
    assert (len(history), history == entries, history == entries[:-1]) == (10, True, False)
    assert history != [*entries[:-1], _entry(11)]
    for outside in (10, -11):
        with pytest.raises(IndexError):
            history[outside]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}\n", seal([_entry(2)]), seal([_entry(1)])[:-1], seal([_entry(1), _entry(2)]),
        seal([_entry(1)]).replace(b'"at":', b'"at": '), seal([_entry(1)]).replace(b'"2030"', b"2030"),
        seal([_entry(1)]).replace(b'"phase":null', b'"phase":1'),
        seal([_entry(1)]).replace(b'"revision":1', b'"revision":"1"'),
        seal([_entry(1)]).replace(b'"event":"e1"', b'"event":1'),
        seal([_entry(1)]).replace(b'"detail":{', b'"detail":[{').replace(b"]}", b"]}]", 1),
        b"[" * 100_000 + b"\n",
    ],
)  # fmt: skip
def test_a_segment_that_is_not_its_range_is_refused(data: bytes) -> None:
    with pytest.raises(PackageError) as caught:
        assert SealedSegment(data, 1, 1, "x").entries
    assert caught.value.code == "history_invalid"


def test_a_record_comes_back_as_it_was() -> None:
    manifest = Manifest(
        "c", "p", 256, 3, "ASSEMBLED", {"a": "b/c"}, Overlay("blocked", "diagnosis", "x", "", None), "review"
    )
    put = {"b/c": Stored(HASH, 3, 256, 40, raw=False), "in": Stored(HASH, 4, 0, 0, raw=True)}
    old = {"o": Stored(HASH, 5, 7, 99, raw=False)}
    segments = (Segment(HASH, 9, 100, 55, 1, 99), Segment(HASH, 9, 256, 77, 100, 255))
    entry = Checkpoint(256, 3, "e", "diagnosis", {"b/c": HASH}, {"n": [1, None, "ä"]}, "2030")
    raw = record.encode(manifest, HASH, put, entry, Snapshot({**old, **put}, segments))
    found = record.decode(raw, "x")
    base = container.RECORD_START + len(raw)
    assert (found.manifest, found.checkpoint, found.previous) == (manifest, entry, HASH)
    assert (found.sha256, found.size) == (sha256_hex(raw), len(raw))
    assert found.put == {"b/c": put["b/c"]._replace(offset=40 + base), "in": put["in"]}
    assert found.snapshot is not None
    assert found.snapshot.files == {**old, **found.put}
    assert found.snapshot.segments == (segments[0], segments[1]._replace(offset=77 + base))
    assert raw == canonical_json(json.loads(raw))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a/b.c", None), ("a-b+c_d/e", None), ("grün/ß.txt", None), ("a b", None), (".hidden/x", None),
        ("x" * 255, None), ("x" * 256, "255"), ("ü" * 128, "255"), ("a/" * 31 + "b", None),
        ("a/" * 32 + "b", "32"), ("ä/" * 32 + "b", "32"), ("console/x", None), ("aux.d/x", "reserved"),
        ("a/PRN", "reserved"), ("ä/nul.x", "reserved"), ("a.", "dot or space"), ("a /b", "dot or space"),
        ("a:b", "':'"), ("\u200eb", "invisible"), ("a\x7f", "control"), ("a\u2028b", "control"),
        ("~", None), ("a//b", "empty"), ("a/", "empty"), ("..", "'..'"), ("a/.", "'.'"),
        ("/a", "absolute"), ("a\\b", "backslash"), ("ä" * 200 + "/" + ("ä" * 100 + "/") * 20 + "b", "4096"),
    ],
)  # fmt: skip
def test_path_grammar(name: str, problem: str | None) -> None:
    found = name_problem(name)
    assert found is None if problem is None else problem in (found or "")


def test_names_that_only_other_systems_refuse() -> None:
    for name in ("aux.c", "ab:c", "a.", "b "):
        assert name_problem(name, portable=False) is None
        assert name_problem(name) is not None
    assert name_problem("C:x", portable=False) is not None


def test_name_index() -> None:
    index = NameIndex(["a/b/c", "D"])
    assert index.problem("a/b/c") is None
    assert index.has("D")
    assert not index.has("d")
    assert all(index.problem(name) for name in ("d", "A/B/C", "a", "a/b", "A/b", "a/b/c/d", "d/x"))
    assert all(index.problem(name) is None for name in ("a/b/d", "a/c", "e", "D2/x"))


def test_a_stream_read_to_its_end_is_hashed_once_and_one_left_early_is_checked_at_the_close(
    tmp_path: Path,
) -> None:
    store = CheckpointStore(tmp_path / "home")
    head = grown(store, "c", 2)
    path = tmp_path / f"home/cases/c/objects/{sha256_hex(BIG)}"
    with store.open(head, "inputs/source/source.zip") as stream:
        assert stream.read() == BIG
    data = bytearray(BIG)
    data[-1] ^= 1
    path.write_bytes(data)
    stream = store.open(head, "inputs/source/source.zip")
    assert stream.read(10) == BIG[:10]
    with pytest.raises(PackageError) as caught:
        stream.close()
    assert caught.value.code == "artifact_damaged"
    path.write_bytes(BIG[:100])
    stream = store.open(head, "inputs/source/source.zip")
    with pytest.raises(PackageError):
        stream.read()
    with pytest.raises(PackageError):
        stream.close()


def test_an_archive_inside_a_package_is_read_through_the_stream(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x", BIG)
    store = CheckpointStore(tmp_path / "home")
    put: dict[str, bytes | Path] = {"in/a.zip": tmp_path / "a.zip"}
    head = store.create("c", Change("e", put=put, raw=frozenset(put), lifecycle="RECEIVED"))
    with store.open(head, "in/a.zip") as stream, zipfile.ZipFile(stream) as archive:
        assert archive.read("x") == BIG


def test_a_head_of_another_store_is_a_defect(tmp_path: Path) -> None:
    head = MemoryStore().create("c", Change("e", lifecycle="RECEIVED"))
    with pytest.raises(DefectError) as caught:
        CheckpointStore(tmp_path).read(head, "x")
    assert caught.value.code == "foreign_head"


def test_a_directory_is_no_content(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        CheckpointStore(tmp_path / "home").create("c", Change("e", put={"x": tmp_path}, lifecycle="RECEIVED"))
    assert caught.value.code == "not_a_file"


def test_a_package_id_is_a_uuid(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        CheckpointStore(tmp_path).create("c", Change("e", lifecycle="RECEIVED"), package_id="x")
    assert caught.value.code == "invalid_package_id"


def test_nested_time_is_told_apart() -> None:
    clock = ManualClock()
    telemetry = Telemetry(clock)
    with telemetry.timed("outer"):
        clock.step(1)
        with telemetry.timed("inner"):
            clock.step(2)
    with telemetry.timed("inner"):
        clock.step(4)
    times = telemetry.operations()
    assert list(times) == ["inner", "outer"]
    assert dataclasses.astuple(times["inner"]) == (2, 6.0, 2.0, 4.0)
    assert dataclasses.astuple(times["outer"]) == (1, 3.0, 0.0, 3.0)
    assert telemetry.wall_seconds == 7.0
