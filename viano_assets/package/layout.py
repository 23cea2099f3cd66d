"""Where things stand on disk.

HOME/cases/.lock                 held for the instants in which a case is begun and named
HOME/cases/.new-<token>/         a case being created or imported
HOME/cases/<case>/lock           the case lock, never deleted
HOME/cases/<case>/tmp/           files being written; emptied under the lock
HOME/cases/<case>/objects/<sha>  content of 1 MiB and more, once
HOME/cases/<case>/gens/gNNNNNNNN.zip
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from viano_assets.errors import PackageError
from viano_assets.package.filesystem import DirEntry

TEMPORARY = "tmp"
OBJECT_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
TEMPORARY_NAME = re.compile(r"t-[0-9a-f]{16}", re.ASCII)
STAGING_NAME = re.compile(r"\.new-[0-9a-f]{16}", re.ASCII)
_GENERATION = re.compile(r"g(?!0{8}\.)([0-9]{8}|[1-9][0-9]{8,17})\.zip", re.ASCII)
_ALL_PLAIN = re.compile(r"(?:g(?!0{8})[0-9]{8}\.zip\n)*", re.ASCII)
_LOOKS_MANAGED = re.compile(r"g.*\d.*|.*\.zip.*|.*\.gen", re.IGNORECASE | re.DOTALL)


def generation_name(number: int) -> str:
    """Return the managed name of a generation; numbers beyond eight digits get longer names."""
    return f"g{number:08d}.zip"


class CasePaths(NamedTuple):
    """The places of one case directory."""

    root: str

    @property
    def generations(self) -> str:
        """Folder of the containers."""
        return f"{self.root}/gens"

    @property
    def objects(self) -> str:
        """Folder of the large content."""
        return f"{self.root}/objects"

    @property
    def temporary(self) -> str:
        """Folder of files being written."""
        return f"{self.root}/{TEMPORARY}"

    @property
    def lock(self) -> str:
        """The lock file."""
        return f"{self.root}/lock"

    def generation(self, number: int) -> str:
        """Path of one container."""
        return f"{self.root}/gens/g{number:08d}.zip"

    def object(self, sha256: str) -> str:
        """Path of one object."""
        return f"{self.root}/objects/{sha256}"


class Listing(NamedTuple):
    """The managed names of `gens/`, unsorted, the highest number, and the names that are not ours."""

    names: list[str]
    newest: int
    unknown: list[str]

    @property
    def numbers(self) -> list[int]:
        """The generation numbers, unsorted."""
        return [int(name[1:-4]) for name in self.names]


def read_listing(entries: Iterable[DirEntry], where: str) -> Listing:
    """Sort the names of `gens/` into generations and strangers.

    Names only select a candidate; what a generation is stands in its record.

    Raises:
        PackageError: `malformed_generation_name` for a name that imitates a managed one, or
            `not_a_regular_file` for a managed name that is a link or no file.
    """
    others: list[DirEntry] = []
    plain: list[str] = []
    unknown = []
    for entry in entries:
        name, kind = entry
        if kind == "file":
            plain.append(name)
        else:
            others.append(entry)
    if not _all_plain(plain):
        others += [DirEntry(name, "file") for name in plain]
        plain = []
    for name, kind in others:
        if _GENERATION.fullmatch(name):
            if kind != "file":
                raise PackageError("not_a_regular_file", f"a generation is a {kind}", where=f"{where}/{name}")
            plain.append(name)
        elif _LOOKS_MANAGED.fullmatch(name):
            raise PackageError(
                "malformed_generation_name",
                f"{name!r} is not the name of a generation",
                where=where,
                hint="move the file out of the case directory if it is not Viano's",
            )
        else:
            unknown.append(name)
    newest = max(plain, key=lambda name: (len(name), name), default="")
    return Listing(plain, int(newest[1:-4]) if newest else 0, unknown)


def _all_plain(names: list[str]) -> bool:
    """Say in one match whether all names are generations of eight digits, which they nearly always are."""
    text = "\n".join([*names, ""])
    return text.count("\n") == len(names) and _ALL_PLAIN.fullmatch(text) is not None
