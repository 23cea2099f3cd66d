"""A row told apart from its siblings by a moment is no missing kind."""

from __future__ import annotations

import pytest

from resources.llm.providers.offline.data_family import Difference
from resources.llm.providers.offline.findings import Record
from viano_assets.evidence.model import Location


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2031-02-03 18:00:00", True),
        ("2031-02-03", True),
        ("2031-02-03T18:00:00Z", True),
        ("5", False),
        ("20310203", False),
    ],
)
def test_a_moment_is_no_kind(value: str, *, moment: bool) -> None:
    record = Record("E1", "db.siblings", "query", "", "complete", Location(table="visit"), ())
    found = Difference(
        kind="companion kind",
        text="",
        share=1.0,
        extent="full",
        summary=record,
        absence=None,
        row=None,
        example=None,
        missing={"guest": "7", "since": value},
        table="visit",
        named=False,
        keyed=True,
    )
    assert found.momentary is moment
