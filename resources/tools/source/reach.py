"""What the code in a report calls, and what that reaches in the tree.

The code blocks of a report are read with patterns, not run: imports give names their modules,
assignments give variables their classes, and attribute calls are looked up in those classes and
their bases first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from resources.tools.source.parse import FUNCTION_KINDS
from resources.tools.source.reader import SymbolRow
from resources.tools.source.scene import Scene
from resources.tools.source.text import split_code

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats

_FROM = re.compile(r"^\s*(?:>>>\s*)?from\s+([\w.]+)\s+import\s+\(?([^\n#)]+)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:>>>\s*)?import\s+([\w., ]+)", re.MULTILINE)
_JS_IMPORT = re.compile(r"import\s+(?:\{([^}]*)\}|(\w+))\s+from\s+['\"]([^'\"]+)['\"]")
_ASSIGN = re.compile(
    r"^\s*(?:>>>\s*)?(?:(?:const|let|var|auto)\s+)?([\w, ()]+?)\s*=\s*([\w.]+)\s*\(", re.MULTILINE
)
_WITH = re.compile(r"\bwith\s+([\w.]+)\s*\([^\n]*\)\s+as\s+(\w+)")
_CHAIN = re.compile(r"[A-Za-z_]\w*(?:\s{0,20}\.\s{0,20}[A-Za-z_]\w*){0,9}")
_AFTER_CALL = re.compile(r"[)\]]\s*\.\s*([A-Za-z_]\w*)")
_OPERATORS = (
    (re.compile(r"[\w)\]]\s*\*\s*[\w(]"), ("__mul__", "__rmul__")),
    (re.compile(r"[\w)\]]\s*\+\s*[\w(]|\bsum\("), ("__add__", "__radd__")),
    (re.compile(r"[\w)\]]\s+-\s+[\w(]"), ("__sub__", "__rsub__")),
    (re.compile(r"[\w)\]]\s*/\s*[\w(]"), ("__truediv__", "__rtruediv__", "__div__")),
    (re.compile(r"[\w)\]]\s*\*\*\s*[\w(]"), ("__pow__", "__rpow__")),
    (re.compile(r"[\w)\]]\s*@\s*[\w(]"), ("__matmul__", "__rmatmul__")),
    (re.compile(r"[\w)\]]\["), ("__getitem__",)),
    (re.compile(r"\]\s*=[^=]"), ("__setitem__",)),
    (re.compile(r"==|!="), ("__eq__", "__ne__")),
    (re.compile(r"\blen\("), ("__len__",)),
    (re.compile(r"\bstr\(|\bprint\("), ("__str__", "__repr__")),
    (re.compile(r"\bfor\s+\w+\s+in\b|\blist\("), ("__iter__",)),
)
"""Operators of Python source and the methods they call."""
_LOCAL = re.compile(
    r"\b(?:def|class|function|fn|func)\s+(\w+)|\bfor\s+([\w, ]+?)\s+in\b|\blambda\s+([\w, ]+):"
)
_BASES = re.compile(r"\bclass\s+\w+\s*\(([^)]*)\)")


class Use(NamedTuple):
    """One name used by the code of a report; `owner` is the class it is looked up in, when known."""

    name: str
    module: str
    owner: str
    called: bool


class Script(NamedTuple):
    """The uses in the code blocks, the top-level modules they import, and what its variables are made by."""

    uses: list[Use]
    modules: list[str]
    code: str
    makers: list[str]


def read_script(blocks: list[str]) -> Script:
    """Read the code blocks of a report as one script."""
    code = "\n".join(split_code(b, "python").code for b in blocks)
    imported, modules = _imports(code)
    local = {n.strip() for groups in _LOCAL.findall(code) for g in groups for n in g.split(",") if n.strip()}
    types = _types(code, imported)
    uses: dict[Use, None] = {}
    for bases in _BASES.findall(code):
        for base in _CHAIN.findall(bases):
            uses[_use(base, imported, types, called=True)] = None
    for match in _CHAIN.finditer(code):
        chain = re.sub(r"\s", "", match.group())
        called = code[match.end() : match.end() + 2].lstrip().startswith("(")
        if _means_something(chain, imported, types, local, called=called):
            parts = chain.split(".")
            for end in range(1, len(parts) + 1):
                use = _use(".".join(parts[:end]), imported, types, called=called and end == len(parts))
                uses[use] = None
    for name in _AFTER_CALL.findall(code):
        uses[Use(name, "", "", called=False)] = None
    for name, origin in imported.items():
        if name not in local:
            uses[_use(name, {name: origin}, {}, called=False)] = None
    return Script([u for u in uses if u.name], sorted(modules), code, sorted(set(types.values())))


def _means_something(
    chain: str, imported: dict[str, str], types: dict[str, str], local: set[str], *, called: bool
) -> bool:
    """A name of the script's own says nothing; a bare word only counts when it is imported or called."""
    first = chain.split(".", maxsplit=1)[0]
    return first not in local and (first in imported or first in types or "." in chain or called)


def _imports(code: str) -> tuple[dict[str, str], set[str]]:
    """Return what each imported name stands for, and the modules."""
    imported: dict[str, str] = {}
    modules: set[str] = set()
    for module, names in _FROM.findall(code):
        for item in names.split(","):
            words = item.split()
            if words and words[0].isidentifier():
                imported[words[-1]] = f"{module}.{words[0]}"
                modules.add(module)
    for names in _IMPORT.findall(code):
        for item in names.split(","):
            words = item.split()
            if words:
                imported[words[-1] if len(words) == 3 else words[0].split(".")[0]] = words[0]
                modules.add(words[0])
    return imported, modules


def _types(code: str, imported: dict[str, str]) -> dict[str, str]:
    types: dict[str, str] = {}
    pairs = [(t, c) for t, c in _ASSIGN.findall(code)] + [(v, c) for c, v in _WITH.findall(code)]
    for target, call in pairs:
        first, _, rest = call.partition(".")
        origin = imported.get(first, types.get(first, first))
        for name in re.findall(r"\w+", target):
            types[name] = f"{origin}.{rest}" if rest else origin
    return types


def _use(chain: str, imported: dict[str, str], types: dict[str, str], *, called: bool) -> Use:
    """Return what a dotted chain ends in, with the module or the class before it."""
    first, _, rest = chain.partition(".")
    if first in imported:
        whole = f"{imported[first]}.{rest}" if rest else imported[first]
        module, _, name = whole.rpartition(".")
        return Use(name or whole, module or whole, module.rsplit(".", 1)[-1], called)
    if first in types and rest:
        owner = types[first].rsplit(".", 1)[-1]
        return Use(rest.rsplit(".", 1)[-1], "", owner if "." not in rest else "", called)
    if first in types:
        return Use("", "", "", called)
    return Use(chain.rsplit(".", 1)[-1], "", chain.split(".")[-2] if "." in chain else "", called)


def own_module(scene: Scene, module: str) -> bool:
    """Say whether a module can belong to the tree: its first part is a folder or file of product code."""
    return module.split(".", maxsplit=1)[0].replace("-", "_") in scene.top_names


def reached(scene: Scene) -> tuple[Floats, list[str]]:
    """Return for each unit how directly the report's code names it, and the names that were found."""
    script = read_script(scene.report.blocks)
    result = np.zeros(scene.n_units)
    names: list[str] = []
    makers = [
        m.rsplit(".", 1)[-1] for m in script.makers if "." not in m or own_module(scene, m.rsplit(".", 1)[0])
    ]
    for use in script.uses:
        if use.module and not own_module(scene, use.module):
            continue
        definitions = _narrow(scene, use)
        if not definitions:
            continue
        names.append(use.name)
        makers += [m for s in definitions if s.kind == "variable" for m in _made_by(scene, s)]
        weight = 1.0 / len(definitions) ** 0.7
        if not use.module and not use.owner:
            weight *= 0.6
        for symbol in definitions:
            for unit, value in _entry(scene, symbol):
                result[unit] = max(result[unit], weight * value)
    _operators(scene, script.code, makers, result)
    return result, names


_MAKER = re.compile(rb"=\s*(?:new\s+)?(?:\w+\s*\.\s*)*([A-Za-z_]\w*)\s*\(")


def _made_by(scene: Scene, variable: SymbolRow) -> list[str]:
    """Return what a module-level variable is made by: the last name called in its assignment."""
    data = (scene.root / scene.index.files[variable.file].path).read_bytes()
    found = _MAKER.search(data, variable.start, variable.end)
    return [found.group(1).decode()] if found else []


def _operators(scene: Scene, code: str, makers: list[str], result: Floats) -> None:
    """Add the operator methods of the classes that the code holds objects of, and of files it reaches."""
    touched = scene.to_files(np.where(result > 0.25, result, 0.0))
    held = frozenset(name for maker in sorted(set(makers)) for name in scene.family(maker))
    for pattern, methods in _OPERATORS:
        if not pattern.search(code):
            continue
        for method in methods:
            for symbol in scene.product_definitions(method):
                owner = symbol.qualname.rsplit(".", 2)[-2:-1]
                value = 1.0 if owner and owner[0] in held else 0.6 * float(touched[symbol.file])
                result[symbol.unit] = max(result[symbol.unit], value)


def _narrow(scene: Scene, use: Use) -> list[SymbolRow]:
    found = [s for s in scene.product_definitions(use.name) if s.kind != "variable" or use.module]
    if use.owner:
        family = scene.family(use.owner)
        inside = [
            s for s in found if s.qualname.rsplit(".", 2)[-2:-1] and s.qualname.rsplit(".", 2)[-2] in family
        ]
        if inside:
            return inside
    if use.module:
        parts = use.module.split(".")
        best = max((_overlap(parts, scene.index.files[s.file].path) for s in found), default=0)
        found = [s for s in found if _overlap(parts, scene.index.files[s.file].path) == best]
    return found if len(found) <= 30 else []


def _overlap(parts: list[str], path: str) -> int:
    """Count how many parts of a module name stand in a path in order."""
    segments = re.split(r"[/.]", path)
    at = count = 0
    for part in parts:
        if part in segments[at:]:
            at = segments.index(part, at) + 1
            count += 1
    return count


def _entry(scene: Scene, symbol: SymbolRow) -> list[tuple[int, float]]:
    """Return the units that a use of a definition enters: a class by its constructor, methods a little."""
    if symbol.kind in FUNCTION_KINDS:
        return [(symbol.unit, 1.0)]
    if symbol.kind != "class":
        return [(symbol.unit, 0.5)]
    result = [(symbol.unit, 0.7)]
    constructor = scene.graph.constructor.get(symbol.id)
    if constructor is not None:
        result.append((constructor, 1.0))
    result += [
        (other.unit, 0.3)
        for other in scene.index.symbols_of(symbol.file)
        if other.kind in FUNCTION_KINDS
        and symbol.start < other.start < symbol.end
        and other.unit != constructor
    ]
    return result
