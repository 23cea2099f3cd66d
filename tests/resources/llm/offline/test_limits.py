"""Limits in words, in comparisons and in log lines."""

from __future__ import annotations

import pytest

from resources.llm.providers.offline.bounds import Bound, bounds, comparisons
from resources.llm.providers.offline.findings import Record
from resources.llm.providers.offline.printing import formats
from resources.llm.providers.offline.settings import matches, number_of
from viano_assets.evidence.model import Location


def code(text: str) -> Record:
    """Return a read function."""
    place = Location(path="a.cpp", line_start=1, line_end=text.count("\n") + 1)
    return Record("E1", "source.read", "source", text, "complete", place, ())


@pytest.mark.parametrize(
    ("text", "side", "number", "inside"),
    [
        ("up to 12 wagons", "max", 12, True),
        ("höchstens 12 Wagen", "max", 12, True),
        ("less than 5 loaves", "max", 5, False),
        ("mindestens 18 Jahre", "min", 18, True),
        ("ab 180 Grad", "min", 180, True),
        ("more than 3 books", "min", 3, False),
        ("30 days or more", "min", 30, True),
    ],
)
def test_a_promise_is_read(text: str, side: str, number: float, inside: bool) -> None:
    found = bounds(text)[0]
    assert (found.side, found.number, found.inclusive) == (side, number, inside)
    assert found.admits(number) is inside
    assert found.admits(number + 1) is (side == "min")


@pytest.mark.parametrize(
    ("condition", "admitted"),
    [
        ("if (book.days > limit) {\n        return Result::TooLate;\n    }", [True, True, False]),
        ("if (book.days >= limit) {\n        return Result::TooLate;\n    }", [True, False, False]),
        ("if (limit < book.days)\n        throw Refused();", [True, True, False]),
        ("if (book.days <= cfg.Get(LIMIT)) {\n        return true;\n    }", [True, True, False]),
        ("return book.days < limit;", [True, False, False]),
    ],
)
def test_a_comparison_says_what_it_admits(condition: str, admitted: list[bool]) -> None:
    found = next(comparisons(code(f"    {condition}"), frozenset({"limit", "LIMIT"})))
    assert [found.admits(value, 30) for value in (29, 30, 31)] == admitted


def test_a_branch_that_does_not_tell_is_left_open() -> None:
    found = next(comparisons(code("if (days > limit) {\n    count = 3;\n}"), frozenset({"limit"})))
    assert found.refuses is None


def test_what_a_function_logs() -> None:
    text = 'void f() {\n    LOG_INFO("loan: book %d kept for %d days", book.id, days);\n    x = "short";\n}'
    assert formats(code(text)) == ["loan: book … kept for … days"]


def test_units_and_suffixes() -> None:
    assert number_of("12u") == 12
    assert number_of("12 wagons") is None
    assert matches(number_of("120000"), 2)
    assert not matches(number_of("13"), 12)


PROMISE = Bound("max", 4, inclusive=True, text="at most 4")


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        ("if (berths + 1 >= limit)\n    return Refused;", True),
        ("if (berths + 1 > limit)\n    return Refused;", False),
        ("if (berths >= limit - 1)\n    return Refused;", True),
        ("if (berths > limit + 1)\n    return Refused;", True),
        ("if (ships.size() >= limit)\n    return Refused;", False),
        ("if (ships.size() > limit)\n    return Refused;", False),
        ("if (ships.size() + 1 >= limit)\n    return Refused;", True),
        ("if (ships.size() == limit)\n    return Refused;", False),
        ("if (length >= limit)\n    return Refused;", True),
        ("if (length >= limit && !forced)\n    return Refused;", False),
        ("if (closed || length >= limit)\n    return Refused;", True),
        ("return !(length >= limit);", True),
        ("return !(length > limit);", False),
    ],
)
def test_a_promise_is_broken_only_when_every_meaning_of_the_value_breaks_it(
    condition: str, *, broken: bool
) -> None:
    found = next(comparisons(code(condition), frozenset({"limit"})))
    assert found.breaks(PROMISE, 4) is broken


def test_a_count_kept_in_a_variable_is_a_count() -> None:
    text = "int held = int(ships.size());\nif (held >= limit)\n    return Refused;"
    found = next(comparisons(code(text), frozenset({"limit"})))
    assert found.counted
    assert not found.breaks(PROMISE, 4)


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("if (days > limit)\n    return false;\nreturn true;", True),
        ("if days <= limit:\n    return True\nreturn False", False),
        ("if (days > limit) return false;\nreturn true;", True),
    ],
)
def test_only_the_branch_itself_says_what_it_does(text: str, *, refuses: bool) -> None:
    assert next(comparisons(code(text), frozenset({"limit"}))).refuses is refuses
