"""The text files of the diagnostics: kinds, lines by number, encodings, and whether a log is whole.

Files stay as they lie; a UTF-16 file gets a UTF-8 twin in the cache, because the search program needs it.
Line numbers are those of an editor that ends lines at LF.
"""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from resources.tools.logs.times import Stamp, parse
from viano_assets.evidence.text import decode_line, safe_text

Kind = Literal["log", "config", "text", "data"]

_CONFIG = (
    ".conf", ".cfg", ".ini", ".toml", ".yaml", ".yml", ".properties", ".cnf", ".env", ".dist", ".xml",
)  # fmt: skip
_LOG_NAME = re.compile(
    r"(?<![A-Za-z])[Ll]ogs?(?![a-z])|[a-z]Logs?(?![a-z])|(?:^|[._-])(?:trace|console|stdout|stderr|errors?)(?:[._-]|$)"
)
_CUT_NAME = re.compile(
    r"(?:^|[._-])(?:tail|head|last\d*|excerpt|auszug|snippet|part\d*)(?:[._-]|$)", re.IGNORECASE
)
_CUT_TEXT = re.compile(
    rb"(?im)^.{0,20}(?:\[?\.\.\.\]?|<snip>|\[snip\]|\[\.\.\.\s*truncated|log truncated|output truncated|"
    rb"\d+ (?:lines|zeilen) (?:omitted|ausgelassen)).{0,60}$"
)
_BLOCK = 1 << 16
_PIECE = 1 << 24


class Wholeness(NamedTuple):
    """Whether a log is as its writer left it: `cut` with reasons, or `unknown` (rotation leaves no trace)."""

    state: Literal["cut", "unknown"]
    reasons: tuple[str, ...]


class TextFile:
    """One text file.

    Args:
        path: POSIX path in the diagnostics.
        file: where its redacted bytes lie.
        encoding: as detected, `utf-16-le`, `utf-8`, `cp1252`, …
        data: it is also loaded as a table.
        origin: raw input path and hash.
        exact: byte offsets in the view are those of the raw file (nothing was redacted or recoded).
    """

    def __init__(
        self, path: str, file: Path, encoding: str, *, data: bool, origin: tuple[str, str], exact: bool
    ) -> None:
        self.path = path
        self.file = file
        self.encoding = encoding
        self.origin = origin
        self.wide = encoding.startswith("utf-16")
        self.exact = exact and not self.wide
        self._data = data

    @cached_property
    def content(self) -> bytes | mmap:
        """The content, mapped."""
        if not self.file.stat().st_size:
            return b""
        with self.file.open("rb") as handle:
            return mmap(handle.fileno(), 0, access=ACCESS_READ)

    @cached_property
    def foreign(self) -> bool:
        """Whether the file is not UTF-8 throughout, so that patterns must meet its decoded text."""
        if self.encoding == "cp1252":
            return True
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for begin in range(0, len(self.content), _PIECE):
                decoder.decode(self.content[begin : begin + _PIECE])
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return True
        return False

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        found, data = [], self.content
        for begin in range(0, len(data), 1 << 24):
            block = np.frombuffer(data[begin : begin + (1 << 24)], dtype=np.uint8)
            found.append(np.flatnonzero(block == 10).astype(np.int64) + begin)
        ends = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
        if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
            ends = np.append(ends, len(data))
        return ends

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self._ends)

    def line_at(self, offset: int) -> int:
        """Return the number of the line that holds a byte."""
        return int(np.searchsorted(self._ends, offset, side="left")) + 1

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the byte range of lines `first` to `last`, without the last line end."""
        begin = int(self._ends[first - 2]) + 1 if first > 1 else 0
        return begin, int(self._ends[last - 1])

    def raw_lines(self, first: int, last: int) -> list[bytes]:
        """Return lines as bytes, without line ends."""
        begin, end = self.span(first, last)
        return [line.rstrip(b"\r") for line in self.content[begin:end].split(b"\n")]

    def text(self, first: int, last: int) -> list[str]:
        """Return lines as text; a damaged line is read as Windows-1252."""
        lines = self.raw_lines(first, last)
        if self.encoding == "cp1252":
            return [safe_text(line.decode("cp1252", errors="backslashreplace")) for line in lines]
        texts = [decode_line(line)[0] for line in lines]
        if first == 1 and texts:
            texts[0] = texts[0].removeprefix("\ufeff")
        return texts

    def damaged(self, first: int, last: int) -> list[int]:
        """Return the numbers of lines that are not in the file's encoding."""
        if self.encoding == "cp1252":
            return []
        lines = self.raw_lines(first, last)
        return [first + index for index, line in enumerate(lines) if decode_line(line)[1]]

    @cached_property
    def kind(self) -> Kind:
        """What the file is, by name and, when the name does not say, by its first lines."""
        name = PurePosixPath(self.path).name
        if self._data:
            return "data"
        if name.lower().endswith(_CONFIG):
            return "config"
        if _LOG_NAME.search(name):
            return "log"
        head = self.head
        stamped = sum(parse(line) is not None for line in head)
        return "log" if head and stamped >= max(2, len(head) // 3) else "text"

    @cached_property
    def head(self) -> list[str]:
        """The first lines, at most 200."""
        raw = bytes(self.content[:_BLOCK]).split(b"\n")[:200]
        return [decode_line(line.rstrip(b"\r"))[0] for line in raw]

    @cached_property
    def times(self) -> tuple[Stamp | None, Stamp | None]:
        """First and last time in the file."""
        first = next((s for line in self.head if (s := parse(line))), None)
        tail = bytes(self.content[max(0, len(self.content) - _BLOCK) :]).split(b"\n")
        last = next((s for line in reversed(tail) if (s := parse(decode_line(line)[0]))), None)
        return first, last

    @cached_property
    def blocks(self) -> list[tuple[int, Stamp]]:
        """The first stamped line of each 64 KB: its byte offset and time."""
        found: list[tuple[int, Stamp]] = []
        data = self.content
        for begin in range(0, len(data), _BLOCK):
            start = data.find(b"\n", begin) + 1 if begin else 0
            if begin and not start:
                break
            for _ in range(50):
                end = data.find(b"\n", start)
                end = len(data) if end < 0 else end
                stamp = parse(decode_line(data[start : min(end, start + 200)])[0])
                if stamp is not None:
                    found.append((start, stamp))
                    break
                start = end + 1
                if start >= len(data):
                    break
        return found

    @cached_property
    def wholeness(self) -> Wholeness:
        """Judge whether the file was cut; without a sign it stays unknown."""
        reasons = []
        data = self.content
        if _CUT_NAME.search(PurePosixPath(self.path).name):
            reasons.append("its name says that it is a part")
        if len(data) and data[len(data) - 1 :] != b"\n":
            reasons.append("its last line has no end")
        if (
            self.head
            and parse(self.head[0]) is None
            and sum(parse(x) is not None for x in self.head) > len(self.head) // 2
        ):
            reasons.append("it begins inside an entry")
        if _CUT_TEXT.search(data[:_BLOCK]) or _CUT_TEXT.search(data[max(0, len(data) - _BLOCK) :]):
            reasons.append("a line says that something was left out")
        return Wholeness("cut" if reasons else "unknown", tuple(reasons))


def reads_like_text(path: str) -> bool:
    """Say whether the name of a file promises a log, settings or other text."""
    name = PurePosixPath(path).name
    return name.lower().endswith((*_CONFIG, ".txt", ".out")) or _LOG_NAME.search(name) is not None


def wide_twin(file: Path, encoding: str, folder: Path, path: str) -> Path:
    """Return a UTF-8 twin of a UTF-16 file, writing it when it is not there."""
    twin = folder / path
    if twin.is_file():
        return twin
    twin.parent.mkdir(parents=True, exist_ok=True)
    work = twin.with_name(f".{twin.name}.{os.getpid()}")
    with (
        file.open(encoding=encoding, errors="surrogatepass", newline="") as source,
        work.open("w", encoding="utf-8", errors="backslashreplace", newline="") as target,
    ):
        first = True
        while piece := source.read(1 << 20):
            target.write(piece.removeprefix("\ufeff") if first else piece)
            first = False
    work.rename(twin)
    return twin


def same_name(a: str, b: str) -> bool:
    """Compare two paths regardless of the normal form of their letters."""
    return unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b)


def find_file(files: Sequence[TextFile], name: str) -> TextFile | None:
    """Find a file by its path, else by a unique end of it."""
    exact = [file for file in files if same_name(file.path, name)]
    if exact:
        return exact[0]
    ends = [file for file in files if same_name(PurePosixPath(file.path).name, PurePosixPath(name).name)]
    return ends[0] if len(ends) == 1 else None
