"""One suite for every store: what the phases rely on, whichever store carries it out."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.memory_store import MemoryStore
from viano_assets.errors import BusyError, ContractError, InputError, PackageError, StaleHeadError
from viano_assets.package.limits import PackageLimits
from viano_assets.package.model import Change, Overlay
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import Store

AnyStore: TypeAlias = CheckpointStore | MemoryStore
Make: TypeAlias = Callable[[PackageLimits], AnyStore]

REPORT = "inputs/report/Größe.md"


def _first(**put: bytes) -> Change:
    files: dict[str, bytes | Path] = {REPORT: b"it breaks", **{f"a/{k}.json": v for k, v in put.items()}}
    return Change("case_imported", put=files, raw=frozenset({REPORT}), lifecycle="RECEIVED")


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "memory":
        return lambda limits: MemoryStore(limits=limits)
    return lambda limits: CheckpointStore(tmp_path / "home", limits=limits)


@pytest.fixture
def store(make: Make) -> AnyStore:
    return make(PackageLimits())


def test_fits_the_protocol(store: AnyStore) -> None:
    as_protocol: Store = store
    assert callable(as_protocol.latest)


def test_first_generation(store: AnyStore) -> None:
    head = store.create("BUG-1", _first(x=b"{}"))
    assert (head.generation, head.revision, head.manifest.lifecycle) == (1, 1, "RECEIVED")
    assert store.latest("BUG-1") == head
    assert store.read(head, REPORT) == b"it breaks"
    assert head.raw_inputs() == {REPORT: hashlib.sha256(b"it breaks").hexdigest()}
    assert store.case_ids() == ["BUG-1"]
    assert store.exists("BUG-1")
    assert not store.exists("BUG-2")


def test_commit_adds_rewrites_and_keeps(store: AnyStore) -> None:
    one = store.create("c", _first(x=b"1", y=b"2"))
    two = store.commit(
        one,
        Change("published", "interpretation", put={"a/x.json": b"10", "a/z.json": b"3"},
               pointers={"z": "a/z.json"}, detail={"n": 3}),
    )  # fmt: skip
    assert store.latest("c") == two
    assert [store.read(two, f"a/{k}.json") for k in "xyz"] == [b"10", b"2", b"3"]
    assert store.read(one, "a/x.json") == b"1"
    assert two.pointer("z") == "a/z.json"
    last = two.checkpoints[-1]
    assert (last.generation, last.event, last.phase, last.detail) == (
        2,
        "published",
        "interpretation",
        {"n": 3},
    )
    assert last.declares == {
        "a/x.json": hashlib.sha256(b"10").hexdigest(),
        "a/z.json": hashlib.sha256(b"3").hexdigest(),
    }
    assert [entry.generation for entry in two.checkpoints] == [1, 2]
    assert len(one.checkpoints) == 1


def test_a_stale_head_cannot_commit(store: AnyStore) -> None:
    one = store.create("c", _first())
    store.commit(one, Change("first"))
    with pytest.raises(StaleHeadError) as caught:
        store.commit(one, Change("second"))
    assert caught.value.code == "stale_head"
    assert [entry.event for entry in store.latest("c").checkpoints] == ["case_imported", "first"]


def test_manifest_fields_change_or_stay(store: AnyStore) -> None:
    head = store.create("c", _first(x=b"1"))
    halt = Overlay("deferred", "hypotheses", "rate_limited", "later", "2030-01-01T00:00:00Z")
    head = store.commit(head, Change("a", overlay=halt, routing="review", pointers={"x": "a/x.json"}))
    head = store.commit(head, Change("b", lifecycle="ASSEMBLED", revision=2))
    assert head.manifest.overlay == halt
    assert (head.manifest.routing, head.revision, head.manifest.lifecycle) == ("review", 2, "ASSEMBLED")
    assert head.checkpoints[-1].revision == 2
    head = store.commit(head, Change("c", overlay=None, routing=None, pointers={"x": None}))
    assert (head.manifest.overlay, head.manifest.routing, dict(head.manifest.pointers)) == (None, None, {})
    assert store.latest("c").manifest == head.manifest


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(Change("e", put={"../x": b""}), "invalid_path", id="parent"),
        pytest.param(Change("e", put={"/x": b""}), "invalid_path", id="absolute"),
        pytest.param(Change("e", put={"a\\b": b""}), "invalid_path", id="backslash"),
        pytest.param(Change("e", put={"a//b": b""}), "invalid_path", id="empty part"),
        pytest.param(Change("e", put={"": b""}), "invalid_path", id="empty"),
        pytest.param(Change("e", put={"A/x.json": b""}), "colliding_path", id="letter case"),
        pytest.param(Change("e", put={"a/x.json/b": b""}), "colliding_path", id="file as folder"),
        pytest.param(Change("e", put={"a": b""}), "colliding_path", id="folder as file"),
        pytest.param(Change("e", put={"ﬁ": b"", "fi": b""}), "colliding_path", id="ligature"),
        pytest.param(Change("e", put={"inputs/report/Gro\u0308ße.md": b""}), "colliding_path", id="NFD"),
        pytest.param(Change("e", put={REPORT: b"new"}), "raw_input_changed", id="artifact over input"),
        pytest.param(
            Change("e", put={"a/x.json": b""}, raw=frozenset({"a/x.json"})),
            "artifact_as_raw",
            id="input over artifact",
        ),
        pytest.param(Change("e", raw=frozenset({"b"})), "raw_not_put", id="raw without content"),
        pytest.param(Change("e", pointers={"p": "nowhere"}), "dangling_pointer", id="dangling"),
        pytest.param(Change("e", revision=3), "revision_step", id="revision jumps"),
        pytest.param(Change("e", detail={"n": float("nan")}), "not_json", id="NaN"),
        pytest.param(Change("e", detail={"t": "x" * 70_000}), "detail_too_big", id="detail"),
        pytest.param(Change(""), "invalid_change", id="no event"),
    ],
)  # fmt: skip
def test_a_bad_change_is_refused_and_leaves_the_head(store: AnyStore, change: Change, code: str) -> None:
    head = store.create("c", _first(x=b"1"))
    with pytest.raises(ContractError) as caught:
        store.commit(head, change)
    assert caught.value.code == code
    assert store.latest("c") == head
    assert store.commit(head, Change("good")).generation == 2


def test_limits_hold(make: Make) -> None:
    store = make(PackageLimits(files=3, total_bytes=100))
    head = store.create("c", _first(x=b"1"))
    with pytest.raises(ContractError) as caught:
        store.commit(head, Change("e", put={"b": b"", "c": b""}))
    assert caught.value.code == "package_too_big"
    with pytest.raises(ContractError):
        store.commit(head, Change("e", put={"b": b"x" * 100}))
    assert store.commit(head, Change("e", put={"a/x.json": b"y" * 80})).generation == 2


@pytest.mark.parametrize("case_id", ["", "a/b", "../x", "/abs/in.zip", ".x", "a..b", "x" * 65, "ä"])
def test_bad_case_ids_are_refused(store: AnyStore, case_id: str) -> None:
    with pytest.raises(InputError) as caught:
        store.create(case_id, _first())
    assert caught.value.code == "invalid_case_id"
    assert store.case_ids() == []


def test_names_are_unique_regardless_of_letter_case(store: AnyStore) -> None:
    store.create("Bug-1", _first())
    for name in ("Bug-1", "BUG-1"):
        with pytest.raises(InputError) as caught:
            store.create(name, _first())
        assert caught.value.code == "case_exists"
    with pytest.raises(InputError) as caught:
        store.latest("BUG-1")
    assert caught.value.code == "case_not_found"
    assert store.case_ids() == ["Bug-1"]


def test_a_failed_creation_leaves_nothing(store: AnyStore, tmp_path: Path) -> None:
    with pytest.raises(ContractError):
        store.create("c", Change("e", put={"x": b""}))
    with pytest.raises(InputError):
        store.create("c", Change("e", put={"x": tmp_path / "missing"}, lifecycle="RECEIVED"))
    assert store.case_ids() == []
    assert [p for p in (tmp_path / "home").glob("cases/*") if p.is_dir()] == []
    assert store.create("c", _first()).generation == 1


def test_wrong_package_is_refused(store: AnyStore) -> None:
    head = store.create("c", _first())
    assert store.latest("c", head.manifest.package_id) == head
    with pytest.raises(PackageError) as caught:
        store.latest("c", "11111111-1111-4111-8111-111111111111")
    assert caught.value.code == "wrong_package"


def test_unknown_artifact(store: AnyStore) -> None:
    head = store.create("c", _first())
    with pytest.raises(PackageError) as caught:
        store.read(head, "nope")
    assert caught.value.code == "artifact_unknown"


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 21) + 7])
def test_content_of_every_size_comes_back(store: AnyStore, tmp_path: Path, size: int) -> None:
    data = hashlib.shake_256(b"seed").digest(size)
    source = tmp_path / "source.bin"
    source.write_bytes(data)
    head = store.create("c", Change("e", put={"f": source, "b": data, "g/f": data}, lifecycle="RECEIVED"))
    head = store.latest("c")
    assert store.read(head, "f") == store.read(head, "b") == data
    with store.open(head, "f") as stream:
        assert stream.read(10) == data[:10]
        stream.seek(max(0, size - 5))
        assert stream.read() == data[max(0, size - 5) :]
        stream.seek(0, io.SEEK_END)
        assert stream.tell() == size
        stream.seek(0)
        assert stream.read() == data


def test_the_lock_is_entered_again_by_its_thread_and_refused_to_others(store: AnyStore) -> None:
    head = store.create("c", _first())
    refused: list[str] = []

    def other() -> None:
        try:
            store.commit(head, Change("x"))
        except BusyError as error:
            refused.append(error.code)

    with store.lock("c"), store.lock("c"):
        head = store.commit(head, Change("mine"))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == ["case_busy"]
    with store.lock("c"):
        assert store.commit(head, Change("later")).generation == 3


def test_history_over_many_generations(store: AnyStore) -> None:
    head = store.create("c", _first())
    with store.lock("c"):
        for number in range(2, 515):
            put: dict[str, bytes | Path] = {"a/x.json": b"%d" % number}
            head = store.commit(head, Change(f"e{number}", put=put, detail={"number": number}))
    fresh = store.latest("c")
    assert fresh == head
    assert [entry.generation for entry in fresh.checkpoints] == list(range(1, 515))
    assert fresh.checkpoints[255].event == "e256"
    assert fresh.checkpoints[-1].event == "e514"
    assert fresh.checkpoints[3:5][1].detail == {"number": 5}
    assert store.read(fresh, "a/x.json") == b"514"
    assert store.at_generation("c", 300).checkpoints[-1].event == "e300"
    with pytest.raises(IndexError):
        fresh.checkpoints[514]
