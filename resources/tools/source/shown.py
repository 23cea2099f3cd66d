"""Signals from outside the code: catalogues of messages, names found in data, the revision history."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source import history
from resources.tools.source.catalogues import is_catalogue
from resources.tools.source.report import Frame
from resources.tools.source.scene import Scene, scaled
from resources.tools.source.signals import (
    OTHER_MESSAGE,
    Signal,
    coverage_of,
    empty,
    enclosing,
    find_file,
    fixed_words,
    shared,
)
from resources.tools.source.text import WORD

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats

MATCHES = 12
"""How many texts of the catalogues are followed."""
LABEL = 0.5
"""Weight of a short label that the report quotes."""
PROSE = 0.5
"""Weight of a text that stands in the report without quotes."""
_LABELS = re.compile(r"[\"“„»'`]([^\"“”„«»'`\n]{2,60})[\"”“«»'`]")


def shown_texts(scene: Scene) -> Signal:
    """Texts that a person sees, followed through the tree's catalogues to the code that shows them."""
    result = empty(scene)
    rated: list[tuple[float, str, tuple[str, ...]]] = []
    texts, labels = _said(scene)
    words = {w for text, _ in texts for w in text.split()}
    for entry in scene.catalogue:
        pieces = [w for p in fixed_words(entry.text) for w in p]
        if len(pieces) >= 2 and sum(w in words for w in pieces) * 2 >= len(pieces):
            value = coverage_of(entry.text, texts)
        else:
            value = LABEL if " ".join(pieces) in labels else 0.0
        if value > 0:
            rated.append((-value, entry.key, entry.places))
    for value, key, places in sorted(set(rated))[:MATCHES]:
        units = _users(scene, key)
        for place in places:
            units.update(_placed(scene, place, result, -value))
        for unit in sorted(units):
            rate = -value * shared(scene, unit) / (1.0 + math.log2(len(units)))
            result.units[unit] = max(result.units[unit], rate)
    result.units[:] *= scene.product_units
    return Signal(result.units, np.maximum(result.files, scene.to_files(result.units)) * scene.product_files)


def _said(scene: Scene) -> tuple[list[tuple[str, float]], frozenset[str]]:
    """Return the texts of the report with their weight, and what it quotes as a label."""
    report = scene.report
    lines = [report.title, *(line for line, weight in report.prose if weight >= 0.5)]
    graded = [(m, 1.0) for m in report.errors] + [(m, OTHER_MESSAGE) for m in report.messages]
    graded += [(line, PROSE) for line in lines]
    texts = [(" " + " ".join(WORD.findall(text.lower())) + " ", weight) for text, weight in graded]
    quoted = [m for line in lines for m in _LABELS.findall(line)]
    return texts, frozenset(" ".join(WORD.findall(q.lower())) for q in quoted) - {""}


def _placed(scene: Scene, place: str, result: Signal, value: float) -> set[int]:
    """Follow the `path:line` of a catalogue; the file gains even when the line has moved."""
    path, _, line = place.rpartition(":")
    rows = [r for r in find_file(scene, path) if scene.product_files[r.id] > 0]
    if len(rows) != 1 or not line.isdigit():
        return set()
    result.files[rows[0].id] = max(result.files[rows[0].id], value * 0.5)
    symbol = enclosing(scene, rows[0], Frame(path, int(line), ""))
    return set() if symbol is None else {symbol.unit}


CANDIDATES = 300


def _users(scene: Scene, text: str) -> set[int]:
    """Return the product units in which a key, a name or an original text stands word for word."""
    terms = [t for w in WORD.findall(text) for t in scene.index.terms.of(w)]
    numbers = [scene.index.vocabulary.get(t) for t in dict.fromkeys(terms)]
    if not numbers or None in numbers:
        return set()
    units: set[int] | None = None
    for number in numbers:
        if number is not None:
            found = {u for f in ("string", "body") for u in scene.index.fields[f].posting(number)[0].tolist()}
            units = found if units is None else units & found
    chosen = sorted(u for u in units or () if scene.product_units[u] > 0)
    if len(chosen) > CANDIDATES:
        return set()
    whole = re.compile(rf"(?<![\w]){re.escape(text)}(?![\w])")
    paths = {u: scene.index.files[scene.index.units[u].file].path for u in chosen}
    return {u for u in chosen if not is_catalogue(paths[u]) and whole.search(scene.source(u))}


def entities(scene: Scene, names: Iterable[str]) -> Signal:
    """Names found in the data of the case (tables, columns, keys, scripts) where code writes them."""
    result = empty(scene)
    for name in sorted(set(names)):
        units = _users(scene, name)
        for unit in units:
            result.units[unit] = max(result.units[unit], 1.0 / (1.0 + math.log2(len(units))))
    return Signal(result.units, scene.to_files(result.units))


RECENT = 400
"""How many commits before the reported revision are looked at."""
HALF = 100.0
"""After how many commits a change counts half."""


def changed_lately(scene: Scene, commits: Sequence[history.Change], query: dict[str, float]) -> Signal:
    """Files of recent commits that speak like the report; a commit of many files says less of each."""
    files: Floats = np.zeros(scene.n_files)
    if not commits:
        return empty(scene)
    rarest = math.log(1 + scene.n_units)
    rarity = {term: weight * (scene.bm25.idf(term) or rarest) for term, weight in sorted(query.items())}
    total = sum(rarity.values())
    for age, commit in enumerate(commits):
        touched = [scene.index.by_path[p].id for p in commit.paths if p in scene.index.by_path]
        touched = [f for f in touched if scene.product_files[f] > 0]
        if not touched or total <= 0:
            continue
        terms = {t for w in WORD.findall(commit.message) for t in scene.index.terms.of(w)}
        alike = sum(rarity[t] for t in sorted(terms) if t in rarity) / total
        value = alike * 0.5 ** (age / HALF) / math.sqrt(len(touched))
        for file in touched:
            files[file] = max(files[file], value)
    return Signal(np.zeros(scene.n_units), scaled(files))
