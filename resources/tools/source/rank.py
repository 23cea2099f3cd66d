"""Ranks files and functions for a report by the weighted sum of the signals, and describes how sure it is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from resources.tools.source import kin, shown, signals
from resources.tools.source.history import NOWHERE, Start, changes
from resources.tools.source.reader import SourceIndex
from resources.tools.source.report import read_report
from resources.tools.source.scene import Scene, scaled
from resources.tools.source.signals import Signal
from resources.tools.source.special import special
from resources.tools.source.synonyms import synonyms
from resources.tools.source.weights import Weights, shipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from resources.tools.source.reader import Floats

GROUPS: dict[str, tuple[str, ...]] = {
    "words": ("text", "code", "title", "coverage", "names"),
    "frames": ("frames",),
    "paths": ("paths",),
    "identifiers": ("identifiers", "terms", "entities"),
    "messages": ("literals", "noticed", "shown"),
    "script": ("direct", "further", "special"),
    "tests": ("tests",),
    "docs": ("docs",),
    "history": ("history",),
}
"""Signals that rest on the same thing; agreement is counted over these."""

ANCHORS = ("frames", "paths", "identifiers", "literals", "direct", "shown", "entities")
"""Signals that rest on a name or a text rather than on words in common."""


BEST_FUNCTION = 2.0
"""How much the best function of a file counts beside the file's own score, both scaled by their best.

Set, not fitted: the mean reciprocal rank of the development cases rises from 0 to 4 without a peak."""

BESIDE = ("frames", "literals")
"""Signals that already know who a stack or a message leads to."""


class Hit(NamedTuple):
    """One ranked place; `signals` holds what each signal gave it, 0 to 1."""

    path: str
    symbol: str | None
    line_start: int
    line_end: int
    score: float
    signals: dict[str, float]


class Shape(NamedTuple):
    """What the scores look like.

    top: the best score. margin: its lead over the second as a share of itself. agreement: how many
    groups of signals give the first place at least half of their best. known: share of the report's
    words, by rarity, that the tree knows at all. anchored: the strongest signal of the first place that
    rests on a name or text. confidence: probability that the first file is right, from all of these.
    """

    top: float
    margin: float
    agreement: int
    known: float
    anchored: float
    confidence: float


class Ranking(NamedTuple):
    """Files and functions, best first, each with the shape of its scores."""

    files: list[Hit]
    symbols: list[Hit]
    file_shape: Shape
    symbol_shape: Shape


class Beside(NamedTuple):
    """What is known beside the report: names found in the data of the case, and where its history ends."""

    names: tuple[str, ...] = ()
    start: Start = NOWHERE


NOTHING = Beside()


def features(scene: Scene, beside: Beside = NOTHING) -> dict[str, Signal]:
    """Compute every signal."""
    query = signals.report_query(scene)
    units, files = scene.bm25.score(query)
    below, above = signals.around(scene, units)
    literals = signals.literals(scene)
    title_units, title_files = scene.bm25.score(scene.query([(scene.report.title, 1.0)]))
    direct, further = signals.reach(scene)
    named = signals.identifiers(scene)
    none = np.zeros(scene.n_files)
    text = signals.product_only(scene, units, files)
    found = {
        "text": text,
        "code": signals.product_only(scene, *scene.code_bm25.score(query)),
        "synonyms": signals.product_only(scene, *scene.bm25.score(synonyms(scene, query))),
        "overrides": Signal(kin.overriding(scene, units), none),
        "imports": Signal(np.zeros(scene.n_units), kin.imported(scene, text.files)),
        "title": signals.product_only(scene, title_units, title_files),
        "frames": signals.frames(scene),
        "paths": signals.paths(scene),
        "identifiers": named,
        "special": Signal(special(scene, np.maximum(direct.units, named.units)), none),
        "met": Signal(scaled(np.sqrt(further.units * text.units)), none),
        "literals": literals,
        "names": signals.names(scene),
        "direct": direct,
        "further": further,
        "tests": signals.tests(scene, units),
        "docs": signals.docs(scene, units),
        "terms": signals.rare_terms(scene),
        "coverage": signals.coverage(scene, query),
        "below": below,
        "above": above,
        "noticed": signals.noticed(scene, literals.units),
        "shown": shown.shown_texts(scene),
        "entities": shown.entities(scene, beside.names),
        "history": shown.changed_lately(scene, changes(scene.root, shown.RECENT, beside.start), query),
    }
    left = signals.explained(scene, literals.units)
    return {
        name: signal if name in BESIDE else signal._replace(units=signal.units * left)
        for name, signal in found.items()
    }


def combine(scene: Scene, found: Mapping[str, Signal], weights: Weights) -> Signal:
    """Return the scores of files and functions.

    A function gains from the rank of its file; then a file gains from its best function, so that the two
    rankings tell one story.
    """
    files = np.zeros(scene.n_files)
    units = np.zeros(scene.n_units)
    for name, signal in found.items():
        files += weights.files.get(name, 0.0) * signal.files
        units += weights.symbols.get(name, 0.0) * signal.units
    files *= scene.product_files
    units += weights.symbols.get("file_rank", 0.0) * rank_credit(files)[scene.index.unit_file]
    functions = np.array([u.kind == "function" for u in scene.index.units], dtype=np.float64)
    units *= scene.product_units * functions
    return Signal(units, files + best_function(files, units, scene.index.unit_file))


def best_function(files: Floats, units: Floats, unit_file: npt.NDArray[np.integer[Any]]) -> Floats:
    """Return what each file gains from its best function, in the measure of the files' scores."""
    gain = np.zeros(len(files))
    if len(units) and units.max() > 0:
        np.maximum.at(gain, unit_file, units / units.max())
    result: Floats = BEST_FUNCTION * (files.max() if len(files) else 0.0) * gain
    return result


def rank_credit(values: Floats) -> Floats:
    """Return the root of the reciprocal rank, ties by position; the second is nearly as likely."""
    result = np.empty(len(values))
    result[np.argsort(-values, kind="stable")] = 1.0 / np.sqrt(np.arange(1, len(values) + 1))
    return result


def rank(
    index: SourceIndex,
    root: Path,
    text: str,
    limit: int = 10,
    weights: Weights | None = None,
    beside: Beside = NOTHING,
) -> Ranking:
    """Rank the files and functions of a tree for a report; without any readable text there is none."""
    weights = weights or shipped()
    if not index.units:
        nothing = shape([], 0.0, weights.confidence)
        return Ranking([], [], nothing, nothing)
    scene = Scene(index, root, read_report(text))
    found = features(scene, beside)
    scores = combine(scene, found, weights)
    files = _files(scene, scores.files, found, max(2, limit))
    symbols = _symbols(scene, scores.units, found, max(2, limit))
    known = share_known(scene)
    return Ranking(
        files[:limit],
        symbols[:limit],
        shape(files, known, weights.confidence),
        shape(symbols, known, weights.confidence),
    )


def share_known(scene: Scene) -> float:
    """Return the share of the report's terms the tree knows, each by its rarity; an unknown one is rarest."""
    query = signals.report_query(scene)
    rarest = math.log(1 + scene.n_units)
    total = known = 0.0
    for term, weight in sorted(query.items()):
        idf = scene.bm25.idf(term)
        total += weight * (idf or rarest)
        known += weight * idf
    return known / total if total else 0.0


def shape(hits: list[Hit], known: float, model: Mapping[str, float]) -> Shape:
    """Describe the scores of a ranking."""
    if not hits:
        return Shape(0.0, 0.0, 0, known, 0.0, 0.0)
    first = hits[0]
    second = hits[1].score if len(hits) > 1 else 0.0
    agreement = sum(1 for names in GROUPS.values() if max(first.signals.get(n, 0.0) for n in names) >= 0.5)
    described = Shape(
        top=first.score,
        margin=(first.score - second) / first.score,
        agreement=agreement,
        known=known,
        anchored=max(first.signals.get(n, 0.0) for n in ANCHORS),
        confidence=0.0,
    )
    return described._replace(confidence=confidence(described, model))


def confidence(described: Shape, model: Mapping[str, float]) -> float:
    """Return the probability the logistic model gives to a shape."""
    values = described._asdict()
    linear = model.get("bias", 0.0)
    linear += sum(weight * values[name] for name, weight in sorted(model.items()) if name != "bias")
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, linear))))


def _order(values: Floats) -> list[int]:
    return [int(i) for i in np.argsort(-values, kind="stable") if values[i] > 0]


def _files(scene: Scene, values: Floats, found: Mapping[str, Signal], limit: int) -> list[Hit]:
    result = []
    for number in _order(values)[:limit]:
        row = scene.index.files[number]
        why = {n: round(float(s.files[number]), 4) for n, s in found.items() if s.files[number] >= 0.005}
        result.append(Hit(row.path, None, 1, row.lines, float(values[number]), why))
    return result


def _symbols(scene: Scene, values: Floats, found: Mapping[str, Signal], limit: int) -> list[Hit]:
    result: list[Hit] = []
    for number in _order(values)[:limit]:
        unit = scene.index.units[number]
        symbol = scene.index.symbols[unit.symbol]
        why = {n: round(float(s.units[number]), 4) for n, s in found.items() if s.units[number] >= 0.005}
        path = scene.index.files[unit.file].path
        span = (symbol.line_start, symbol.line_end)
        result.append(Hit(path, symbol.qualname, *span, float(values[number]), why))
    return result
