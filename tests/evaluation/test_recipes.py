"""Recipes: archives by hash, from a cache or from the package client, and what is said when there is none."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path

import pytest

from viano_assets.data_files import CONFIG
from viano_assets.errors import BlockedError, InputError
from viano_assets.evaluation.recipes import RecipeEntry, archive_cache, archive_for, read_entries

INFO = b"Metadata-Version: 1.0\nName: tiny-harbour\nVersion: 1.2\nSummary: none\n\nlong text\n"


def sdist(folder: Path) -> Path:
    """Write a source archive whose build code would leave a mark when it ran."""
    folder.mkdir(exist_ok=True)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        setup = b"open('/tmp/viano-ran-setup', 'w').close()\nraise SystemExit('setup.py ran')\n"
        for name, data in (("PKG-INFO", INFO), ("setup.py", setup), ("harbour.py", b"x = 1\n")):
            member = tarfile.TarInfo(f"tiny-harbour-1.2/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path = folder / "tiny-harbour-1.2.tar.gz"
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return path


def entry_for(path: Path) -> RecipeEntry:
    data = path.read_bytes()
    return RecipeEntry(
        id="harbour-1", package="tiny-harbour", version="1.2",
        sdist_sha256=hashlib.sha256(data).hexdigest(), sdist_bytes=len(data), top_folder="tiny-harbour-1.2",
        language="en", clue="neither", title="It breaks", report_md="It stops.",
        gold={"verdict": "defect", "files": ["harbour.py"], "functions": []},
    )  # fmt: skip


def local_pip(folder: Path) -> tuple[str, ...]:
    """The real package client, looking into a folder instead of an index."""
    code = (
        "import sys, pip._internal.cli.main as m;"
        f"sys.exit(m.main(sys.argv[1:] + ['--no-index', '--find-links', {str(folder)!r}]))"
    )
    return (sys.executable, "-c", code)


def test_the_shipped_recipe_reads_with_one_control_in_five() -> None:
    entries = read_entries(CONFIG / "corpora" / "pypi-bugs.jsonl")
    controls = [entry for entry in entries if entry.gold["verdict"] != "defect"]
    assert len(entries) == 45
    assert len(controls) * 5 >= len(entries)
    assert entries[0].report().startswith(f"# {entries[0].title}\n\n")


def test_an_archive_in_the_cache_is_found_by_its_hash_whatever_its_name(tmp_path: Path) -> None:
    path = sdist(tmp_path / "cache")
    kept = path.rename(path.with_name("renamed.tar.gz"))
    assert archive_for(entry_for(kept), tmp_path / "cache", pip=("false",)) == kept


def test_the_client_fetches_and_no_code_of_the_package_runs(tmp_path: Path) -> None:
    mark = Path("/tmp/viano-ran-setup")
    mark.unlink(missing_ok=True)
    path = sdist(tmp_path / "index")
    got = archive_for(entry_for(path), tmp_path / "cache", pip=local_pip(path.parent))
    assert got.parent == tmp_path / "cache"
    assert got.read_bytes() == path.read_bytes()
    assert not mark.exists()
    assert archive_for(entry_for(path), tmp_path / "cache", pip=("false",)) == got


def test_other_bytes_than_the_recipe_names_are_refused(tmp_path: Path) -> None:
    path = sdist(tmp_path / "index")
    entry = entry_for(path).model_copy(update={"sdist_sha256": "0" * 64})
    with pytest.raises(InputError, match="archive_changed"):
        archive_for(entry, tmp_path / "cache", pip=local_pip(path.parent))
    assert list((tmp_path / "cache").iterdir()) == []


def test_without_network_it_is_said_which_archive_is_missing(tmp_path: Path) -> None:
    entry = entry_for(sdist(tmp_path / "elsewhere"))
    with pytest.raises(BlockedError, match="archive_unavailable") as caught:
        archive_for(entry, tmp_path / "cache", pip=("false",))
    assert caught.value.where == "tiny-harbour==1.2"
    assert "VIANO_SDIST_CACHE" in caught.value.hint


def test_the_cache_is_named_by_the_environment_or_lies_in_the_home(tmp_path: Path) -> None:
    assert archive_cache(tmp_path, {}) == tmp_path / "cache" / "archives"
    assert archive_cache(tmp_path, {"VIANO_SDIST_CACHE": "/data/sdists"}) == Path("/data/sdists")


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "recipe.jsonl"
    path.write_text('\n{"id": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="recipe_invalid") as caught:
        read_entries(path)
    assert caught.value.where.endswith("recipe.jsonl:2")
