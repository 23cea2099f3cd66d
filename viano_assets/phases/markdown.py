"""Makes foreign text harmless in the Markdown and plain-text summaries.

Report text, model text and file names are data: they may not format, link, embed or steer a terminal.
"""

from __future__ import annotations

import re
import unicodedata

_SPECIAL = re.compile(r"[\\`*_\[\]<>&|~$@]|:(?=//)|(?<=[Ww][Ww][Ww])\.")
_LEADING = re.compile(r"^(?:[#+\-=]|\d+(?=[.)]))")
TICKS = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
"""A quote between backticks, any number of them, as in Markdown."""

_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def plain(text: str) -> str:
    """Return the text on one line, with control, format and private characters shown as U+FFFD."""
    flat = " ".join(text.split())
    return "".join("\ufffd" if unicodedata.category(char) in _UNSAFE else char for char in flat)


def words(value: str) -> str:
    """Return a level or kind as words."""
    return value.replace("_", " ")


def escape(text: str) -> str:
    """Return the text as literal inline Markdown on one line: it cannot format, link, embed or list."""
    return _unlisted(_literal(plain(text)))


def inline(text: str) -> str:
    """Return the text like `escape`, with what it quotes between backticks as Markdown code.

    Code is shown to the letter: nothing in it formats, and it cannot end before its own end.
    """
    parts: list[str] = []
    end, flat = 0, plain(text)
    for match in TICKS.finditer(flat):
        if quote := match[2].strip():
            parts += [_literal(flat[end : match.start()]), code(quote)]
            end = match.end()
    parts.append(_literal(flat[end:]))
    return _unlisted("".join(parts))


def code(text: str) -> str:
    """Return the text on one line as Markdown code that ends where the text ends; empty for blank text."""
    flat = plain(text)
    if not flat:
        return ""
    longest = max((len(run) for run in re.findall("`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat[0] == "`" or flat[-1] == "`" else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _literal(flat: str) -> str:
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", flat)


def _unlisted(literal: str) -> str:
    """Return a line that starts no heading, list, quote or rule."""
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
