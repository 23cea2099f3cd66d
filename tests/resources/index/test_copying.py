"""`viano index snapshot`: a copy is whole, or the reason is said, nothing is left, no index is blamed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from resources.evidence_index import EvidenceIndex
from tests.support.commands import COMMAND, tree, viano
from tests.support.index_units import unit, unit_rows
from tests.support.small_disk import on_a_small_disk


@pytest.fixture
def home(tmp_path: Path) -> Path:
    index = EvidenceIndex(tmp_path / "home")
    for number in range(5):
        index.publish(unit(f"C-{number}"), 1, unit_rows(f"C-{number}", 1))
    return tmp_path / "home"


@pytest.mark.parametrize("size", ["16k", "64k", "256k", "512k"])
def test_a_full_disk_is_said_and_nothing_is_left(home: Path, tmp_path: Path, size: str) -> None:
    """A file without any table once was "Wrote", its log stayed, and a sound index was made again."""
    before = {name: (home / "index" / name).stat().st_mtime_ns for name in tree(home / "index")}
    command = [*COMMAND, "index", "snapshot", str(tmp_path / "disk" / "x.duckdb"), "--home", str(home)]
    said = on_a_small_disk(size, tmp_path / "disk", *command).splitlines()
    assert said[0].startswith("error[target_not_writable]: ")
    assert "No space left" in said[0]
    assert said[1].startswith("hint: ")
    assert said[2:] == ["status 2"]
    assert {name: (home / "index" / name).stat().st_mtime_ns for name in tree(home / "index")} == before


def test_the_disk_that_suffices_gets_the_whole_file(home: Path, tmp_path: Path) -> None:
    code = (
        "import sys, duckdb; from pathlib import Path; from resources.evidence_index import EvidenceIndex;"
        "at = EvidenceIndex(Path(sys.argv[1])).snapshot(Path(sys.argv[2]));"
        "print(duckdb.connect(at, read_only=True).execute('SELECT count(*) FROM evidence').fetchone()[0])"
    )
    target = tmp_path / "disk" / "x.duckdb"
    said = on_a_small_disk(
        "32m", tmp_path / "disk", sys.executable, "-c", code, str(home), str(target)
    ).splitlines()
    assert said == ["15", "status 0", "x.duckdb"]


@pytest.mark.parametrize("target", ["/proc/s.duckdb", ""])
def test_a_place_that_takes_no_file_is_refused(home: Path, target: str) -> None:
    before = tree(home / "index")
    answer = viano(home, "index", "snapshot", target)
    assert (answer.status, answer.error) == (2, "target_not_writable")
    assert tree(home / "index") == before
