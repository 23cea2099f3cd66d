"""Takes data out of prose: a picture pasted as base64 has no words, and would be most of the text.

What stands for it says what it was and how long; the place in the raw input stays exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_EMBEDDED = re.compile(
    r"\bdata:(?P<media>[\w.+-]{1,60}/[\w.+-]{1,60})?(?:;[\w=.+-]{1,60}){0,4},(?P<data>[\w+/=%.~-]{200,}+)"
    r"|(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{1000,}+"
)
_STANDS_FOR = re.compile(
    r"\[(?:embedded (?P<media>[\w.+/-]{1,121})|unbroken text), (?P<count>\d{3,9}) characters\]"
)


def without_data(text: str) -> list[tuple[int, int, str]]:
    """Return the slices of `text` that are embedded data, each with the words that stand for it."""
    return [(*match.span(), _words(match)) for match in _EMBEDDED.finditer(text)]


def _words(match: re.Match[str]) -> str:
    what = "unbroken text" if match["data"] is None else f"embedded {match['media'] or 'data'}"
    return f"[{what}, {len(match[0])} characters]"


def data_mentions(text: str) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Yield where words stand for data: half-open slice and attributes (media type, characters)."""
    for match in _STANDS_FOR.finditer(text):
        found = {"characters": match["count"]}
        if match["media"]:
            found["media"] = match["media"]
        yield *match.span(), found
