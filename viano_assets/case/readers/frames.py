"""Says of every frame of a trace how far it is from where the program stopped.

Languages print traces in two directions. The text before a trace may say which ("most recent call last"),
the place of the error line often does, and the language does otherwise.
"""

from __future__ import annotations

import re
from dataclasses import replace

from viano_assets.case.readers.model import Piece

_LAST = re.compile(
    r"innermost last|most recent call last|innerste\w* (?:zuletzt|unten)|deepest last|last call last"
    r"|von außen nach innen",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"innermost first|most recent call first|innerste\w* (?:zuerst|oben)|deepest first|von innen nach außen",
    re.IGNORECASE,
)


def with_depths(pieces: list[Piece], text: str) -> list[Piece]:
    """Return the pieces with `depth` set on stack frames: 0 where the program stopped."""
    traces: dict[str, list[int]] = {}
    for at, piece in enumerate(pieces):
        if piece.kind == "stack_frame" and "trace" in piece.attributes:
            traces.setdefault(piece.attributes["trace"], []).append(at)
    result = list(pieces)
    for places in traces.values():
        ordered = places[::-1] if _innermost_last(pieces, places, text) else places
        for depth, at in enumerate(ordered):
            result[at] = replace(pieces[at], attributes={**pieces[at].attributes, "depth": str(depth)})
    return result


def _innermost_last(pieces: list[Piece], places: list[int], text: str) -> bool:
    first, last = pieces[places[0]], pieces[places[-1]]
    before = text[max(0, first.start - 300) : first.start]
    if _LAST.search(before):
        return True
    if _FIRST.search(before):
        return False
    if first.attributes.get("language") == "python":
        return True
    following = (pieces[at] for at in range(places[-1] + 1, len(pieces)))
    after = next((piece for piece in following if piece.start >= last.end), None)
    listed = first.text.lstrip()[:1] in "`'\"-*"
    return listed and after is not None and after.kind == "error" and after.start - last.end < 10
