"""`make bench NAME=fit_analyst`: how far a ranking carries a claim about code, learned and measured k-fold.

One row per development case and per report paired with a foreign source: the confidence the ranking states
for its functions and files, against whether the places the analyst would cite hold the fix. Set
`VIANO_ANALYST_WRITE=1` to replace the shipped `calibration.json`; without it only figures are printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from resources.llm.providers.offline import calibration
from resources.llm.providers.offline.code_family import RANK_LIMIT, READS
from resources.llm.providers.offline.findings import parse_ranking
from resources.tools.source.ranking import ranked
from tests.benchmarks._ranking_cases import BugCase, corpus_sha256, load_cases, open_index, tree
from tests.benchmarks.fit_ranking import wrong_pairs

RIDGE = 0.02
PAIRS = 24
CAP = 60_000


class Row(NamedTuple):
    """One report on one tree: the features and whether what would be cited is right."""

    case_id: str
    project: str
    kind: str
    features: dict[str, float]
    right: bool
    file_right: bool


def row(case: BugCase, source: BugCase) -> Row:
    """Rank a report on a tree and compare with the fix."""
    index = open_index(source)
    parts = ranked(index, tree(source), case.text, "", RANK_LIMIT, CAP)
    index.close()
    files, symbols = parse_ranking(parts[0].content), parse_ranking(parts[1].content)
    if symbols is None or files is None:
        raise ValueError(case.id)
    own = case.id == source.id
    cited = {f"{place.path}:{place.symbol}" for place in symbols.places[:READS]}
    first = {place.path for place in files.places[:1]}
    kind = case.verdict if own else "wrong_source"
    return Row(
        case.id,
        case.package,
        kind,
        calibration.features(symbols, files),
        own and case.verdict == "defect" and bool(cited & case.functions),
        own and bool(first & case.files),
    )


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Return the weights of the logistic relation, drawn towards zero."""
    names = calibration.FEATURES
    x = np.array([[1.0, *(r.features[name] for name in names)] for r in rows])
    y = np.array([r.right for r in rows], dtype=float)

    def loss(w: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        linear = x @ w
        fitted = float(np.mean(np.logaddexp(0.0, linear) - y * linear))
        return fitted + RIDGE * float(w[1:] @ w[1:])

    found = minimize(loss, np.zeros(x.shape[1]), method="L-BFGS-B").x
    return {name: round(float(v), 3) for name, v in zip(("bias", *names), found, strict=True)}


def k_fold(rows: Sequence[Row]) -> list[float]:
    """Return each row's probability under weights fitted without its project."""
    chances = [0.0] * len(rows)
    for project in sorted({r.project for r in rows}):
        weights = fit([r for r in rows if r.project != project])
        for number, r in enumerate(rows):
            if r.project == project:
                chances[number] = calibration.probability(r.features, weights)
    return chances


def main() -> dict[str, object]:
    """Return confirmed cases and their correctness under the shipped thresholds, in-sample and k-fold."""
    cases = load_cases()
    defects = [case for case in cases if case.verdict == "defect"]
    pairs = [*((case, case) for case in cases), *wrong_pairs(defects)[:PAIRS]]
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(row, *zip(*pairs, strict=True)))
    weights = fit(rows)
    inside = [calibration.probability(r.features, weights) for r in rows]
    target = Path(str(resources.files(calibration.__package__ or "").joinpath("calibration.json")))
    stored = json.loads(target.read_text(encoding="utf-8"))
    if os.environ.get("VIANO_ANALYST_WRITE"):
        stored |= {"weights": weights, "corpus_sha256": corpus_sha256(), "schema": "analyst-calibration-v1"}
        target.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    limit = float(stored["supported"])
    return {
        "rows": len(rows),
        "weights": weights,
        "in_sample": _figures(rows, inside, limit),
        "k_fold": _figures(rows, k_fold(rows), limit),
    }


def _figures(rows: Sequence[Row], chances: Sequence[float], limit: float) -> dict[str, int]:
    over = [r for r, chance in zip(rows, chances, strict=True) if chance >= limit]
    return {
        "defects_confirmed": sum(r.kind == "defect" for r in over),
        "confirmed_correct": sum(r.right for r in over),
        "controls_confirmed": sum(r.kind not in {"defect", "wrong_source"} for r in over),
        "wrong_source_confirmed": sum(r.kind == "wrong_source" for r in over),
    }
