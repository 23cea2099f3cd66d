"""Times in log lines: where they stand, whether a zone is known, and nothing guessed.

A time without a zone is the writer's local time; it is compared with others of its own file only with that
remark. A clock without a date orders lines within a file and is never given a date.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan",
            "feb",
            "mar mär mrz",
            "apr",
            "may mai",
            "jun",
            "jul",
            "aug",
            "sep",
            "oct okt",
            "nov",
            "dec dez",
        ),
        1,
    )
    for name in names.split()
}
_CLOCK = r"(?P<H>\d{2}):(?P<M>\d{2}):(?P<S>\d{2})(?:[.,:](?P<f>\d{1,9}))?"
_ZONE = r"(?:\s?(?P<z>Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
_LEAD = r"^[\s\[(<\"']{0,4}(?:\w{3,9}[\s:]{1,2})?[\[(]?"
_FORMS = (
    re.compile(_LEAD + r"(?P<Y>\d{4})[-/.](?P<m>\d{2})[-/.](?P<d>\d{2})[T _-]{1,2}" + _CLOCK + _ZONE),
    re.compile(_LEAD + r"(?P<d>\d{2})\.(?P<m>\d{2})\.(?P<Y>\d{4})[T ,]{1,2}" + _CLOCK + _ZONE),
    re.compile(_LEAD + r"(?P<d>\d{1,2})/(?P<b>[A-Za-zä]{3})/(?P<Y>\d{4})[: ]" + _CLOCK + _ZONE),
    re.compile(_LEAD + r"(?P<b>[A-Za-zä]{3})\s+(?P<d>\d{1,2})(?:\s+(?P<Y>\d{4}))?\s+" + _CLOCK + _ZONE),
    re.compile(_LEAD + r"(?P<d>\d{1,2})\s(?P<b>[A-Za-zä]{3})\s(?P<Y>\d{4})\s" + _CLOCK + _ZONE),
    re.compile(r"^[\s\[(]{0,3}(?P<e>1\d{9})(?:(?P<ms>\d{3})|[.,](?P<f>\d{1,9}))?\b"),
    re.compile(r"^[\s\[(]{0,3}" + _CLOCK + r"\b"),
)


_LEAP_YEAR = 1972
"""Stands for the year of a 29 February that names none."""


class Stamp(NamedTuple):
    """A time as it stands in a line.

    `at` is in UTC when `zone_known`, else naive local time with an arbitrary UTC mark; `dated` is False for
    a clock without a date (or without a year), `day` for one without a date.
    """

    text: str
    at: datetime
    zone_known: bool
    dated: bool
    day: bool = True


_NULS = re.compile(r"^(?:\\x00)+")
"""What a crash leaves before the next line, as `safe_text` writes it."""


def parse(line: str) -> Stamp | None:
    """Return the time at the beginning of a line, or None."""
    head = (_NULS.sub("", line) if line.startswith("\\x00") else line)[:120]
    for form in _FORMS:
        found = form.search(head)
        if found is not None:
            stamp = _stamp(found)
            if stamp is not None:
                return stamp
    return None


def parse_bound(text: str) -> Stamp | None:
    """Read a time that somebody asked for: a full time, a date with minutes, a date, or a clock."""
    plain = text.strip()
    for candidate in (plain, f"{plain}:00", f"{plain} 00:00:00"):
        stamp = parse(candidate)
        if stamp is not None:
            return stamp
    return None


def _stamp(found: re.Match[str]) -> Stamp | None:
    part = found.groupdict()
    fraction = int(((part.get("ms") or part.get("f") or "") + "000000")[:6])
    text = found.group().strip(" \t[(<\"'")
    if part.get("e"):
        at = datetime.fromtimestamp(int(part["e"]), UTC).replace(microsecond=fraction)
        return Stamp(text, at, zone_known=True, dated=True)
    month = _MONTHS.get((part.get("b") or "").lower()) if part.get("b") else int(part.get("m") or 1)
    if month is None:
        return None
    zone = _zone(part.get("z"))
    undated = _LEAP_YEAR if (month, part.get("d")) == (2, "29") else 1970
    try:
        at = datetime(
            int(part.get("Y") or undated), month, int(part.get("d") or 1),
            int(part["H"]), int(part["M"]), int(part["S"]), fraction, tzinfo=zone or UTC,
        ).astimezone(UTC)  # fmt: skip
    except (ValueError, OverflowError):
        return None
    return Stamp(text, at, zone is not None, part.get("Y") is not None, part.get("d") is not None)


def _zone(text: str | None) -> timezone | None:
    if not text:
        return None
    if text in {"Z", "UTC", "GMT"}:
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if offset >= timedelta(hours=24):
        return None
    return timezone(-offset if text[0] == "-" else offset)
