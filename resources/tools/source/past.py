"""`source.history` as a result: commits that changed a text, or who last changed some lines."""

from __future__ import annotations

from typing import Any

from resources.tools.source import arguments as contract
from resources.tools.source import history as revisions
from resources.tools.source.view import MAX_BYTES, View, as_json
from viano_assets.evidence.model import Completeness, Draft, Location, ToolResult

_TOOL = "source.history"


def history(view: View, given: dict[str, Any], a: contract.HistoryArguments) -> ToolResult:
    """Answer from the commits up to the reported revision, none later."""
    if not revisions.present(view.root):
        return view.unavailable(_TOOL, given, "the archive carries no revision history")
    start = view.start
    if start.trouble:
        return view.unavailable(_TOOL, given, start.trouble)
    return _blame(view, given, a) if a.mode == "blame" else _search(view, given, a)


def _search(view: View, given: dict[str, Any], a: contract.HistoryArguments) -> ToolResult:
    start = view.start
    looked = revisions.look(view.root, a.text or "", a.path, a.limit, start.commit)
    if looked.failure:
        return view.unavailable(_TOOL, given, looked.failure)
    scope = view.scope(text=a.text, path=a.path, up_to=start.commit)
    completeness, cause = _covered(view)
    if looked.cut:
        completeness, cause = Completeness.TRUNCATED, "limit"
    drafts = [_draft(view, view.redact(text), Location(path=a.path)) for text in looked.commits]
    return view.result(_TOOL, given, scope, drafts, completeness=completeness, cause=cause)


def _covered(view: View) -> tuple[Completeness, str | None]:
    """Say whether the commits looked at are all there are up to the reported revision."""
    cause = revisions.SHALLOW if revisions.boundaries(view.root) else None
    return (Completeness.PARTIAL if cause else view.whole()), cause


def _blame(view: View, given: dict[str, Any], a: contract.HistoryArguments) -> ToolResult:
    start, first = view.start, a.line_start or 1
    last = a.line_end or first
    path = a.path or ""
    lines = revisions.blame(view.root, path, first, last, start.commit)
    if isinstance(lines, str):
        return view.unavailable(_TOOL, given, lines)
    scope = view.scope(path=path, line_start=first, line_end=last, up_to=start.commit)
    completeness, cause = _covered(view)
    rows = [
        as_json(
            {
                "line": b.line,
                "commit": b.commit[:12],
                "date": b.date,
                "subject": view.redact(b.subject)[:200],
                "text": view.redact(b.text)[:400],
                **({"or_older": True} if b.bounded else {}),
            }
        )
        for b in lines
    ]
    shown = "\n".join(rows)
    if len(shown) > MAX_BYTES:
        completeness, cause = Completeness.TRUNCATED, "byte_cap"
        shown = shown[:MAX_BYTES].rpartition("\n")[0]
    place = Location(path=path, line_start=first, line_end=first + len(lines) - 1)
    drafts = [_draft(view, shown, place)] if lines else []
    return view.result(_TOOL, given, scope, drafts, completeness=completeness, cause=cause)


def _draft(view: View, text: str, place: Location) -> Draft:
    return Draft(
        content=text[:MAX_BYTES],
        completeness=Completeness.TRUNCATED if len(text) > MAX_BYTES else Completeness.COMPLETE,
        provenance=view.provenance("history", place),
    )
