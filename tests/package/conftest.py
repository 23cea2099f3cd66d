from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.cases import grown
from viano_assets.package.store import CheckpointStore

Grow: TypeAlias = Callable[..., CheckpointStore]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> CheckpointStore:
    """A store whose case `c` has four generations, an object, and superseded content."""
    made = CheckpointStore(home)
    grown(made, "c")
    return made
