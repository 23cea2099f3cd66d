"""The tables of the evidence index and their columns (docs/sql.md).

Every per-case table starts with `case_id, package_id, analysis_revision, partition_key`; ids are joinable
across tables. All columns may be NULL; times are ISO 8601 text in UTC. Rows are written in units that are
replaced as a whole: a case revision, a corpus, a run of a corpus, a calibration snapshot.
"""

from __future__ import annotations

import pyarrow as pa

TEXT, WHOLE, REAL, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TEXTS = pa.list_(pa.string())

KEYS: dict[str, pa.DataType] = {
    "case_id": TEXT,
    "package_id": TEXT,
    "analysis_revision": WHOLE,
    "partition_key": TEXT,
}

_OWN: dict[str, dict[str, pa.DataType]] = {
    "cases": {
        "title": TEXT, "language": TEXT, "state": TEXT, "stage": TEXT, "overlay": TEXT, "overlay_code": TEXT,
        "routing": TEXT, "generation": WHOLE, "head_sha256": TEXT, "sources": WHOLE, "defects": WHOLE,
        "created_at": TEXT, "updated_at": TEXT,
    },
    "sources": {
        "source_id": TEXT, "type": TEXT, "kind": TEXT, "text": TEXT, "input_path": TEXT,
        "line_start": WHOLE, "line_end": WHOLE,
    },
    "statements": {
        "statement_id": TEXT, "category": TEXT, "text": TEXT, "source_ids": TEXTS, "pointer": TEXT,
    },
    "hypotheses": {
        "hypothesis_id": TEXT, "position": WHOLE, "role": TEXT, "title": TEXT, "mechanism": TEXT,
        "status": TEXT, "terminal_reason": TEXT, "requested_confidence": TEXT,
        "effective_confidence": TEXT, "verdict": TEXT, "turns": WHOLE, "balance": WHOLE,
        "initial_budget": WHOLE, "selected": FLAG,
    },
    "evidence": {
        "evidence_id": TEXT, "tool": TEXT, "kind": TEXT, "path": TEXT, "symbol": TEXT,
        "line_start": WHOLE, "line_end": WHOLE, "table_name": TEXT, "row_key": TEXT, "column_name": TEXT,
        "completeness": TEXT, "empty": FLAG, "bytes": WHOLE, "content": TEXT, "content_sha256": TEXT,
        "input_path": TEXT, "dispatch": WHOLE, "cited": FLAG, "root_cause": FLAG,
    },
    "causal_reviews": {
        "dispatch": WHOLE, "hypothesis_id": TEXT, "effect": TEXT, "requested_confidence": TEXT,
        "effective_confidence": TEXT, "capped": FLAG, "support": TEXTS, "against": TEXTS, "reason": TEXT,
        "semantic_score": WHOLE,
    },
    "actions": {
        "action_id": TEXT, "dispatch": WHOLE, "hypothesis_id": TEXT, "tool": TEXT, "arguments": TEXT,
        "purpose": TEXT, "countercheck_of": TEXT, "cost": WHOLE, "reward": WHOLE, "status": TEXT,
        "completeness": TEXT, "empty": FLAG, "duplicate": FLAG, "evidence_ids": TEXTS, "cause": TEXT,
    },
    "budget_entries": {
        "seq": WHOLE, "kind": TEXT, "hypothesis_id": TEXT, "action_id": TEXT, "amount": WHOLE,
        "balance": WHOLE, "dispatch": WHOLE, "reason": TEXT,
    },
    "model_calls": {
        "phase": TEXT, "operation": TEXT, "round": WHOLE, "outcome": TEXT, "code": TEXT, "attempts": WHOLE,
        "tokens_in": WHOLE, "tokens_cached": WHOLE, "cached_share": REAL, "tokens_out": WHOLE, "cost": REAL,
        "seconds": REAL, "called_at": TEXT, "path": TEXT,
    },
    "diagnoses": {
        "status": TEXT, "inconclusive_kind": TEXT, "selected_hypothesis": TEXT,
        "requested_confidence": TEXT, "effective_confidence": TEXT, "summary": TEXT,
        "root_cause_evidence": TEXTS, "final_reason": TEXT, "deciding_question": TEXT,
        "not_examined": WHOLE, "published_at": TEXT,
    },
    "localisation": {
        "kind": TEXT, "rank": WHOLE, "path": TEXT, "symbol": TEXT, "line_start": WHOLE, "line_end": WHOLE,
        "table_name": TEXT, "row_key": TEXT, "column_name": TEXT, "basis": TEXT, "evidence_ids": TEXTS,
    },
}  # fmt: skip

CASE_TABLES: dict[str, pa.Schema] = {
    name: pa.schema([pa.field(column, kind) for column, kind in {**KEYS, **own}.items()])
    for name, own in _OWN.items()
}
"""Tables with rows per case revision, written at each publication."""

RANKS = (1, 3, 5, 10)
"""The k of the hit columns."""

_HITS: dict[str, pa.DataType] = {
    f"{kind}_{how}_{k}": FLAG for kind in ("file", "symbol", "row") for how in ("any", "all") for k in RANKS
}

_CORPUS_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "known_bugs": {
        "corpus": TEXT, "corpus_sha256": TEXT, "bug_id": TEXT, "case_id": TEXT, "title": TEXT, "kind": TEXT,
        "language": TEXT, "origin": TEXT, "split": TEXT, "clue": TEXT, "verdict": TEXT, "location": WHOLE,
        "path": TEXT, "symbol": TEXT, "line_start": WHOLE, "line_end": WHOLE, "table_name": TEXT,
        "row_key": TEXT, "column_name": TEXT,
    },
    "evaluations": {
        "run_id": TEXT, "whole_run": FLAG, "corpus": TEXT, "corpus_sha256": TEXT, "predictor": TEXT,
        "bug_id": TEXT, **KEYS,
        "kind": TEXT, "clue": TEXT, "language": TEXT, "verdict": TEXT, "provider": TEXT,
        "prompts_sha256": TEXT, "code_version": TEXT, "state": TEXT, "error_code": TEXT, "status": TEXT,
        "inconclusive_kind": TEXT, "requested_confidence": TEXT, "effective_confidence": TEXT,
        **_HITS, "root_cause_correct": FLAG, "grounded": FLAG, "verdict_correct": FLAG, "overclaim": FLAG,
        "confirmed": FLAG, "units": WHOLE, "tokens_in": WHOLE, "tokens_out": WHOLE, "cost": REAL,
        "seconds": REAL,
    },
    "calibration": {
        "snapshot_id": TEXT, "corpus": TEXT, "corpus_sha256": TEXT, "run_id": TEXT, "provider": TEXT,
        "prompts_sha256": TEXT, "subject": TEXT, "level": TEXT, "n": WHOLE, "right": WHOLE, "rate": REAL,
        "low": REAL, "high": REAL, "pooled_right": WHOLE, "pooled_n": WHOLE, "pooled_with": TEXTS,
        "decided": WHOLE, "ece": REAL, "null_high": REAL, "brier": REAL,
        "brier_skill": REAL, "auroc": REAL, "aurc": REAL, "top_lower_bound": REAL, "made_at": TEXT,
    },
}  # fmt: skip

TABLES: dict[str, pa.Schema] = CASE_TABLES | {
    name: pa.schema([pa.field(column, kind) for column, kind in columns.items()])
    for name, columns in _CORPUS_COLUMNS.items()
}
"""Every table of the index."""

UNIT_COLUMN: dict[str, str] = dict.fromkeys(CASE_TABLES, "partition_key") | {
    "known_bugs": "corpus",
    "evaluations": "run_id",
    "calibration": "snapshot_id",
}
"""The column that names the unit a row belongs to."""
