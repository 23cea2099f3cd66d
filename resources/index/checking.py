"""Whether the files of the index still are what was written (docs/index.md says what is checked when)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from resources.index.layout import View, damaged

_SEEN: dict[str, tuple[str, int, int, int]] = {}
"""What this process has hashed: path to hash, size, time of change and inode; a file is never rewritten."""

_SEEN_LIMIT = 100_000


def check_files(root: Path, sums: Mapping[str, str], *, anew: bool = False) -> None:
    """Hash the files that this process has not hashed yet, or changed since; missing ones are passed over.

    Args:
        root: the index.
        sums: file below `root` to its SHA-256.
        anew: hash every file, also those seen before.

    Raises:
        PackageError: `index_damaged` names the first file that is not what was written.
    """
    if len(_SEEN) > _SEEN_LIMIT:
        _SEEN.clear()
    for name, expected in sorted(sums.items()):
        path = root / name
        try:
            with path.open("rb") as file:
                stat = path.stat()
                stamp = (expected, stat.st_size, stat.st_mtime_ns, stat.st_ino)
                if not anew and _SEEN.get(str(path)) == stamp:
                    continue
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise damaged(path, "a file of the index cannot be read") from error
        if found != expected:
            raise damaged(path, "a file of the index is not what was written")
        _SEEN[str(path)] = stamp


def check_present(root: Path, view: View) -> None:
    """Raise `index_damaged` when a file that counts is missing."""
    for name in sorted(view.sums()):
        if not (root / name).is_file():
            raise damaged(root / name, "a file of the index is missing")
