"""Lines of a file as an editor counts them (LF, CRLF and CR, also mixed), and how bytes become text."""

from __future__ import annotations

import codecs
from bisect import bisect_right
from itertools import accumulate

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def encoding_of(data: bytes) -> str:
    """Return the encoding: by byte order mark, else UTF-8 when it decodes, else Windows-1252."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return name
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def decode(data: bytes, encoding: str) -> str:
    """Decode without ever failing; bytes that are no text become U+FFFD."""
    return data.decode(encoding, "replace")


class LineMap:
    """The lines of one file. Lines are 1-based; a final newline starts no further line.

    Offsets are bytes of the file as it lies, except that UTF-16 is taken as its UTF-8 form, which is
    also what the search reports.
    """

    def __init__(self, data: bytes) -> None:
        self.encoding = encoding_of(data)
        self.transcoded = self.encoding.startswith("utf-16")
        if self.transcoded:
            data = data.decode(self.encoding, "replace").removeprefix("\ufeff").encode()
        self.codec = "utf-8" if self.transcoded else self.encoding
        self._data = data
        self._starts = _line_starts(data)

    def __len__(self) -> int:
        return len(self._starts) if self._data else 0

    def line_at(self, offset: int) -> int:
        """Return the line that holds the byte at `offset`."""
        return max(1, bisect_right(self._starts, offset))

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the byte range of the lines `first` to `last`, both included, with their line ends."""
        begin = self._starts[first - 1]
        end = self._starts[last] if last < len(self._starts) else len(self._data)
        return begin, end

    @property
    def data(self) -> bytes:
        """The bytes that offsets count."""
        return self._data

    def cut(self, begin: int, end: int) -> str:
        """Decode a byte range."""
        return decode(self._data[begin:end], self.codec)

    def text(self, first: int, last: int) -> str:
        """Return the lines `first` to `last` exactly, the line end of the last one left off."""
        begin, end = self.span(first, last)
        shown = decode(self._data[begin:end], self.codec)
        if first == 1:
            shown = shown.removeprefix("\ufeff")
        return _trim(shown)


def _line_starts(data: bytes) -> list[int]:
    starts = list(accumulate(map(len, data.splitlines(keepends=True)), initial=0))
    if len(starts) > 1:
        starts.pop()
    return starts


def _trim(text: str) -> str:
    """Take off one line end."""
    if text.endswith("\r\n"):
        return text[:-2]
    return text[:-1] if text.endswith(("\n", "\r")) else text
