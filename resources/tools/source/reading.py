"""`source.read`, `symbol`, `outline`, `constant` and `rank` as results."""

from __future__ import annotations

from typing import Any

from resources.tools.source import absent, constants
from resources.tools.source import arguments as contract
from resources.tools.source import outline as names
from resources.tools.source import standing as text
from resources.tools.source.languages import CODE
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
        standing = text.of_name(view, a.symbol, a.path)
        return absent.of_definition(view, "source.read", given, scope, standing, "no such symbol")
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
    standing = text.of_name(view, a.name)
    if not rows:
        return absent.of_definition(view, "source.symbol", given, scope, standing)
    shown = rows[: a.limit]
    content, places = names.listing(view.index, shown, MAX_BYTES)
    cause = "limit" if len(rows) > len(shown) else ("byte_cap" if len(places) < len(shown) else None)
    completeness = Completeness.TRUNCATED if cause else view.index_completeness()
    more = [p for p in standing.places if p.defining] if len(names.parts(a.name)) == 1 else []
    if more and not cause:
        completeness = Completeness.PARTIAL
        cause = f"at {len(more)} further places the name seems to be defined: {more[0].path}:{more[0].line}"
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
    if row.language not in CODE:
        return view.unavailable("source.outline", given, "no grammar here reads files of this kind")
    if not row.indexed:
        return view.unavailable("source.outline", given, "the file is not indexed")
    rows = view.index.symbols_of(row.id)
    doubt = absent.of_outline(view, row, empty=not rows)
    if not rows:
        completeness = Completeness.PARTIAL if doubt else Completeness.COMPLETE
        return view.result("source.outline", given, scope, (), completeness=completeness, cause=doubt)
    content, places = names.listing(view.index, rows, MAX_BYTES)
    completeness = Completeness.PARTIAL if doubt else Completeness.COMPLETE
    if len(places) < len(rows):
        completeness, doubt = Completeness.TRUNCATED, "byte_cap"
    draft = _listed(view, content, places, completeness, a.path)
    return view.result("source.outline", given, scope, [draft], completeness=completeness, cause=doubt)


def constant(view: View, given: dict[str, Any], a: contract.ConstantArguments) -> ToolResult:
    """Find the names that stand for a value, each with its line."""
    found = constants.names_for(view.index, view.root, a.value)
    hits = found.constants
    scope = view.scope(value=a.value, files_read=found.files)
    if not hits:
        return absent.of_value(view, given, scope, a.value, found.unknown)
    shown = hits[: a.limit]
    cause = "limit" if len(hits) > len(shown) else None
    completeness = Completeness.TRUNCATED if cause else view.index_completeness()
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
