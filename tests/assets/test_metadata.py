"""From plain values to what a page of Dagster shows."""

from __future__ import annotations

import dagster as dg

from viano_assets.assets.metadata import to_metadata


def test_flat_records_of_one_shape_become_a_table() -> None:
    rows = [
        {"evidence_id": "E1", "place": "a.cpp:3", "bytes": 12, "share": 1},
        {"evidence_id": "E2\x07", "place": None, "bytes": 7, "share": 0.5},
    ]
    shown = to_metadata({"evidence": rows})["evidence"]
    assert isinstance(shown, dg.TableMetadataValue)
    assert [(column.name, column.type) for column in shown.schema.columns] == [
        ("evidence_id", "string"),
        ("place", "string"),
        ("bytes", "int"),
        ("share", "float"),
    ]
    assert [record.data["place"] for record in shown.records] == ["a.cpp:3", ""]
    assert shown.records[1].data["evidence_id"] == "E2\N{REPLACEMENT CHARACTER}"


def test_other_lists_stay_json() -> None:
    for rows in ([], ["a"], [{"a": 1}, {"b": 2}], [{"a": [1]}]):
        assert isinstance(to_metadata({"x": rows})["x"], dg.JsonMetadataValue)
