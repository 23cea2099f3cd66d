"""The one registry of tool names: what can be asked of a case, checked, run and re-resolved.

Every look is read-only, bounded and deterministic. A failure is a result with completeness `unavailable`,
never an exception, so that one broken file does not end an investigation.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resources.tools import case_read
from resources.tools.contract import compact, refusal, unavailable
from resources.tools.database.tools import MODELS as DATABASE_MODELS
from resources.tools.database.tools import SPECS as DATABASE_SPECS
from resources.tools.database.tools import DatabaseTools
from resources.tools.logs.tools import MODELS as LOG_MODELS
from resources.tools.logs.tools import SPECS as LOG_SPECS
from resources.tools.logs.tools import LogTools
from resources.tools.opening import Opened, open_inputs
from resources.tools.source import SOURCE_TOOL_SPECS
from resources.tools.source import check as check_source
from viano_assets.canonical import canonical_json, sha256_hex, strict_loads
from viano_assets.errors import ContractError
from viano_assets.evidence.model import EvidenceRecord, ToolResult
from viano_assets.evidence.quotes import normalise
from viano_assets.package.model import Head
from viano_assets.phases.protocols import ProgressSink, Store, ToolSpec

ALL_SPECS: tuple[ToolSpec, ...] = (case_read.SPEC, *SOURCE_TOOL_SPECS, *DATABASE_SPECS, *LOG_SPECS)
"""Every tool there is, in the order in which a model sees them."""

TOOL_NAMES = frozenset(spec.name for spec in ALL_SPECS)
_OPEN_CASES = 4


class CaseToolBox:
    """The tools of one case (implements `CaseTools`)."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._database = DatabaseTools(opened.snapshot, opened.trouble, opened.bridge)
        self._logs = LogTools(opened.texts, opened.roots, _no_text(opened))

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools for which the case holds something to look at, in stable order.

        Data files that could not be loaded count: each look at them says so.
        """
        return tuple(spec for spec in ALL_SPECS if self._offered(spec.name))

    def _offered(self, tool: str) -> bool:
        if tool.startswith("source."):
            return self._opened.tree is not None
        if tool.startswith("db."):
            return self._opened.snapshot is not None or self._opened.trouble is not None
        return bool(self._opened.texts) if tool.startswith("log.") else True

    def overview(self) -> dict[str, Any]:
        """Say what is there without contents."""
        opened = self._opened
        return {
            "source": {**opened.tree.overview(), "top_folders": list(opened.top_folders)}
            if opened.tree
            else None,
            "database": self._database.overview(),
            "logs": self._logs.overview()[:200],
            "other": [{"path": file.path, "bytes": file.size} for file in opened.binary[:100]],
            "notes": list(opened.notes[:50]),
        }

    def check(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """Return why these arguments are outside the tool's contract, or None."""
        if tool not in TOOL_NAMES:
            return f"there is no tool {tool}"
        if not _storable(arguments):
            return "arguments hold a value that no JSON of ours holds"
        if not self._offered(tool):
            return f"{tool} has nothing to look at in this case"
        if tool.startswith("source."):
            return check_source(tool, arguments)
        if tool == "case.read":
            return refusal(case_read.CaseReadArguments, arguments)
        return refusal({**DATABASE_MODELS, **LOG_MODELS}[tool], arguments)

    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one tool; every failure is a result with completeness `unavailable`."""
        problem = self.check(tool, arguments)
        if problem is not None:
            return unavailable(tool, arguments if _storable(arguments) else {}, "arguments", problem)
        try:
            return self._run(tool, arguments)
        except Exception as error:  # noqa: BLE001 - a tool's failure is a recorded outcome, whatever it is
            text = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            return unavailable(tool, arguments, "tool_failed", f"{type(error).__name__}: {text}")

    def _run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        if tool.startswith("source.") and self._opened.tree is not None:
            return self._opened.tree.run(tool, arguments)
        if tool == "case.read":
            return case_read.read(self._opened.case, arguments)
        if tool.startswith("db."):
            return self._database.run(tool, arguments)
        return self._logs.run(tool, arguments)

    def still_holds(self, record: EvidenceRecord) -> str | None:
        """Re-resolve a record against the inputs; return what no longer holds, or None.

        Exact lines are looked for in their file by what they say; rows by their key; every other look is
        taken again with the same arguments and must give the same content.
        """
        try:
            return self._still_holds(record)
        except Exception as error:  # noqa: BLE001 - what cannot be looked at again does not hold, whatever the cause
            return f"it could not be looked at again: {type(error).__name__}: {error}"[:300]

    def _still_holds(self, record: EvidenceRecord) -> str | None:
        tree, missing = self._opened.tree, self._missing(record.tool)
        if missing is not None:
            return missing
        if record.tool.startswith("source.") and tree is not None:
            return tree.still_holds(record)
        kind = record.provenance.kind
        if kind in {"log", "config"}:
            return self._lines_hold(record)
        if kind == "row":
            return self._row_holds(record)
        again = self.run(record.tool, record.arguments)
        wanted = (record.content, kind)
        if any((draft.content, draft.provenance.kind) == wanted for draft in again.drafts):
            return None
        return f"{record.tool} now answers otherwise" + (f" ({again.cause})" if again.cause else "")

    def _missing(self, tool: str) -> str | None:
        """Return why nothing of this tool can be looked at again, or None."""
        if tool not in TOOL_NAMES:
            return f"there is no tool {tool}"
        if tool.startswith("source.") and self._opened.tree is None:
            return "there is no source"
        if tool.startswith("db.") and self._opened.trouble is not None:
            return f"the tables could not be loaded: {self._opened.trouble}"
        return None

    def _lines_hold(self, record: EvidenceRecord) -> str | None:
        place = record.provenance.location
        file = next((text for text in self._opened.texts if text.path == place.path), None)
        if file is None:
            return f"the diagnostics hold no file {place.path}"
        quote = normalise(record.content)
        first, last = place.line_start or 1, place.line_end or 1
        if last <= file.lines and quote in normalise("\n".join(file.text(first, last))):
            return None
        if quote in normalise("\n".join(file.text(1, file.lines)) if file.lines else ""):
            return None
        return f"the quoted lines do not stand in {place.path}"

    def _row_holds(self, record: EvidenceRecord) -> str | None:
        place = record.provenance.location
        conditions = [
            {"column": name, "op": "=", "value": value} for name, value in (place.key or {}).items()
        ]
        again = self._database.run("db.rows", {"table": place.table, "where": conditions[:12], "limit": 50})
        if any(draft.content == record.content for draft in again.drafts):
            return None
        return f"{place.table} holds no such row {compact(place.key)}"


def _no_text(opened: Opened) -> list[str]:
    """Return the files of the diagnostics that are no text: loaded as tables, or read by no tool."""
    tables = opened.snapshot.catalog.files if opened.snapshot is not None else []
    return [file.path for file in opened.binary] + [file.path for file in tables]


class ToolBoxFactory:
    """Opens the tools of a head and keeps the last few cases open (implements `ToolFactory`).

    Args:
        cache: directory for extracted views and indices; entries are named by hash and may be deleted.
        progress: told while views and indices are built.
    """

    def __init__(self, cache: Path, progress: ProgressSink | None = None) -> None:
        self._cache = cache.resolve()
        self._progress = progress
        self._open: OrderedDict[str, CaseToolBox] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, store: Store, head: Head) -> CaseToolBox:
        """Open the tools for the inputs of `head`, building and caching what is missing."""
        identity = _identity(head)
        with self._lock:
            box = self._open.get(identity)
            if box is None:
                box = CaseToolBox(open_inputs(store, head, self._cache, self._progress))
                self._open[identity] = box
            self._open.move_to_end(identity)
            while len(self._open) > _OPEN_CASES:
                self._open.popitem(last=False)
            return box


def _storable(arguments: Mapping[str, Any]) -> bool:
    try:
        strict_loads(canonical_json(dict(arguments)))
    except ContractError:
        return False
    return True


def _identity(head: Head) -> str:
    pointers = [head.pointer(name) for name in ("case", "redaction_key")]
    hashes = [head.files[path].sha256 for path in pointers if path is not None and path in head.files]
    return sha256_hex(canonical_json([head.manifest.package_id, head.raw_inputs(), pointers, hashes]))
