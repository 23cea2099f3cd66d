"""The harbour case, imported and opened once for the tool tests."""

from __future__ import annotations

import pytest

from resources.tools.registry import CaseToolBox
from tests.support.data_case import toolbox
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore


@pytest.fixture(scope="session")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> tuple[CheckpointStore, Head, CaseToolBox]:
    """Store, head and tools of the harbour case."""
    return toolbox(tmp_path_factory.mktemp("harbour"))


@pytest.fixture(scope="session")
def box(harbour: tuple[CheckpointStore, Head, CaseToolBox]) -> CaseToolBox:
    """The tools of the harbour case."""
    return harbour[2]
