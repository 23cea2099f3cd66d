"""Where things stand on disk.

HOME/cases/.lock                 held for the instant in which a case gets its name
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
    """The generations found, unsorted, and the names that are not ours."""

    numbers: list[int]
    unknown: list[str]


def read_listing(entries: Iterable[DirEntry], where: str) -> Listing:
    """Sort the names of `gens/` into generations and strangers.

    Names only select a candidate; what a generation is stands in its record.

    Raises:
        PackageError: `malformed_generation_name` for a name that imitates a managed one, or
            `not_a_regular_file` for a managed name that is a link or no file.
    """
    numbers = []
    unknown = []
    for name, kind in entries:
        match = _GENERATION.fullmatch(name)
        if match is not None:
            if kind != "file":
                raise PackageError("not_a_regular_file", f"a generation is a {kind}", where=f"{where}/{name}")
            numbers.append(int(match[1]))
        elif _LOOKS_MANAGED.fullmatch(name):
            raise PackageError(
                "malformed_generation_name",
                f"{name!r} is not the name of a generation",
                where=where,
                hint="move the file out of the case directory if it is not Viano's",
            )
        else:
            unknown.append(name)
    return Listing(numbers, unknown)
