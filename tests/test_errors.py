from __future__ import annotations

import inspect
import pickle

import pytest

from tests.support.error_codes import DOCUMENT, WHO, page
from viano_assets import errors
from viano_assets.errors import VianoError

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, VianoError)]


def test_every_code_is_documented() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "run: python -m tests.support.error_codes"


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
