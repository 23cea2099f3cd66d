"""What lies beside an extract decides how much of the table it is: the most cautious word wins."""

from __future__ import annotations

import json

import pytest

from resources.tools.database.catalog import Extent
from resources.tools.database.manifest import claims_in_comment, claims_in_text, judge

UNKNOWN = Extent(kind="unknown", basis="carrier")
FULL = Extent(kind="full", basis="carrier")
NAMES = ("stage", "stage.csv", "crane", "crane.csv")


@pytest.mark.parametrize(
    ("text", "kind", "predicate", "source"),
    [
        (json.dumps({"tables": [{"table": "stage", "where": "id > 5"}]}), "filtered", "id > 5", None),
        (
            json.dumps({"stage": {"query": "SELECT * FROM stage WHERE a=1", "rows": 12}}),
            "filtered",
            "a=1",
            12,
        ),
        (json.dumps({"file": "db/stage.csv", "rows_at_source": 40}), "filtered", "not stated", 40),
        (json.dumps({"file": "stage.csv", "total_rows": 12}), "filtered", "not stated", 12),
        (json.dumps({"file": "stage.csv", "total_rows": 10}), "full", None, 10),
        (json.dumps({"name": "stage", "query": "SELECT * FROM stage"}), "full", None, None),
        (
            json.dumps({"name": "stage", "query": "SELECT * FROM stage LIMIT 10"}),
            "filtered",
            "LIMIT 10",
            None,
        ),
        (json.dumps({"table": "stage", "complete": True}), "full", None, None),
        (json.dumps({"table": "stage", "completeness": "partial"}), "filtered", "not stated", None),
        (json.dumps({"extracts": {"stage": "WHERE berth = 3"}}), "filtered", "berth = 3", None),
        ("table,where,rows_total\nstage,kind = 2,99\ncrane,,3\n", "filtered", "kind = 2", 99),
        ("stage: 10 of 40 rows (WHERE kind=2)\n", "filtered", "kind=2)", 40),
        ("Tabelle stage: vollständig exportiert\n", "full", None, None),
        ("Tabelle stage: unvollständig, nur Auszug\n", "filtered", None, None),
        ("- stage.csv: complete\n", "full", None, None),
        ("- stage.csv: not complete\n", "filtered", None, None),
        ("the harbour has a stage\n", "unknown", None, None),
        (json.dumps({"table": "crane", "where": "x"}), "unknown", None, None),
        (json.dumps([1, "stage", {"a": {"b": []}}]), "unknown", None, None),
    ],
)
def test_a_manifest_in_any_form(text: str, kind: str, predicate: str | None, source: int | None) -> None:
    claims = [c for c in claims_in_text(text, "manifest", NAMES) if c.name in {"stage", "stage.csv"}]
    extent = judge(claims, 10, UNKNOWN)
    assert extent.kind == kind
    assert extent.rows_at_source == source
    if predicate is not None:
        assert extent.predicate == predicate


def test_the_most_cautious_claim_wins_over_the_carrier() -> None:
    whole = claims_in_text(json.dumps({"table": "stage", "complete": True}), "a", NAMES)
    partial = claims_in_text(json.dumps({"table": "stage", "where": "id<4"}), "b", NAMES)
    for order in (whole + partial, partial + whole):
        extent = judge(order, 10, FULL)
        assert (extent.kind, extent.predicate) == ("filtered", "id<4")
    assert judge([], 10, FULL) is FULL


@pytest.mark.parametrize(
    ("comment", "kind"),
    [
        ("-- WHERE:  entry=5\n", "filtered"),
        ("# SELECT * FROM stage WHERE x ORDER BY y\n", "filtered"),
        ("/* 5 of 40 rows */", "filtered"),
        ("-- stage: Auszug\n", "filtered"),
        ("--\n-- Dumping data for table `stage`\n--\n", "unknown"),
        ("-- Host: localhost    Database: harbour\n", "unknown"),
    ],
)
def test_comments_above_the_rows(comment: str, kind: str) -> None:
    assert judge(claims_in_comment(comment, "w.sql:3", "stage"), 5, UNKNOWN).kind == kind
