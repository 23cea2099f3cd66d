"""Small facts of the small parts: history, records, names, streams, telemetry."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any

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


def _fields(generation: int) -> dict[str, Any]:
    """The JSON form of a record with a snapshot, an artifact and an input of its own, and full history."""
    entry = Checkpoint(generation, 1, "e", None, {"a/b": HASH}, {"n": 1}, "2030")
    manifest = Manifest("c", "p", generation, 1, "ASSEMBLED", {"a": "a/b"})
    put = {"a/b": Stored(HASH, 3, generation, 40, raw=False), "in": Stored(HASH, 4, 0, 0, raw=True)}
    old = {"o": Stored(HASH, 5, 1, 99, raw=False)}
    segments = tuple(Segment(HASH, 9, generation, 9 * n, n, n) for n in range(1, generation))
    previous = HASH if generation > 1 else None
    raw = record.encode(manifest, previous, put, entry, Snapshot({**old, **put}, segments))
    fields: dict[str, Any] = json.loads(raw)
    return fields


PLACE = [HASH, 3, 3, 40]
RANGE = "segment range"
NEW = "place of 'new'"
ITEM = [HASH, 9, 3, 9, 1, 1]
LAST = [HASH, 9, 3, 18, 2, 2]


@pytest.mark.parametrize(
    ("generation", "where", "value", "reason"),
    [
        (3, "prev", None, "prev"), (1, "prev", HASH, "prev"), (3, "prev", "x", "hash"),
        (3, "prev", HASH.upper(), "hash"), (3, "prev", 7, "hash"), (3, "gen", 0, "gen"),
        (3, "gen", True, "gen"), (3, "gen", 3.0, "gen"), (3, "revision", 0, "revision"),
        (3, "case", "", "case"), (3, "package", 1, "package"), (3, "lifecycle", None, "lifecycle"),
        (3, "pointers", [], "pointers"), (3, "pointers/a", 1, "pointers"), (3, "routing", "", "routing"),
        (3, "event", "", "event"), (3, "phase", 1, "phase"), (3, "detail", [], "detail"),
        (3, "at", None, "at"),
        (3, "detail/n", float("nan"), ""), (3, "detail/n", float("-inf"), ""),
        (3, "overlay", {}, "overlay"), (3, "overlay", ["blocked", "p", "c", "m"], "overlay"),
        (3, "overlay", ["other", "p", "c", "m", None], "overlay"),
        (3, "overlay", ["blocked", "", "c", "m", None], "overlay"),
        (3, "overlay", ["blocked", "p", 1, "m", None], "overlay"),
        (3, "overlay", ["deferred", "p", "c", "m", 1], "overlay"),
        (3, "put", [], "put"), (3, "raw", {"in": 1}, "put"), (3, "raw", ["in", "a/b"], "raw"),
        (3, "raw", ["in", "in"], "raw"), (3, "raw", ["in", "o"], "raw"), (3, "raw", [["in"]], ""),
        (3, "put/new", None, NEW), (3, "put/new", {}, NEW),
        (3, "put/new", PLACE[:3], NEW), (3, "put/new", [*PLACE, 0], NEW),
        (3, "put/new", ["a" * 63, 3, 3, 40], NEW), (3, "put/new", [7, 3, 3, 40], NEW),
        (3, "put/new", [HASH, "3", 3, 40], NEW), (3, "put/new", [HASH, True, 3, 40], NEW),
        (3, "put/new", [HASH, -1, 3, 40], NEW), (3, "put/new", [HASH, 3, -1, 40], NEW),
        (3, "put/new", [HASH, 3, 4, 40], NEW), (3, "put/new", [HASH, 3, 3.0, 40], NEW),
        (3, "put/new", [HASH, 3, 3, -1], NEW), (3, "put/new", [HASH, 3, 0, 1], NEW),
        (3, "put/new", [HASH, 3, 3, None], NEW), (3, "put/..", PLACE, "path '..' has"),
        (3, "put/b\\c", PLACE, "has a backslash"), (3, "put/nul", PLACE, "has a reserved device name"),
        (3, "put/new", PLACE, "listing lacks new files"),
        (1, "snapshot", None, "the first generation"), (3, "snapshot", [], "snapshot"),
        (3, "snapshot", {"files": {}}, "snapshot"), (3, "snapshot/more", 1, "snapshot"),
        (3, "snapshot/files", [], "snapshot"), (1, "snapshot/segments", {}, "snapshot"),
        (1, "snapshot/segments", None, "snapshot"), (3, "snapshot/files/o", PLACE, "listing"),
        (3, "snapshot/files/o", [*PLACE, 2], "listing"), (3, "snapshot/files/o", [*PLACE, False], "listing"),
        (3, "snapshot/files/o", [HASH, 5, 4, 99, 0], "place of 'o'"),
        (3, "snapshot/files/..", [*PLACE, 0], "path '..' has"),
        (3, "snapshot/files/in", [HASH, 4, 0, 0, 0], "listing lacks new files"),
        (3, "snapshot/segments", [ITEM[:5], LAST], "segment"),
        (3, "snapshot/segments", [{}, LAST], "segment"),
        (3, "snapshot/segments", [["x", *ITEM[1:]], LAST], "hash"),
        (3, "snapshot/segments", [[HASH, -1, 3, 9, 1, 1], LAST], "segment"),
        (3, "snapshot/segments", [[HASH, 9, 0, 9, 1, 1], LAST], "segment"),
        (3, "snapshot/segments", [[HASH, 9, 3, -9, 1, 1], LAST], "segment"),
        (3, "snapshot/segments", [[HASH, 9, 4, 9, 1, 1], LAST], "segment place"),
        (3, "snapshot/segments", [[HASH, 9, 3, 9, 1, 3]], RANGE),
        (3, "snapshot/segments", [[HASH, 9, 3, 9, 1, 9]], RANGE),
        (3, "snapshot/segments", [[HASH, 9, 3, 9, 2, 1], LAST], RANGE),
        (3, "snapshot/segments", [ITEM, [HASH, 9, 3, 18, 1, 2]], RANGE),
        (3, "snapshot/segments", [LAST], RANGE), (3, "snapshot/segments", [LAST, ITEM], RANGE),
        (3, "snapshot/segments", [ITEM], "history does not reach"),
        (3, "snapshot/segments", [], "history does not reach"),
        (3, "more", 1, "fields"), (3, "schema", 1, "schema"), (3, "schema", "package-v0", "schema"),
    ],
)  # fmt: skip
def test_a_record_with_one_malformed_field_is_refused(
    generation: int, where: str, value: object, reason: str
) -> None:
    fields = _fields(generation)
    assert record.decode(canonical_json(fields), "x").manifest.generation == generation
    *folders, name = where.split("/") if not where.startswith("put/") else ["put", where[4:]]
    target = fields
    for folder in folders:
        target = target[folder]
    target[name] = value
    raw = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(PackageError) as caught:
        record.decode(raw, "the place")
    assert (caught.value.code, caught.value.where) == ("record_invalid", "the place")
    assert reason in caught.value.message


@pytest.mark.parametrize("name", sorted(_fields(3)))
def test_a_record_without_one_of_its_fields_is_refused(name: str) -> None:
    fields = _fields(3)
    del fields[name]
    with pytest.raises(PackageError) as caught:
        record.decode(canonical_json(fields), "x")
    assert caught.value.code == "record_invalid"


def test_another_order_of_the_same_fields_is_not_the_record() -> None:
    fields = _fields(3)
    raw = json.dumps(dict(reversed(fields.items())), ensure_ascii=False, separators=(",", ":")).encode()
    assert json.loads(raw) == fields
    with pytest.raises(PackageError, match="not in canonical form"):
        record.decode(raw, "x")


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
        ("/".join(["x" * 240] * 17), None), ("/".join(["x" * 240] * 17) + "x", "4096"),
        ("a\udfff", "surrogate"), ("a\ue000", None),
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
