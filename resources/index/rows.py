"""The rows of one case revision, read from its package; nothing is computed that a package does not say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from viano_assets.budget.manager import BudgetManager
from viano_assets.case.assembler import load_case
from viano_assets.package.model import Checkpoint, Head
from viano_assets.partitions import CaseRevision
from viano_assets.phases.common import artifact_path, read_json
from viano_assets.phases.diagnosis.result import cited_ids
from viano_assets.phases.diagnosis.view import case_view, evidence_records
from viano_assets.phases.protocols import Phase, Store
from viano_assets.phases.rounds import model_rounds

Row = dict[str, Any]


class CaseRows:
    """Reads one revision of a head; `tables()` gives its rows by table."""

    def __init__(self, store: Store, head: Head, revision: int) -> None:
        self._store = store
        self._head = head
        self._revision = revision
        self._keys: Row = {
            "case_id": head.case_id,
            "package_id": head.manifest.package_id,
            "analysis_revision": revision,
            "partition_key": CaseRevision(head.case_id, revision).key,
        }
        self._result = self._json(Phase.DIAGNOSIS, "diagnosis_result.json")
        self._view = case_view(store, head, revision)

    def tables(self) -> dict[str, list[Row]]:
        """Return every case table's rows with their keys."""
        made: dict[str, Iterator[Row]] = {
            "cases": self._cases(),
            "sources": self._sources(),
            "statements": self._statements(),
            "hypotheses": self._hypotheses(),
            "evidence": self._evidence(),
            "causal_reviews": self._reviews(),
            "actions": self._actions(),
            "budget_entries": self._budget(),
            "model_calls": self._calls(),
            "diagnoses": self._diagnoses(),
            "localisation": self._localisation(),
        }
        return {name: [{**self._keys, **row} for row in rows] for name, rows in made.items()}

    def _json(self, phase: Phase, name: str) -> dict[str, Any] | None:
        path = artifact_path(phase, self._revision, name)
        return read_json(self._store, self._head, path) if path in self._head.files else None

    def _checkpoints(self) -> list[Checkpoint]:
        return [c for c in self._head.checkpoints if c.revision == self._revision]

    def _cases(self) -> Iterator[Row]:
        case = load_case(self._store, self._head, self._revision)
        history = self._checkpoints()
        overlay = self._view["overlay"] or {}
        yield {
            "title": case.title,
            "language": case.language,
            "state": self._view["state"],
            "stage": self._view["stage"],
            "overlay": overlay.get("kind"),
            "overlay_code": overlay.get("code"),
            "routing": self._view["routing"],
            "generation": history[-1].generation if history else self._head.generation,
            "head_sha256": self._head.record_sha256,
            "sources": len(case.sources),
            "defects": case.defects,
            "created_at": history[0].at if history else None,
            "updated_at": history[-1].at if history else None,
        }

    def _sources(self) -> Iterator[Row]:
        for source in load_case(self._store, self._head, self._revision).sources:
            yield {
                "source_id": source.id,
                "type": source.type.value,
                "kind": source.kind,
                "text": source.text,
                "input_path": source.origin.input_path,
                "line_start": source.origin.line_start,
                "line_end": source.origin.line_end,
            }

    def _statements(self) -> Iterator[Row]:
        document = self._json(Phase.INTERPRETATION, "interpretation.json") or {}
        for item in document.get("statements", []):
            yield {
                "statement_id": item["id"],
                "category": item["category"],
                "text": item["text"],
                "source_ids": list(item["source_ids"]),
                "pointer": item["pointer"],
            }

    def _hypotheses(self) -> Iterator[Row]:
        document = self._json(Phase.HYPOTHESES, "hypotheses.json") or {}
        registered = {item["id"]: item for item in document.get("hypotheses", [])}
        ends = {e["hypothesis_id"]: e for e in self._investigation().get("hypotheses", [])}
        selected = (self._view["diagnosis"] or {}).get("selected_hypothesis")
        for number, item in enumerate(self._view["hypotheses"], 1):
            entry, end = registered.get(item["id"], {}), ends.get(item["id"], {})
            yield {
                "hypothesis_id": item["id"],
                "position": entry.get("position", number),
                "role": entry.get("role"),
                "title": item["title"],
                "mechanism": item["mechanism"],
                "status": item["status"],
                "terminal_reason": item["terminal_reason"],
                "requested_confidence": item["requested_confidence"],
                "effective_confidence": item["effective_confidence"],
                "verdict": item["verdict"],
                "turns": end.get("turns"),
                "balance": end.get("balance"),
                "initial_budget": entry.get("budget_allocation", {}).get("initial"),
                "selected": item["id"] == selected,
            }

    def _investigation(self) -> dict[str, Any]:
        return self._json(Phase.INVESTIGATION, "investigation.json") or {}

    def _dispatches(self) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
        number = 1
        while True:
            record = self._json(Phase.INVESTIGATION, f"dispatch-{number:04d}.json")
            decision = self._json(Phase.INVESTIGATION, f"decision-{number:04d}.json")
            if record is None or decision is None:
                return
            yield number, decision, record
            number += 1

    def _evidence(self) -> Iterator[Row]:
        cited = set(cited_ids(self._result)) if self._result else set()
        cause = ((self._result or {}).get("diagnosis", {}).get("root_cause") or {}).get("evidence_ids", [])
        first: dict[str, int] = {}
        for number, _, record in self._dispatches():
            for result in record["results"]:
                for name in result["new_ids"]:
                    first.setdefault(name, number)
        for item in evidence_records(self._store, self._head, self._revision):
            place = item.provenance.location
            yield {
                "evidence_id": item.evidence_id,
                "tool": item.tool,
                "kind": item.provenance.kind,
                "path": place.path,
                "symbol": place.symbol,
                "line_start": place.line_start,
                "line_end": place.line_end,
                "table_name": place.table,
                "row_key": _key(place.key),
                "column_name": place.column,
                "completeness": item.completeness.value,
                "empty": item.empty,
                "bytes": item.bytes,
                "content": item.content,
                "content_sha256": item.content_sha256,
                "input_path": item.provenance.input_path,
                "dispatch": first.get(item.evidence_id),
                "cited": item.evidence_id in cited,
                "root_cause": item.evidence_id in cause,
            }

    def _reviews(self) -> Iterator[Row]:
        for number, decision, _ in self._dispatches():
            review = decision["review"]
            yield {
                "dispatch": number,
                "hypothesis_id": decision["selected"],
                "effect": review["effect"],
                "requested_confidence": review["requested_confidence"],
                "effective_confidence": review["effective_confidence"],
                "capped": review["requested_confidence"] != review["effective_confidence"],
                "support": review["support"],
                "against": review["against"],
                "reason": review["reason"],
                "semantic_score": decision["assessment"]["semantic_score"],
            }

    def _actions(self) -> Iterator[Row]:
        for item in self._investigation().get("actions", []):
            action, result = item["action"], item["result"]
            yield {
                **{name: action[name] for name in ("action_id", "hypothesis_id", "tool", "purpose", "cost")},
                "dispatch": item["dispatch"],
                "arguments": json.dumps(action["arguments"], ensure_ascii=False, sort_keys=True),
                "countercheck_of": action["countercheck_of"],
                "reward": item["reward"],
                "status": result["status"],
                "completeness": result["completeness"],
                "empty": result["empty"],
                "duplicate": action["duplicate_of"] is not None,
                "evidence_ids": result["evidence_ids"],
                "cause": result["cause"],
            }

    def _budget(self) -> Iterator[Row]:
        for entry in BudgetManager(self._store).ledger(self._head, self._revision).entries:
            yield {
                "seq": entry.seq,
                "kind": entry.kind.value,
                "hypothesis_id": entry.hypothesis_id,
                "action_id": entry.action_id,
                "amount": entry.amount,
                "balance": entry.balance,
                "dispatch": entry.dispatch,
                "reason": entry.reason,
            }

    def _calls(self) -> Iterator[Row]:
        for checkpoint in model_rounds(self._head, self._revision):
            detail, spend = checkpoint.detail, checkpoint.detail.get("spend", {})
            yield {
                "phase": checkpoint.phase,
                "operation": detail.get("operation"),
                "round": detail.get("round"),
                "outcome": detail.get("outcome"),
                "code": detail.get("code"),
                "attempts": spend.get("calls"),
                "tokens_in": spend.get("tokens_in"),
                "tokens_cached": spend.get("tokens_cached"),
                "cached_share": _share(spend),
                "tokens_out": spend.get("tokens_out"),
                "cost": None if spend.get("unpriced") else float(spend.get("cost", 0)),
                "seconds": spend.get("milliseconds", 0) / 1_000,
                "called_at": checkpoint.at,
                "path": detail.get("path"),
            }

    def _diagnoses(self) -> Iterator[Row]:
        diagnosis = self._view["diagnosis"]
        if diagnosis is None:
            return
        cause = diagnosis["root_cause"] or {}
        published = [c.at for c in self._checkpoints() if c.event == "diagnosis_published"]
        yield {
            "status": diagnosis["status"],
            "inconclusive_kind": diagnosis["inconclusive_kind"],
            "selected_hypothesis": diagnosis["selected_hypothesis"],
            "requested_confidence": diagnosis["requested_confidence"],
            "effective_confidence": diagnosis["confidence"],
            "summary": cause.get("summary"),
            "root_cause_evidence": list(cause.get("evidence_ids", [])),
            "final_reason": diagnosis.get("final_reason"),
            "deciding_question": self._view["deciding_question"],
            "not_examined": len(self._view["not_examined"]),
            "published_at": published[-1] if published else None,
        }

    def _localisation(self) -> Iterator[Row]:
        for kind in ("files", "symbols", "rows"):
            for rank, item in enumerate(self._view["localisation"][kind], 1):
                yield {
                    "kind": kind[:-1],
                    "rank": rank,
                    "path": item.get("path"),
                    "symbol": item.get("symbol"),
                    "line_start": item.get("line_start"),
                    "line_end": item.get("line_end"),
                    "table_name": item.get("table"),
                    "row_key": _key(item.get("key")),
                    "column_name": item.get("column"),
                    "basis": item["basis"],
                    "evidence_ids": list(item.get("evidence_ids") or []),
                }


def _share(spend: Mapping[str, Any]) -> float | None:
    return spend["tokens_cached"] / spend["tokens_in"] if spend.get("tokens_in") else None


def _key(key: Mapping[str, str] | None) -> str | None:
    return None if key is None else json.dumps(dict(key), ensure_ascii=False, sort_keys=True)
