"""What every source tool shares: the tree, its lines, and how results and excerpts are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from resources.tools.source import history, legacy, search
from resources.tools.source.index import walk
from resources.tools.source.languages import CODE, language_of
from resources.tools.source.lines import LineMap
from resources.tools.source.preprocessor import conditions
from resources.tools.source.reader import SourceIndex, SymbolRow
from viano_assets.canonical import sha256_hex
from viano_assets.evidence.model import Completeness, Draft, EvidenceKind, Location, Provenance, ToolResult

MAX_BYTES = 8_000
"""Largest content of one piece of evidence, in characters."""


class View:
    """One extracted tree with its index (arguments as in `SourceTree`)."""

    def __init__(
        self,
        root: Path,
        input_path: str,
        input_sha256: str,
        cache: Path,
        *,
        view: str = "",
        omitted: Sequence[str] = (),
        redact: Callable[[str], str] | None = None,
        revision: str | history.Reported | None = None,
    ) -> None:
        self.root = root
        self.input = (input_path, input_sha256)
        self._cache = cache
        self._view = view
        self.omitted = tuple(sorted(omitted))
        self.redact = redact or (lambda text: text)
        self.revision = history.Reported((revision,)) if isinstance(revision, str) else revision
        self._lines: dict[str, LineMap] = {}

    @cached_property
    def index(self) -> SourceIndex:
        """The index of this tree."""
        identity = sha256_hex(f"{self.input[1]} {self._view}".encode())
        return SourceIndex.open(self.root, self._cache, identity)

    def foreign(self) -> tuple[str, ...]:
        """Return the paths of the text files that are not UTF-8."""
        return self._foreign

    @cached_property
    def _foreign(self) -> tuple[str, ...]:
        return legacy.foreign_files(self.root, search.ripgrep(), search.TIMEOUT_S)

    @cached_property
    def unsearched(self) -> str | None:
        """Why a search of the text may miss something: a file too large, or in an unmarked encoding."""
        for path in walk(self.root):
            if (self.root / path).stat().st_size > search.MAX_FILE:
                return f"too large to be searched: {path}"
        wide = legacy.unmarked_wide_files(self.root, search.ripgrep(), search.TIMEOUT_S)
        known = next((path for path in wide if language_of(path) is not None), None)
        return f"UTF-16 without a byte order mark is not searched: {known}" if known else None

    @cached_property
    def start(self) -> history.Start:
        """From where the history is looked at: the reported revision, else the current commit."""
        return history.resolve(self.root, self.revision)

    def close(self) -> None:
        """Close the index if it was opened."""
        if "index" in self.__dict__:
            self.index.close()
            del self.__dict__["index"]

    def file(self, path: str) -> LineMap:
        """Return the lines of a file; a few dozen stay in memory."""
        found = self._lines.get(path)
        if found is None:
            if len(self._lines) > 64:
                self._lines.clear()
            found = self._lines[path] = LineMap((self.root / path).read_bytes())
        return found

    def provenance(self, kind: EvidenceKind, location: Location, **more: Any) -> Provenance:
        """Return where a content stands in the input archive."""
        path, sha256 = self.input
        return Provenance(kind=kind, input_path=path, input_sha256=sha256, location=location, **more)

    def unavailable(self, tool: str, arguments: Mapping[str, Any], cause: str) -> ToolResult:
        """Return that the look could not be made."""
        return ToolResult(
            tool=tool,
            arguments=dict(arguments),
            scope=self.scope(),
            empty=True,
            completeness=Completeness.UNAVAILABLE,
            cause=cause[:500],
        )

    def scope(self, **more: Any) -> dict[str, Any]:
        """Return what is looked at, with the members of the archive that cannot be."""
        scope: dict[str, Any] = {"input": self.input[0], **more}
        if self.omitted:
            scope["not_extracted"] = len(self.omitted)
        if (self.root / ".git").exists():
            scope["left_out"] = [".git"]
        return scope

    def whole(self) -> Completeness:
        """Return the completeness of a look at everything that was extracted."""
        return Completeness.PARTIAL if self.omitted else Completeness.COMPLETE

    def result(
        self,
        tool: str,
        arguments: dict[str, Any],
        scope: dict[str, Any],
        drafts: Sequence[Draft],
        *,
        completeness: Completeness,
        cause: str | None = None,
        notes: Sequence[str] = (),
    ) -> ToolResult:
        """Build a result; without drafts it states the absence as a piece of evidence of its own."""
        empty = not drafts
        if empty:
            content = as_json(
                {
                    "tool": tool,
                    "arguments": arguments,
                    "scope": scope,
                    "found": 0,
                    "completeness": completeness.value,
                    "cause": cause,
                }
            )
            place = Location(path=scope.get("path"))
            drafts = [
                Draft(
                    content=content, provenance=self.provenance("absence", place), completeness=completeness
                )
            ]
        return ToolResult(
            tool=tool,
            arguments=arguments,
            scope=scope,
            completeness=completeness,
            drafts=tuple(drafts),
            empty=empty,
            cause=cause,
            notes=tuple(notes),
        )

    def enclosing(self, path: str, line: int) -> SymbolRow | None:
        """Return the innermost definition around a line."""
        row = self.index.by_path.get(path)
        if row is None or not row.indexed:
            return None
        holding = [
            s
            for s in self.index.symbols_of(row.id)
            if s.line_start <= line <= s.line_end and s.kind != "scope"
        ]
        return holding[-1] if holding else None

    def excerpt(
        self,
        path: str,
        first: int,
        last: int,
        symbol: str | None,
        completeness: Completeness,
        cap: int | None = None,
    ) -> list[Draft]:
        """Return exact lines with the `#if` stack of C and C++; nothing when longer than `cap`."""
        lines = self.file(path)
        first, last = max(1, first), min(last, len(lines))
        begin, end = lines.span(first, last)
        if cap is not None and end - begin > cap:
            return []
        language = language_of(path)
        stack = conditions(lines.cut(0, begin), begin + 1) if language in {"c", "cpp"} else ()
        location = Location(path=path, symbol=symbol, line_start=first, line_end=last)
        provenance = self.provenance(
            "config" if language == "config" else "source",
            location,
            byte_start=None if lines.transcoded else begin,
            preprocessor=stack,
        )
        text = lines.text(first, last)
        return [Draft(content=text, provenance=provenance, completeness=completeness, places=(location,))]

    def place(self, path: str, first: int, last: int) -> Location:
        """Return the lines as a place with the innermost definition around their start."""
        symbol = self.enclosing(path, first)
        return Location(
            path=path, symbol=symbol.qualname if symbol else None, line_start=first, line_end=last
        )

    def index_completeness(self) -> Completeness:
        """A definition can stand in a file that is too large, or in one that is not code."""
        left_out = any(not r.indexed and language_of(r.path) in CODE for r in self.index.files)
        return Completeness.PARTIAL if left_out else self.whole()


def as_json(value: object) -> str:
    """Return one line of JSON, keys sorted."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
