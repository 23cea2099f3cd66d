"""`make bench NAME=fit_ranking`: learns `config/ranking.json` anew and prints how good it is, also k-fold.

Set `VIANO_RANKING_WRITE=1` to replace the shipped file; without it only the figures are printed.
`VIANO_RANKING_ABLATION=1` adds the figures with each signal off: weights learned anew without it, k-fold.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np

from resources.tools.source.rank import GROUPS, Shape, confidence
from resources.tools.source.weights import SCHEMA, Weights
from tests.benchmarks import _ranking_fit as learn
from tests.benchmarks._ranking_cases import BugCase, corpus_sha256, load_cases
from viano_assets.data_files import CONFIG

WRONG_PAIRS = 72
WRONG_MASS = 0.25
"""Weight of all wrong reports together against all right ones in the confidence model."""


def _rates(ranks: list[tuple[int, int]]) -> dict[str, float]:
    files, symbols = np.array([r[0] for r in ranks]), np.array([r[1] for r in ranks])
    return {
        "file_hit1": round(float((files <= 1).mean()), 4),
        "file_hit5": round(float((files <= 5).mean()), 4),
        "symbol_hit1": round(float((symbols <= 1).mean()), 4),
        "symbol_hit5": round(float((symbols <= 5).mean()), 4),
    }


def _ranks(f: learn.Features, weights: Weights) -> tuple[int, int]:
    return (
        learn.first_right(learn.file_scores(f, weights), f.right_file),
        learn.first_right(learn.unit_scores(f, weights), f.right_unit),
    )


def wrong_pairs(cases: list[BugCase]) -> list[tuple[BugCase, BugCase]]:
    """Pair each report with the trees of two other packages, in a fixed order."""
    sources = {c.package: c for c in cases}
    packages = sorted(sources)
    pairs = []
    for number, case in enumerate(cases):
        others = [p for p in packages if p != case.package]
        pairs += [(case, sources[others[(number * 7 + step) % len(others)]]) for step in (0, 5)]
    return pairs[:WRONG_PAIRS]


def main() -> dict[str, object]:
    """Return the figures in-sample and k-fold, with plain BM25 beside them."""
    cases = load_cases()
    defects = [c for c in cases if c.verdict == "defect"]
    data = [learn.compute(c, c) for c in defects]
    weights = learn.fit(data)
    packages = [c.package for c in defects]
    fold = k_fold(data, packages)
    inside = [_ranks(f, weights) for f in data]
    plain = [(learn.first_right(f.bm25, f.right_file), 0) for f in data]
    hidden = [i for i, c in enumerate(defects) if c.clue == "neither"]
    weights = _with_confidence(cases, data, weights)
    if os.environ.get("VIANO_RANKING_WRITE"):
        _write(weights)
    figures: dict[str, object] = {
        "cases": len(defects),
        "in_sample": _rates(inside),
        "k_fold": _rates(fold),
        "neither_in_sample": _rates([inside[i] for i in hidden]),
        "neither_k_fold": _rates([fold[i] for i in hidden]),
        "bm25_file_hit1": _rates(plain)["file_hit1"],
        "bm25_file_hit5": _rates(plain)["file_hit5"],
        "bm25_neither_file_hit1": _rates([plain[i] for i in hidden])["file_hit1"],
        "confidence": _confidence_figures(cases, data, weights),
    }
    if os.environ.get("VIANO_RANKING_ABLATION"):
        figures["ablation"] = {
            name: _summary(k_fold([learn.without(f, off) for f in data], packages), hidden)
            for name, off in _ablations(data[0].names)
        }
    return figures


def k_fold(data: list[learn.Features], packages: list[str]) -> list[tuple[int, int]]:
    """Return the ranks of file and function of each case under weights fitted without its project."""
    ranks: list[tuple[int, int]] = [(0, 0)] * len(data)
    for package in sorted(set(packages)):
        rest = learn.fit([f for f, p in zip(data, packages, strict=True) if p != package])
        for number, own in enumerate(packages):
            if own == package:
                ranks[number] = _ranks(data[number], rest)
    return ranks


def _ablations(names: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what to switch off, by name: nothing, each signal alone, each group of several."""
    groups = [(f"all of {name}", group) for name, group in sorted(GROUPS.items()) if len(group) > 1]
    return [("nothing", ()), *((name, (name,)) for name in sorted(names)), *groups]


def _summary(ranks: list[tuple[int, int]], hidden: list[int]) -> dict[str, float]:
    """Return the rates and the mean reciprocal ranks, which move where the rates of 36 cases do not."""
    reciprocal = (1.0 / np.array(ranks)).mean(axis=0)
    return {
        **_rates(ranks),
        "neither_file_hit1": _rates([ranks[i] for i in hidden])["file_hit1"],
        "file_mrr": round(float(reciprocal[0]), 3),
        "symbol_mrr": round(float(reciprocal[1]), 3),
    }


def _others(cases: list[BugCase]) -> list[learn.Features]:
    defects = [c for c in cases if c.verdict == "defect"]
    controls = [learn.compute(c, c) for c in cases if c.verdict != "defect"]
    return controls + [learn.compute(*pair) for pair in wrong_pairs(defects)]


_CACHE: dict[int, list[learn.Features]] = {}


def _wrong(cases: list[BugCase]) -> list[learn.Features]:
    return _CACHE.setdefault(len(cases), _others(cases)) if len(cases) not in _CACHE else _CACHE[len(cases)]


def _with_confidence(cases: list[BugCase], data: list[learn.Features], weights: Weights) -> Weights:
    wrong = _wrong(cases)
    shapes = np.array([learn.shape_of(f, weights) for f in data + wrong])
    right = np.array([_ranks(f, weights)[0] == 1 for f in data] + [False] * len(wrong))
    mass = np.array([1.0] * len(data) + [WRONG_MASS * len(data) / len(wrong)] * len(wrong))
    return replace(
        weights, confidence=learn.fit_confidence(shapes, right, mass), corpus_sha256=corpus_sha256()
    )


def _confidence_figures(
    cases: list[BugCase], data: list[learn.Features], weights: Weights
) -> dict[str, object]:
    def of(f: learn.Features) -> float:
        top, margin, agreement, known, anchored = learn.shape_of(f, weights)
        return confidence(Shape(top, margin, int(agreement), known, anchored, 0.0), weights.confidence)

    right = [round(of(f), 2) for f in data if _ranks(f, weights)[0] == 1]
    missed = [round(of(f), 2) for f in data if _ranks(f, weights)[0] != 1]
    wrong = [round(of(f), 2) for f in _wrong(cases)]
    controls = wrong[: len(wrong) - WRONG_PAIRS]
    return {
        "median_right": float(np.median(right)),
        "median_missed": float(np.median(missed)),
        "median_control": float(np.median(controls)),
        "median_wrong_source": float(np.median(wrong[len(controls) :])),
        "wrong_source_above_half": sum(v >= 0.5 for v in wrong[len(controls) :]),
        "right_above_half": sum(v >= 0.5 for v in right),
    }


def _write(weights: Weights) -> None:
    stored = {
        "schema": SCHEMA,
        "corpus_sha256": weights.corpus_sha256,
        "files": weights.files,
        "symbols": weights.symbols,
        "confidence": weights.confidence,
    }
    text = json.dumps(stored, indent=2, sort_keys=True) + "\n"
    (CONFIG / "ranking.json").write_text(text, encoding="utf-8")
