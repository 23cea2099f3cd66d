from __future__ import annotations

import asyncio
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.case.assembler import MAX_SHOWN_BYTES, load_case
from viano_assets.case.intake import import_case
from viano_assets.case.model import SourceType
from viano_assets.case.view import InputView
from viano_assets.errors import InputError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig

REPORT = """# Loading stops half way

**Observed**
The loader stops at record 40. I think the buffer is too small.

**Expected**
All records are loaded.

**Steps**
1. Start the loader.
2. Load `big.csv`.
"""


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "home")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.md"
    path.write_text(REPORT)
    return path


def tree(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in sorted(home.rglob("*")) if p.is_file()}


def test_two_generations_and_every_input_byte_for_byte(
    store: CheckpointStore, report: Path, tmp_path: Path
) -> None:
    source = tmp_path / "src.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        info = tarfile.TarInfo("pkg-1.0/pkg/loader.py")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"x = 1"))
    head = import_case(store, case_id="BUG-1", report=report, source=source)
    assert (head.generation, head.manifest.lifecycle) == (2, "ASSEMBLED")
    assert head.raw_inputs() == {
        "inputs/report/report.md": hashlib.sha256(report.read_bytes()).hexdigest(),
        "inputs/source/src.tar.gz": hashlib.sha256(source.read_bytes()).hexdigest(),
    }
    assert [c.event for c in head.checkpoints] == ["case_received", "case_assembled"]
    case = load_case(store, head)
    assert case.title == "Loading stops half way"
    assert [s.text for s in case.sources if s.type is SourceType.TESTER_ASSUMPTION] == [
        "I think the buffer is too small."
    ]
    view = InputView.open(store, head, tmp_path / "cache")
    assert [file.path for file in view.files("source")] == ["pkg/loader.py"]
    assert view.read("source", "pkg/loader.py") == b"x = 1"


def test_directory_becomes_the_same_archive_every_time(report: Path, tmp_path: Path) -> None:
    folder = tmp_path / "diag"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "b.log").write_text("two")
    (folder / "a.txt").write_text("one")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("left out")
    hashes = set()
    for home in ("one", "two"):
        store = CheckpointStore(tmp_path / home)
        head = import_case(store, case_id="C", report=report, diagnostics=folder)
        raw = head.raw_inputs()
        hashes.add(raw["inputs/diagnostics/diag.zip"])
        with store.open(head, "inputs/diagnostics/diag.zip") as content, zipfile.ZipFile(content) as archive:
            assert archive.namelist() == ["a.txt", "logs/b.log"]
    assert len(hashes) == 1


BROKEN: dict[str, tuple[str | None, Callable[[Path], Path]]] = {
    "missing file": ("missing_input", lambda d: d / "nowhere.md"),
    "empty file": ("empty_report", lambda d: _file(d, "empty.md", b"")),
    "blank file": ("empty_report", lambda d: _file(d, "blank.md", b"\xef\xbb\xbf \r\n\t\n")),
    "binary": ("binary_report", lambda d: _file(d, "report.bin", bytes(range(256)) * 8)),
    "broken zip": (None, lambda d: _file(d, "report.zip", b"PK\x03\x04garbage")),
    "too large": ("report_too_large", lambda d: _file(d, "big.txt", b"word " * (1 << 20))),
}


def _file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", BROKEN)
def test_a_bad_report_is_refused_and_nothing_is_left_behind(
    name: str, store: CheckpointStore, tmp_path: Path
) -> None:
    code, make = BROKEN[name]
    path = make(tmp_path)
    with pytest.raises(InputError) as caught:
        import_case(store, case_id="C", report=path)
    assert code is None or caught.value.code == code
    assert caught.value.where
    assert caught.value.hint
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("case_id", ["/abs/in.zip", "../x", "a/b", "", ".hidden", "a..b", "x" * 65])
def test_a_case_id_that_is_a_path_never_touches_the_file(
    case_id: str, store: CheckpointStore, report: Path
) -> None:
    before = report.read_bytes()
    with pytest.raises(InputError) as caught:
        import_case(store, case_id=case_id, report=report)
    assert caught.value.code == "invalid_case_id"
    assert report.read_bytes() == before
    assert store.case_ids() == []


@pytest.mark.parametrize("case_id", ["CON", "con.txt", "nul", "aux", "COM1.x", "lpt9", "BUG-1."])
def test_an_id_that_another_system_cannot_hold_is_refused_for_new_cases(
    case_id: str, store: CheckpointStore, report: Path
) -> None:
    with pytest.raises(InputError) as caught:
        import_case(store, case_id=case_id, report=report)
    assert (caught.value.code, store.case_ids()) == ("invalid_case_id", [])
    assert caught.value.hint.startswith("choose another id")
    head = store.create(case_id, Change(event="x", lifecycle="RECEIVED"))
    assert store.latest(case_id) == head


TIMED = "logs/2024-05-01T10:00:00.log"


def test_names_with_times_are_taken_from_folders_and_archives(
    store: CheckpointStore, report: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "diag"
    (folder / "logs").mkdir(parents=True)
    (folder / TIMED).write_text("10:00 start\n")
    packed = tmp_path / "d.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(folder / TIMED, TIMED)
    for number, diagnostics in enumerate((folder, packed)):
        head = import_case(store, case_id=f"C{number}", report=report, diagnostics=diagnostics)
        view = InputView.open(store, head, tmp_path / "cache")
        assert view.read("diagnostics", TIMED) == b"10:00 start\n"


@pytest.mark.parametrize("role", ["diagnostics", "source"])
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a\\b.log", "a backslash"),
        ("c:d.log", "a drive"),
        ("a\nb.log", "a control character"),
        ("a\u202eb.log", "an invisible direction mark"),
    ],
)
def test_a_refused_name_in_a_folder_or_archive_is_named_with_what_to_do(
    role: str, name: str, problem: str, store: CheckpointStore, report: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "fine.log").write_text("x")
    (folder / name).write_text("x")
    packed = tmp_path / "d.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(folder / name, name)
    for given, code in ((folder, "invalid_file_name"), (packed, "archive_name")):
        with pytest.raises(InputError) as caught:
            import_case(
                store,
                case_id="C",
                report=report,
                diagnostics=given if role == "diagnostics" else None,
                source=given if role == "source" else None,
            )
        assert caught.value.code == code
        assert repr(name) in str(caught.value)
        assert problem in str(caught.value)
        assert "rename" in caught.value.hint
        assert store.case_ids() == []


def test_letter_case_does_not_make_another_case(store: CheckpointStore, report: Path) -> None:
    import_case(store, case_id="Bug-17", report=report)
    before = tree(store.home)
    with pytest.raises(InputError) as caught:
        import_case(store, case_id="BUG-17", report=report)
    assert caught.value.code == "case_exists"
    assert "viano case reopen Bug-17" in caught.value.hint
    assert tree(store.home) == before


def test_an_archive_broken_in_its_last_member_writes_nothing(
    store: CheckpointStore, report: Path, tmp_path: Path
) -> None:
    """The listing of such an archive is fine; only reading it to the end tells."""
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.log", "fine\n" * 100)
        archive.writestr("b.log", "damaged\n" * 100)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"damaged\n" * 50)
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError):
        import_case(store, case_id="C", report=report, diagnostics=path)
    assert not (tmp_path / "home").exists()


def test_the_source_must_be_a_tree(store: CheckpointStore, report: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        import_case(store, case_id="C", report=report, source=_file(tmp_path, "main.py", b"x = 1"))
    assert caught.value.code == "not_an_archive"


def test_a_link_in_a_directory_is_refused(store: CheckpointStore, report: Path, tmp_path: Path) -> None:
    folder = tmp_path / "diag"
    folder.mkdir()
    (folder / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(InputError) as caught:
        import_case(store, case_id="C", report=report, diagnostics=folder)
    assert caught.value.code == "special_file"


def test_names_in_another_encoding_are_read_when_it_is_named(
    store: CheckpointStore, report: Path, tmp_path: Path
) -> None:
    """An archiver that knows no UTF-8 stores the bytes of its code page, here Japanese (B14)."""
    raw = "新しい.txt".encode("cp932")
    stand_in = "x" * len(raw)
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(stand_in, "hello")
    path.write_bytes(path.read_bytes().replace(stand_in.encode(), raw))
    head = import_case(store, case_id="C", report=report, diagnostics=path, name_encoding="cp932")
    view = InputView.open(store, head, tmp_path / "cache")
    assert [file.path for file in view.files("diagnostics")] == ["新しい.txt"]
    assert head.raw_inputs()["inputs/diagnostics/logs.zip"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("line", "most", "over"),
    [("see record #1{} of pkg/f{}.py\n", 1900, 2700), ("a{} b_{}\n\n", 2600, 3600)],
)
def test_what_an_import_accepts_fits_into_the_context_of_the_first_phase(
    store: CheckpointStore, tmp_path: Path, line: str, most: int, over: int
) -> None:
    def written(count: int) -> Path:
        text = "".join(line.replace("{}", f"{number:06}") for number in range(count))
        return _file(tmp_path, "report.md", text.encode())

    before = tree(tmp_path / "home")
    with pytest.raises(InputError) as refused:
        import_case(store, case_id="C-1", report=written(over))
    assert (refused.value.code, tree(tmp_path / "home")) == ("report_too_large", before)
    import_case(store, case_id="C-1", report=written(most))
    config = InterpretationConfig(planning=PlanningConfig(mode="joint"))
    asyncio.run(CaseInterpreter(store, ScriptedGateway([{}]), config).build("C-1"))
    path = store.latest("C-1").pointer("interpretation_context")
    assert path is not None
    assert 600_000 < len(store.read(store.latest("C-1"), path)) <= MAX_SHOWN_BYTES
    assert config.limits.context_bytes == MAX_SHOWN_BYTES
