"""The signals that lead from a report to places: each gives a score per unit and per file."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from resources.tools.source.languages import Role
from resources.tools.source.reach import reached
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


def empty(scene: Scene) -> Signal:
    """Return a signal that says nothing."""
    return Signal(np.zeros(scene.n_units), np.zeros(scene.n_files))


def report_query(scene: Scene) -> dict[str, float]:
    """Return the weighted terms of the whole report."""
    report = scene.report
    parts = [(report.title, 2.0), *report.prose]
    parts += [(s, 0.5) for s in report.spans]
    parts += [(b, 0.3) for b in report.blocks]
    return scene.query(parts)


def product_only(scene: Scene, units: Floats, files: Floats) -> Signal:
    """Keep product code and scale."""
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


def _modules(scene: Scene) -> list[str]:
    """Return dotted names in the prose and the code spans."""
    text = "\n".join(
        [scene.report.title, *scene.report.spans, *(p for p, w in scene.report.prose if w >= 0.5)]
    )
    return list(dict.fromkeys(_MODULE.findall(text)))


def enclosing(scene: Scene, row: FileRow, frame: Frame) -> SymbolRow | None:
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


FRAME_DECAY = 0.8
SHARED = 0.35
OTHER_MESSAGE = 0.7
"""Weight of a quoted text against the text of an exception."""


def shared(scene: Scene, unit: int) -> float:
    """Return the discount of a function by its callers in product code: helpers raise and report for others.

    Tests are no such callers: what is tested most is the public face, not a helper.
    """
    return 1.0 / (1.0 + SHARED * math.log1p(max(0.0, float(scene.graph.product_callers[unit]) - 1.0)))


def frames(scene: Scene) -> Signal:
    """Stack frames in own code; the innermost weighs most, each further out less."""
    result = empty(scene)
    weight = 1.0
    for frame in reversed(scene.report.frames):
        rows = [r for r in find_file(scene, frame.path) if scene.product_files[r.id] > 0]
        if len(rows) != 1:
            continue
        symbol = enclosing(scene, rows[0], frame)
        value = weight
        if symbol is not None:
            value *= shared(scene, symbol.unit)
            result.units[symbol.unit] = max(result.units[symbol.unit], value)
        result.files[rows[0].id] = max(result.files[rows[0].id], value)
        weight *= FRAME_DECAY
    return result


def explained(scene: Scene, printed: Floats) -> Floats:
    """Return per unit how much of its other signals is left once the message it prints is known.

    A helper that raises for many callers shares its words with the report because the report quotes its
    message; `printed` says how well each unit's literals match.
    """
    left = np.ones(scene.n_units)
    for unit in np.flatnonzero(printed).tolist():
        left[unit] *= shared(scene, unit)
    return left


_MODULE = re.compile(r"\b[a-z_]\w*(?:\.[A-Za-z_]\w*){1,6}\b")


def paths(scene: Scene) -> Signal:
    """Files and modules the report names outside stack frames; a bare file name counts less."""
    result = empty(scene)
    framed = {f.path for f in scene.report.frames}
    for written in dict.fromkeys(scene.report.paths):
        rows = [r for r in find_file(scene, written) if scene.product_files[r.id] > 0]
        for row in rows[:3] if written not in framed else ():
            value = 1.0 if "/" in written or "\\" in written else 0.4
            result.files[row.id] = max(result.files[row.id], value / len(rows))
    for dotted in _modules(scene):
        module = scene.module_file(dotted)
        if module is not None:
            result.files[module.id] = max(result.files[module.id], 0.5)
    spread = result.files[scene.index.unit_file]
    return Signal(spread * 0.3, result.files)


def _mentions(scene: Scene) -> dict[str, float]:
    """Return identifiers of the report with how much each was meant as one."""
    report = scene.report
    found: dict[str, float] = {}

    def put(name: str, weight: float) -> None:
        found[name] = max(found.get(name, 0.0), weight)

    for span in report.spans:
        whole = IDENTIFIER.fullmatch(span.strip().rstrip("()"))
        for match in IDENTIFIER.finditer(span):
            if not whole and not code_like(match.group()):
                continue
            put(match.group(), 1.0 if whole else 0.6)
    for line, weight in [(report.title, 1.0), *report.prose]:
        for match in IDENTIFIER.finditer(line):
            if code_like(match.group()):
                put(match.group(), 0.8 * weight)
    return found


def _owner(symbol: SymbolRow) -> str:
    """Return the name of the class or namespace right around a definition."""
    parts = re.split(r"\.|::", symbol.qualname)
    return parts[-2] if len(parts) > 1 else ""


def identifiers(scene: Scene) -> Signal:
    """Identifiers of the report that a file defines (not merely mentions).

    A qualified name or the only definition of a name counts whole, one of many by their number.
    """
    result = empty(scene)
    files: dict[int, float] = {}
    for written, weight in sorted(_mentions(scene).items()):
        parts = [p for p in re.split(r"\.|::|->", written) if len(p) > 2]
        for position, name in enumerate(parts):
            definitions = scene.product_definitions(name)
            qualified = [d for d in definitions if position and _owner(d) == parts[position - 1]]
            meant = qualified or definitions
            value = weight * (1.0 if name == parts[-1] else 0.5) / (1.0 + math.log2(len(meant) or 1))
            for symbol in meant:
                result.units[symbol.unit] = max(result.units[symbol.unit], value)
            for file in {symbol.file for symbol in meant}:
                files[file] = files.get(file, 0.0) + value
    for file, value in files.items():
        result.files[file] = 1.0 - math.exp(-1.5 * value)
    return result


_PLACEHOLDER = re.compile(r"%[-+#0-9.]*[sdrfgixX]|%\(\w+\)[sdrf]|\{[^{}]*\}|\$\{?\w+\}?|\\[nrt\"']")
_EDGE = re.compile(r"^[rRbBuUfFL]*(\"\"\"|'''|\"|'|`)|(\"\"\"|'''|\"|'|`)$")


def fixed_words(literal: str) -> list[list[str]]:
    """Return the words of a literal between its placeholders."""
    return [WORD.findall(p.lower()) for p in _PLACEHOLDER.split(_EDGE.sub("", literal))]


def literals(scene: Scene) -> Signal:
    """Messages of the report matched to the string literals that print them."""
    result = empty(scene)
    report = scene.report
    graded = [(m, 1.0) for m in report.errors] + [(m, OTHER_MESSAGE) for m in report.messages]
    messages = [(m, w) for m, w in graded if len(m.split()) >= 2 and not _RUNTIME.search(m)]
    if not messages:
        return result
    query: dict[str, float] = {}
    for message, _ in messages:
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
    texts = [(" " + " ".join(WORD.findall(m.lower())) + " ", w) for m, w in messages]
    for unit in np.argsort(-scores, kind="stable")[:400]:
        if scores[unit] <= 0:
            break
        best = 0.0
        for literal in scene.index.literals(int(unit)):
            best = max(best, coverage_of(literal, texts))
        if best > 0:
            result.units[unit] = best * shared(scene, int(unit))
    return Signal(result.units, scene.to_files(result.units))


_RUNTIME = re.compile(
    r"unsupported operand type|object has no attribute|object is not (?:callable|iterable|subscriptable)"
    r"|can only concatenate|not supported between instances|takes \d+ positional|got an unexpected keyword"
    r"|missing \d+ required|codec can't (?:de|en)code|list index out of range|No module named"
    r"|segmentation fault|null pointer|cannot read propert|is not a function|maximum recursion depth"
    r"|dictionary changed size|invalid literal for int|too many values to unpack|not enough values to unpack",
    re.IGNORECASE,
)
"""Messages of language runtimes; the tree's own strings are not where they come from."""


def coverage_of(literal: str, texts: list[tuple[str, float]]) -> float:
    """Return how much of a literal's fixed text stands in one message, for longer texts more."""
    pieces = [p for p in fixed_words(literal) if p]
    total = sum(len(p) for p in pieces)
    if total < 2:
        return 0.0
    best = 0.0
    for words, weight in texts:
        hit = 0
        for piece in pieces:
            if f" {' '.join(piece)} " in words:
                hit += len(piece)
        if hit >= 2:
            share = hit / total
            best = max(best, weight * share * min(1.0, hit / 4.0) if share >= 0.5 else 0.0)
    return best


def rare_terms(scene: Scene) -> Signal:
    """Whole identifiers of the report (settings, parameters, functions) wherever the code uses them."""
    report = scene.report
    parts = [(s, 1.0) for s in report.spans] + list(report.prose) + [(report.title, 1.0)]
    parts += [(b, 0.5) for b in report.blocks]
    query = {t: v for t, v in scene.query(parts).items() if t.startswith("=")}
    if not query:
        return empty(scene)
    units, files = scene.bm25.score(query)
    return product_only(scene, units, files)


def coverage(scene: Scene, query: dict[str, float]) -> Signal:
    """How much of the query, by rarity, stands in a unit at all, however often."""
    units = np.zeros(scene.n_units)
    total = 0.0
    for term in sorted(query):
        number = scene.index.vocabulary.get(term)
        if number is None or query[term] <= 0:
            continue
        where = np.unique(np.concatenate([f.posting(number)[0] for f in scene.index.fields.values()]))
        if not len(where) or len(where) > scene.n_units / 3:
            continue
        value = query[term] * math.log(1 + scene.n_units / len(where)) ** 2
        units[where] += value
        total += value
    return Signal(scaled(units * scene.product_units), scene.to_files(scaled(units * scene.product_units)))


def around(scene: Scene, units: Floats) -> tuple[Signal, Signal]:
    """Scores of what a unit is called by, and of what it calls: a symptom shows next to its cause."""
    sharp = scaled(units * scene.product_units) ** 2
    below = scene.graph.down(sharp) * scene.product_units
    above = scene.graph.up(sharp) * scene.product_units
    return _both(scene, below), _both(scene, above)


def names(scene: Scene) -> Signal:
    """Words of title and text in the names themselves: of the function, of the file and its folders."""
    report = scene.report
    query = scene.query([(report.title, 2.0), *report.prose, *((s, 0.5) for s in report.spans)])
    result = empty(scene)
    field = scene.index.fields["name"]
    for term in sorted(query):
        number = scene.index.vocabulary.get(term)
        if number is not None and query[term] > 0 and not term.startswith("="):
            units, _ = field.posting(number)
            if len(units):
                result.units[units] += query[term] * math.log(1 + scene.n_units / len(units))
    result.units[:] *= scene.product_units / np.sqrt(np.maximum(2.0, field.lengths))
    terms = [set(scene.path_terms(f.path)) if scene.product_files[f.id] else set() for f in scene.index.files]
    counts: dict[str, int] = {}
    for own in terms:
        for term in own:
            counts[term] = counts.get(term, 0) + 1
    for number, own in enumerate(terms):
        score = sum(query[t] * math.log(1 + scene.n_files / counts[t]) for t in sorted(own) if t in query)
        result.files[number] = score / math.sqrt(max(2, len(own)))
    return Signal(scaled(result.units), scaled(result.files))


def reach(scene: Scene) -> tuple[Signal, Signal]:
    """What the report's code calls directly, and what that calls in turn."""
    direct, _ = reached(scene)
    direct *= scene.product_units
    further = scene.graph.down(direct)
    second = scene.graph.down(further)
    further = np.sqrt((further + 0.7 * second + 0.5 * scene.graph.down(second)) * scene.product_units)
    return _both(scene, direct), _both(scene, further)


def _both(scene: Scene, units: Floats) -> Signal:
    """Spread unit scores to files: the best one and a little of the sum."""
    files = scene.to_files(units) + 0.2 * np.log1p(
        np.bincount(scene.index.unit_file, weights=units, minlength=scene.n_files)
    )
    return Signal(scaled(units), scaled(files * scene.product_files))


TESTS = 25


def tests(scene: Scene, units: Floats) -> Signal:
    """Code that the tests most like the report exercise; `units` are the text scores of all units."""
    scores = units * scene.units_with_role(Role.TEST)
    order = np.argsort(-scores, kind="stable")[:TESTS]
    chosen = np.zeros(scene.n_units)
    chosen[order] = scores[order]
    if chosen.max() <= 0:
        return empty(scene)
    chosen /= chosen.max()
    found = scene.graph.down(chosen**2) * scene.product_units
    found = found / np.sqrt(1.0 + scene.graph.callers)
    result = _both(scene, found)
    stems: dict[str, float] = {}
    for unit in order.tolist():
        path = scene.index.files[scene.index.unit_file[unit]].path
        stem = re.sub(
            r"^tests?_?|_?tests?$", "", path.rsplit("/", 1)[-1].rsplit(".", 1)[0], flags=re.IGNORECASE
        )
        stems[stem.lower()] = stems.get(stem.lower(), 0.0) + float(chosen[unit]) ** 2
    named = np.array(
        [
            stems.get(f.path.rsplit("/", 1)[-1].rsplit(".", 1)[0].lower().strip("_"), 0.0)
            for f in scene.index.files
        ]
    )
    files = result.files + scaled(named * scene.product_files)
    return Signal(result.units, scaled(files))


DOCS = 12
_DOC_NAME = re.compile(
    r"`{1,2}~?([\w.:]+)(?:\(\))?`{1,2}|\b(\w+(?:_\w+)+)\b|\b([A-Z][a-z]+[A-Z]\w+)\b|\b(\w+(?:\.\w+)+)\b"
)


def docs(scene: Scene, units: Floats) -> Signal:
    """Names in the documentation most like the report, resolved to what defines them."""
    scores = units * scene.units_with_role(Role.DOCS)
    result = empty(scene)
    order = [u for u in np.argsort(-scores, kind="stable")[:DOCS].tolist() if scores[u] > 0]
    for unit in order:
        weight = float(scores[unit] / scores[order[0]]) ** 2
        row = scene.index.units[unit]
        data = (scene.root / scene.index.files[row.file].path).read_bytes()[row.start : row.end]
        found = {n for groups in _DOC_NAME.findall(data.decode("utf-8", "replace")) for n in groups if n}
        for name in sorted(found):
            definitions = scene.product_definitions(re.split(r"[.:]+", name)[-1])
            for symbol in definitions if len(definitions) <= 8 else ():
                value = weight / len(definitions) / math.sqrt(len(found))
                result.units[symbol.unit] += value
                result.files[symbol.file] += value
    return Signal(scaled(result.units), scaled(result.files))


def noticed(scene: Scene, units: Floats) -> Signal:
    """What the code that prints a matched message calls: a fault is noticed above where it is made."""
    below = scene.graph.down(units)
    return _both(scene, (below + 0.5 * scene.graph.down(below)) * scene.product_units)
