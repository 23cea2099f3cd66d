"""Makes foreign text harmless in the Markdown and plain-text summaries.

Report text, model text and file names are data: they may not format, link, embed or steer a terminal.
"""

from __future__ import annotations

import re
import unicodedata

_SPECIAL = re.compile(r"[\\`*_\[\]<>&|~$@]|:(?=//)|(?<=[Ww][Ww][Ww])\.")
_LEADING = re.compile(r"^(?:[#+\-=]|\d+(?=[.)]))")
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def plain(text: str) -> str:
    """Return the text on one line, with control, format and private characters shown as U+FFFD."""
    flat = " ".join(text.split())
    return "".join("\ufffd" if unicodedata.category(char) in _UNSAFE else char for char in flat)


def escape(text: str) -> str:
    """Return the text as literal inline Markdown on one line: it cannot format, link, embed or list."""
    literal = _SPECIAL.sub(lambda match: f"\\{match[0]}", plain(text))
    leading = _LEADING.match(literal)
    if leading is None:
        return literal
    end = leading.end()
    if leading[0][0].isdecimal():
        return f"{literal[:end]}\\{literal[end:]}"
    return f"\\{literal}"


def shorten(text: str, width: int) -> str:
    """Return the text on one line, cut with an ellipsis at `width` characters."""
    flat = plain(text)
    return flat if len(flat) <= width else flat[: max(width - 1, 1)].rstrip() + "…"
