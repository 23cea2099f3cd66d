"""The analyst on whole small cases: one report, several truths, through all phases and gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.railway_case import (
    STOPS,
    TOO_LONG,
    VAGUE,
    configuration,
    diagnosed,
    dump,
    log,
    source,
)


def cause(view: dict[str, Any]) -> dict[str, Any]:
    """Return the root cause of a confirmed result."""
    assert view["diagnosis"]["status"] == "confirmed", view["diagnosis"]
    return dict(view["diagnosis"]["root_cause"])


def evidence(view: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a record of the view."""
    return next(dict(record) for record in view["evidence"] if record["evidence_id"] == name)


def test_the_comparison_is_wrong(tmp_path: Path) -> None:
    files = {"conf/rail.conf": configuration(), "server.log": log(12)}
    view = diagnosed(tmp_path, TOO_LONG, source(">="), files)
    found = cause(view)
    assert view["diagnosis"]["confidence"] == "strongly_supported"
    assert evidence(view, found["evidence_ids"][0])["path"] == "src/platform/Admission.cpp"
    assert "`if (train.wagons >= limit) {`" in found["technical_description"]
    assert view["localisation"]["symbols"][0]["symbol"] == "rail::Admission::Check"


def test_the_limit_is_configured(tmp_path: Path) -> None:
    files = {"conf/rail.conf": configuration(10), "server.log": log(12)}
    view = diagnosed(tmp_path, TOO_LONG, source(">"), files)
    found = cause(view)
    assert evidence(view, found["evidence_ids"][0])["path"] == "conf/rail.conf"
    assert "`Platform.MaxWagons = 10`" in found["technical_description"]


def test_the_train_is_too_long(tmp_path: Path) -> None:
    files = {"conf/rail.conf": configuration(), "server.log": log(13)}
    view = diagnosed(tmp_path, TOO_LONG, source(">"), files)
    assert view["diagnosis"]["status"] == "inconclusive"
    assert view["diagnosis"]["inconclusive_kind"] == "intended_behaviour"


def test_nothing_decides_without_the_attempt(tmp_path: Path) -> None:
    view = diagnosed(tmp_path, TOO_LONG, source(">"), {"conf/rail.conf": configuration()})
    assert view["diagnosis"]["inconclusive_kind"] == "insufficient_information"
    requests = view["diagnosis"]["review_actions"]
    assert len(requests) >= 2
    assert any("731" in text and "log" in text for text in requests)


def test_a_row_is_missing(tmp_path: Path) -> None:
    files = {"conf/rail.conf": configuration(), "world.sql": dump((117, 4))}
    view = diagnosed(tmp_path, STOPS, source(), files)
    found = cause(view)
    row = view["localisation"]["rows"][0]
    assert (row["table"], row["key"]) == ("route_stop", {"leg": "4", "route_id": "117"})
    assert found["summary"].startswith("In `route_stop` fehlt eine Zeile")


@pytest.mark.parametrize("where", ["route_id BETWEEN 110 AND 125", "station_id < 400"])
def test_an_extract_proves_only_what_its_condition_covers(tmp_path: Path, where: str) -> None:
    view = diagnosed(tmp_path, STOPS, source(), {"world.sql": dump((117, 4), where)})
    covered = where.startswith("route_id")
    assert (view["diagnosis"]["status"] == "confirmed") is covered
    if not covered:
        assert any("route_stop" in text for text in view["diagnosis"]["review_actions"])


def test_a_script_is_not_registered(tmp_path: Path) -> None:
    view = diagnosed(tmp_path, STOPS, source(unregistered=117), {"world.sql": dump()})
    found = cause(view)
    assert evidence(view, found["evidence_ids"][0])["path"] == "src/route/Scripts.cpp"
    assert "`route_script_117`" in found["summary"]


def test_a_vague_report_is_asked_back_in_its_language(tmp_path: Path) -> None:
    view = diagnosed(tmp_path, VAGUE, source(), {"world.sql": dump()})
    assert view["diagnosis"]["inconclusive_kind"] == "insufficient_information"
    assert len(view["diagnosis"]["review_actions"]) >= 2
    assert all(text.startswith("Bitte") for text in view["diagnosis"]["review_actions"])
