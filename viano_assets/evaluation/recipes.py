"""Recipes: corpora whose cases are built from published source archives (docs/evaluation.md).

A recipe line names package, version and SHA-256 of the archive; the archive is looked up in a cache by its
hash, or fetched with the ordinary client `pip`. Nothing of an archive is built, installed, imported or run:
`pip` wants a package's metadata, and a stand-in for the build backends answers it from `PKG-INFO`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from viano_assets.errors import BlockedError, InputError

CACHE_VARIABLE = "VIANO_SDIST_CACHE"
"""Environment variable that names the folder of the archives."""

DOWNLOAD_SECONDS = 600.0
"""Wall seconds one download may take."""

_ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")

_BACKEND = '''\
"""Answers pip's question for metadata from PKG-INFO, so that no code of the package runs."""

import pathlib


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    fields = {}
    for line in pathlib.Path("PKG-INFO").read_text(encoding="utf-8", errors="replace").splitlines():
        if not line:
            break
        name, colon, value = line.partition(": ")
        if colon and not name.startswith(" "):
            fields.setdefault(name, value.strip())
    folder = "{}-{}.dist-info".format(fields["Name"].replace("-", "_"), fields["Version"])
    target = pathlib.Path(metadata_directory, folder)
    target.mkdir(parents=True, exist_ok=True)
    text = "Metadata-Version: 2.1\\nName: {}\\nVersion: {}\\n".format(fields["Name"], fields["Version"])
    target.joinpath("METADATA").write_text(text, encoding="utf-8")
    return folder
'''
_BACKENDS = ("setuptools.build_meta", "flit_core.buildapi", "hatchling.build", "poetry.core.masonry.api")
_STAND_IN = "from _viano_pkg_info import *\nimport _viano_pkg_info as __legacy__\n"


class RecipeEntry(BaseModel):
    """One line of a recipe.

    `clue` says what the report gives away (`traceback`, `named`, `neither`); `gold` and `fixed_in` are never
    shown to the system under test.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    package: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    version: str = Field(pattern=r"^[0-9][A-Za-z0-9.!+]*$")
    sdist_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    sdist_bytes: int = Field(gt=0)
    top_folder: str
    language: str
    clue: str
    title: str
    report_md: str
    gold: dict[str, Any]
    fixed_in: str | None = None

    def report(self) -> str:
        """Return the tester's report as a Markdown file."""
        return f"# {self.title}\n\n{self.report_md.rstrip()}\n"


def read_entries(path: Path) -> tuple[RecipeEntry, ...]:
    """Read the lines of a recipe.

    Raises:
        InputError: `recipe_invalid` naming file and line, `missing_input`.
    """
    if not path.is_file():
        raise InputError(
            "missing_input", "there is no such file", where=str(path), hint="check `entries` of the corpus"
        )
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(RecipeEntry.model_validate_json(line))
        except ValidationError as error:
            problem = error.errors()[0]
            raise InputError(
                "recipe_invalid",
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}",
                where=f"{path}:{number}",
                hint="see docs/evaluation.md",
            ) from error
    return tuple(found)


def archive_cache(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of downloaded archives: `VIANO_SDIST_CACHE`, else `HOME/cache/archives`."""
    named = environ.get(CACHE_VARIABLE)
    return Path(named) if named else home / "cache" / "archives"


def archive_for(entry: RecipeEntry, cache: Path, *, pip: tuple[str, ...] | None = None) -> Path:
    """Return the source archive of `entry`, fetched when the cache does not hold it.

    Args:
        entry: the recipe line.
        cache: folder of archives, whatever their names; made when missing.
        pip: command that starts the package client; None takes this interpreter's.

    Raises:
        BlockedError: `archive_unavailable` when it cannot be fetched (no network, not in the index).
        InputError: `archive_changed` when the index gives other bytes than the recipe names.
    """
    found = _cached(entry, cache)
    if found is not None:
        return found
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as folder:
        _download(entry, Path(folder), pip or (sys.executable, "-m", "pip"))
        fetched = [path for path in sorted(Path(folder, "got").iterdir()) if path.name.endswith(_ARCHIVES)]
        if len(fetched) != 1:
            raise _unavailable(entry, "the package client brought no source archive")
        if _sha256(fetched[0]) != entry.sdist_sha256:
            raise InputError(
                "archive_changed",
                "the fetched archive is not the one the recipe names",
                where=f"{entry.package}=={entry.version}",
                hint="check which package index the client is set to",
            )
        target = cache / fetched[0].name
        fetched[0].replace(target)
    return target


def _cached(entry: RecipeEntry, cache: Path) -> Path | None:
    if not cache.is_dir():
        return None
    for path in sorted(cache.iterdir()):
        fits = path.name.endswith(_ARCHIVES) and path.is_file() and path.stat().st_size == entry.sdist_bytes
        if fits and _sha256(path) == entry.sdist_sha256:
            return path
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(entry: RecipeEntry, folder: Path, pip: tuple[str, ...]) -> None:
    stand_in = folder / "stand-in"
    _write_stand_in(stand_in)
    command = [
        *pip, "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--use-pep517",
        "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "20", "--quiet",
        "--dest", str(folder / "got"), f"{entry.package}=={entry.version}",
    ]  # fmt: skip
    (folder / "got").mkdir()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DOWNLOAD_SECONDS,
            env={**os.environ, "PYTHONPATH": str(stand_in)},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(entry, f"the package client did not finish ({type(error).__name__})") from error
    if done.returncode != 0:
        raise _unavailable(entry, "the package client could not fetch it")


def _unavailable(entry: RecipeEntry, message: str) -> BlockedError:
    return BlockedError(
        "archive_unavailable",
        message,
        where=f"{entry.package}=={entry.version}",
        hint=f"check the network, or put the archive into the folder that {CACHE_VARIABLE} names",
    )


def _write_stand_in(root: Path) -> None:
    root.mkdir()
    (root / "_viano_pkg_info.py").write_text(_BACKEND, encoding="utf-8")
    for name in _BACKENDS:
        parts = name.split(".")
        folder = root
        for part in parts[:-1]:
            folder = folder / part
            folder.mkdir(exist_ok=True)
            (folder / "__init__.py").touch()
        (folder / f"{parts[-1]}.py").write_text(_STAND_IN, encoding="utf-8")
