"""The source tools on one extracted tree. Every method returns a `ToolResult` and never raises for bad input.

Excerpts are exact lines of the redacted view; provenance names the input archive, its hash, the path
inside and the byte offset. The index is built when a tool first needs it and cached by the hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

from pydantic import ValidationError

from resources.tools.source import arguments as contract
from resources.tools.source import history, past, reading, textual
from resources.tools.source.reader import SourceIndex
from resources.tools.source.view import View
from viano_assets.errors import VianoError
from viano_assets.evidence.model import EvidenceRecord, ToolResult

_TOOLS: dict[str, Callable[[View, dict[str, Any], Any], ToolResult]] = {
    "source.search": textual.search,
    "source.rank": reading.rank,
    "source.read": reading.read,
    "source.symbol": reading.symbol,
    "source.outline": reading.outline,
    "source.references": textual.references,
    "source.constant": reading.constant,
    "source.history": past.history,
}


class SourceTree:
    """One source input, opened.

    Args:
        root: directory of the redacted, extracted tree.
        input_path: path of the archive inside the case package.
        input_sha256: hash of the archive as it came.
        cache: directory for indices; entries are named by hash and may be deleted at any time.
        view: identity of the redaction rules, part of the cache name because they change the text.
        omitted: members of the archive that were not extracted; they make a search partial.
        redact: applied to revision history, which the extracted view cannot have redacted.
        revision: the revision the report names (a hash, or what it says); history after it is not looked at.
    """

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
        self._view = View(
            root,
            input_path,
            input_sha256,
            cache,
            view=view,
            omitted=omitted,
            redact=redact,
            revision=revision,
        )

    @property
    def root(self) -> Path:
        """The directory of the extracted tree."""
        return self._view.root

    @property
    def index(self) -> SourceIndex:
        """The index of this tree, built when it is not cached."""
        return self._view.index

    def foreign(self) -> tuple[str, ...]:
        """Return the paths of the text files that are not UTF-8, listed once."""
        return self._view.foreign()

    def close(self) -> None:
        """Close the index if it was opened."""
        self._view.close()

    def overview(self) -> dict[str, Any]:
        """Say what is there: files and bytes by language and role."""
        languages: dict[str, int] = {}
        roles: dict[str, int] = {}
        for row in self.index.files:
            languages[row.language or "other"] = languages.get(row.language or "other", 0) + 1
            roles[row.role.value] = roles.get(row.role.value, 0) + 1
        return {
            "input": self._view.input[0],
            "files": len(self.index.files),
            "bytes": sum(r.bytes for r in self.index.files),
            "languages": dict(sorted(languages.items())),
            "roles": dict(sorted(roles.items())),
            "symbols": self.index.symbol_count(),
            "omitted": len(self._view.omitted),
            "history": history.present(self._view.root),
        }

    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run the tool of that name; arguments outside the contract and failures are `unavailable`."""
        try:
            problem = contract.check(tool, arguments)
            if problem:
                return self._view.unavailable(tool, arguments, f"arguments: {problem}")
            result = _TOOLS[tool](self._view, dict(arguments), contract.parse(tool, arguments))
        except (VianoError, OSError, ValidationError, SubprocessError) as error:
            return self._view.unavailable(tool, arguments, str(error))
        return result

    def search(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Exact or regular-expression search over every file."""
        return self.run("source.search", arguments)

    def rank(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Rank files and functions for a free text."""
        return self.run("source.rank", arguments)

    def read(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Exact lines of one file."""
        return self.run("source.read", arguments)

    def symbol(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Definitions of a name and its uses."""
        return self.run("source.symbol", arguments)

    def outline(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Definitions of one file."""
        return self.run("source.outline", arguments)

    def references(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Textual uses of a name."""
        return self.run("source.references", arguments)

    def constant(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Names that stand for a value."""
        return self.run("source.constant", arguments)

    def history(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Commits that changed how often a text occurs, or those that some lines come from."""
        return self.run("source.history", arguments)

    def still_holds(self, record: EvidenceRecord) -> str | None:
        """Return why a record no longer holds, or None; the quote is the anchor, not the line."""
        place = record.provenance.location
        if record.provenance.kind not in {"source", "config"}:
            again = self.run(record.tool, record.arguments)
            return (
                None
                if any(d.content == record.content for d in again.drafts)
                else "the look gives another answer"
            )
        if (
            place.path is None
            or not contract.is_inside(place.path)
            or not (self._view.root / place.path).is_file()
        ):
            return f"no such file: {place.path}"
        lines = self._view.file(place.path)
        whole = lines.cut(0, len(lines.data))
        return None if record.content in whole else f"the quoted lines do not stand in {place.path}"
