"""`source.search` and `source.references`: matches, their places, and the lines around the first ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from resources.tools.source import arguments as contract
from resources.tools.source import outline as names
from resources.tools.source import search as engine
from resources.tools.source.lines import LineMap
from resources.tools.source.view import MAX_BYTES, View, as_json
from viano_assets.evidence.model import Completeness, Draft, Location, ToolResult

EXCERPTS = 8
"""How many matches of a search come with their lines."""
_CLIP = 400
_BOM = b"\xef\xbb\xbf"


class _Row(NamedTuple):
    """A match by its lines; `at` is the byte where the first match on them begins."""

    path: str
    first: int
    last: int
    at: int


def search(view: View, given: dict[str, Any], a: contract.SearchArguments) -> ToolResult:
    """Find a literal or a regular expression in every file."""
    found = engine.run(
        view.root, a.pattern, regex=a.regex, ignore_case=a.ignore_case, globs=a.globs, limit=a.limit,
        foreign=view.foreign,
    )  # fmt: skip
    scope = view.scope(pattern=a.pattern, regex=a.regex, ignore_case=a.ignore_case, globs=list(a.globs))
    return _answer(view, "source.search", given, found, scope, a.context)


def references(view: View, given: dict[str, Any], a: contract.ReferenceArguments) -> ToolResult:
    """Find a name as a whole word; textual, so a comment or another thing of that name is found as well."""
    name = names.parts(a.name)[-1]
    found = engine.run(view.root, name, whole_word=True, globs=a.globs, limit=a.limit, foreign=view.foreign)
    scope = view.scope(name=name, kind="textual", globs=list(a.globs))
    return _answer(view, "source.references", given, found, scope, 0)


def _answer(
    view: View, tool: str, given: dict[str, Any], found: engine.Found, scope: dict[str, Any], context: int
) -> ToolResult:
    if found.cause == "bad_pattern":
        return view.unavailable(tool, given, f"pattern: {found.message}")
    cause = found.cause
    completeness = Completeness.TRUNCATED if cause else view.whole()
    if not cause and view.unsearched:
        completeness, cause = Completeness.PARTIAL, view.unsearched
    if not found.cause:
        scope["files_searched"] = found.files_searched
    rows = _rows(view, found)
    if not rows:
        return view.result(tool, given, scope, (), completeness=completeness, cause=cause)
    listing, cut = _listing(view, rows)
    if cut and not cause:
        completeness, cause = Completeness.TRUNCATED, cut
    places = dict.fromkeys(view.place(r.path, r.first, r.last) for r in rows)
    drafts = [
        Draft(
            content=listing,
            provenance=view.provenance("search", Location()),
            completeness=completeness,
            places=tuple(places),
        )
    ]
    for path, first, last in _blocks(rows, context):
        symbol = view.place(path, min(first + context, last), last).symbol
        drafts += view.excerpt(path, first, last, symbol, Completeness.COMPLETE, MAX_BYTES // 2)
    return view.result(tool, given, scope, drafts, completeness=completeness, cause=cause)


def _shift(lines: LineMap) -> int:
    """The search counts from behind a UTF-8 byte order mark."""
    return len(_BOM) if lines.data.startswith(_BOM) else 0


def _rows(view: View, found: engine.Found) -> list[_Row]:
    rows: list[_Row] = []
    for match in found.matches:
        lines = view.file(match.path)
        start = match.start + _shift(lines)
        first = lines.line_at(start)
        last = lines.line_at(max(start, match.end - 1 + _shift(lines)))
        if not rows or rows[-1][:3] != (match.path, first, last):
            rows.append(_Row(match.path, first, last, start))
    return rows


def _listing(view: View, rows: Sequence[_Row]) -> tuple[str, str | None]:
    """Return one JSON line per match, long lines cut around the match, and what was cut."""
    out: list[str] = []
    used = 0
    cut: str | None = None
    for row in rows:
        lines = view.file(row.path)
        begin, end = lines.span(row.first, row.last)
        entry: dict[str, Any] = {"path": row.path, "line": row.first}
        if end - begin > _CLIP:
            begin, end = max(begin, row.at - 150), min(end, row.at + 250)
            entry["clipped"] = True
            cut = "long_line"
        entry["text"] = lines.cut(begin, end).rstrip("\r\n")
        symbol = view.enclosing(row.path, row.first)
        if symbol:
            entry["symbol"] = symbol.qualname
        line = as_json(entry)
        used += len(line) + 1
        if used > MAX_BYTES:
            return "\n".join(out), "byte_cap"
        out.append(line)
    return "\n".join(out), cut


def _blocks(rows: Sequence[_Row], context: int) -> list[tuple[str, int, int]]:
    """Join matches whose surroundings touch, at most `EXCERPTS` blocks."""
    blocks: list[tuple[str, int, int]] = []
    for row in rows:
        begin, end = max(1, row.first - context), row.last + context
        if blocks and blocks[-1][0] == row.path and begin <= blocks[-1][2] + 1:
            blocks[-1] = (row.path, blocks[-1][1], max(end, blocks[-1][2]))
        elif len(blocks) < EXCERPTS:
            blocks.append((row.path, begin, end))
        else:
            break
    return blocks
