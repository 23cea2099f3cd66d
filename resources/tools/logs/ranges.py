"""Time ranges over logs: which lines stand in them, and which logs reach over them."""

from __future__ import annotations

from resources.tools.logs.files import TextFile
from resources.tools.logs.times import Stamp, parse, parse_bound

Bounds = tuple[Stamp | None, Stamp | None]
"""Earliest and latest time; None is open."""


def bounds_of(since: str | None, until: str | None) -> Bounds | str:
    """Read a time range as asked for; a text says what is no time."""
    found: list[Stamp | None] = []
    for text in (since, until):
        bound = parse_bound(text) if text is not None else None
        if text is not None and bound is None:
            return f"{text} is no time"
        found.append(bound)
    return found[0], found[1]


def within(stamp: Stamp, bounds: Bounds) -> bool:
    """Say whether a time stands in a range."""
    low, high = bounds
    return (low is None or order(stamp, low) >= 0) and (high is None or order(stamp, high) <= 0)


def order(a: Stamp, b: Stamp) -> int:
    """Compare two times; a clock without a date is compared by the clock alone."""
    if not (a.dated and b.dated):
        return (a.at.time() > b.at.time()) - (a.at.time() < b.at.time())
    return (a.at > b.at) - (a.at < b.at)


def stamp_before(file: TextFile, line: int) -> Stamp | None:
    """Time of a line, or of the entry it continues (at most 40 lines up)."""
    for text in reversed(file.text(max(1, line - 40), line)):
        stamp = parse(text)
        if stamp is not None:
            return stamp
    return None


def covers(file: TextFile, bounds: Bounds) -> bool:
    """Say whether a log reaches over the whole range asked for; an open end is never covered."""
    first, last = file.times
    low, high = bounds
    if first is None or last is None or low is None or high is None:
        return False
    return order(first, low) <= 0 and order(last, high) >= 0


def spans(file: TextFile, bounds: Bounds) -> list[tuple[int, int]]:
    """Byte ranges of the file that may hold lines of the time range."""
    blocks = file.blocks
    spans = []
    for index, (offset, stamp) in enumerate(blocks):
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        edge = following[1] if following else (file.times[1] or stamp)
        low, high = (stamp, edge) if order(stamp, edge) <= 0 else (edge, stamp)
        if (bounds[1] is None or order(low, bounds[1]) <= 0) and (
            bounds[0] is None or order(high, bounds[0]) >= 0
        ):
            spans.append((offset, following[0] if following else len(file.content)))
    return spans


def between(file: TextFile, bounds: Bounds) -> list[tuple[int, Stamp]]:
    """Return the stamped lines of a file whose time stands in the range."""
    found: list[tuple[int, Stamp]] = []
    for begin, end in spans(file, bounds):
        first = file.line_at(begin)
        for number, text in enumerate(file.text(first, file.line_at(max(begin, end - 1))), first):
            stamp = parse(text)
            if stamp is not None and within(stamp, bounds):
                found.append((number, stamp))
        if len(found) > 50_000:
            break
    return list(dict.fromkeys(found))


def first_at(file: TextFile, bound: Stamp) -> int | None:
    """Return the first line at or after a time, or None."""
    for begin, end in spans(file, (bound, None)):
        first = file.line_at(begin)
        for number, text in enumerate(file.text(first, file.line_at(max(begin, end - 1))), first):
            stamp = parse(text)
            if stamp is not None and order(stamp, bound) >= 0:
                return number
    return None
