"""Makes foreign text harmless in the Markdown and plain-text summaries.

Report text, model text and file names are data: they may not format, link, embed or steer a terminal.
"""

from __future__ import annotations

import re
import unicodedata

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>&~:@$])")
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def plain(text: str) -> str:
    """Return the text on one line, with control, format and private characters shown as U+FFFD."""
    flat = " ".join(text.split())
    return "".join("\ufffd" if unicodedata.category(char) in _UNSAFE else char for char in flat)


def escape(text: str) -> str:
    """Return the text as literal Markdown on one line."""
    return _SPECIAL.sub(r"\\\1", plain(text))


def shorten(text: str, width: int) -> str:
    """Return the text on one line, cut with an ellipsis at `width` characters."""
    flat = plain(text)
    return flat if len(flat) <= width else flat[: max(width - 1, 1)].rstrip() + "…"
