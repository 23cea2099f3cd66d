"""Where raw inputs lie in a package and what role a path has."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from viano_assets.case.model import InputFile

Role: TypeAlias = Literal["report", "diagnostics", "source"]
ROLES: tuple[Role, ...] = ("report", "diagnostics", "source")

_ADDED = re.compile(r"inputs/[a-z]+/r[0-9]{4,}/", re.ASCII)


def role_of(path: str) -> Role:
    """Return the role of a raw input; a raw file outside the role folders counts as diagnostics."""
    if path.startswith("inputs/report/"):
        return "report"
    return "source" if path.startswith("inputs/source/") else "diagnostics"


def is_added(path: str) -> bool:
    """True for an input that came with a later revision (`inputs/ROLE/rNNNN/NAME`)."""
    return _ADDED.match(path) is not None


@dataclass(frozen=True, slots=True)
class RawInput:
    """One file on disk as it goes into the package."""

    role: Role
    package_path: str
    path: Path

    def described(self) -> InputFile:
        """Return its entry in the canonical case; reads the file once."""
        with self.path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        return InputFile(
            path=self.package_path, sha256=digest, bytes=self.path.stat().st_size, role=self.role
        )
