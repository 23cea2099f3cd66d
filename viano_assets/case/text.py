"""Text with the place of every character in the raw bytes.

A report may be UTF-8 with or without a byte order mark, UTF-16 or Windows-1252, with LF, CRLF or CR line
ends, and a single line of it may be damaged. Whatever is read from it later keeps its exact byte span and
line, so that a quote can be found again in the input.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_NEWLINE = re.compile(r"\r\n|\r|\n")
_NEWLINE_BYTES = re.compile(rb"\r\n|\r|\n")
_MOJIBAKE = re.compile("[ÂÃâÅÄ][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]")
_NON_ASCII = re.compile("[^\x00-\x7f]+")
_BINARY_CONTROLS = frozenset(range(32)) - {7, 8, 9, 10, 12, 13, 27}
_STRAY = 500
"""A text may hold one zero in so many bytes."""


class Span(NamedTuple):
    """A place in raw bytes: half-open byte offsets, 1-based inclusive lines."""

    byte_start: int
    byte_end: int
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded text whose characters know where they stand.

    `starts[i]` and `ends[i]` are the byte offsets of character `i`; `line_starts` are the byte offsets
    at which the raw lines begin. Every line end is one newline character, whatever its bytes are.
    `damaged_lines` could not be decoded in the file's encoding and were read as Windows-1252.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    line_starts: Sequence[int]
    encoding: str
    damaged_lines: tuple[int, ...] = ()

    def span(self, start: int, end: int) -> Span:
        """Return the place of the nonempty slice `[start:end]`."""
        first, last = self.starts[start], self.ends[end - 1]
        return Span(first, last, self.line_at(first), self.line_at(max(first, last - 1)))

    def line_at(self, offset: int) -> int:
        """Return the 1-based raw line that holds byte `offset`."""
        return bisect_right(self.line_starts, offset)

    def replace(self, replacements: Sequence[tuple[int, int, str]]) -> Text:
        """Return the text with ordered, disjoint slices replaced; each new character has the old place."""
        if not replacements:
            return self
        parts: list[str] = []
        starts, ends = array("q"), array("q")
        at = 0
        for begin, end, new in replacements:
            parts += [self.text[at:begin], new]
            starts.extend(self.starts[at:begin])
            ends.extend(self.ends[at:begin])
            starts.extend([self.starts[begin]] * len(new))
            ends.extend([self.ends[end - 1]] * len(new))
            at = end
        parts.append(self.text[at:])
        starts.extend(self.starts[at:])
        ends.extend(self.ends[at:])
        return Text("".join(parts), starts, ends, self.line_starts, self.encoding, self.damaged_lines)

    def cut(self, start: int, end: int) -> Text:
        """Return the slice `[start:end]` as a text of its own, its places unchanged."""
        return Text(
            self.text[start:end],
            self.starts[start:end],
            self.ends[start:end],
            self.line_starts,
            self.encoding,
            self.damaged_lines,
        )


def looks_binary(head: bytes) -> bool:
    """True when the first bytes of a file are no text in any encoding we read."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    if b"\x00" in head:
        return _utf16_without_mark(head) is None and not _text_with_nuls(head)
    return sum(byte in _BINARY_CONTROLS for byte in head) > len(head) // 50


def _text_with_nuls(head: bytes) -> bool:
    """True for a log that ends in the zeros of a crash, or a text with a stray zero."""
    body = head.rstrip(b"\x00")
    text = body.replace(b"\x00", b"")
    if not text.strip() or len(body) - len(text) > max(1, len(body) // _STRAY):
        return False
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end < len(text) - 3:
            return False
        decoded = text[: error.start].decode("utf-8")
    return not any(ord(char) in _BINARY_CONTROLS for char in decoded)


def sniff_encoding(data: bytes) -> str:
    """Return `utf-8-sig`, `utf-16-le`, `utf-16-be`, `utf-8` or `cp1252`.

    A file that is UTF-8 but for a few lines counts as UTF-8; its damaged lines are read as cp1252.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    if data.startswith(b"\xff\xfe"):
        return "utf-16-le"
    if data.startswith(b"\xfe\xff"):
        return "utf-16-be"
    guess = _utf16_without_mark(data[:4096])
    if guess is not None:
        return guess
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8" if _mostly_utf8(data) else "cp1252"
    return "utf-8"


def _utf16_without_mark(head: bytes) -> str | None:
    if len(head) < 4 or b"\x00" not in head:
        return None
    shown = head.replace(b"\x00", b"")
    if sum(byte in _BINARY_CONTROLS for byte in shown) > len(shown) // 50:
        return None
    half = len(head) // 2
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > half * 0.4 and even < half * 0.1:
        return "utf-16-le"
    if even > half * 0.4 and odd < half * 0.1:
        return "utf-16-be"
    return None


def _mostly_utf8(data: bytes) -> bool:
    good = bad = 0
    for line in data.splitlines():
        if line.isascii():
            continue
        try:
            line.decode("utf-8")
            good += 1
        except UnicodeDecodeError:
            bad += 1
    return good > 0 and good >= bad


def decode(data: bytes, encoding: str | None = None) -> Text:
    """Decode raw bytes; `encoding` overrides the sniffed one. Never fails: damaged lines are marked."""
    name = encoding or sniff_encoding(data)
    if name.startswith("utf-16"):
        return _decode_utf16(data, name)
    skip = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    into = _Builder()
    line_starts = array("q", [0])
    damaged: list[int] = []
    at = skip
    for match in _NEWLINE_BYTES.finditer(data, skip):
        if _add_line(data[at : match.start()], at, name, into):
            damaged.append(len(line_starts))
        at = into.add_wide("\n", [match.end() - match.start()], match.start())
        line_starts.append(at)
    if _add_line(data[at:], at, name, into):
        damaged.append(len(line_starts))
    return Text(into.text(), into.starts, into.ends, line_starts, name, tuple(damaged))


class _Builder:
    """Collects characters with their places."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.starts = array("q")
        self.ends = array("q")

    def add_narrow(self, text: str, at: int) -> None:
        """Append characters of one byte each."""
        self.parts.append(text)
        self.starts.extend(range(at, at + len(text)))
        self.ends.extend(range(at + 1, at + len(text) + 1))

    def add_wide(self, text: str, widths: Iterable[int], at: int) -> int:
        """Append characters of the given widths in bytes; return the offset behind them."""
        self.parts.append(text)
        for width in widths:
            self.starts.append(at)
            at += width
            self.ends.append(at)
        return at

    def text(self) -> str:
        """Return the text; NUL, which no JSON of ours holds, becomes its picture."""
        return "".join(self.parts).replace("\x00", "\u2400")


def _add_line(raw: bytes, at: int, encoding: str, into: _Builder) -> bool:
    """Append one line; True when it was damaged."""
    if raw.isascii():
        into.add_narrow(raw.decode("ascii"), at)
        return False
    utf8 = encoding.startswith("utf-8")
    if utf8:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            into.add_wide(text, (len(char.encode("utf-8")) for char in text), at)
            return False
    into.add_narrow("".join(_cp1252(byte) for byte in raw), at)
    return utf8


def _cp1252(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


def _decode_utf16(data: bytes, name: str) -> Text:
    skip = 2 if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else 0
    whole = data[skip : skip + (len(data) - skip) // 2 * 2].decode(name, errors="replace")
    into = _Builder()
    line_starts = array("q", [0])
    at = skip
    position = 0
    for match in _NEWLINE.finditer(whole):
        line = whole[position : match.start()]
        at = into.add_wide(line, (4 if ord(char) > 0xFFFF else 2 for char in line), at)
        at = into.add_wide("\n", [2 * (match.end() - match.start())], at)
        line_starts.append(at)
        position = match.end()
    rest = whole[position:]
    into.add_wide(rest, (4 if ord(char) > 0xFFFF else 2 for char in rest), at)
    return Text(into.text(), into.starts, into.ends, line_starts, name)


def coarse(text: str, span: Span, line_starts: Sequence[int], encoding: str) -> Text:
    """Return text that was encoded once more (base64, quoted-printable): all of it stands at `span`."""
    clean = _NEWLINE.sub("\n", text)
    count = len(clean)
    return Text(
        clean,
        array("q", [span.byte_start]) * count,
        array("q", [span.byte_end]) * count,
        line_starts,
        encoding,
    )


def mojibake(text: str) -> str | None:
    """Return the repaired text when parts of it are UTF-8 that was once read as Windows-1252, else None."""
    repaired = _NON_ASCII.sub(_repaired_run, text) if _MOJIBAKE.search(text) is not None else text
    return repaired if repaired != text else None


def _repaired_run(match: re.Match[str]) -> str:
    raw = bytearray()
    for char in match[0]:
        try:
            raw += char.encode("cp1252")
        except UnicodeEncodeError:
            if ord(char) > 0xFF:
                return match[0]
            raw.append(ord(char))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return match[0]
