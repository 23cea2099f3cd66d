"""Times at the beginning of a line: many forms, no guessing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.tools.logs.times import parse, parse_bound


@pytest.mark.parametrize(
    ("line", "iso", "zone", "dated"),
    [
        ("2031-04-01 10:00:00 x", "2031-04-01T10:00:00+00:00", False, True),
        ("2031-04-01_10:00:00 ERROR [sql] x", "2031-04-01T10:00:00+00:00", False, True),
        ("[2031-04-01T10:00:00.25Z] x", "2031-04-01T10:00:00.250000+00:00", True, True),
        ("2031-04-01T10:00:00,123+0200 x", "2031-04-01T08:00:00.123000+00:00", True, True),
        ("INFO 2031/04/01 10:00:00 x", "2031-04-01T10:00:00+00:00", False, True),
        ("01.04.2031 10:00:00 x", "2031-04-01T10:00:00+00:00", False, True),
        ("01/Apr/2031:10:00:00 +0000 x", "2031-04-01T10:00:00+00:00", True, True),
        ("Apr  1 10:00:00 host x", "1970-04-01T10:00:00+00:00", False, False),
        ("1932868800 x", "2031-04-02T04:00:00+00:00", True, True),
        ("10:00:00 x", "1970-01-01T10:00:00+00:00", False, False),
    ],
)
def test_forms(line: str, iso: str, zone: bool, dated: bool) -> None:
    stamp = parse(line)
    assert stamp is not None
    assert (stamp.at.isoformat(), stamp.zone_known, stamp.dated) == (iso, zone, dated)


@pytest.mark.parametrize(
    "line", ["", "  at foo (x.cpp:10:22)", "version 1.2.3", "2031-13-45 10:00:00", "25:00:00 x"]
)
def test_what_is_no_time(line: str) -> None:
    assert parse(line) is None


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    parse(text)
    parse_bound(text)
