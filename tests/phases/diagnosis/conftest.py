from __future__ import annotations

import pytest

from tests.support.diagnosis_answers import inputs_of
from tests.support.harbour_case import copy_of, extract_store, finished_store
from tests.support.memory_store import MemoryStore
from viano_assets.phases.diagnosis.inputs import Inputs

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]


@pytest.fixture(scope="session")
def read() -> tuple[Inputs, dict[str, str]]:
    return inputs_of(finished_store(), finished_store().latest("BERTH-3"))


@pytest.fixture(scope="session")
def read_extract() -> tuple[Inputs, dict[str, str]]:
    return inputs_of(extract_store(), extract_store().latest("BERTH-3"))


@pytest.fixture
def prepared(read: tuple[Inputs, dict[str, str]]) -> Prepared:
    return (copy_of(finished_store()), *read)


@pytest.fixture
def prepared_extract(read_extract: tuple[Inputs, dict[str, str]]) -> Prepared:
    return (copy_of(extract_store()), *read_extract)
