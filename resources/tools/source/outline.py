"""Lists definitions: of a name over the tree, and of one file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from resources.tools.source.languages import Role
from resources.tools.source.reader import SourceIndex, SymbolRow
from viano_assets.evidence.model import Location

_ROLE_ORDER = {Role.PRODUCT: 0, Role.OTHER: 1, Role.VENDORED: 2, Role.EXAMPLE: 3, Role.TEST: 4, Role.DOCS: 5}
_ROLE_ORDER[Role.GENERATED] = 2
_OPERATOR = re.compile(r"\boperator\s*[^\w\s].*$", re.DOTALL)


def parts(name: str) -> list[str]:
    """Return the parts of a qualified name however it joins them: `A.b`, `A::b`, `A->b`, `A:b`, `A#b`."""
    operator = _OPERATOR.search(name)
    head = name[: operator.start()] if operator else name
    found = [p for p in re.split(r"::|->|[.:#]", head) if p]
    return [*found, operator.group()] if operator else found or [name]


def matching(rows: Sequence[SymbolRow], name: str) -> list[SymbolRow]:
    """Return the rows a written name can mean: exact qualified names first, then endings of them."""
    wanted = parts(name)
    exact = [r for r in rows if r.qualname == name]
    ending = [r for r in rows if parts(r.qualname)[-len(wanted) :] == wanted and r.qualname != name]
    return exact + ending


def definitions(index: SourceIndex, name: str) -> list[SymbolRow]:
    """Return the definitions a short or qualified name can mean, product code first."""
    rows = matching(index.symbols_named(parts(name)[-1]), name)
    return sorted(rows, key=lambda r: (_ROLE_ORDER[index.files[r.file].role], r.id))


def listing(index: SourceIndex, rows: Sequence[SymbolRow], limit: int) -> tuple[str, tuple[Location, ...]]:
    """Return one JSON line per definition, as many as fit `limit` characters, and their places."""
    lines: list[str] = []
    places: list[Location] = []
    used = 0
    for r in rows:
        path = index.files[r.file].path
        entry = {"path": path, "symbol": r.qualname, "kind": r.kind, "lines": [r.line_start, r.line_end]}
        line = json.dumps(entry, ensure_ascii=False, sort_keys=True)
        used += len(line) + 1
        if used > limit:
            break
        lines.append(line)
        places.append(Location(path=path, symbol=r.qualname, line_start=r.line_start, line_end=r.line_end))
    return "\n".join(lines), tuple(places)
