"""Correctness decided by code: the ranked places and the cited evidence of a result against the gold.

Never by a model. `any` counts a hit on one gold place, `all` on every one. Rates are fractions in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from viano_assets.evaluation.gold import KIND_OF_CONTROL, Gold, GoldLocation

RANKS = (1, 3, 5, 10)
"""The k of hit@k."""


class Scores(NamedTuple):
    """What one result is worth.

    `file_hits`, `symbol_hits`, `row_hits` map k to (any, all); a kind the gold does not name is empty.
    `root_cause_correct` is None unless a defect was confirmed; `verdict_correct` judges controls by their
    `inconclusive_kind` and defects by being confirmed; `overclaim` is a confirmed control.
    """

    file_hits: Mapping[int, tuple[bool, bool]]
    symbol_hits: Mapping[int, tuple[bool, bool]]
    row_hits: Mapping[int, tuple[bool, bool]]
    root_cause_correct: bool | None
    verdict_correct: bool
    overclaim: bool
    confirmed: bool


def score(view: Mapping[str, Any], gold: Gold) -> Scores:
    """Score a case view (`viano case show --json`) against its gold."""
    places = view["localisation"]
    diagnosis = view.get("diagnosis") or {}
    confirmed = diagnosis.get("status") == "confirmed"
    files = [item["path"] for item in places["files"]]
    symbols = [(item["path"], item["symbol"]) for item in places["symbols"]]
    verdict = (
        diagnosis.get("inconclusive_kind") == KIND_OF_CONTROL[gold.verdict] if gold.is_control else confirmed
    )
    cause = None
    if confirmed and not gold.is_control:
        cause = root_cause_correct(view, gold)
    return Scores(
        _hits(files, gold.files()),
        _hits(symbols, gold.symbols()),
        _row_hits(places["rows"], gold.rows()),
        cause,
        bool(verdict),
        confirmed and gold.is_control,
        confirmed,
    )


def _hits(ranked: Sequence[Any], wanted: set[Any]) -> dict[int, tuple[bool, bool]]:
    if not wanted:
        return {}
    return {k: (bool(wanted & set(ranked[:k])), wanted <= set(ranked[:k])) for k in RANKS}


def _row_hits(
    ranked: Sequence[Mapping[str, Any]], wanted: Sequence[GoldLocation]
) -> dict[int, tuple[bool, bool]]:
    if not wanted:
        return {}
    hits = {}
    for k in RANKS:
        found = [any(row_matches(item, place) for item in ranked[:k]) for place in wanted]
        hits[k] = (any(found), all(found))
    return hits


def row_matches(item: Mapping[str, Any], gold: GoldLocation) -> bool:
    """Say whether a row place names the gold's table and agrees with its key in every column both give.

    A place without any common key column is no match when the gold gives a key.
    """
    if item.get("table") != gold.table:
        return False
    if gold.column is not None and item.get("column") not in {None, gold.column}:
        return False
    if not gold.key:
        return True
    key = {name: str(value) for name, value in (item.get("key") or {}).items()}
    common = set(key) & set(gold.key)
    return bool(common) and all(key[name] == str(gold.key[name]) for name in common)


def root_cause_correct(view: Mapping[str, Any], gold: Gold) -> bool:
    """Say whether the cited root-cause evidence overlaps a gold place, as `evidence_correct` does."""
    cause = (view.get("diagnosis") or {}).get("root_cause") or {}
    return evidence_correct(view, cause.get("evidence_ids", []), gold)


def evidence_correct(view: Mapping[str, Any], evidence_ids: Sequence[str], gold: Gold) -> bool:
    """Say whether some of the evidence overlaps a gold place.

    A gold symbol is met by a record in its file that names it or lies within its lines; a gold file
    without a symbol by any record in the file; a gold row by `row_matches`.
    """
    cited = set(evidence_ids)
    records = [record for record in view["evidence"] if record["evidence_id"] in cited]
    spans = {(item["path"], item["symbol"]): item for item in view["localisation"]["symbols"]}
    return any(_meets(record, place, spans) for record in records for place in gold.locations)


def _meets(
    record: Mapping[str, Any], gold: GoldLocation, spans: Mapping[tuple[str, str], Mapping[str, Any]]
) -> bool:
    if gold.table is not None:
        return row_matches(record, gold)
    if record.get("path") != gold.path:
        return False
    if gold.symbol is None:
        return gold.lines is None or _overlap(record, *gold.lines)
    if record.get("symbol") == gold.symbol:
        return True
    span = spans.get((str(gold.path), gold.symbol))
    if span is not None and span.get("line_start") is not None:
        return _overlap(record, span["line_start"], span["line_end"] or span["line_start"])
    return gold.lines is not None and _overlap(record, *gold.lines)


def _overlap(record: Mapping[str, Any], start: int, end: int) -> bool:
    first, last = record.get("line_start"), record.get("line_end")
    return first is not None and first <= end and start <= (last or first)
