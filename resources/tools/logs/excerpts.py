"""Matches and lines as evidence: exact lines, and of a very long line the part around the match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from resources.tools.contract import compact
from resources.tools.logs.files import TextFile
from resources.tools.logs.times import parse
from viano_assets.evidence.model import Completeness, Draft, Location, Provenance, ToolResult
from viano_assets.evidence.text import decode_line

EXCERPTS = 10
"""Most excerpts of one search; further matches are listed by place."""

LINE_CAP = 600
_LONG_LINE = 4_000


class Hit(NamedTuple):
    """A matching line; `at` is the byte of the file where the match begins."""

    file: TextFile
    line: int
    at: int


class Block(NamedTuple):
    """Lines to quote; `at` is the match that a very long line is cut around."""

    file: TextFile
    first: int
    last: int
    at: int | None


def origin_of(files: Sequence[TextFile]) -> tuple[str, str] | None:
    """Return the raw input the files come from, when it is one."""
    origins = {file.origin for file in files}
    return origins.pop() if len(origins) == 1 else None


def input_of(files: Sequence[TextFile]) -> dict[str, Any]:
    """Return the provenance fields of the raw input, when it is one."""
    found = origin_of(files)
    return {} if found is None else {"input_path": found[0], "input_sha256": found[1]}


def describe(file: TextFile) -> dict[str, Any]:
    """Describe a file without its contents."""
    first, last = file.times
    entry: dict[str, Any] = {
        "file": file.path,
        "kind": file.kind,
        "lines": file.lines,
        "encoding": file.encoding,
    }
    if first and last:
        entry.update({"first_time": first.text, "last_time": last.text, "zone_known": first.zone_known})
    if file.kind == "log":
        whole = file.wholeness
        entry["whole"] = whole.state
        if whole.reasons:
            entry["cut_because"] = list(whole.reasons)
    return entry


def scope_of(files: Sequence[TextFile], **more: Any) -> dict[str, Any]:
    """Say which files were looked at and how whole they are."""
    shown = [
        {"file": f.path, "lines": f.lines, "whole": f.wholeness.state if f.kind == "log" else "as shipped"}
        for f in files[:20]
    ]
    return {
        "files": shown,
        "more_files": max(0, len(files) - 20),
        **{key: value for key, value in more.items() if value is not None},
    }


def _around(file: TextFile, line: int, at: int | None, cap: int) -> tuple[str, bool]:
    """Return a line, or at most `cap` bytes of it around the byte `at`; the flag says that it was cut."""
    begin, end = file.span(line, line)
    if end - begin <= cap:
        return file.text(line, line)[0], False
    middle = begin if at is None else min(max(at, begin), end)
    start = max(begin, min(middle - cap // 3, end - cap))
    raw = bytes(file.content[start : start + cap]).rstrip(b"\r")
    while raw[:1] and 0x80 <= raw[0] < 0xC0:
        raw = raw[1:]
    text = raw.decode("utf-8", errors="ignore") if file.encoding != "cp1252" else decode_line(raw)[0]
    return text, True


def excerpt(block: Block) -> Draft:
    """Quote whole lines; a line of more than 4,000 bytes is cut around the match and the cut is said."""
    file = block.file
    shown, cut = [], False
    for number in range(block.first, block.last + 1):
        text, short = _around(file, number, block.at, _LONG_LINE)
        cut = cut or short
        shown.append(text)
    stamp = next((s for line in shown if (s := parse(line))), None)
    return Draft(
        content="\n".join(shown),
        provenance=Provenance(
            kind="config" if file.kind == "config" else "log",
            input_path=file.origin[0],
            input_sha256=file.origin[1],
            location=Location(path=file.path, line_start=block.first, line_end=block.last),
            byte_start=file.span(block.first, block.last)[0] if file.exact else None,
            timestamp=stamp.text if stamp else None,
        ),
        completeness=Completeness.TRUNCATED if cut else Completeness.COMPLETE,
    )


def listed(
    tool: str,
    arguments: Mapping[str, Any],
    looked: dict[str, Any],
    hits: Sequence[Hit],
    cause: str | None,
    limit: int,
    context: int,
) -> ToolResult:
    """Return the matches: a listing of all that are shown, then excerpts of the first ones."""
    shown = hits[:limit]
    if len(hits) > limit:
        cause = cause or "limit"
    lines = []
    for hit in shown:
        text, cut = _around(hit.file, hit.line, hit.at, LINE_CAP)
        entry: dict[str, Any] = {"file": hit.file.path, "line": hit.line, "text": text}
        if cut:
            entry["clipped"] = True
            cause = cause or "long_line"
        if hit.file.damaged(hit.line, hit.line):
            entry["damaged"] = True
        lines.append(compact(entry))
    state = Completeness.TRUNCATED if cause else Completeness.COMPLETE
    files = list({id(hit.file): hit.file for hit in shown}.values())
    listing = Draft(
        content="\n".join([compact({"lines": len(hits), "shown": len(shown)}), *lines]),
        provenance=Provenance(kind="search", **input_of(files)),
        completeness=state,
        places=tuple(Location(path=h.file.path, line_start=h.line, line_end=h.line) for h in shown),
    )
    drafts = [listing, *(excerpt(block) for block in _blocks(shown, context))]
    return found(tool, arguments, looked, drafts, cause, state)


def _blocks(hits: Sequence[Hit], context: int) -> list[Block]:
    """Join hits whose surroundings touch; at most `EXCERPTS` blocks."""
    blocks: list[Block] = []
    for hit in hits:
        first, last = max(1, hit.line - context), min(hit.file.lines, hit.line + context)
        previous = blocks[-1] if blocks else None
        if (
            previous is not None
            and previous.file is hit.file
            and first <= previous.last + 1
            and last - previous.first < 120
        ):
            blocks[-1] = previous._replace(last=max(last, previous.last))
        elif len(blocks) < EXCERPTS:
            blocks.append(Block(hit.file, first, last, hit.at))
        else:
            break
    return blocks


def found(
    tool: str,
    arguments: Mapping[str, Any],
    looked: dict[str, Any],
    drafts: Sequence[Draft],
    cause: str | None,
    state: Completeness | None = None,
) -> ToolResult:
    """Return a result that found something; a cause without a state means that it was cut."""
    if state is None:
        state = Completeness.TRUNCATED if cause else Completeness.COMPLETE
    return ToolResult(
        tool=tool,
        arguments=dict(arguments),
        scope=looked,
        completeness=state,
        drafts=tuple(drafts),
        cause=cause,
    )
