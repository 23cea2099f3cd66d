"""Packages of every released schema open, and what must be refused is refused with the same code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from viano_assets.errors import NewerFormatError, PackageError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore

GOLDEN = Path(__file__).resolve().parents[1] / "golden/package-v1"
CASE = "GOLD-1"


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text("utf-8"))
    return loaded


def _copy(name: str, tmp_path: Path) -> CheckpointStore:
    shutil.copytree(GOLDEN / name, tmp_path / name)
    return CheckpointStore(tmp_path / name)


def test_the_golden_export_opens_as_it_was(tmp_path: Path, expected: dict[str, Any]) -> None:
    store = CheckpointStore(tmp_path / "home")
    head = store.import_package(GOLDEN / "export.zip")
    manifest = head.manifest
    assert (head.record_sha256, head.generation, head.revision) == (
        expected["record_sha256"], expected["generation"], expected["revision"],
    )  # fmt: skip
    assert {path: list(entry) for path, entry in sorted(head.files.items())} == expected["files"]
    assert (dict(manifest.pointers), manifest.lifecycle, manifest.routing) == (
        expected["pointers"], expected["lifecycle"], expected["routing"],
    )  # fmt: skip
    assert manifest.overlay is not None
    assert manifest.overlay.not_before == expected["overlay"]
    assert head.raw_inputs() == expected["raw_inputs"]
    entry = head.checkpoints[99]
    assert {"at": entry.at, "declares": dict(entry.declares)} == expected["entry_100"]
    assert store.verify(CASE, audit_history=True).good
    store.export(CASE, tmp_path / "again.zip")
    assert CheckpointStore(tmp_path / "other").import_package(tmp_path / "again.zip") == head
    assert store.commit(head, Change("goes on")).generation == 260


def test_reading_it_three_times_gives_the_same(tmp_path: Path) -> None:
    store = _copy("home", tmp_path)
    heads = [store.latest(CASE), store.latest(CASE), CheckpointStore(store.home).latest(CASE)]
    assert heads[0] == heads[1] == heads[2]
    assert heads[0].generation == 3


def test_a_copy_without_empty_folders_works(tmp_path: Path) -> None:
    """Version control and some copy tools drop empty folders."""
    store = _copy("home", tmp_path)
    for folder in ("objects", "tmp"):
        shutil.rmtree(store.home / f"cases/{CASE}/{folder}", ignore_errors=True)
    assert store.verify(CASE, audit_history=True).good
    assert store.collect_garbage(CASE).objects == ()
    assert store.commit(store.latest(CASE), Change("goes on", put={"b": bytes(1 << 20)})).generation == 4


def test_a_golden_package_whose_chain_is_broken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError) as caught:
        _copy("refused", tmp_path).latest(CASE)
    assert caught.value.code == "chain_broken"


def test_a_package_of_a_newer_release_has_its_code_and_is_left_alone(tmp_path: Path) -> None:
    store = _copy("newer", tmp_path)
    before = {p: p.read_bytes() for p in sorted(store.home.rglob("*.zip"))}
    with pytest.raises(NewerFormatError) as caught:
        store.latest(CASE)
    assert (caught.value.code, caught.value.exit_status) == ("newer_format", 1)
    assert "release" in caught.value.hint
    assert [p.code for p in store.verify(CASE).problems] == ["newer_format"]
    assert {p: p.read_bytes() for p in sorted(store.home.rglob("*.zip"))} == before
