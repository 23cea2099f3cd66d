"""The optional anchor: forgery, removal and rollback become errors for whoever lacks the key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.cases import PACKAGE_ID, first_change, grown, next_change
from tests.support.faulty_files import CHANGING, Crash, FailNth, WatchedFileSystem
from viano_assets.errors import ConfigurationError, PackageError
from viano_assets.package.anchor import Anchor
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore

KEY = b"k" * 32


def _store(root: Path, key: bytes = KEY) -> CheckpointStore:
    return CheckpointStore(root / "home", anchor=Anchor(root / "anchors", key))


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    made = _store(tmp_path)
    grown(made, "c")
    return made


def _code(store: CheckpointStore) -> str:
    with pytest.raises(PackageError) as caught:
        store.latest("c")
    assert not store.verify("c").good
    return caught.value.code


def _gen(root: Path, number: int) -> Path:
    return root / f"home/cases/c/gens/g{number:08d}.zip"


def test_an_anchored_case_works(store: CheckpointStore, tmp_path: Path) -> None:
    head = store.commit(store.latest("c", audit_history=True), next_change(5))
    assert _store(tmp_path).latest("c", audit_history=True) == head
    assert store.verify("c", audit_history=True).good


def test_a_forged_next_generation_is_refused(store: CheckpointStore, tmp_path: Path) -> None:
    """Without the key the forger can only write an unkeyed trailer, or one with a key of his own."""
    for key in (None, Anchor(tmp_path / "his", b"x" * 32)):
        forger = CheckpointStore(tmp_path / "plain", anchor=key)
        head = grown(forger, "c")
        forged = forger.commit(head, Change("forged"))
        assert forged.generation == 5
        shutil.copy(tmp_path / "plain/cases/c/gens/g00000005.zip", _gen(tmp_path, 5))
        assert _code(_store(tmp_path)) in {"unkeyed_generation", "container_damaged", "chain_broken"}
        shutil.rmtree(tmp_path / "plain")
        _gen(tmp_path, 5).unlink()
    assert _store(tmp_path).latest("c").generation == 4


def test_the_exact_forgery_that_passes_without_the_anchor(tmp_path: Path) -> None:
    plain = CheckpointStore(tmp_path / "home")
    grown(plain, "c")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "home", copy)
    thief = CheckpointStore(copy)
    thief.commit(thief.latest("c"), Change("forged"))
    anchored = _store(tmp_path)
    anchored.adopt_anchor("c")
    shutil.copy(copy / "cases/c/gens/g00000005.zip", _gen(tmp_path, 5))
    assert plain.latest("c").checkpoints[-1].event == "forged"
    assert _code(anchored) == "unkeyed_generation"


def test_a_removed_newest_generation(store: CheckpointStore, tmp_path: Path) -> None:
    store.commit(store.latest("c"), next_change(5))
    _gen(tmp_path, 5).unlink()
    assert _code(_store(tmp_path)) == "rollback"


def test_a_replaced_head(store: CheckpointStore, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(tmp_path / "home", backup)
    branch = CheckpointStore(backup, anchor=Anchor(tmp_path / "branch", KEY))
    shutil.copytree(tmp_path / "anchors", tmp_path / "branch")
    branch.commit(branch.latest("c"), Change("other branch"))
    store.commit(store.latest("c"), next_change(5))
    shutil.copy(backup / "cases/c/gens/g00000005.zip", _gen(tmp_path, 5))
    assert _code(_store(tmp_path)) == "anchor_mismatch"


def test_more_than_one_unseen_generation(store: CheckpointStore, tmp_path: Path) -> None:
    old = (tmp_path / "anchors/c.json").read_bytes()
    head = store.commit(store.latest("c"), next_change(5))
    (tmp_path / "anchors/c.json").write_bytes(old)
    assert _store(tmp_path).latest("c") == head
    (tmp_path / "anchors/c.json").write_bytes(old)
    head = _store(tmp_path).commit(head, next_change(6))
    (tmp_path / "anchors/c.json").write_bytes(old)
    assert _code(_store(tmp_path)) == "anchor_gap"


def test_anchor_files_that_lie(store: CheckpointStore, tmp_path: Path) -> None:
    path = tmp_path / "anchors/c.json"
    good = path.read_bytes()
    for bad in (b"", b"{}", good.replace(b'"gen":4', b'"gen":3'), good[:-5], good.replace(b'"c"', b'"d"')):
        path.write_bytes(bad)
        assert _code(_store(tmp_path)) == "anchor_invalid"
    path.write_bytes(good)
    assert _code(_store(tmp_path, b"z" * 32)) == "anchor_invalid"
    path.unlink()
    assert _code(_store(tmp_path)) == "anchor_missing"


def test_a_keyed_package_without_its_key(store: CheckpointStore, tmp_path: Path) -> None:
    assert _code(CheckpointStore(tmp_path / "home")) == "key_missing"


def test_a_keyed_byte_is_covered(store: CheckpointStore, tmp_path: Path) -> None:
    path = _gen(tmp_path, 4)
    path.write_bytes(path.read_bytes()[:-1] + b"0")
    changed = path.read_bytes()
    path.write_bytes(changed[:-1] + (b"1" if changed[-1:] == b"0" else b"0"))
    codes = set()
    for digit in b"0123456789abcdef":
        path.write_bytes(changed[:-1] + bytes([digit]))
        try:
            _store(tmp_path).latest("c")
            codes.add("good")
        except PackageError as error:
            codes.add(error.code)
    assert codes == {"good", "container_damaged"}


def test_adoption_takes_a_plain_case_under_the_anchor(tmp_path: Path) -> None:
    plain = CheckpointStore(tmp_path / "home")
    grown(plain, "c")
    anchored = _store(tmp_path)
    assert _code(anchored) == "anchor_missing"
    head = anchored.adopt_anchor("c")
    assert anchored.latest("c", audit_history=True) == head
    head = anchored.commit(head, next_change(5))
    assert anchored.verify("c", audit_history=True).good
    with pytest.raises(ConfigurationError):
        plain.adopt_anchor("c")


def test_a_death_between_commit_and_anchor_heals(tmp_path: Path) -> None:
    grown(_store(tmp_path), "c", 3)
    for nth in range(1, 60):
        root = tmp_path / f"{nth}"
        root.mkdir()
        shutil.copytree(tmp_path / "home", root / "home")
        shutil.copytree(tmp_path / "anchors", root / "anchors")
        fault = FailNth(nth, None, CHANGING)
        disk = WatchedFileSystem(fault)
        store = CheckpointStore(root / "home", filesystem=disk, anchor=Anchor(root / "anchors", KEY, disk))
        try:
            store.commit(store.latest("c"), next_change(4))
        except Crash:
            disk.die()
        fresh = _store(root)
        head = fresh.latest("c", audit_history=True)
        assert head.generation in {3, 4}
        head = fresh.commit(head, next_change(head.generation + 1))
        head = fresh.commit(head, next_change(head.generation + 1))
        assert fresh.latest("c") == head
        if not fault.hit:
            assert nth > 12
            return


def test_transfer_between_keys(store: CheckpointStore, tmp_path: Path) -> None:
    """A key is not portable: the export carries none, and the importer seals with its own."""
    store.export("c", tmp_path / "c.zip")
    (tmp_path / "b").mkdir()
    other = _store(tmp_path / "b", b"other key other key other key other")
    assert other.import_package(tmp_path / "c.zip") == store.latest("c")
    assert other.verify("c", audit_history=True).good
    plain = CheckpointStore(tmp_path / "plain")
    assert plain.import_package(tmp_path / "c.zip").record_sha256 == store.latest("c").record_sha256
    plain.export("c", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "c.zip").read_bytes()


def test_a_refused_creation_does_not_touch_the_witness(store: CheckpointStore, tmp_path: Path) -> None:
    before = (tmp_path / "anchors/c.json").read_bytes()
    with pytest.raises(Exception, match="case_exists"):
        store.create("c", first_change(), package_id=PACKAGE_ID)
    assert (tmp_path / "anchors/c.json").read_bytes() == before


def test_keys(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Anchor(tmp_path, b"short")
    assert caught.value.code == "weak_integrity_key"
    with pytest.raises(ConfigurationError) as caught:
        Anchor.from_environment(tmp_path, {})
    assert caught.value.code == "missing_integrity_key"
    assert Anchor.from_environment(tmp_path, {"VIANO_INTEGRITY_KEY": "x" * 64}).key == b"x" * 64
