"""How the case reads archives: the safe reader of the package, with a policy for each role.

A report or diagnostic archive is read strictly. A source tree may hold links and names that differ only
in letter case, as trees of other systems do: links are left out and named, never followed.
A ':' is accepted everywhere, because logs are named after times; such names are only ever shown and cached.
"""

from __future__ import annotations

import unicodedata
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from viano_assets.package.archive import Archive, ArchivePolicy, is_archive_name, open_archive

__all__ = ["is_archive_name", "open_role_archive", "view_name"]


def open_role_archive(
    source: Path | BinaryIO, role: str, where: str, name_encoding: str | None = None
) -> AbstractContextManager[Archive]:
    """Open an archive of one role; `where` is the name that errors show.

    Raises:
        InputError: see `viano_assets.package.archive`.
    """
    tree = role == "source"
    policy = ArchivePolicy(
        portable_names=not tree, colons=True, skip_special=tree, name_encoding=name_encoding
    )
    return open_archive(source, policy, where=where)


def view_name(name: str) -> str:
    """Return a member's name in Unicode NFC, the form in which the view shows names."""
    return unicodedata.normalize("NFC", name)
