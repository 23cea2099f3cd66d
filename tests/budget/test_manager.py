"""Ledger pieces in a package: chained, identified, pointed at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.memory_store import MemoryStore
from viano_assets.budget.ledger import Ledger
from viano_assets.budget.manager import POINTER, BudgetManager, piece_path
from viano_assets.budget.policy import BudgetPolicy
from viano_assets.canonical import canonical_json
from viano_assets.errors import ContractError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore

Any_store = MemoryStore | CheckpointStore


def put(store: Any_store, ledger: Ledger) -> None:
    head = store.latest("L")
    piece = BudgetManager.stage(head, ledger)
    assert piece is not None
    store.commit(head, Change(event="step", put={piece.path: piece.content}, pointers={POINTER: piece.path}))


def filled(store: Any_store) -> BudgetManager:
    store.create("L", Change(event="made", lifecycle="RECEIVED"))
    manager = BudgetManager(store)
    ledger = manager.ledger(store.latest("L"))
    ledger.open("H1", 100, dispatch=0)
    put(store, ledger)
    ledger = manager.ledger(store.latest("L"))
    ledger.reserve("H1", "A1", 10, dispatch=1)
    put(store, ledger)
    return manager


def test_the_ledger_survives_in_pieces_and_reads_the_same_from_disk(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    filled(store)
    snapshot = BudgetManager(CheckpointStore(tmp_path)).snapshot("L")
    assert snapshot.accounts["H1"].balance == 90
    assert dict(snapshot.outstanding) == {"A1": 10}
    assert not snapshot.settled


def test_nothing_new_stages_no_piece() -> None:
    store = MemoryStore()
    manager = filled(store)
    head = store.latest("L")
    assert manager.stage(head, manager.ledger(head)) is None


def test_a_settlement_committed_twice_exists_once() -> None:
    """Two survivors of a crash hold the same head: the second commit loses the generation."""
    store = MemoryStore()
    manager = filled(store)
    head = store.latest("L")
    first, second = manager.ledger(head), manager.ledger(head)
    for ledger in (first, second):
        ledger.settle("A1", BudgetPolicy(), 100, dispatch=2)
    put(store, first)
    piece = BudgetManager.stage(head, second)
    assert piece is not None
    with pytest.raises(Exception, match="stale_head"):
        store.commit(head, Change(event="step", put={piece.path: piece.content}))
    assert manager.snapshot("L").accounts["H1"].rewarded == 7


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("case_id", "OTHER"),
        ("package_id", "other"),
        ("analysis_revision", 2),
        ("piece", 4),
        ("previous", None),
        ("previous", {"path": piece_path(1, 0), "sha256": "0" * 64}),
    ],
)
def test_a_piece_of_another_ledger_is_refused(field: str, value: object) -> None:
    store = MemoryStore()
    manager = filled(store)
    head = store.latest("L")
    data = json.loads(store.read(head, piece_path(1, 1)))
    data[field] = value
    store.commit(head, Change(event="forged", put={piece_path(1, 1): canonical_json(data)}))
    with pytest.raises(ContractError) as caught:
        manager.snapshot("L")
    assert caught.value.code == "ledger_chain"


def test_a_gap_a_lost_pointer_and_garbage_are_refused() -> None:
    for put_path, content, pointers in (
        (piece_path(1, 3), b"{}", {}),
        ("x.json", b"{}", {POINTER: "x.json"}),
        (piece_path(1, 1), b"{}", {}),
    ):
        store = MemoryStore()
        manager = filled(store)
        head = store.latest("L")
        store.commit(head, Change(event="forged", put={put_path: content}, pointers=pointers))
        with pytest.raises(ContractError) as caught:
            manager.snapshot("L")
        assert caught.value.code == "ledger_chain"
