from __future__ import annotations

import asyncio

import pytest

from tests.support.diagnosis_answers import inputs_of
from tests.support.harbour_case import World, copy_of, investigated
from tests.support.memory_store import MemoryStore
from viano_assets.phases.diagnosis.inputs import Inputs

Prepared = tuple[MemoryStore, Inputs, dict[str, str]]


@pytest.fixture(scope="session")
def finished() -> MemoryStore:
    """A harbour case whose investigation has completed; copy before writing."""
    store = MemoryStore()
    asyncio.run(investigated(store))
    return store


@pytest.fixture(scope="session")
def extract() -> MemoryStore:
    """The same with a filtered step table and no search."""
    store = MemoryStore()
    world = World(filtered=True, unavailable=frozenset({"source.search"}))
    asyncio.run(investigated(store, world=world))
    return store


@pytest.fixture
def prepared(finished: MemoryStore) -> Prepared:
    store = copy_of(finished)
    inputs, names = inputs_of(store, store.latest("BERTH-3"))
    return store, inputs, names


@pytest.fixture
def prepared_extract(extract: MemoryStore) -> Prepared:
    store = copy_of(extract)
    inputs, names = inputs_of(store, store.latest("BERTH-3"))
    return store, inputs, names
