"""Stored evidence is checked against the inputs: what still stands, what does not, and why."""

from __future__ import annotations

import pytest

from resources.tools.registry import CaseToolBox
from tests.support.data_case import toolbox
from viano_assets.canonical import sha256_hex
from viano_assets.evidence.model import EvidenceRecord
from viano_assets.evidence.store import EvidenceStore, piece_path
from viano_assets.evidence.verify import verify_evidence, verify_records
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore

LOOKS: list[tuple[str, dict[str, object]]] = [
    ("case.read", {"source_id": "S1"}),
    ("source.read", {"path": "stage.cpp", "line_start": 3, "line_end": 6}),
    ("source.search", {"pattern": "contract_tow"}),
    ("db.schema", {"table": "contract"}),
    ("db.query", {"sql": "SELECT count(*) AS n, stage FROM contract_stage GROUP BY stage ORDER BY stage"}),
    ("db.rows", {"table": "contract_stage", "where": [{"column": "contract_id", "op": "=", "value": 7}]}),
    ("db.rows", {"table": "contract_stage", "where": [{"column": "id", "op": "=", "value": 74}]}),
    ("db.id", {"id": 7}),
    ("db.neighbours", {"table": "contract", "key": {"id": 7}}),
    ("db.siblings", {"table": "contract", "key": {"id": 7}}),
    ("log.search", {"pattern": "stage 4 of contract 7"}),
    ("log.search", {"pattern": "nowhere"}),
    ("log.window", {"file": "server.conf"}),
    ("log.templates", {}),
    ("log.timeline", {"since": "2031-04-01 10:00:00", "until": "2031-04-01 10:02:00"}),
    ("log.entity", {"id": "7"}),
    ("log.capability", {"level": "debug"}),
]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> tuple[CheckpointStore, Head, CaseToolBox]:
    return toolbox(tmp_path_factory.mktemp("harbour"))


@pytest.fixture(scope="module")
def collected(case: tuple[CheckpointStore, Head, CaseToolBox]) -> EvidenceStore:
    store = EvidenceStore()
    for tool, arguments in LOOKS:
        result = case[2].run(tool, arguments)
        assert result.cause not in {"arguments", "tool_failed"}, (tool, result.drafts[0].content)
        store.add(result)
    return store


def test_everything_that_was_read_still_stands(
    case: tuple[CheckpointStore, Head, CaseToolBox], collected: EvidenceStore
) -> None:
    assert verify_records(collected.records, case[1], case[2]) == ()


def _forged(record: EvidenceRecord) -> EvidenceRecord:
    content = record.content.replace("a", "e", 1).replace("1", "2", 1)
    return record.model_copy(update={"content": content, "content_sha256": sha256_hex(content.encode())})


def test_a_changed_character_in_any_record_is_noticed(
    case: tuple[CheckpointStore, Head, CaseToolBox], collected: EvidenceStore
) -> None:
    for record in collected.records:
        broken = verify_records([_forged(record)], case[1], case[2])
        assert [b.evidence_id for b in broken] == [record.evidence_id], record.content


def test_hash_and_input_are_checked_first(
    case: tuple[CheckpointStore, Head, CaseToolBox], collected: EvidenceStore
) -> None:
    record = next(r for r in collected.records if r.provenance.kind == "row")
    odd = record.model_copy(update={"content": record.content + " "})
    assert "hash" in verify_records([odd], case[1], case[2])[0].reason
    for change in ({"input_sha256": "0" * 64}, {"input_path": "inputs/diagnostics/other.zip"}):
        provenance = record.provenance.model_copy(update=change)
        broken = verify_records([record.model_copy(update={"provenance": provenance})], case[1], case[2])
        assert "input" in broken[0].reason


def test_published_pieces_are_verified_and_unknown_citations_are_named(
    case: tuple[CheckpointStore, Head, CaseToolBox], collected: EvidenceStore
) -> None:
    store, head, box = case
    change = Change(
        event="test", phase="investigation", put={piece_path(head.revision, 1): collected.piece()}
    )
    head = store.commit(head, change)
    assert EvidenceStore.load(store, head).records == collected.records
    assert verify_evidence(store, head, box) == ()
    broken = verify_evidence(store, head, box, ["E1", "E999"])
    assert [b.evidence_id for b in broken] == ["E999"]
