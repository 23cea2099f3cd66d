"""A limit handed on to the function that compares, and a state removed before it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.library_case import NO_FEE, REFUSED, configuration, log, source
from tests.support.railway_case import diagnosed

RETURNED = "book 5127 brought back by reader 881, 0 coins"


def cause_path(view: dict[str, Any]) -> str:
    """Return the file of the first record that carries the cause of a confirmed result."""
    assert view["diagnosis"]["status"] == "confirmed", view["diagnosis"]
    first = view["diagnosis"]["root_cause"]["evidence_ids"][0]
    return str(next(record["path"] for record in view["evidence"] if record["evidence_id"] == first))


def test_the_limit_is_compared_wrongly_where_it_is_handed_to(tmp_path: Path) -> None:
    files = {"conf/library.conf": configuration(), "desk.log": log()}
    view = diagnosed(tmp_path, REFUSED, source("<"), files)
    assert cause_path(view) == "library/rules/span.py"
    text = view["diagnosis"]["root_cause"]["technical_description"]
    assert "`return days < self.longest`" in text
    assert "up to 30" in text


def test_a_right_comparison_is_not_accused(tmp_path: Path) -> None:
    files = {"conf/library.conf": configuration(), "desk.log": log()}
    view = diagnosed(tmp_path, REFUSED, source("<="), files)
    assert view["diagnosis"]["status"] == "inconclusive"


def test_without_a_promise_a_comparison_is_not_accused(tmp_path: Path) -> None:
    files = {"conf/library.conf": configuration(), "desk.log": log()}
    code = source("<") | {"docs/house.md": "# House rules\n\n- Silence in the reading room.\n"}
    view = diagnosed(tmp_path, REFUSED, code, files)
    assert view["diagnosis"]["status"] == "inconclusive"


def test_the_limit_was_lowered(tmp_path: Path) -> None:
    files = {"conf/library.conf": configuration(days=21), "desk.log": log()}
    view = diagnosed(tmp_path, REFUSED, source("<="), files)
    assert cause_path(view) == "conf/library.conf"


@pytest.mark.parametrize("forgets_first", [True, False])
def test_a_state_is_removed_before_it_is_needed(tmp_path: Path, *, forgets_first: bool) -> None:
    files = {"conf/library.conf": configuration(), "desk.log": log(RETURNED)}
    view = diagnosed(tmp_path, NO_FEE, source(forgets_first=forgets_first), files)
    if not forgets_first:
        assert view["diagnosis"]["status"] == "inconclusive"
        return
    assert cause_path(view) == "library/desk/returns.py"
    assert "`self.ledger.forget(book)`" in view["diagnosis"]["root_cause"]["technical_description"]
