"""The signals that lead from a report to places: each gives a score per unit and per file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from resources.tools.source.reader import FileRow, SymbolRow
from resources.tools.source.report import IDENTIFIER, Frame, code_like
from resources.tools.source.scene import Scene, scaled
from resources.tools.source.text import WORD

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats


class Signal(NamedTuple):
    """Scores of one signal, 0 to 1, over units and over files."""

    units: Floats
    files: Floats


def _empty(scene: Scene) -> Signal:
    return Signal(np.zeros(scene.n_units), np.zeros(scene.n_files))


def text(scene: Scene) -> Signal:
    """BM25 of the whole report, sections and code weighted."""
    report = scene.report
    parts = [(report.title, 2.0), *report.prose]
    parts += [(s, 0.5) for s in report.spans]
    parts += [(b, 0.3) for b in report.blocks]
    units, files = scene.bm25.score(scene.query(parts))
    return Signal(scaled(units * scene.product_units), scaled(files * scene.product_files))


def title(scene: Scene) -> Signal:
    """BM25 of the title alone."""
    units, files = scene.bm25.score(scene.query([(scene.report.title, 1.0)]))
    return Signal(scaled(units * scene.product_units), scaled(files * scene.product_files))


def find_file(scene: Scene, written: str) -> list[FileRow]:
    """Return the files of the tree a written path can mean, by its longest matching end."""
    parts = [p for p in re.split(r"[\\/]+", written) if p not in {"", ".", "..", "..."}]
    if not parts:
        return []
    best: list[FileRow] = []
    best_length = 0
    for row in scene.index.files:
        if not row.path.endswith(parts[-1]):
            continue
        own = row.path.split("/")
        if own[-1] != parts[-1]:
            continue
        length = 0
        while length < min(len(own), len(parts)) and own[-1 - length] == parts[-1 - length]:
            length += 1
        if length > best_length:
            best, best_length = [row], length
        elif length == best_length:
            best.append(row)
    if best_length < min(len(parts), 2) and any(len(b.path.split("/")) > best_length for b in best):
        return []
    return best


def _enclosing(scene: Scene, row: FileRow, frame: Frame) -> SymbolRow | None:
    """Return the function a frame stands in: by name and line, by name, or by line."""
    symbols = [s for s in scene.index.symbols_of(row.id) if s.kind in {"function", "method"}]
    name = re.split(r"\.|::", frame.function)[-1]
    named = [s for s in symbols if s.name == name]
    holding = [s for s in symbols if s.line_start <= frame.line <= s.line_end]
    both = [s for s in holding if s.name == name]
    if both:
        return both[-1]
    if named:
        return min(named, key=lambda s: (abs(s.line_start - frame.line), s.id)) if frame.line else named[0]
    return holding[0] if holding and not name else None


FRAME_DECAY = 0.75


def frames(scene: Scene) -> Signal:
    """Stack frames in own code; the innermost weighs most, each further out less."""
    result = _empty(scene)
    weight = 1.0
    for frame in reversed(scene.report.frames):
        rows = [r for r in find_file(scene, frame.path) if scene.product_files[r.id] > 0]
        if len(rows) != 1:
            continue
        symbol = _enclosing(scene, rows[0], frame)
        result.files[rows[0].id] = max(result.files[rows[0].id], weight)
        if symbol is not None:
            result.units[symbol.unit] = max(result.units[symbol.unit], weight)
        weight *= FRAME_DECAY
    return result


def paths(scene: Scene) -> Signal:
    """Files and modules the report names."""
    result = _empty(scene)
    for written in dict.fromkeys(scene.report.paths):
        rows = [r for r in find_file(scene, written) if scene.product_files[r.id] > 0]
        for row in rows[:3]:
            result.files[row.id] = max(result.files[row.id], 1.0 / len(rows))
    spread = result.files[scene.index.unit_file]
    return Signal(spread * 0.3, result.files)


def _mentions(scene: Scene) -> dict[str, float]:
    """Return identifiers of the report with how much each was meant as one."""
    report = scene.report
    found: dict[str, float] = {}

    def put(name: str, weight: float) -> None:
        found[name] = max(found.get(name, 0.0), weight)

    for span in report.spans:
        for match in IDENTIFIER.finditer(span):
            parts = re.split(r"\.|::|->", match.group())
            for part in parts:
                put(part, 1.0 if part == parts[-1] else 0.6)
    for line, weight in [(report.title, 1.0), *report.prose]:
        for match in IDENTIFIER.finditer(line):
            if code_like(match.group()):
                for part in re.split(r"\.|::|->", match.group()):
                    put(part, 0.8 * weight)
    return found


def identifiers(scene: Scene) -> Signal:
    """Identifiers of the report that a file defines (not merely mentions)."""
    result = _empty(scene)
    for name, weight in sorted(_mentions(scene).items()):
        definitions = scene.product_definitions(name)
        if not definitions or len(name) < 3:
            continue
        rarity = 1.0 / (1.0 + np.log2(len(definitions)))
        for symbol in definitions:
            value = weight * rarity
            result.units[symbol.unit] += value
            result.files[symbol.file] += value
    return Signal(scaled(result.units), scaled(result.files))


_PLACEHOLDER = re.compile(r"%[-+#0-9.]*[sdrfgixX]|%\(\w+\)[sdrf]|\{[^{}]*\}|\$\{?\w+\}?|\\[nrt\"']")
_EDGE = re.compile(r"^[rRbBuUfFL]*(\"\"\"|'''|\"|'|`)|(\"\"\"|'''|\"|'|`)$")


def _fixed_words(literal: str) -> list[list[str]]:
    """Return the words of a literal between its placeholders."""
    return [WORD.findall(p.lower()) for p in _PLACEHOLDER.split(_EDGE.sub("", literal))]


def literals(scene: Scene) -> Signal:
    """Messages of the report matched to the string literals that print them."""
    result = _empty(scene)
    report = scene.report
    messages = [m for m in report.messages if len(m.split()) >= 2]
    if not messages:
        return result
    query: dict[str, float] = {}
    for message in messages:
        query.update(scene.query([(message, 1.0)]))
    field = scene.index.fields["string"]
    scores = np.zeros(scene.n_units)
    for term in sorted(query):
        number = scene.index.vocabulary.get(term)
        if number is not None:
            units, _ = field.posting(number)
            if len(units):
                scores[units] += np.log(1 + scene.n_units / len(units))
    scores *= scene.product_units
    texts = [" " + " ".join(WORD.findall(m.lower())) + " " for m in messages]
    for unit in np.argsort(-scores, kind="stable")[:400]:
        if scores[unit] <= 0:
            break
        best = 0.0
        for literal in scene.index.literals(int(unit)):
            best = max(best, _coverage(literal, texts))
        if best > 0:
            result.units[unit] = best
    return Signal(result.units, scene.to_files(result.units))


def _coverage(literal: str, texts: list[str]) -> float:
    """Return how much of a literal's fixed text stands in one message, for longer texts more."""
    pieces = [p for p in _fixed_words(literal) if p]
    total = sum(len(p) for p in pieces)
    if total < 2:
        return 0.0
    best = 0.0
    for words in texts:
        hit = 0
        for piece in pieces:
            if f" {' '.join(piece)} " in words:
                hit += len(piece)
        if hit >= 2:
            best = max(best, hit / total * min(1.0, hit / 4.0))
    return best if best >= 0.5 else 0.0
