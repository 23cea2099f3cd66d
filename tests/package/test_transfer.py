"""Export and import: the same head, the same bytes; and everything that must be refused leaves nothing."""

from __future__ import annotations

import errno
import io
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cases import BIG, ManualClock, first_change, grown, next_change
from tests.support.faulty_files import CHANGING, Crash, FailNth, WatchedFileSystem
from viano_assets.errors import InputError, NewerFormatError, PackageError, StorageError, VianoError
from viano_assets.package.archive import ArchiveError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _left(home: Path) -> list[str]:
    return [p.name for p in home.glob("cases/*") if p.is_dir()]


def test_round_trip_gives_the_same_head_and_bytes(store: CheckpointStore, home: Path, tmp_path: Path) -> None:
    head = store.commit(store.latest("c"), Change("big", put={"analysis/big.bin": BIG[::-1]}))
    head = store.commit(head, Change("big", put={"analysis/big.bin": BIG[:-1]}))
    done = store.export("c", tmp_path / "c.zip")
    assert (done.record_sha256, done.generation) == (head.record_sha256, 6)
    other = CheckpointStore(tmp_path / "other")
    assert other.import_package(tmp_path / "c.zip") == head
    assert other.verify("c", audit_history=True).good
    mine, theirs = _tree(home / "cases/c"), _tree(tmp_path / "other/cases/c")
    assert mine == theirs
    assert other.commit(other.latest("c"), next_change(7)).generation == 7


def test_an_export_is_the_same_for_the_same_head(store: CheckpointStore, tmp_path: Path) -> None:
    first = store.export("c", tmp_path / "1.zip")
    store.clock = ManualClock()
    second = CheckpointStore(store.home).export("c", tmp_path / "2.zip")
    assert first.sha256 == second.sha256
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()


def test_any_zip_tool_reads_an_export(store: CheckpointStore, tmp_path: Path) -> None:
    store.export("c", tmp_path / "c.zip")
    with zipfile.ZipFile(tmp_path / "c.zip") as archive:
        assert archive.testzip() is None
        assert archive.read("files/inputs/source/source.zip") == BIG
        assert archive.read("files/analysis/latest.json") == b"[4]"
        assert archive.namelist()[:2] == ["package.json", "history.jsonl"]


def test_an_older_generation_is_exported_as_if_it_were_the_head(
    store: CheckpointStore, tmp_path: Path
) -> None:
    store.export("c", tmp_path / "c.zip", generation=3)
    other = CheckpointStore(tmp_path / "other")
    assert other.import_package(tmp_path / "c.zip") == store.at_generation("c", 3)


def test_a_long_history_makes_the_round_trip(home: Path, tmp_path: Path) -> None:
    store = CheckpointStore(home)
    head = grown(store, "c", 515)
    store.export("c", tmp_path / "c.zip")
    other = CheckpointStore(tmp_path / "other")
    assert other.import_package(tmp_path / "c.zip") == head
    assert _tree(home / "cases/c/gens") == _tree(tmp_path / "other/cases/c/gens")


def test_an_existing_case_and_an_existing_file_are_not_overwritten(
    store: CheckpointStore, tmp_path: Path
) -> None:
    store.export("c", tmp_path / "c.zip")
    with pytest.raises(InputError) as caught:
        store.import_package(tmp_path / "c.zip")
    assert caught.value.code == "case_exists"
    with pytest.raises(InputError) as caught:
        store.export("c", tmp_path / "c.zip")
    assert caught.value.code == "output_exists"
    with pytest.raises(InputError) as caught:
        store.export("c", tmp_path / "no/c.zip")
    assert caught.value.code == "output_folder_missing"
    store.export("c", tmp_path / "c.zip", overwrite=True)


def test_damage_is_not_exported(store: CheckpointStore, home: Path, tmp_path: Path) -> None:
    path = home / "cases/c/gens/g00000002.zip"
    data = bytearray(path.read_bytes())
    data[data.index(b"[2]") + 1] ^= 1
    path.write_bytes(data)
    store.latest("c")
    with pytest.raises(PackageError) as caught:
        store.export("c", tmp_path / "c.zip")
    assert caught.value.code == "artifact_damaged"
    assert list(tmp_path.glob("*.zip*")) + list(tmp_path.glob(".*")) == []


def _rewritten(path: Path, edit: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    edit(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _swap(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def edit(members: dict[str, bytes]) -> None:
        assert old in members[name]
        members[name] = members[name].replace(old, new)

    return edit


def _drop(name: str) -> Callable[[dict[str, bytes]], None]:
    def edit(members: dict[str, bytes]) -> None:
        del members[name]

    return edit


def _drop_blob(members: dict[str, bytes]) -> None:
    del members[next(name for name in members if name.startswith("blobs/"))]


def _cut_history(members: dict[str, bytes]) -> None:
    members["history.jsonl"] = b"".join(members["history.jsonl"].splitlines(keepends=True)[:-1])


FORGERIES: dict[str, tuple[Callable[[dict[str, bytes]], None], type[VianoError], str]] = {
    "live content": (_swap("files/analysis/latest.json", b"[4]", b"[5]"), PackageError, "artifact_missing"),
    "raw content": (
        _swap("files/inputs/report/report.md", b"breaks", b"shines"), PackageError, "artifact_missing",
    ),
    "missing live file": (_drop("files/analysis/0003.json"), PackageError, "artifact_missing"),
    "missing object": (_drop("files/inputs/source/source.zip"), PackageError, "artifact_missing"),
    "missing old content": (_drop_blob, PackageError, "artifact_missing"),
    "no summary": (_drop("package.json"), InputError, "not_a_package"),
    "no history": (_drop("history.jsonl"), InputError, "not_a_package"),
    "short history": (_cut_history, PackageError, "generation_missing"),
    "edited record": (_swap("history.jsonl", b'"number":3', b'"number":9'), PackageError, "chain_broken"),
    "another case": (_swap("package.json", b'"case":"c"', b'"case":"x"'), PackageError, "wrong_identity"),
    "case id with a slash": (
        _swap("package.json", b'"case":"c"', b'"case":"../x"'), InputError, "invalid_case_id",
    ),
    "head": (_swap("package.json", b'"gen":4', b'"gen":3'), PackageError, "record_invalid"),
    "summary no JSON": (_swap("package.json", b"{", b"{{"), InputError, "not_a_package"),
    "summary types": (_swap("package.json", b'"gen":4', b'"gen":"4"'), InputError, "not_a_package"),
    "newer export": (_swap("package.json", b"export-v1", b"export-v2"), NewerFormatError, "newer_format"),
    "newer record": (_swap("history.jsonl", b"package-v1", b"package-v7"), NewerFormatError, "newer_format"),
    "stranger": (lambda m: m.update({"extra.txt": b"x"}), ArchiveError, "transfer_unnamed"),
    "unnamed content": (
        lambda m: m.update({"blobs/2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881": b"x"}),
        ArchiveError, "transfer_unnamed",
    ),
    "content under another hash": (
        lambda m: m.update({f"blobs/{'0' * 64}": b"x"}), PackageError, "artifact_damaged",
    ),
    "climbing name": (lambda m: m.update({"files/../../x": b"x"}), ArchiveError, "archive_name"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "kind", "code"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_export_is_refused_and_leaves_nothing(
    store: CheckpointStore,
    tmp_path: Path,
    edit: Callable[[dict[str, bytes]], None],
    kind: type[VianoError],
    code: str,
) -> None:
    store.export("c", tmp_path / "c.zip")
    _rewritten(tmp_path / "c.zip", edit)
    other = CheckpointStore(tmp_path / "other")
    with pytest.raises(kind) as caught:
        other.import_package(tmp_path / "c.zip")
    assert caught.value.code == code
    assert _left(tmp_path / "other") == []
    assert other.case_ids() == []


def test_a_rewritten_but_honest_export_is_accepted(store: CheckpointStore, tmp_path: Path) -> None:
    store.export("c", tmp_path / "c.zip")
    _rewritten(tmp_path / "c.zip", lambda _: None)
    assert CheckpointStore(tmp_path / "other").import_package(tmp_path / "c.zip") == store.latest("c")


@pytest.mark.parametrize("data", [b"", b"text", b"PK\3\4"])
def test_what_is_no_export(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(InputError):
        CheckpointStore(tmp_path / "other").import_package(tmp_path / "x.zip")
    with pytest.raises(InputError):
        CheckpointStore(tmp_path / "other").import_package(tmp_path / "missing.zip")
    assert not (tmp_path / "other").exists()


def test_an_ordinary_archive_is_no_export(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("report.md", "x")
    (tmp_path / "x.zip").write_bytes(out.getvalue())
    with pytest.raises(InputError) as caught:
        CheckpointStore(tmp_path / "other").import_package(tmp_path / "x.zip")
    assert caught.value.code == "not_a_package"
    assert "viano case import" in caught.value.hint


@pytest.mark.parametrize("code", [None, errno.ENOSPC])
def test_every_operation_of_an_import(store: CheckpointStore, tmp_path: Path, code: int | None) -> None:
    """Until the one rename there is no case; afterwards it is whole."""
    store.export("c", tmp_path / "c.zip")
    expected = store.latest("c")
    kinds = CHANGING - {"point", "unlink", "rmdir", "fsync"} if code else CHANGING
    for nth in range(1, 200):
        home = tmp_path / f"home{nth}"
        fault = FailNth(nth, code, kinds)
        disk = WatchedFileSystem(fault)
        try:
            CheckpointStore(home, filesystem=disk).import_package(tmp_path / "c.zip")
        except (Crash, StorageError):
            disk.die()
            fresh = CheckpointStore(home)
            if fresh.exists("c"):
                assert fresh.latest("c", audit_history=True) == expected
            else:
                assert fresh.import_package(tmp_path / "c.zip") == expected
            assert _left(home) == ["c"]
            shutil.rmtree(home)
        else:
            assert not fault.hit
            assert nth > 20
            return
    pytest.fail("the loop never ran through")


@pytest.mark.parametrize("code", [None, errno.ENOSPC])
def test_every_operation_of_an_export(store: CheckpointStore, tmp_path: Path, code: int | None) -> None:
    whole = store.export("c", tmp_path / "whole.zip")
    for nth in range(1, 200):
        target = tmp_path / f"{nth}.zip"
        fault = FailNth(nth, code)
        disk = WatchedFileSystem(fault)
        try:
            CheckpointStore(store.home, filesystem=disk).export("c", target)
        except (Crash, StorageError):
            disk.die()
            if target.exists():
                assert target.read_bytes() == (tmp_path / "whole.zip").read_bytes()
            if code:
                assert list(tmp_path.glob(f".{nth}.zip*")) == []
        else:
            assert target.stat().st_size == whole.bytes
            assert nth > 5
            return
    pytest.fail("the loop never ran through")


def test_progress_of_large_content_is_reported(home: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []
    store = CheckpointStore(home, progress=lambda path, done: seen.append((path, done)))
    (tmp_path / "big").write_bytes(bytes(3 << 20))
    store.create("c", Change("e", put={"big": tmp_path / "big"}, lifecycle="RECEIVED"))
    assert [done for _, done in seen] == [1 << 20, 2 << 20, 3 << 20]
    store.export("c", tmp_path / "c.zip")
    assert ("files/big", 3 << 20) in seen
    assert first_change().lifecycle == "RECEIVED"
