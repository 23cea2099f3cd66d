"""The development cases on published archives: found, unpacked and indexed once.

`VIANO_BUG_CASES` names the JSON lines file (default `../shared/cases/pypi-bugs.jsonl`),
`VIANO_BUG_ARCHIVES` a folder with the source archives; what is missing there is fetched with pip,
without running anything of the archive. `VIANO_BUG_WORK` keeps trees and indices between runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from resources.tools.source.reader import SourceIndex

_BACKENDS = (
    "setuptools/build_meta.py",
    "flit_core/buildapi.py",
    "hatchling/build.py",
    "poetry/core/masonry/api.py",
)
_BACKEND = """import os

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    head = open("PKG-INFO", encoding="utf-8", errors="replace").read().split("\\n\\n", 1)[0].split("\\n")
    field = dict(line.split(": ", 1) for line in head if ": " in line and not line.startswith(" "))
    name, version = field["Name"].strip(), field["Version"].strip()
    info = "%s-%s.dist-info" % (name.replace("-", "_"), version)
    os.makedirs(os.path.join(folder, info), exist_ok=True)
    with open(os.path.join(folder, info, "METADATA"), "w") as out:
        out.write("Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n" % (name, version))
    return info
"""


class BugCase(NamedTuple):
    """One case: the report as a person would hand it in, and the answer."""

    id: str
    package: str
    version: str
    clue: str
    language: str
    text: str
    top_folder: str
    sha256: str
    verdict: str
    files: frozenset[str]
    functions: frozenset[str]


def cases_path() -> Path:
    """Return the file of the cases."""
    return Path(os.environ.get("VIANO_BUG_CASES", "../shared/cases/pypi-bugs.jsonl"))


def load_cases() -> list[BugCase]:
    """Return every case, controls included."""
    result = []
    for line in cases_path().read_text(encoding="utf-8").splitlines():
        raw: dict[str, Any] = json.loads(line)
        gold = raw["gold"]
        result.append(
            BugCase(
                raw["id"],
                raw["package"],
                raw["version"],
                raw["clue"],
                raw["language"],
                f"# {raw['title']}\n\n{raw['report_md']}",
                raw["top_folder"],
                raw["sdist_sha256"],
                gold["verdict"],
                frozenset(gold["files"]),
                frozenset(gold["functions"]),
            )
        )
    return result


@cache
def _work() -> Path:
    named = os.environ.get("VIANO_BUG_WORK")
    return Path(named) if named else Path(tempfile.mkdtemp(prefix="viano-bugs-"))


@cache
def _archives() -> dict[str, Path]:
    folder = Path(os.environ.get("VIANO_BUG_ARCHIVES", _work() / "archives"))
    folder.mkdir(parents=True, exist_ok=True)
    return {hashlib.sha256(p.read_bytes()).hexdigest(): p for p in sorted(folder.glob("*.tar.gz"))}


def archive(case: BugCase) -> Path:
    """Return the archive of a case, fetched when it is not there; its hash is checked."""
    known = _archives()
    if case.sha256 not in known:
        _fetch(case)
        _archives.cache_clear()
        known = _archives()
    return known[case.sha256]


def _fetch(case: BugCase) -> None:
    folder = Path(os.environ.get("VIANO_BUG_ARCHIVES", _work() / "archives"))
    with tempfile.TemporaryDirectory() as standin:
        backend = Path(standin) / "_pkginfo_backend.py"
        backend.write_text(_BACKEND)
        for name in _BACKENDS:
            target = Path(standin) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            for parent in target.relative_to(standin).parents[:-1]:
                (Path(standin) / parent / "__init__.py").touch()
            target.write_text("from _pkginfo_backend import *\nimport _pkginfo_backend as __legacy__\n")
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
            "--no-build-isolation", "--use-pep517", "-d", str(folder), f"{case.package}=={case.version}",
        ]  # fmt: skip
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": standin})


def tree(case: BugCase) -> Path:
    """Return the unpacked tree of a case, its single top folder stripped."""
    root = _work() / "trees" / case.top_folder
    if not root.is_dir():
        with tarfile.open(archive(case)) as packed:
            packed.extractall(_work() / "trees", filter="data")
    return root


def open_index(case: BugCase) -> SourceIndex:
    """Open the index of a case's tree."""
    return SourceIndex.open(tree(case), _work() / "indices", case.sha256)


def corpus_sha256() -> str:
    """Return the hash of the file of the cases."""
    return hashlib.sha256(cases_path().read_bytes()).hexdigest()
