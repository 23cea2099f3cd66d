"""Files that are not UTF-8: which they are, and where a match in their decoded form stands in their bytes.

A character class, a dot or a comparison without case meets characters, not bytes: in a Windows-1252 file
such a pattern is searched in the decoded text, and its matches are carried back.
"""

from __future__ import annotations

import codecs
import subprocess
from collections.abc import Iterable
from pathlib import Path

from viano_assets.case.text import sniff_encoding

ENCODING = "windows-1252"
_TABLE = "".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in range(256))
"""Windows-1252 as the search program decodes it: undefined bytes are control characters."""
_HEAD = 1 << 16
_CONTROLS = bytes(set(range(32)) - {0, 7, 8, 9, 10, 12, 13, 27})
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SHARE = 50
"""A file is no text when more than one of so many bytes is a control character or NUL."""


def mostly_text(data: bytes) -> bool:
    """Say whether bytes are text, a few NULs and control characters aside."""
    head = data[:_HEAD]
    odd = len(head) - len(head.translate(None, _CONTROLS)) + head.count(0)
    return odd * _SHARE <= len(head)


def is_foreign(data: bytes) -> bool:
    """Say whether bytes are text that is not UTF-8 throughout (nor UTF-16, which the search decodes)."""
    if data.isascii() or data.startswith(_MARKS):
        return False
    try:
        codecs.utf_8_decode(data, "strict", True)  # noqa: FBT003 - the function takes no names
    except UnicodeDecodeError:
        return mostly_text(data)
    return False


def foreign_files(root: Path, program: str, timeout: float) -> tuple[str, ...]:
    """Return the paths of the text files below `root` that are not UTF-8, sorted.

    Raises:
        TimeoutExpired: the tree could not be looked through in time.
    """
    found = _with_bytes(root, program, r"(?-u)[\x80-\xff]", timeout)
    return tuple(path for path in found if is_foreign((root / path).read_bytes()))


def unmarked_wide_files(root: Path, program: str, timeout: float) -> tuple[str, ...]:
    """Return the paths of the files that look like UTF-16 and have no byte order mark, sorted.

    Raises:
        TimeoutExpired: the tree could not be looked through in time.
    """
    return tuple(
        path for path in _with_bytes(root, program, r"(?-u)\x00", timeout) if _is_wide(_head(root / path))
    )


def _is_wide(head: bytes) -> bool:
    return not head.startswith(_MARKS) and sniff_encoding(head).startswith("utf-16")


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(4096)


def _with_bytes(root: Path, program: str, pattern: str, timeout: float) -> list[str]:
    command = [program, "--no-config", "--no-ignore", "--hidden", "--no-follow", "--text", "--glob=!.git"]
    command += ["--files-with-matches", "--null", "-e", pattern, "--", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=timeout, check=False)
    paths = (p.decode("utf-8", "surrogateescape").removeprefix("./") for p in done.stdout.split(b"\0"))
    return sorted(path for path in paths if path)


def carried_back(data: bytes, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Turn byte spans of the decoded form into those of the file; keep the ones on lines that are not UTF-8.

    What stands on a line of UTF-8 is found without decoding, and decoding it another way finds what is not
    there. Both kinds of span count from behind a byte order mark.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    text = codecs.charmap_decode(data, "strict", _TABLE)[0]
    decoded = text.encode()
    kept: list[tuple[int, int]] = []
    at_decoded = at = 0
    for start, end in sorted(spans):
        at += len(decoded[at_decoded:start].decode())
        at_decoded = start
        stop = at + len(decoded[start:end].decode())
        first = data.rfind(b"\n", 0, at) + 1
        last = data.find(b"\n", stop)
        line = data[first : last if last >= 0 else len(data)]
        try:
            line.decode()
        except UnicodeDecodeError:
            kept.append((at, stop))
    return kept
