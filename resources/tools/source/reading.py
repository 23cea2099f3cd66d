"""`source.read`, `symbol`, `outline`, `constant` and `rank` as results."""

from __future__ import annotations

from typing import Any

from resources.tools.source import arguments as contract
from resources.tools.source import constants
from resources.tools.source import outline as names
from resources.tools.source.lines import LineMap
from resources.tools.source.reader import SymbolRow
from resources.tools.source.view import MAX_BYTES, View, as_json
from viano_assets.evidence.model import Completeness, Draft, Location, ToolResult

MAX_LINES = 200
READ_LIMIT = 64_000_000


def read(view: View, given: dict[str, Any], a: contract.ReadArguments) -> ToolResult:
    """Read exact lines of a file, by span or by function; capped at `MAX_LINES` and `MAX_BYTES`."""
    target = view.root / a.path
    scope = view.scope(path=a.path)
    if not target.is_file() or target.is_symlink():
        return view.result("source.read", given, scope, (), completeness=view.whole(), cause="no such file")
    if target.stat().st_size > READ_LIMIT:
        return view.unavailable("source.read", given, f"file is larger than {READ_LIMIT} bytes")
    lines = view.file(a.path)
    scope["lines"] = len(lines)
    row = _symbol_in(view, a.path, a.symbol) if a.symbol is not None else None
    if a.symbol is not None and row is None:
        return view.result("source.read", given, scope, (), completeness=view.whole(), cause="no such symbol")
    first, last = (row.line_start, row.line_end) if row else _wanted(a)
    if first > len(lines):
        cause = "empty file" if not len(lines) else "past the end"
        return view.result("source.read", given, scope, (), completeness=Completeness.COMPLETE, cause=cause)
    stop, cut = _fit(lines, first, min(last, len(lines)))
    scope |= {"line_start": first, "line_end": max(first, stop)}
    if stop < first:
        return _long_line(view, given, scope, a.path, first)
    completeness = Completeness.TRUNCATED if cut else Completeness.COMPLETE
    symbol = row.qualname if row else _around(view, a.path, first, stop)
    drafts = view.excerpt(a.path, first, stop, symbol, completeness)
    notes = [f"inside {c}" for c in drafts[0].provenance.preprocessor]
    return view.result("source.read", given, scope, drafts, completeness=completeness, cause=cut, notes=notes)


def _wanted(a: contract.ReadArguments) -> tuple[int, int]:
    if a.line_start is None:
        return 1, a.line_end or MAX_LINES
    return a.line_start, a.line_end or a.line_start


def _around(view: View, path: str, first: int, last: int) -> str | None:
    """Name the function that holds all of the lines."""
    found = view.enclosing(path, first)
    return found.qualname if found and found.line_end >= last else None


def _fit(lines: LineMap, first: int, last: int) -> tuple[int, str | None]:
    """Return the last line that fits the caps (`first - 1` when not even one does), and the cap that cut."""
    stop = min(last, first + MAX_LINES - 1)
    cause = "line_cap" if stop < last else None
    while stop >= first and lines.span(first, stop)[1] - lines.span(first, stop)[0] > MAX_BYTES:
        stop -= max(1, (stop - first) // 8)
        cause = "byte_cap"
    return stop, cause


def _long_line(view: View, given: dict[str, Any], scope: dict[str, Any], path: str, line: int) -> ToolResult:
    """Return the beginning of a line that alone is too long."""
    lines = view.file(path)
    begin, _ = lines.span(line, line)
    location = Location(path=path, line_start=line, line_end=line)
    draft = Draft(
        content=lines.cut(begin, begin + MAX_BYTES // 2),
        provenance=view.provenance("source", location, byte_start=begin),
        completeness=Completeness.TRUNCATED,
        places=(location,),
    )
    return view.result(
        "source.read", given, scope, [draft], completeness=Completeness.TRUNCATED, cause="byte_cap"
    )


def _symbol_in(view: View, path: str, name: str) -> SymbolRow | None:
    row = view.index.by_path.get(path)
    return next(iter(names.matching(view.index.symbols_of(row.id), name)), None) if row else None


def symbol(view: View, given: dict[str, Any], a: contract.NameArguments) -> ToolResult:
    """Find the definitions of a name; the first three come with their lines."""
    rows = names.definitions(view.index, a.name)
    scope = view.scope(name=a.name, files_indexed=view.index.indexed_files())
    if not rows:
        return view.result("source.symbol", given, scope, (), completeness=view.index_completeness())
    shown = rows[: a.limit]
    content, places = names.listing(view.index, shown, MAX_BYTES)
    cause = "limit" if len(rows) > len(shown) else ("byte_cap" if len(places) < len(shown) else None)
    completeness = Completeness.TRUNCATED if cause else view.index_completeness()
    drafts = [_listed(view, content, places, completeness)]
    for s in shown[:3]:
        path = view.index.files[s.file].path
        stop, cut = _fit(view.file(path), s.line_start, s.line_end)
        part = Completeness.TRUNCATED if cut else Completeness.COMPLETE
        if stop >= s.line_start:
            drafts += view.excerpt(path, s.line_start, stop, s.qualname, part)
    return view.result("source.symbol", given, scope, drafts, completeness=completeness, cause=cause)


def _listed(
    view: View,
    content: str,
    places: tuple[Location, ...],
    completeness: Completeness,
    path: str | None = None,
) -> Draft:
    return Draft(
        content=content,
        provenance=view.provenance("search", Location(path=path)),
        completeness=completeness,
        places=places,
    )


def outline(view: View, given: dict[str, Any], a: contract.OutlineArguments) -> ToolResult:
    """List the definitions of one file."""
    row = view.index.by_path.get(a.path)
    scope = view.scope(path=a.path)
    if row is None:
        return view.result(
            "source.outline", given, scope, (), completeness=view.whole(), cause="no such file"
        )
    if not row.indexed:
        return view.unavailable("source.outline", given, "the file is not indexed")
    rows = view.index.symbols_of(row.id)
    if not rows:
        return view.result("source.outline", given, scope, (), completeness=Completeness.COMPLETE)
    content, places = names.listing(view.index, rows, MAX_BYTES)
    cause = "byte_cap" if len(places) < len(rows) else None
    completeness = Completeness.TRUNCATED if cause else Completeness.COMPLETE
    draft = _listed(view, content, places, completeness, a.path)
    return view.result("source.outline", given, scope, [draft], completeness=completeness, cause=cause)


def constant(view: View, given: dict[str, Any], a: contract.ConstantArguments) -> ToolResult:
    """Find the names that stand for a value, each with its line."""
    hits, files = constants.names_for(view.index, view.root, a.value)
    scope = view.scope(value=a.value, files_read=files)
    shown = hits[: a.limit]
    cause = "limit" if len(hits) > len(shown) else None
    completeness = Completeness.TRUNCATED if cause else view.index_completeness()
    if not shown:
        return view.result("source.constant", given, scope, (), completeness=completeness)
    lines: list[str] = []
    for hit in shown:
        line = as_json(hit._asdict())
        if sum(map(len, lines)) + len(lines) + len(line) > MAX_BYTES:
            cause, completeness = "byte_cap", Completeness.TRUNCATED
            break
        lines.append(line)
    places = tuple(Location(path=h.path, symbol=h.name, line_start=h.line, line_end=h.line) for h in shown)
    drafts = [_listed(view, "\n".join(lines), places, completeness)]
    for hit in shown[:8]:
        drafts += view.excerpt(hit.path, hit.line, hit.line, hit.name, Completeness.COMPLETE, MAX_BYTES // 2)
    return view.result("source.constant", given, scope, drafts, completeness=completeness, cause=cause)


def rank(view: View, given: dict[str, Any], a: contract.RankArguments) -> ToolResult:
    """Rank functions and files for a text; two pieces of evidence, the functions first."""
    from resources.tools.source import ranking  # noqa: PLC0415 - numpy is loaded only to rank
    from resources.tools.source.rank import Beside  # noqa: PLC0415

    beside = Beside(tuple(a.names), view.start)
    drafts = [
        Draft(
            content=part.content,
            provenance=view.provenance("ranking", Location()),
            completeness=view.whole(),
            places=part.places,
        )
        for part in ranking.ranked(view.index, view.root, a.text, a.focus, a.limit, MAX_BYTES, beside)
    ]
    scope = view.scope(files_indexed=view.index.indexed_files(), limit=a.limit)
    return view.result("source.rank", given, scope, drafts, completeness=view.whole())
