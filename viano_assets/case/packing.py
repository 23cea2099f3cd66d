"""Turns a directory that a person names into one deterministic archive.

Stored members in byte order of their paths, fixed times and modes: the same files give the same bytes.
Links and special files are refused, never followed, so that nothing outside the directory gets in.
"""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

from viano_assets.errors import InputError
from viano_assets.package.names import name_problem

_TIME = (1980, 1, 1, 0, 0, 0)
_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"})


def directory_files(root: Path, *, portable: bool = True) -> list[tuple[str, Path, int]]:
    """Return name in the archive, path and size of every file below `root`, ordered by name.

    Version control and dependency folders are left out. `portable` refuses names that only other systems
    cannot hold; it is off for source trees.

    Raises:
        InputError: `special_file`, `unreadable_file`, `invalid_file_name`, `empty_directory`.
    """
    found: list[tuple[str, Path, int]] = []
    for folder, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in [*folders, *names]:
            path = Path(folder) / name
            state = path.lstat()
            relative = path.relative_to(root).as_posix()
            if stat.S_ISDIR(state.st_mode):
                continue
            if not stat.S_ISREG(state.st_mode):
                raise InputError(
                    "special_file",
                    "a link or special file is not imported",
                    where=str(path),
                    hint="replace it by the file it stands for, or remove it",
                )
            found.append((_checked(relative, root, path, portable=portable), path, state.st_size))
    if not found:
        raise InputError(
            "empty_directory", "the directory holds no files", where=str(root), hint="name another"
        )
    return sorted(found)


def left_out(root: Path | None) -> list[str]:
    """Return the folders at the top of a directory that packing leaves out; none of an archive."""
    if root is None or not root.is_dir():
        return []
    return sorted(name for name in _SKIPPED_FOLDERS if (root / name).is_dir())


def _checked(name: str, root: Path, path: Path, *, portable: bool) -> str:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            "invalid_file_name",
            "a file name is not valid UTF-8",
            where=ascii(str(path)),
            hint="rename the file",
        ) from error
    problem = name_problem(name, portable=portable, colons=True)
    if problem is not None:
        raise InputError(
            "invalid_file_name",
            f"the file name {name!r} has {problem}",
            where=str(root),
            hint="rename this file",
        )
    return name


def _refuse(error: OSError) -> None:
    raise InputError(
        "unreadable_file",
        f"cannot be read: {error.strerror}",
        where=str(error.filename),
        hint="check its permissions",
    ) from error


def pack_directory(
    root: Path, target: Path, notify: Callable[[int], None] | None = None, *, portable: bool = True
) -> None:
    """Write the files below `root` into one stored ZIP at `target`; `notify` gets the bytes of each file.

    Raises:
        InputError: see `directory_files`.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, path, size in directory_files(root, portable=portable):
            info = zipfile.ZipInfo(name, _TIME)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.create_system = 3
            try:
                with (
                    path.open("rb") as content,
                    archive.open(info, "w", force_zip64=size >= 1 << 31) as member,
                ):
                    shutil.copyfileobj(content, member, 1 << 20)
            except OSError as error:
                _refuse(error)
            if notify is not None:
                notify(size)
