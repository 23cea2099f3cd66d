"""Time ranges over logs: which lines stand in them, and which logs reach over them.

A time without a year is taken in the year that brings it into the range, or nearest to what it is compared
with, so that a log reaches over New Year. A clock without a date has the day of the range. Clocks run
backwards (summer time ends, a server is set right): only of a large log whose clock runs forward parts are
left unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from resources.tools.logs.files import TextFile
from resources.tools.logs.times import Stamp, parse, parse_bound

Bounds = tuple[Stamp | None, Stamp | None]
"""Earliest and latest time; None is open."""

_WHOLE = 4 << 20
"""A log up to so many bytes is read whole."""
_SLACK = timedelta(minutes=70)
"""How far a clock may step back between two samples unseen: the hour of summer time, and a little."""
_DAY = timedelta(days=1)
_LONG = timedelta(days=170)
_MOST = 50_000


class Timed(NamedTuple):
    """A stamped line of a file; `at` is its place in the range."""

    line: int
    stamp: Stamp
    at: datetime


def bounds_of(since: str | None, until: str | None) -> Bounds | str:
    """Read a time range as asked for; a text says what is no time."""
    found: list[Stamp | None] = []
    for text in (since, until):
        bound = parse_bound(text) if text is not None else None
        if text is not None and bound is None:
            return f"{text} is no time"
        found.append(bound)
    return found[0], found[1]


def _in_year(at: datetime, year: int) -> datetime | None:
    try:
        return at.replace(year=year)
    except ValueError:
        return None


def _nearest(stamp: Stamp, other: datetime) -> datetime:
    """Return a time, without a year in the one that brings it nearest to another."""
    if stamp.dated:
        return stamp.at
    years = (max(1, other.year + step) for step in (-1, 0, 1))
    found = [at for year in years if (at := _in_year(stamp.at, year)) is not None]
    return min(found or [stamp.at], key=lambda at: (abs(at - other), at))


def order(a: Stamp, b: Stamp) -> int:
    """Compare two times; a clock without a date is compared by the clock alone."""
    if not (a.day and b.day):
        return (a.at.time() > b.at.time()) - (a.at.time() < b.at.time())
    first = a.at if a.dated else _nearest(a, b.at)
    second = b.at if b.dated or not a.dated else _nearest(b, a.at)
    return (first > second) - (first < second)


def _span(low: Stamp, high: Stamp, near: Stamp) -> tuple[datetime, datetime]:
    """Return the bounds as times; those without a year are taken near a time that has one."""
    if low.dated:
        return low.at, _nearest(high, low.at)
    if high.dated:
        return _nearest(low, high.at), high.at
    begin = _nearest(low, near.at) if near.dated else low.at
    end = _in_year(high.at, begin.year) or high.at
    return begin, end if end >= begin else (_in_year(high.at, begin.year + 1) or end)


def placed(stamp: Stamp, bounds: Bounds) -> datetime | None:
    """Return when a line was written if that is within the range, else None."""
    low, high = bounds
    if low is None or high is None:
        bound = low or high
        if bound is None:
            return stamp.at
        inside = order(stamp, bound) >= 0 if high is None else order(stamp, bound) <= 0
        return (_nearest(stamp, bound.at) if stamp.day and bound.day else stamp.at) if inside else None
    if not (low.day and high.day):
        return _by_clock(stamp, low, high)
    begin, end = _span(low, high, stamp)
    if stamp.dated:
        return stamp.at if begin <= stamp.at <= end else None
    if stamp.day:
        years = range(begin.year, end.year + 1)
        found = (_in_year(stamp.at, year) for year in years)
        return next((at for at in found if at is not None and begin <= at <= end), None)
    at = datetime.combine(begin.date(), stamp.at.time(), tzinfo=UTC)
    at = at if at >= begin else at + _DAY
    return at if at <= end else None


def _by_clock(stamp: Stamp, low: Stamp, high: Stamp) -> datetime | None:
    """Place a time in a range of clocks, which may reach over midnight."""
    clock, begin, end = stamp.at.time(), low.at.time(), high.at.time()
    if begin <= end:
        return stamp.at if begin <= clock <= end else None
    if clock >= begin:
        return stamp.at
    return (stamp.at if stamp.day else stamp.at + _DAY) if clock <= end else None


def within(stamp: Stamp, bounds: Bounds) -> bool:
    """Say whether a time stands in a range."""
    return placed(stamp, bounds) is not None


def stamp_before(file: TextFile, line: int) -> Stamp | None:
    """Time of a line, or of the entry it continues (at most 40 lines up)."""
    for text in reversed(file.text(max(1, line - 40), line)):
        stamp = parse(text)
        if stamp is not None:
            return stamp
    return None


def covers(file: TextFile, bounds: Bounds) -> bool:
    """Say whether a log reaches over the whole range asked for; an open end is never covered.

    Nor is a range of days by a log whose clock has none, or of a year by one that names none.
    """
    first, last = file.times
    low, high = bounds
    if first is None or last is None or low is None or high is None:
        return False
    if not (low.day and high.day):
        one_day = (first.day, last.day) == (False, False) or first.at.date() == last.at.date()
        return one_day and first.at.time() <= low.at.time() <= high.at.time() <= last.at.time()
    if not (first.day and last.day):
        return False
    if not first.dated and (low.dated or high.dated):
        return False
    begin, end = _span(low, high, first)
    last_at = _nearest(last, first.at)
    if last_at < first.at and not last.dated:
        last_at = _in_year(last.at, first.at.year + 1) or last_at
    return first.at <= begin and last_at >= end


def _forward(file: TextFile) -> bool:
    """Say whether a log is large and its clock runs forward, as far as samples tell."""
    return len(file.content) > _WHOLE and all(order(a[1], b[1]) <= 0 for a, b in pairwise(file.blocks))


def sampled(file: TextFile, bounds: Bounds) -> bool:
    """Say whether parts of a log stay unread because samples of its clock lie outside the range."""
    begin = file.blocks[0][0] if file.blocks else 0
    return _forward(file) and sum(b - a for a, b in spans(file, bounds)) < len(file.content) - begin


def undated(files: Sequence[TextFile], bounds: Bounds) -> list[str] | None:
    """Return the logs whose times name no date or no year although the range does; None for none."""
    if not any(bound is not None and bound.dated for bound in bounds):
        return None
    return [f.path for f in files if f.times[0] is not None and not f.times[0].dated] or None


def spans(file: TextFile, bounds: Bounds) -> list[tuple[int, int]]:
    """Byte ranges of the file that may hold lines of the time range."""
    blocks = file.blocks
    if not blocks:
        return []
    size = len(file.content)
    if not _forward(file):
        return [(blocks[0][0], size)]
    found = []
    for index, (offset, stamp) in enumerate(blocks):
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        edge = following[1] if following else (file.times[1] or stamp)
        if _may_hold(stamp, edge, bounds):
            found.append((offset, following[0] if following else size))
    return found


def _may_hold(stamp: Stamp, edge: Stamp, bounds: Bounds) -> bool:
    """Say whether a part of a log from `stamp` to `edge` can reach into the range."""
    low, high = bounds
    if order(stamp, edge) > 0:
        return True
    if not all(bound is None or bound.dated for bound in bounds) or not (stamp.dated and edge.dated):
        long = low is not None and high is not None and abs(high.at - low.at) > _LONG
        sure = stamp.day and edge.day and all(bound is None or bound.day for bound in bounds)
        if long or not sure:
            return True
    return (high is None or _nearest(stamp, high.at) - _SLACK <= high.at) and (
        low is None or _nearest(edge, low.at) + _SLACK >= low.at
    )


def between(file: TextFile, bounds: Bounds) -> list[Timed]:
    """Return the stamped lines of a file whose time stands in the range."""
    found: dict[int, Timed] = {}
    for begin, end in spans(file, bounds):
        first = file.line_at(begin)
        for number, text in enumerate(file.text(first, file.line_at(max(begin, end - 1))), first):
            stamp = parse(text)
            at = placed(stamp, bounds) if stamp is not None else None
            if stamp is not None and at is not None:
                found[number] = Timed(number, stamp, at)
        if len(found) > _MOST:
            break
    return list(found.values())


def runs_back(lines: list[Timed]) -> int | None:
    """Return the first line that is earlier than the one before it, or None."""
    return next((after.line for before, after in pairwise(lines) if after.at < before.at), None)


def first_at(file: TextFile, bound: Stamp) -> int | None:
    """Return the first line at or after a time, or None."""
    for begin, end in spans(file, (bound, None)):
        first = file.line_at(begin)
        for number, text in enumerate(file.text(first, file.line_at(max(begin, end - 1))), first):
            stamp = parse(text)
            if stamp is not None and order(stamp, bound) >= 0:
                return number
    return None
