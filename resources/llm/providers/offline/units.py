"""Units of numbers: a report's "100 minutes" is not what a setting in milliseconds was set to."""

from __future__ import annotations

import re

_UNITS = {
    "ms": "ms", "millis": "ms", "milliseconds": "ms", "millisekunden": "ms",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "sekunde": "s", "sekunden": "s",
    "min": "min", "mins": "min", "minute": "min", "minutes": "min", "minuten": "min",
    "hour": "h", "hours": "h", "stunde": "h", "stunden": "h", "uhr": "h",
    "day": "d", "days": "d", "tag": "d", "tage": "d", "tagen": "d",
    "percent": "%", "pct": "%", "prozent": "%", "%": "%",
    "kb": "kb", "mb": "mb", "gb": "gb", "bytes": "b", "byte": "b",
}  # fmt: skip
"""Words of English, German and of setting names, with the unit they mean."""

_TIMES = frozenset({"ms", "s", "min", "h", "d"})

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def unit_of_name(name: str) -> str | None:
    """Return the unit a setting's name ends with (`World.TickMs`), or None."""
    words = _WORD.findall(name)
    return _UNITS.get(words[-1].lower()) if words else None


def units_of_number(text: str, number: str) -> set[str | None]:
    """Return the units that follow `number` in a text; None stands for an occurrence without one."""
    pattern = re.compile(rf"(?<![\w.,]){re.escape(number)}(?![\w.,]*\d)\s*[- ]?(%|[A-Za-zÄÖÜäöüß]+)?")
    return {_UNITS.get((match[1] or "").lower()) for match in pattern.finditer(text)}


def may_mean(name: str, text: str, number: str) -> bool:
    """Say whether `number` in the text may be a value of the setting `name`, as far as units tell."""
    unit = unit_of_name(name)
    found = units_of_number(text, number)
    return unit is None or not found or unit in found or None in found


def may_convert(name: str, text: str, number: float) -> bool:
    """Say whether a number of the text can be the setting `name` in another unit: no percent is a time."""
    unit, found = unit_of_name(name), units_of_number(text, f"{number:g}")
    if unit is None or not found or None in found:
        return True
    return any(other == unit or {other, unit} <= _TIMES for other in found)
