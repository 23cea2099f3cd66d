from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import multiprocessing
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from viano_assets.case.assembler import load_case
from viano_assets.case.compressed import Unpacked
from viano_assets.case.intake import import_case
from viano_assets.case.redaction import RULES
from viano_assets.case.view import InputView
from viano_assets.errors import InputError, PackageError
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore

REPORT = "# T\n\n## Observed\nIt stops.\n"


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "home")


def imported(store: CheckpointStore, folder: Path, **more: bytes) -> Head:
    """Import a case whose diagnostics hold these files (`__` in a keyword is a slash)."""
    (folder / "report.md").write_text(REPORT)
    with zipfile.ZipFile(folder / "diag.zip", "w") as archive:
        for name, data in more.items():
            archive.writestr(name.replace("__", "/"), data)
    return import_case(store, case_id="C", report=folder / "report.md", diagnostics=folder / "diag.zip")


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/"), data)
    return buffer.getvalue()


def test_bytes_that_need_no_redaction_are_the_raw_bytes(store: CheckpointStore, tmp_path: Path) -> None:
    """Mixed line ends, a damaged line and UTF-16 stay as they are, so that line numbers agree (B17, B22)."""
    mixed = b"one\ntwo\r\nthree\rfour " + b"\xff\n" + "fünf\n".encode()
    wide = "eins\r\nzwei\r\n".encode("utf-16")
    binary = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    files = {"a__mixed.log": mixed, "wide.log": wide, "shot.png": binary}
    view = InputView.open(store, imported(store, tmp_path, **files), tmp_path / "cache")
    for name, data in files.items():
        assert view.read("diagnostics", name.replace("__", "/")) == data
    found = {file.path: (file.binary, file.encoding, file.redacted) for file in view.files("diagnostics")}
    assert found == {
        "a/mixed.log": (False, "utf-8", 0),
        "wide.log": (False, "utf-16-le", 0),
        "shot.png": (True, None, 0),
    }


def opened(store: CheckpointStore, folder: Path, name: str, data: bytes) -> InputView:
    return InputView.open(store, imported(store, folder, **{name: data}), folder / "cache")


def test_names_are_shown_composed(store: CheckpointStore, tmp_path: Path) -> None:
    """A Mac packs `grössen.log` with a separate diaeresis; a search by the typed name finds it (B21)."""
    name = unicodedata.normalize("NFD", "grössen.log")
    view = InputView.open(store, imported(store, tmp_path, **{name: b"x\n"}), tmp_path / "cache")
    (file,) = view.files("diagnostics")
    assert file.path == unicodedata.normalize("NFC", name)
    assert file.member == name


def test_archives_in_the_archive_are_opened_one_level(store: CheckpointStore, tmp_path: Path) -> None:
    inner = zipped(**{"logs__x.log": b"found\n", "deeper.zip": zipped(y=b"not opened")})
    files = {"old.zip": inner, "broken.zip": b"PK\x03\x04nonsense"}
    view = InputView.open(store, imported(store, tmp_path, **files), tmp_path / "cache")
    paths = [file.path for file in view.files("diagnostics")]
    assert paths == ["broken.zip", "old.zip!/deeper.zip", "old.zip!/logs/x.log"]
    assert view.find("diagnostics", "old.zip!/logs/x.log") is not None
    assert any("broken.zip" in note for note in view.notes("diagnostics"))
    (file,) = [f for f in view.files("diagnostics") if f.path.endswith("x.log")]
    assert (file.raw_path, file.member) == ("inputs/diagnostics/diag.zip", "old.zip!logs/x.log")


def test_the_single_top_folder_of_a_source_is_stripped_and_links_are_named(
    store: CheckpointStore, tmp_path: Path
) -> None:
    (tmp_path / "report.md").write_text(REPORT)
    path = tmp_path / "src.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("pkg-1.0/README", "pkg-1.0/pkg/a.py", "pkg-1.0/pkg/A.py"):
            info = tarfile.TarInfo(name)
            info.size = 2
            archive.addfile(info, io.BytesIO(b"x\n"))
        link = tarfile.TarInfo("pkg-1.0/link")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    head = import_case(store, case_id="C", report=tmp_path / "report.md", source=path)
    view = InputView.open(store, head, tmp_path / "cache")
    assert [file.path for file in view.files("source")] == ["README", "pkg/A.py", "pkg/a.py"]
    assert any("link" in note for note in view.notes("source"))
    root = view.root("source")
    assert root is not None
    assert sorted(p.name for p in root.rglob("*") if p.is_symlink()) == []


def test_a_deleted_or_damaged_cache_is_built_again(store: CheckpointStore, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    head = imported(store, tmp_path, **{"a.log": b"one\n", "b.log": b"two\n"})
    first = InputView.open(store, head, cache)
    root = first.root("diagnostics")
    assert root is not None
    (root / "b.log").unlink()
    again = InputView.open(store, head, cache)
    assert again.read("diagnostics", "b.log") == b"two\n"
    assert again.files("diagnostics") == first.files("diagnostics")
    assert not [p for p in cache.iterdir() if p.name.startswith(".building")]


def open_view(home: str, cache: str, results: multiprocessing.Queue[list[str]]) -> None:
    store = CheckpointStore(Path(home))
    view = InputView.open(store, store.latest("C"), Path(cache))
    results.put([file.path for file in view.files("diagnostics")])


def test_two_builders_at_once_do_no_harm(store: CheckpointStore, tmp_path: Path) -> None:
    names = {f"d__{n}.log": b"line\n" * 2000 for n in range(60)}
    imported(store, tmp_path, **names)
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[list[str]] = context.Queue()
    workers = [
        context.Process(target=open_view, args=(str(tmp_path / "home"), str(tmp_path / "cache"), results))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert found[0] == found[1]
    assert len(found[0]) == 60


def test_rules_of_another_release_are_refused_not_guessed(store: CheckpointStore, tmp_path: Path) -> None:
    head = imported(store, tmp_path, a=b"x")
    case = json.loads(store.read(head, "case/0001/case.json"))
    case["redaction_rules"] = "redaction-v99"
    changed = store.commit(
        head,
        Change(
            event="x",
            put={"case/0002/case.json": json.dumps(case).encode()},
            pointers={"case": "case/0002/case.json"},
            revision=2,
        ),
    )
    with pytest.raises(PackageError) as caught:
        InputView.open(store, changed, tmp_path / "cache")
    assert caught.value.code == "unknown_redaction_rules"


def test_a_case_of_the_first_rules_is_read_under_these(store: CheckpointStore, tmp_path: Path) -> None:
    head = imported(store, tmp_path, **{"a.log": b"password=abc;LeakTail3\n"})
    case = store.read(head, "case/0001/case.json").replace(RULES.encode(), b"redaction-v1")
    changed = store.commit(
        head,
        Change(
            event="x",
            put={"case/0002/case.json": case},
            pointers={"case": "case/0002/case.json"},
            revision=2,
        ),
    )
    view = InputView.open(store, changed, tmp_path / "cache")
    assert b"Leak" not in view.read("diagnostics", "a.log")


def test_a_long_single_line_is_cut_not_held(store: CheckpointStore, tmp_path: Path) -> None:
    data = b"x" * (5 << 20) + b" 93.184.216.34\n"
    view = InputView.open(store, imported(store, tmp_path, **{"one.log": data}), tmp_path / "cache")
    new = view.read("diagnostics", "one.log")
    assert b"93.184" not in new
    assert new.count(b"\n") == 1


def test_the_case_lists_every_input_with_its_role(store: CheckpointStore, tmp_path: Path) -> None:
    head = imported(store, tmp_path, a=b"x")
    assert [(i.path, i.role) for i in load_case(store, head).inputs] == [
        ("inputs/diagnostics/diag.zip", "diagnostics"),
        ("inputs/report/report.md", "report"),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01 4966 \x00",
        b"\xff\xfea\x00b\x00\n\x00c",
        b"\xfe\xff\x00a\x00\n\x00",
        b"\x00a\x00b\x00c\x00d\x00",
    ],
)
def test_a_file_cut_inside_a_wide_character_is_kept_byte_for_byte(
    store: CheckpointStore, tmp_path: Path, data: bytes
) -> None:
    assert opened(store, tmp_path, "odd.dat", data).read("diagnostics", "odd.dat") == data


@pytest.mark.parametrize(
    "data",
    [
        b"2031-01-01 10:00:00 INFO up\n" * 5 + b"\x00" * 400,
        b"[server]\nname = quay\n# a stray zero: \x00\nport = 1\n" + b"key = value\n" * 60,
    ],
)
def test_a_text_with_a_stray_zero_or_the_zeros_of_a_crash_is_text(
    store: CheckpointStore, tmp_path: Path, data: bytes
) -> None:
    view = opened(store, tmp_path, "a.log", data)
    assert not view.files("diagnostics")[0].binary


@pytest.mark.parametrize(
    "data", [b"SQLite format 3\x00" + b"\x00\x01" * 40, b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", b"\x00" * 64]
)
def test_a_binary_file_stays_binary(store: CheckpointStore, tmp_path: Path, data: bytes) -> None:
    assert opened(store, tmp_path, "a.bin", data).files("diagnostics")[0].binary


@pytest.mark.parametrize(
    ("suffix", "packed"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_a_rotated_log_is_opened(
    store: CheckpointStore, tmp_path: Path, suffix: str, packed: Callable[[bytes], bytes]
) -> None:
    text = b"2031-01-01 10:00:00 INFO up, password=Hunter2hunter2\n" * 3
    view = opened(store, tmp_path, f"logs__Server.log.1.{suffix}", packed(text))
    (file,) = view.files("diagnostics")
    assert (file.path, file.binary, file.redacted) == (f"logs/Server.log.1.{suffix}!/Server.log.1", False, 3)
    assert file.member == f"logs/Server.log.1.{suffix}!Server.log.1"
    assert view.read("diagnostics", file.path).startswith(b"2031-01-01 10:00:00 INFO up, password=REDACTED_")


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_compressed_file_that_does_not_unpack_is_kept_and_named(
    store: CheckpointStore, tmp_path: Path, damage: str
) -> None:
    data = gzip.compress(b"2031-01-01 INFO up\n" * 9_000) if damage == "cut" else b"this is no gzip file\n"
    view = opened(store, tmp_path, "a.log.gz", data[:-20] if damage == "cut" else data)
    assert [file.path for file in view.files("diagnostics")] == ["a.log.gz"]
    assert (
        "a.log.gz: archive in an archive cannot be read: the compressed file cannot be unpacked"
        in view.notes("diagnostics")[0]
    )


def test_one_compressed_log_given_by_itself_is_opened(store: CheckpointStore, tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text(REPORT)
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"2031-01-01 INFO up\n"))
    head = import_case(store, case_id="C", report=tmp_path / "report.md", diagnostics=tmp_path / "a.log.gz")
    view = InputView.open(store, head, tmp_path / "cache")
    assert [file.path for file in view.files("diagnostics")] == ["a.log.gz!/a.log"]


def test_what_unpacks_to_more_than_the_limit_is_refused() -> None:
    reader = Unpacked(gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(bytes(1 << 20)))), "a.gz", 1000)
    with pytest.raises(InputError, match="archive_too_big"):
        reader.read(2000)
