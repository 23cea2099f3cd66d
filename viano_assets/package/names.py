"""Which names a path in a package or archive may have, and when two names collide.

Names are refused, never repaired: a repair can merge two files in silence (docs/package.md, "Names").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

MAX_DEPTH = 32
"""Most parts a path may have."""

MAX_PART_BYTES = 255
"""Longest part in UTF-8 bytes."""

MAX_PATH_BYTES = 4_096
"""Longest path in UTF-8 bytes."""

_PLAIN = re.compile(
    r"(?!(?:.*/)?(?:con|prn|aux|nul|clock|com[0-9]|lpt[0-9])(?:[./]|$))"
    r"[a-z0-9_][a-z0-9_+-]*(?:[./][a-z0-9_+-]+)*",
    re.ASCII | re.IGNORECASE,
)
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(?:\..*)?",
    re.IGNORECASE | re.DOTALL,
)
_DRIVE = re.compile(r"[A-Za-z]:")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def _text_problem(name: str) -> str | None:
    for char in name:
        if "\ud800" <= char <= "\udfff":
            return "a lone surrogate"
        if char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029":
            return "a control character"
        if char in _BIDI:
            return "an invisible direction mark"
    return None


def _part_problem(part: str, *, portable: bool) -> str | None:
    if part == "":
        return "an empty part"
    if part in {".", ".."}:
        return f"the part {part!r}"
    if len(part.encode("utf-8")) > MAX_PART_BYTES:
        return f"a part longer than {MAX_PART_BYTES} bytes"
    if portable and part[-1] in ". ":
        return "a part that ends with a dot or space"
    if portable and _RESERVED.fullmatch(part):
        return "a reserved device name"
    return None


def name_problem(name: str, *, portable: bool = True, colons: bool = False) -> str | None:
    """Return what is wrong with a relative POSIX path, or None.

    Args:
        name: the path without a trailing slash.
        portable: also refuse what only other systems cannot hold (device names, ':' and trailing dots);
            switched off for source trees that are indexed and never unpacked under their own names.
        colons: accept ':' all the same, as in the times of log names, but not where a drive's stands.
    """
    if len(name) < 200 and _PLAIN.fullmatch(name) and name.count("/") < MAX_DEPTH:
        return None
    parts = name.split("/")
    problem = _text_problem(name) or _form_problem(name, portable=portable and not colons)
    problem = problem or next(
        (p for p in (_part_problem(part, portable=portable) for part in parts) if p), None
    )
    if problem is None and len(parts) > MAX_DEPTH:
        return f"more than {MAX_DEPTH} parts"
    return problem


def _form_problem(name: str, *, portable: bool) -> str | None:
    if name.startswith("/"):
        return "an absolute path"
    if "\\" in name:
        return "a backslash"
    if _DRIVE.match(name) or (portable and ":" in name):
        return "a drive or stream mark ':'"
    if len(name.encode("utf-8")) > MAX_PATH_BYTES:
        return f"more than {MAX_PATH_BYTES} bytes"
    return None


def fold(name: str) -> str:
    """Return the form in which two names that some file system treats as one become equal."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


class NameIndex:
    """A set of paths in which no two name the same file, or a file and its own folder, on any system."""

    def __init__(self, paths: Iterable[str] = (), form: Callable[[str], str] = fold) -> None:
        self._form = form
        self._names: dict[str, str] = {}
        self._folders: set[str] = set()
        for path in paths:
            self.add(path)

    def problem(self, path: str) -> str | None:
        """Return the collision that adding `path` would make, or None; the same path again is none."""
        folded = self._form(path)
        known = self._names.get(folded)
        if known is not None:
            return None if known == path else f"the same name as {known!r} on some systems"
        if folded in self._folders:
            return "the name of a folder of another file"
        folder = next((f for f in _folders(folded) if f in self._names), None)
        return None if folder is None else f"a folder with the name of the file {self._names[folder]!r}"

    def has(self, path: str) -> bool:
        """Say whether exactly this path is in."""
        return self._names.get(self._form(path)) == path

    def add(self, path: str) -> None:
        """Take `path` in."""
        folded = self._form(path)
        if folded not in self._names:
            self._names[folded] = path
            self._folders.update(_folders(folded))


def _folders(path: str) -> Iterator[str]:
    position = path.rfind("/")
    while position > 0:
        yield path[:position]
        position = path.rfind("/", 0, position)
