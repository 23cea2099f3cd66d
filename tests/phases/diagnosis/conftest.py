from __future__ import annotations

import pytest

from tests.support.diagnosis_answers import inputs_of
from tests.support.harbour_case import copy_of, extract_store, finished_store
from tests.support.memory_store import MemoryStore
from viano_assets.phases.diagnosis.inputs import Inputs

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]


@pytest.fixture
def prepared() -> Prepared:
    store = copy_of(finished_store())
    inputs, names = inputs_of(store, store.latest("BERTH-3"))
    return store, inputs, names


@pytest.fixture
def prepared_extract() -> Prepared:
    store = copy_of(extract_store())
    inputs, names = inputs_of(store, store.latest("BERTH-3"))
    return store, inputs, names
