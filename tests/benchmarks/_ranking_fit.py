"""Learns the weights of the ranking on the development cases, measured in-sample and k-fold by project.

The fit is a softmax over candidates pulled towards a hand-set prior (ridge), bounded at zero: with 36
cases the data may shift the prior but not replace it. The prior was set while looking at the same
cases, so the fold figures are still friendly; other projects decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

from resources.tools.source.rank import (
    ANCHORS,
    GROUPS,
    best_function,
    features,
    rank_credit,
    share_known,
)
from resources.tools.source.report import read_report
from resources.tools.source.scene import Scene
from resources.tools.source.weights import Weights
from tests.benchmarks._ranking_cases import BugCase, open_index, tree

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

PRIOR_FILES = {
    "text": 1.0,
    "code": 0.15,
    "title": 0.2,
    "frames": 1.6,
    "paths": 1.0,
    "identifiers": 0.5,
    "literals": 0.6,
    "names": 0.6,
    "direct": 0.4,
    "further": 0.4,
    "tests": 0.2,
    "docs": 0.1,
    "terms": 0.4,
    "coverage": 0.3,
    "above": 0.1,
    "noticed": 0.15,
    "imports": 0.4,
    "shown": 0.6,
    "entities": 0.5,
    "history": 0.2,
}
PRIOR_SYMBOLS = {
    "text": 1.0,
    "code": 0.15,
    "title": 0.2,
    "frames": 1.6,
    "paths": 1.0,
    "identifiers": 0.7,
    "literals": 0.7,
    "names": 0.35,
    "direct": 0.3,
    "further": 0.35,
    "tests": 0.35,
    "docs": 0.1,
    "terms": 0.25,
    "coverage": 0.3,
    "below": 0.2,
    "noticed": 0.2,
    "special": 0.2,
    "met": 0.15,
    "synonyms": 0.05,
    "overrides": 0.1,
    "shown": 0.7,
    "entities": 0.6,
    "file_rank": 0.4,
}
RIDGE = 3.0
SHARPNESS = 3.0
CANDIDATES = 150
SHAPE = ("top", "margin", "agreement", "known", "anchored")


class Features(NamedTuple):
    """The signals of one report on one tree, product files and functions only."""

    names: tuple[str, ...]
    files: Array
    units: Array
    unit_file: npt.NDArray[np.int64]
    right_file: npt.NDArray[np.bool_]
    right_unit: npt.NDArray[np.bool_]
    known: float
    bm25: Array


def plain_bm25(scene: Scene, text: str) -> Array:
    """Return BM25 of the whole text over files: every field alike, no weights, standard parameters."""
    index = scene.index
    frequencies = np.zeros(scene.n_files)
    lengths = sum((f.lengths for f in index.fields.values()), np.zeros(scene.n_units))
    size = np.bincount(index.unit_file, weights=lengths, minlength=scene.n_files) * scene.product_files
    mean = size[size > 0].mean()
    count = int((size > 0).sum())
    scores = np.zeros(scene.n_files)
    words = [t for w in text.split() for part in [w] for t in _terms(scene, part)]
    for term in sorted(set(words)):
        number = index.vocabulary.get(term)
        if number is None:
            continue
        frequencies[:] = 0
        for field in index.fields.values():
            where, counts = field.posting(number)
            np.add.at(frequencies, index.unit_file[where], counts)
        found = int(((frequencies > 0) & (size > 0)).sum())
        idf = np.log(1 + (count - found + 0.5) / (found + 0.5))
        norm = 1.2 * (0.25 + 0.75 * size / mean)
        scores += words.count(term) * idf * frequencies * 2.2 / (frequencies + norm)
    result: Array = scores * scene.product_files
    return result


def _terms(scene: Scene, text: str) -> list[str]:
    from resources.tools.source.text import WORD

    return [t for w in WORD.findall(text) for t in scene.index.terms.of(w)]


def compute(case: BugCase, source: BugCase) -> Features:
    """Compute the features of a case's report on the tree of `source` (its own, or a wrong one)."""
    root = tree(source)
    index = open_index(source)
    scene = Scene(index, root, read_report(case.text))
    found = features(scene)
    names = tuple(found)
    files = np.flatnonzero(scene.product_files)
    functions = [u for u in index.units if u.kind == "function" and scene.product_units[u.id] > 0]
    units = np.array([u.id for u in functions], dtype=np.int64)
    place = {int(f): i for i, f in enumerate(files)}
    own = case.id == source.id
    labels = [f"{index.files[u.file].path}:{index.symbols[u.symbol].qualname}" for u in functions]
    result = Features(
        names,
        np.stack([found[n].files[files] for n in names], axis=1),
        np.stack([found[n].units[units] for n in names], axis=1),
        np.array([place[u.file] for u in functions], dtype=np.int64),
        np.array([own and index.files[int(f)].path in case.files for f in files], dtype=bool),
        np.array([own and label in case.functions for label in labels], dtype=bool),
        share_known(scene),
        plain_bm25(scene, case.text)[files],
    )
    index.close()
    return result


def without(f: Features, off: tuple[str, ...]) -> Features:
    """Return the features with some signals silent."""
    on = np.array([0.0 if n in off else 1.0 for n in f.names])
    return f._replace(files=f.files * on, units=f.units * on)


def own_scores(f: Features, weights: Weights) -> Array:
    """Return the score of each product file by its own signals."""
    result: Array = f.files @ np.array([weights.files.get(n, 0.0) for n in f.names])
    return result


def _unit_columns(f: Features, scores: Array) -> Array:
    return np.hstack([f.units, rank_credit(scores)[f.unit_file][:, None]])


def unit_scores(f: Features, weights: Weights) -> Array:
    """Return the score of each function."""
    vector = np.array([weights.symbols.get(n, 0.0) for n in (*f.names, "file_rank")])
    result: Array = _unit_columns(f, own_scores(f, weights)) @ vector
    return result


def file_scores(f: Features, weights: Weights) -> Array:
    """Return the score of each product file with what it gains from its best function."""
    files = own_scores(f, weights)
    result: Array = files + best_function(files, unit_scores(f, weights), f.unit_file)
    return result


def first_right(scores: Array, right: npt.NDArray[np.bool_]) -> int:
    """Return the rank of the first right candidate, or a large number."""
    hits = np.flatnonzero(right[np.argsort(-scores, kind="stable")])
    return int(hits[0]) + 1 if len(hits) else 10**6


def _softmax_fit(sets: list[tuple[Array, npt.NDArray[np.bool_]]], prior: Array) -> Array:
    usable = [(x, y) for x, y in sets if y.any()]

    def loss(w: Array) -> tuple[float, Array]:
        total = 0.0
        gradient = np.zeros_like(w)
        for x, y in usable:
            s = SHARPNESS * (x @ w)
            e = np.exp(s - s.max())
            p, good = e / e.sum(), e * y
            total -= float(np.log(good.sum() / e.sum()))
            gradient -= SHARPNESS * (x.T @ (good / good.sum() - p))
        pull = w - prior
        return total / len(usable) + RIDGE * float(pull @ pull), gradient / len(usable) + 2 * RIDGE * pull

    found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(prior))
    result: Array = found.x
    return result


def _candidates(x: Array, y: npt.NDArray[np.bool_]) -> tuple[Array, npt.NDArray[np.bool_]]:
    chosen = np.union1d(np.argsort(-x.sum(axis=1), kind="stable")[:CANDIDATES], np.flatnonzero(y))
    return x[chosen], y[chosen]


def fit(data: list[Features]) -> Weights:
    """Fit the weights of files, then those of functions on top of the file ranks."""
    names = data[0].names
    prior = np.array([PRIOR_FILES.get(n, 0.0) for n in names])
    files = _softmax_fit([_candidates(f.files, f.right_file) for f in data], prior)
    weights = Weights(_rounded(names, files), {}, {}, "")
    columns = [_candidates(_unit_columns(f, own_scores(f, weights)), f.right_unit) for f in data]
    prior = np.array([PRIOR_SYMBOLS.get(n, 0.0) for n in (*names, "file_rank")])
    units = _softmax_fit(columns, prior)
    return Weights(weights.files, _rounded((*names, "file_rank"), units), {}, "")


def _rounded(names: tuple[str, ...], values: Array) -> dict[str, float]:
    return {n: round(float(v), 3) for n, v in zip(names, values, strict=True)}


def shape_of(f: Features, weights: Weights) -> list[float]:
    """Return the shape of the file ranking as the confidence model sees it."""
    scores = file_scores(f, weights)
    order = np.argsort(-scores, kind="stable")
    best = order[0]
    top, second = float(scores[best]), float(scores[order[1]]) if len(order) > 1 else 0.0
    signals = dict(zip(f.names, f.files[best].tolist(), strict=True))
    agreement = sum(1 for group in GROUPS.values() if max(signals.get(n, 0.0) for n in group) >= 0.5)
    anchored = max(signals.get(n, 0.0) for n in ANCHORS)
    return [top, (top - second) / top if top else 0.0, float(agreement), f.known, anchored]


def fit_confidence(shapes: Array, right: npt.NDArray[np.bool_], mass: Array) -> dict[str, float]:
    """Fit the logistic model of the first file being right; `mass` weighs the rows."""
    mean, spread = shapes.mean(axis=0), shapes.std(axis=0) + 1e-9
    x = np.hstack([np.ones((len(shapes), 1)), (shapes - mean) / spread])
    target = np.where(right, 1.0, -1.0)

    def loss(w: Array) -> tuple[float, Array]:
        z = target * (x @ w)
        value = float((mass * np.logaddexp(0, -z)).sum()) + 0.5 * float(w[1:] @ w[1:])
        slope = -mass * target / (1 + np.exp(np.clip(z, -30, 30)))
        return value, x.T @ slope + np.concatenate([[0.0], w[1:]])

    bounds = [(None, None), *[(0, None)] * len(SHAPE)]
    w = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = w[1:] / spread
    model = {n: round(float(v), 4) for n, v in zip(SHAPE, slopes, strict=True)}
    return {"bias": round(float(w[0] - slopes @ mean), 4), **model}
