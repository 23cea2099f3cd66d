"""Ranks files and functions for a report by the weighted sum of the signals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from resources.tools.source import signals
from resources.tools.source.reader import SourceIndex
from resources.tools.source.report import read_report
from resources.tools.source.scene import Scene
from resources.tools.source.signals import Signal

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats

DEFAULT_WEIGHTS = {
    "text": 1.0,
    "title": 0.3,
    "frames": 1.5,
    "paths": 1.0,
    "identifiers": 0.6,
    "literals": 0.8,
    "names": 0.5,
    "direct": 0.5,
    "further": 0.3,
    "tests": 0.4,
    "docs": 0.3,
    "terms": 0.3,
    "coverage": 0.2,
    "size": 0.0,
    "below": 0.2,
    "above": 0.0,
    "noticed": 0.2,
}


class Hit(NamedTuple):
    """One ranked place; `signals` holds what each signal gave it."""

    path: str
    symbol: str | None
    line_start: int
    line_end: int
    score: float
    signals: dict[str, float]


class Ranking(NamedTuple):
    """Files and functions, best first."""

    files: list[Hit]
    symbols: list[Hit]


def features(scene: Scene) -> dict[str, Signal]:
    """Compute every signal."""
    query = signals.report_query(scene)
    units, files = scene.bm25.score(query)
    below, above = signals.around(scene, units)
    literals = signals.literals(scene)
    noticed = signals.noticed(scene, literals.units)
    title_units, title_files = scene.bm25.score(scene.query([(scene.report.title, 1.0)]))
    direct, further = signals.reach(scene)
    return {
        "text": signals.product_only(scene, units, files),
        "title": signals.product_only(scene, title_units, title_files),
        "frames": signals.frames(scene),
        "paths": signals.paths(scene),
        "identifiers": signals.identifiers(scene),
        "literals": literals,
        "names": signals.names(scene),
        "direct": direct,
        "further": further,
        "tests": signals.tests(scene, units),
        "docs": signals.docs(scene, units),
        "terms": signals.rare_terms(scene),
        "coverage": signals.coverage(scene, query),
        "size": signals.size(scene),
        "below": below,
        "above": above,
        "noticed": noticed,
    }


def rank(
    index: SourceIndex, root: Path, text: str, limit: int = 10, weights: Mapping[str, float] = DEFAULT_WEIGHTS
) -> Ranking:
    """Rank the files and functions of a tree for a report."""
    scene = Scene(index, root, read_report(text))
    found = features(scene)
    files = (
        sum((weights[n] * s.files for n, s in found.items()), np.zeros(scene.n_files)) * scene.product_files
    )
    units = (
        sum((weights[n] * s.units for n, s in found.items()), np.zeros(scene.n_units)) * scene.product_units
    )
    units = units + 0.5 * files[index.unit_file] * (units > 0)
    return Ranking(_files(scene, files, found, limit), _symbols(scene, units, found, limit))


def _order(values: Floats) -> list[int]:
    return [int(i) for i in np.argsort(-values, kind="stable") if values[i] > 0]


def _files(scene: Scene, values: Floats, found: Mapping[str, Signal], limit: int) -> list[Hit]:
    result = []
    for number in _order(values)[:limit]:
        row = scene.index.files[number]
        why = {n: round(float(s.files[number]), 4) for n, s in found.items() if s.files[number] > 0}
        result.append(Hit(row.path, None, 1, row.lines, float(values[number]), why))
    return result


def _symbols(scene: Scene, values: Floats, found: Mapping[str, Signal], limit: int) -> list[Hit]:
    result: list[Hit] = []
    for number in _order(values):
        unit = scene.index.units[number]
        if unit.kind != "function":
            continue
        symbol = scene.index.symbols[unit.symbol]
        why = {n: round(float(s.units[number]), 4) for n, s in found.items() if s.units[number] > 0}
        path = scene.index.files[unit.file].path
        result.append(
            Hit(path, symbol.qualname, symbol.line_start, symbol.line_end, float(values[number]), why)
        )
        if len(result) == limit:
            break
    return result
