"""Neighbours of a place that no call shows: the method it overrides, and what its file imports."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source.parse import FUNCTION_KINDS
from resources.tools.source.scene import Scene, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from resources.tools.source.reader import Floats

MAX_CLASSES = 3
"""A class name with more definitions says nothing about who is derived from whom."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_SEPARATOR = re.compile(r"\.|::")


def overriding(scene: Scene, units: Floats) -> Floats:
    """Return per method the square of the best text score of the methods it overrides.

    A report describes what the base class promises; where it fails is in the class that does it its own way.
    """
    sharp = scaled(units * scene.product_units) ** 2
    result = np.zeros(scene.n_units)
    for own, base in _overrides(scene):
        result[own] = max(result[own], float(sharp[base]))
    return result


def _overrides(scene: Scene) -> Iterator[tuple[int, int]]:
    """Yield the units of an overriding method and of the method it overrides."""
    own = [s for s in scene.index.symbols if scene.product_files[s.file] > 0]
    counts: dict[str, int] = {}
    bases: dict[str, set[str]] = {}
    for s in own:
        if s.kind == "class":
            counts[s.name] = counts.get(s.name, 0) + 1
            bases.setdefault(s.name, set()).update(_NAME.findall(s.bases))
    methods: dict[str, dict[str, int]] = {}
    for s in own:
        if s.kind in FUNCTION_KINDS and (owner := _owner(s.qualname)) and counts.get(owner, 0) <= MAX_CLASSES:
            methods.setdefault(owner, {}).setdefault(s.name, s.unit)
    for derived in sorted(methods):
        for base in sorted(bases.get(derived, set()) - {derived}):
            above = methods.get(base, {})
            for name, unit in methods[derived].items():
                if above.get(name, unit) != unit:
                    yield unit, above[name]


def _owner(qualname: str) -> str:
    """Return the name of the class around a definition, or nothing."""
    parts = _SEPARATOR.split(qualname)
    return parts[-2] if len(parts) > 1 else ""


IMPORTERS = 8
"""How many of the files most like the report are asked what they import."""
_HEAD = 400_000
_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]{0,4000}\)|[^\n#]+)|import[ \t]+([\w., ]+))",
    re.MULTILINE,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_DOTTED = re.compile(r"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]+)[ \t]*;", re.MULTILINE)
_QUOTED = re.compile(r"""(?:\bfrom|\bimport|\brequire[ \t]*\(?)[ \t]*['"](\.[^'"\n]+)['"]""")


def imported(scene: Scene, files: Floats) -> Floats:
    """Return per file how much the files most like the report import it, by the square of their scores."""
    result = np.zeros(scene.n_files)
    for number in np.argsort(-files, kind="stable")[:IMPORTERS].tolist():
        if files[number] <= 0:
            break
        found = _imports(scene, number)
        for other in sorted(found):
            result[other] += float(files[number]) ** 2 / math.sqrt(len(found))
    return scaled(result * scene.product_files)


def _imports(scene: Scene, number: int) -> set[int]:
    """Return the product files that a file imports or includes, as far as its text tells."""
    row = scene.index.files[number]
    with (scene.root / row.path).open("rb") as stream:
        text = stream.read(_HEAD).decode("utf-8", "replace")
    folder = row.path.split("/")[:-1]
    found: set[int] = set()
    if row.language == "python":
        for dotted in _python_modules(text, folder):
            module = scene.module_file(dotted)
            if module is not None:
                found.add(module.id)
    else:
        ends = [f"/{e}" for e in _INCLUDE.findall(text)]
        ends += ["/" + "/".join(d.split(".")) + ".java" for d in _DOTTED.findall(text)]
        ends += ["/" + e.lstrip("./") for e in _QUOTED.findall(text)]
        found.update(_ending(scene, row.language, ends))
    return found - {number}


def _python_modules(text: str, folder: list[str]) -> Iterator[str]:
    for source, names, modules in _PYTHON.findall(text):
        if modules:
            yield from (m.split()[0] for m in modules.split(",") if m.split())
            continue
        relative = len(source) - len(source.lstrip("."))
        parts = [p for p in source.split(".") if p]
        if relative:
            parts = folder[: len(folder) - relative + 1] + parts
        yield ".".join(parts)
        for name in _NAME.findall(names):
            yield ".".join([*parts, name])


def _ending(scene: Scene, language: str, ends: list[str]) -> Iterator[int]:
    """Yield the files whose path ends like one of `ends`; a header stands for its source file as well."""
    wanted = {e.rsplit(".", 1)[0] for e in ends}
    for row in scene.index.files:
        if row.language == language or {row.language, language} <= {"c", "cpp"}:
            stem = "/" + row.path.rsplit(".", 1)[0]
            if any(stem[at:] in wanted for at, c in enumerate(stem) if c == "/"):
                yield row.id
