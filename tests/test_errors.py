from __future__ import annotations

import inspect
import pickle

import pytest

from tests.support.error_codes import DOCUMENT, WHO, Reader, page, raised
from viano_assets import errors
from viano_assets.errors import VianoError

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, VianoError)]


def test_every_code_is_documented() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "run: python -m tests.support.error_codes"


def test_a_code_is_found_on_its_way_through_functions_and_tables() -> None:
    """Codes that pass through a helper, a table or the command line itself once were not on the page."""
    codes = {item.code for item in raised()}
    helpers = {"archive_truncated", "duplicate_key", "context_too_large", "raw_not_put", "storage_failed"}
    assert codes >= helpers | {"storage_full", "empty_input", "config_invalid_value", "interrupted", "usage"}


def test_every_code_can_be_read_off_the_source() -> None:
    """A block's own code is that of its outcome, a stopped run's that of the disk; the pages list both."""
    assert Reader().unread() == [
        "resources/corpus_runs.py: stopped.code",
        "resources/session.py: overlay.code",
    ]


def test_every_class_is_documented() -> None:
    assert {c.__name__ for c in CLASSES} == set(WHO)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_errors_survive_pickling(kind: type[VianoError]) -> None:
    """Worker processes hand errors over by pickle; the default would lose place and hint."""
    error = kind("a_code", "what happened", where="BUG-1", hint="do this")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, again.message, again.where, again.hint) == (
        kind, "a_code", "what happened", "BUG-1", "do this",
    )  # fmt: skip
    assert again.exit_status in {1, 2, 3}
