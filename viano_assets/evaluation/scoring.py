"""From views and gold to the rows of `evaluations`; baselines; the paired test between two runs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scipy.stats import binomtest

from viano_assets.evaluation.correctness import RANKS, Scores, score
from viano_assets.evaluation.gold import Gold, read_record

VIANO, BM25, CONSTANT, SHUFFLED = "viano", "bm25", "constant", "shuffled"
EMPTY: Mapping[str, Any] = {"files": [], "symbols": [], "rows": []}

_WORD = re.compile(r"[A-Za-zÀ-ÿ]{2,}|\d{2,}")
_PART = re.compile(r"[A-Z]?[a-zà-ÿß]+|[A-Z]+(?![a-z])|\d+")


def gold_of(bug: Mapping[str, Any]) -> Gold:
    """Return the gold of a bug as `corpus.json` holds it."""
    return read_record(bug, str(bug["bug_id"]))


def hit_columns(scores: Scores) -> dict[str, bool | None]:
    """Return the hit columns of a result; kinds the gold does not name are None."""
    found: dict[str, bool | None] = {}
    for kind, hits in (("file", scores.file_hits), ("symbol", scores.symbol_hits), ("row", scores.row_hits)):
        for k in RANKS:
            any_, all_ = hits.get(k, (None, None))
            found[f"{kind}_any_{k}"], found[f"{kind}_all_{k}"] = any_, all_
    return found


def result_columns(view: Mapping[str, Any], bug: Mapping[str, Any]) -> dict[str, Any]:
    """Score a view against a bug and return the columns that judge it."""
    scores = score(view, gold_of(bug))
    diagnosis = view.get("diagnosis") or {}
    return {
        "status": diagnosis.get("status"),
        "inconclusive_kind": diagnosis.get("inconclusive_kind"),
        "requested_confidence": diagnosis.get("requested_confidence"),
        "effective_confidence": diagnosis.get("confidence"),
        **hit_columns(scores),
        "root_cause_correct": scores.root_cause_correct,
        "verdict_correct": scores.verdict_correct,
        "overclaim": scores.overclaim,
        "confirmed": scores.confirmed,
    }


def constant_view() -> dict[str, Any]:
    """Return what a predictor answers that always lacks information."""
    return {
        "diagnosis": {"status": "inconclusive", "inconclusive_kind": "insufficient_information"},
        "localisation": EMPTY,
        "evidence": [],
    }


def ranked_view(paths: Sequence[str]) -> dict[str, Any]:
    """Return what a retrieval baseline answers: files in order, no verdict."""
    files = [{"path": path, "basis": "bm25", "evidence_ids": []} for path in paths]
    return {"diagnosis": None, "localisation": {**EMPTY, "files": files}, "evidence": []}


def words(text: str) -> list[str]:
    """Return the words of a text in small letters, identifiers also split at case and underscore."""
    found = []
    for word in _WORD.findall(text):
        lower = word.lower()
        found.append(lower)
        found += [part for part in (piece.lower() for piece in _PART.findall(word)) if part != lower]
    return found


def bm25_files(
    report: str, files: Iterable[tuple[str, str]], limit: int = 10, *, k1: float = 1.2, b: float = 0.75
) -> list[str]:
    """Rank files for a report (Robertson and Zaragoza 2009, usual constants); ties by path."""
    query = sorted(set(words(report)))
    wanted = set(query)
    counts: dict[str, tuple[Counter[str], int]] = {}
    for path, text in files:
        found = words(f"{path}\n{text}")
        counts[path] = (Counter(word for word in found if word in wanted), len(found))
    total = len(counts)
    mean = sum(size for _, size in counts.values()) / max(1, total)
    spread = Counter(word for count, _ in counts.values() for word in count)

    def worth(path: str) -> float:
        count, size = counts[path]
        weight = k1 * (1 - b + b * size / mean)
        return sum(
            math.log(1 + (total - spread[w] + 0.5) / (spread[w] + 0.5)) * n * (k1 + 1) / (n + weight)
            for w, n in sorted(count.items())
        )

    return sorted(counts, key=lambda path: (-worth(path), path))[:limit]


class Paired(NamedTuple):
    """McNemar's exact test on cases both runs have: better and worse now, and the two-sided p."""

    better: int
    worse: int
    both: int
    p: float

    @property
    def is_worse(self) -> bool:
        """True when more cases got worse than better and chance hardly explains it (p < 0.05)."""
        return self.worse > self.better and self.p < 0.05


def paired(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], column: str) -> Paired:
    """Compare one judging column of two runs, case by case."""
    old = {row["bug_id"]: row[column] for row in before if row[column] is not None}
    new = {row["bug_id"]: row[column] for row in now if row[column] is not None}
    shared = sorted(old.keys() & new.keys())
    better = sum(bool(new[bug]) and not old[bug] for bug in shared)
    worse = sum(bool(old[bug]) and not new[bug] for bug in shared)
    p = float(binomtest(worse, better + worse, 0.5).pvalue) if better + worse else 1.0
    return Paired(better, worse, len(shared), p)


def rate(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[int, int]:
    """Return how many rows are true in a column, of how many that are judged."""
    judged = [row[column] for row in rows if row.get(column) is not None]
    return sum(map(bool, judged)), len(judged)
