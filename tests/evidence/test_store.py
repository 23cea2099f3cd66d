"""The evidence store: minted once, numbered in order, published in pieces, read back equal."""

from __future__ import annotations

import pytest

from viano_assets.canonical import canonical_json, strict_loads
from viano_assets.errors import ContractError
from viano_assets.evidence.model import Completeness, Draft, Location, Provenance, ToolResult
from viano_assets.evidence.store import (
    MAX_CONTENT_BYTES,
    SHOWN_BYTES,
    EvidenceStore,
    read_piece,
    shown_content,
    usable_absence,
)


def result(
    *contents: str, kind: str = "log", completeness: Completeness = Completeness.COMPLETE
) -> ToolResult:
    provenance = Provenance.model_validate(
        {"kind": kind, "input_path": "inputs/x", "location": Location(path="a.log").model_dump()}
    )
    drafts = tuple(Draft(content=c, provenance=provenance, completeness=completeness) for c in contents)
    return ToolResult(
        tool="log.search",
        arguments={"pattern": "x"},
        scope={"files": 1},
        completeness=completeness,
        drafts=drafts,
    )


def test_ids_count_in_order_and_a_repeat_is_the_same_record() -> None:
    store = EvidenceStore()
    first = store.add(result("one", "two"))
    again = store.add(result("two", "three"))
    assert [m.record.evidence_id for m in first] == ["E1", "E2"]
    assert [(m.record.evidence_id, m.new) for m in again] == [("E2", False), ("E3", True)]
    assert len(store) == 3


def test_other_provenance_is_another_record() -> None:
    store = EvidenceStore()
    store.add(result("one"))
    assert store.add(result("one", kind="config"))[0].record.evidence_id == "E2"


def test_pieces_are_read_back_equal_and_dedupe_goes_on() -> None:
    store = EvidenceStore()
    store.add(result("one", "two"))
    records = read_piece(store.piece(), "p")
    loaded = EvidenceStore(records)
    assert list(loaded.records) == list(store.records)
    assert not loaded.fresh
    assert not loaded.add(result("two"))[0].new
    loaded.add(result("three"))
    assert [r.evidence_id for r in loaded.fresh] == ["E3"]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a\0b", "a\\x00b"),
        ("log \ud83d end", "log \\ud83d end"),
        ("plain ü \U0001f600\r\n", "plain ü \U0001f600\r\n"),
    ],
)
def test_nul_and_lone_surrogates_survive_as_a_visible_escape(text: str, stored: str) -> None:
    """A cell with NUL once made whole threads unresumable: JSON of others refuses it (B18)."""
    store = EvidenceStore()
    record = store.add(result(text))[0].record
    assert record.content == stored
    assert strict_loads(store.piece())
    assert strict_loads(canonical_json(store.shown("E1")))
    assert read_piece(store.piece(), "p") == [record]


def test_a_long_content_is_stored_cut_and_shown_shorter() -> None:
    store = EvidenceStore()
    line = "é" * 99 + "\n"
    record = store.add(result(line * 2_000))[0].record
    assert record.bytes <= MAX_CONTENT_BYTES
    assert record.completeness is Completeness.TRUNCATED
    assert record.cause == "content_cap"
    shown = shown_content(record)
    assert len(shown.encode()) < SHOWN_BYTES + 100
    kept, _, notice = shown.rpartition("\n")
    assert kept == "\n".join(["é" * 99] * len(kept.splitlines()))
    assert str(record.bytes - len(kept.encode())) in notice


@pytest.mark.parametrize(("completeness", "usable"), [(c, c is Completeness.COMPLETE) for c in Completeness])
def test_an_empty_look_counts_only_with_complete_scope(completeness: Completeness, usable: bool) -> None:
    store = EvidenceStore()
    absent = store.add(result("nothing", kind="absence", completeness=completeness))[0].record
    there = store.add(result("something", completeness=completeness))[0].record
    assert usable_absence(absent) is usable
    assert usable_absence(there)


def test_altered_pieces_are_refused() -> None:
    store = EvidenceStore()
    store.add(result("one", "two"))
    value = strict_loads(store.piece())
    assert isinstance(value, dict)
    assert isinstance(value["records"], list)
    swapped = {**value, "records": value["records"][::-1]}
    with pytest.raises(ContractError, match="out of order"):
        EvidenceStore(read_piece(canonical_json(swapped), "p"))
    first = value["records"][0]
    assert isinstance(first, dict)
    forged = {**value, "records": [{**first, "content": "another"}]}
    with pytest.raises(ContractError, match="hash"):
        EvidenceStore(read_piece(canonical_json(forged), "p"))
    for broken in ({"schema": "other"}, {**value, "records": 3}, {**value, "records": [{"x": 1}]}):
        with pytest.raises(ContractError, match="evidence_broken"):
            read_piece(canonical_json(broken), "p")
