"""Lines that differ only in numbers, quoted text and hexadecimal words are one template."""

from __future__ import annotations

import re
from typing import NamedTuple

from resources.tools.logs.files import TextFile
from viano_assets.evidence.text import decode_line

_DIGITS = bytes(48 if 48 <= n <= 57 else n for n in range(256))
_BLOCK = 32 << 20
_QUOTED = re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\"")
_HEX = re.compile(
    r"(?<![\w#])(?:#x[0-9a-fA-F#]+|(?=[0-9a-fA-F]*#)(?=[0-9#]*[a-fA-F])[0-9a-fA-F#]{6,})(?![\w#])"
)
MAX_BYTES = 256 << 20
"""Most bytes of a file that are mined; it is counted, not timed, so that it is repeatable."""


class Template(NamedTuple):
    """A template with how often and where it stands (1-based lines)."""

    text: str
    number: int
    first: int
    last: int


def shape(line: str) -> str:
    """Return the template of one line."""
    text = re.sub(r"\d+", "#", line.rstrip())
    return _HEX.sub("<hex>", _QUOTED.sub("<text>", text))


def mine(file: TextFile) -> list[Template]:
    """Return every template of a file, in the order of first occurrence."""
    raw: dict[bytes, list[int]] = {}
    number = 0
    data, start = file.content, 0
    end = min(len(data), MAX_BYTES)
    while start < end:
        stop = min(start + _BLOCK, end)
        if stop < len(data):
            cut = data.rfind(b"\n", start, stop) + 1
            stop = cut if cut > start else end
        block = data[start:stop].translate(_DIGITS)
        while b"00" in block:
            block = block.replace(b"0000", b"0").replace(b"00", b"0")
        lines = block.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        for line in lines:
            number += 1
            seen = raw.get(line)
            if seen is None:
                raw[line] = [1, number, number]
            else:
                seen[0] += 1
                seen[2] = number
        start = stop
    merged: dict[str, list[int]] = {}
    for line, (count, first, last) in raw.items():
        text = shape(decode_line(line.rstrip(b"\r"))[0])
        have = merged.setdefault(text, [0, first, last])
        have[0] += count
        have[2] = max(have[2], last)
    return [Template(text, *have) for text, have in merged.items()]
