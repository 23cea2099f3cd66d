"""Finds out what form a text has and cuts it into passages by author and field."""

from __future__ import annotations

import re

from viano_assets.case.readers.blocks import BlockKind, blocks
from viano_assets.case.readers.model import Passage, Reading
from viano_assets.case.text import Text


def read_format(name: str, text: Text) -> Reading:
    """Return the passages of one file."""
    del name
    return read_text(text)


def read_text(text: Text) -> Reading:
    """Markdown or plain text of one author; the first heading that names no section is the title."""
    reading = Reading()
    body = text.text
    start = 0
    first = next(iter(blocks(body)), None)
    if first is not None and first.kind is BlockKind.HEADING and first.section is None and first.level <= 2:
        reading.passages.append(
            Passage(text.cut(first.start, first.end), is_title=True, whole=True, kind="title")
        )
        line_end = body.find("\n", first.end)
        start = len(body) if line_end < 0 else line_end + 1
        under = re.match(r"[ \t]*[=~-]{3,}[ \t]*(?:\n|$)", body[start:])
        start += under.end() if under is not None else 0
    if body[start:].strip():
        reading.passages.append(Passage(text.cut(start, len(body))))
    return reading
