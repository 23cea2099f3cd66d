"""What an empty answer about definitions proves: nothing, unless the name stands nowhere else."""

from __future__ import annotations

from typing import Any

from resources.tools.source import constants, legacy, standing
from resources.tools.source.languages import CODE, language_of
from resources.tools.source.parse import stumbles
from resources.tools.source.reader import FileRow
from resources.tools.source.standing import Standing
from resources.tools.source.text import LEXERS
from resources.tools.source.view import View
from viano_assets.evidence.model import Completeness, Location, ToolResult

_SHOWN = 10
"""Most places that an absence names."""


def of_definition(
    view: View,
    tool: str,
    given: dict[str, Any],
    scope: dict[str, Any],
    found: Standing,
    otherwise: str | None = None,
) -> ToolResult:
    """Return that no definition was read, with the places where the name stands.

    Args:
        view: the tree.
        tool: name of the tool.
        given: arguments as asked.
        scope: what was looked at.
        found: the places that no reading explains.
        otherwise: cause of a complete absence.
    """
    cause = found.cause("name") or _unreadable(view)
    return _stated(view, tool, given, scope, found, cause, otherwise)


def of_value(
    view: View, given: dict[str, Any], scope: dict[str, Any], value: str, unknown: int
) -> ToolResult:
    """Return that no constant of this value was read; `unknown` constants could not be worked out."""
    wanted = constants.number(value)
    plain = value.strip().strip("\"'")
    found = standing.of_value(view, wanted if wanted is not None else plain)
    cause = found.cause("value") or _unreadable(view)
    if cause is None and unknown:
        cause = f"{unknown} constants have a value that could not be worked out"
    return _stated(view, "source.constant", given, scope, found, cause, None)


def _stated(
    view: View,
    tool: str,
    given: dict[str, Any],
    scope: dict[str, Any],
    found: Standing,
    cause: str | None,
    otherwise: str | None,
) -> ToolResult:
    places = [*(p for p in found.places if p.defining), *(p for p in found.places if not p.defining)]
    if places:
        scope["stands_at"] = [{"path": p.path, "line": p.line, "text": p.text} for p in places[:_SHOWN]]
    completeness = Completeness.PARTIAL if cause else view.whole()
    result = view.result(tool, given, scope, (), completeness=completeness, cause=cause or otherwise)
    located = tuple(Location(path=p.path, line_start=p.line, line_end=p.line) for p in places[:_SHOWN])
    drafts = tuple(draft.model_copy(update={"places": located}) for draft in result.drafts)
    return result.model_copy(update={"drafts": drafts})


def _unreadable(view: View) -> str | None:
    """Say which file was not searched: too large, or no text in any encoding that is searched."""
    if view.unsearched:
        return view.unsearched
    for row in view.index.files:
        if row.indexed or language_of(row.path) not in CODE:
            continue
        lines = view.file(row.path)
        if not lines.transcoded and not legacy.mostly_text(lines.data):
            return f"{row.path} could not be read as text"
    return None


def of_outline(view: View, row: FileRow, *, empty: bool) -> str | None:
    """Say why an outline may lack definitions, or None."""
    data = view.file(row.path).data
    line = stumbles(data, row.language)
    if line is not None:
        return f"the grammar cannot read line {line}; definitions around it may be missing"
    if not empty:
        return None
    text = data.decode("latin-1")
    lexer = LEXERS.get(row.language)
    code = lexer.sub(" ", text) if lexer else text
    return "the file holds code that was read as no definition" if code.strip() else None
