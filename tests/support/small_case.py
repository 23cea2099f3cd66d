"""A small case with hypotheses, ready to be investigated, and a small set of real tools over its files.

The inputs are plain text files and CSV tables of the package; the phases before the investigation are the
real builders with scripted answers.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tests.support.planning import SEPARATE
from tests.support.scripted_gateway import ScriptedGateway
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.model import CaseDocument, CaseSource, InputFile, Origin, SourceType
from viano_assets.evidence.model import Completeness, Draft, EvidenceRecord, Location, Provenance, ToolResult
from viano_assets.package.model import Change, Head
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.protocols import DispatchStatus, Store, ToolSpec

REPORT = "inputs/report/report.md"
SOURCE = "inputs/source/dock.cpp"
LOG = "inputs/diagnostics/server.log"
TABLE = "inputs/diagnostics/stage.csv"
CONFIG = "inputs/diagnostics/server.ini"

FILES: dict[str, str] = {
    REPORT: "# Cranes stop at stage 2\nThe crane never reaches stage 3 after the contract was accepted.\n",
    SOURCE: (
        "void on_accept(Contract& c) {\n  register_hook(c.id, HOOK_ACCEPT);\n}\n"
        "void dispatch(int id) {\n  if (id > limit) { return; }\n  run(id);\n}\n"
    ),
    LOG: "2031-04-01 10:00:00 accept hook called for contract 41\n2031-04-01 10:00:01 stage 2 done\n",
    TABLE: "contract,stage,step\n41,1,lift\n41,2,move\n42,1,lift\n42,2,move\n42,3,drop\n",
    CONFIG: "max_stage = 2\n",
}


class Creating(Store, Protocol):
    """A store that can make a case."""

    def create(self, case_id: str, change: Change) -> Head:
        """Publish generation 1."""
        ...


def case_document(head: Head, report: str, files: Mapping[str, str]) -> CaseDocument:
    """Return a canonical case whose observation and step are the report's lines."""
    lines = [line for line in report.splitlines() if line.strip()]
    kinds = [SourceType.REPORT, SourceType.OBSERVATION, SourceType.REPRODUCTION_STEP]
    sources = []
    for number, line in enumerate(lines, start=1):
        kind = kinds[min(number, len(kinds)) - 1]
        origin = Origin(
            input_path=REPORT,
            input_sha256=head.files[REPORT].sha256,
            line_start=number,
            line_end=number,
            byte_start=0,
            byte_end=len(line.encode()),
        )
        sources.append(CaseSource(id=f"S{number}", type=kind, text=line, origin=origin))
    return CaseDocument(
        case_id=head.case_id,
        package_id=head.manifest.package_id,
        analysis_revision=head.revision,
        title=lines[0].lstrip("# "),
        language="en",
        sources=tuple(sources),
        inputs=tuple(
            InputFile(
                path=path, sha256=head.files[path].sha256, bytes=head.files[path].size, role=_role(path)
            )
            for path in sorted(files)
        ),
        redaction_rules="none",
    )


def _role(path: str) -> Any:
    return path.split("/")[1]


def interpretation_answer() -> dict[str, Any]:
    """Return an interpretation of `FILES[REPORT]`."""
    observed = {"text": "The crane never reaches stage 3.", "source_ids": ["S2"]}
    return {
        "summary": "The crane stops.",
        "observed_behavior": [observed],
        "expected_behavior": [],
        "reproduction_steps": [],
        "technical_facts": [],
        "tester_assumptions": [],
        "failure_stage": observed,
        "first_known_divergence": observed,
        "entities": [],
        "lookups": [],
        "missing_information": [],
        "open_questions": [],
    }


def candidate(title: str, **changes: Any) -> dict[str, Any]:
    """Return one candidate."""
    return {
        "title": title,
        "mechanism": f"Mechanism of: {title}",
        "rationale": "It would explain what was seen.",
        "distinction": "No other one would.",
        "source_ids": ["S2"],
        "interpretation_ids": ["I1", "I3"],
        "expected_evidence": ["what it would leave behind"],
        "falsifying_evidence": ["what would rule it out"],
        "open_questions": [],
        **changes,
    }


TITLES = ("The accept hook is missing", "The last stage has no row", "The stage limit is configured too low")


def prepared(
    store: Creating,
    case_id: str = "CASE-1",
    *,
    files: Mapping[str, str] | None = None,
    titles: Sequence[str] = TITLES,
    max_hypotheses: int = 5,
    initial_budget: int = 100,
) -> Head:
    """Create a case and run it through the real interpreter and hypothesis builder."""
    content = dict(FILES if files is None else files)
    raw = {path: text.encode("utf-8", errors="surrogatepass") for path, text in content.items()}
    head = store.create(
        case_id, Change(event="case_received", put=raw, raw=frozenset(raw), lifecycle="RECEIVED")
    )
    document = case_document(head, content[REPORT], content)
    path = f"case/{head.revision:04d}/case.json"
    store.commit(
        head,
        Change(
            event="case_assembled",
            put={path: canonical_json(document.model_dump(mode="json", by_alias=True))},
            pointers={"case": path},
            lifecycle="ASSEMBLED",
        ),
    )
    interpreter = CaseInterpreter(store, ScriptedGateway([interpretation_answer()]), SEPARATE)
    assert asyncio.run(interpreter.build(case_id)).status is DispatchStatus.COMPLETED
    config = HypothesisConfig(min_hypotheses=1, max_hypotheses=max_hypotheses, initial_budget=initial_budget)
    answer = {"candidates": [candidate(title) for title in titles]}
    builder = HypothesisBuilder(store, ScriptedGateway([answer]), config)
    result = asyncio.run(builder.build(case_id))
    assert result.status is DispatchStatus.COMPLETED
    return result.head


_ARGUMENTS: dict[str, dict[str, str]] = {
    "source.search": {"pattern": "string"},
    "source.read": {"path": "string", "line_start": "integer", "line_end": "integer"},
    "log.search": {"pattern": "string"},
    "db.rows": {"table": "string", "column": "string", "value": "string"},
}
COSTS = {"source.search": 3, "source.read": 2, "log.search": 3, "db.rows": 4}


def _schema(properties: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(properties),
        "properties": {name: {"type": kind} for name, kind in sorted(properties.items())},
    }


class SmallTools:
    """Real looks over the text files of one head.

    Args:
        partial: tables of which only an extract exists; an empty result from them is not complete.
        truncated: a log of which only the tail exists.
    """

    def __init__(
        self,
        store: Store,
        head: Head,
        *,
        partial: frozenset[str] = frozenset(),
        truncated: bool = False,
    ) -> None:
        self._texts = {
            path: store.read(head, path).decode("utf-8", errors="surrogatepass")
            for path in sorted(head.raw_inputs())
        }
        self._hashes = {path: head.files[path].sha256 for path in self._texts}
        self._partial = partial
        self._truncated = truncated

    def specs(self) -> Sequence[ToolSpec]:
        return tuple(
            ToolSpec(name, f"Purpose of {name}.", _schema(properties), COSTS[name])
            for name, properties in sorted(_ARGUMENTS.items())
        )

    def overview(self) -> dict[str, Any]:
        return {"files": [{"path": path, "bytes": len(text)} for path, text in self._texts.items()]}

    def check(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        expected = _ARGUMENTS[tool]
        if set(arguments) != set(expected):
            return f"{tool} takes exactly {', '.join(sorted(expected))}"
        kinds = {"string": str, "integer": int}
        wrong = [name for name, kind in expected.items() if type(arguments[name]) is not kinds[kind]]
        if wrong:
            return f"{wrong[0]} has the wrong type"
        leaves = ".." in str(arguments.get("path", "")).split("/")
        return "path leaves the source" if leaves else None

    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        if tool == "source.read":
            return self._read(arguments)
        if tool == "db.rows":
            return self._rows(arguments)
        if tool == "source.search":
            paths = [path for path in self._texts if path.startswith("inputs/source/")]
            return self._search(tool, arguments, paths, Completeness.COMPLETE)
        paths = [path for path in self._texts if path.endswith((".log", ".ini"))]
        whole = Completeness.TRUNCATED if self._truncated else Completeness.COMPLETE
        return self._search(tool, arguments, paths, whole)

    def still_holds(self, record: EvidenceRecord) -> str | None:
        again = self.run(record.tool, record.arguments)
        return None if record.content in {draft.content for draft in again.drafts} else "it is gone"

    def _result(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        scope: dict[str, Any],
        whole: Completeness,
        drafts: list[Draft],
    ) -> ToolResult:
        empty = not drafts
        if empty:
            text = canonical_json({"found": 0, "arguments": dict(arguments), "scope": scope}).decode()
            drafts = [Draft(content=text, provenance=Provenance(kind="absence"), completeness=whole)]
        return ToolResult(
            tool=tool,
            arguments=dict(arguments),
            scope=scope,
            completeness=whole,
            drafts=tuple(drafts),
            empty=empty,
        )

    def _line(self, path: str, number: int, text: str, whole: Completeness) -> Draft:
        kind: Any = "source" if path.startswith("inputs/source/") else "log"
        if path.endswith(".ini"):
            kind = "config"
        name = path.split("/", 2)[2]
        return Draft(
            content=text,
            provenance=Provenance(
                kind=kind,
                input_path=path,
                input_sha256=self._hashes[path],
                location=Location(path=name, line_start=number, line_end=number),
            ),
            completeness=whole,
        )

    def _search(
        self, tool: str, arguments: Mapping[str, Any], paths: Sequence[str], whole: Completeness
    ) -> ToolResult:
        drafts = [
            self._line(path, number, line, whole)
            for path in paths
            for number, line in enumerate(self._texts[path].splitlines(), start=1)
            if arguments["pattern"] in line
        ]
        return self._result(tool, arguments, {"files": list(paths)}, whole, drafts)

    def _read(self, arguments: Mapping[str, Any]) -> ToolResult:
        path = f"inputs/source/{arguments['path']}"
        if path not in self._texts:
            return ToolResult(
                tool="source.read",
                arguments=dict(arguments),
                scope={"path": arguments["path"]},
                completeness=Completeness.UNAVAILABLE,
                empty=True,
                cause="no_such_file",
            )
        lines = self._texts[path].splitlines()[arguments["line_start"] - 1 : arguments["line_end"]]
        draft = self._line(path, arguments["line_start"], "\n".join(lines), Completeness.COMPLETE)
        return self._result(
            "source.read", arguments, {"path": arguments["path"]}, Completeness.COMPLETE, [draft]
        )

    def _rows(self, arguments: Mapping[str, Any]) -> ToolResult:
        path = f"inputs/diagnostics/{arguments['table']}.csv"
        whole = Completeness.PARTIAL if arguments["table"] in self._partial else Completeness.COMPLETE
        rows = list(csv.DictReader(io.StringIO(self._texts.get(path, ""))))
        drafts = [
            Draft(
                content=canonical_json(row).decode(),
                provenance=Provenance(
                    kind="row",
                    input_path=path,
                    input_sha256=self._hashes[path],
                    location=Location(table=arguments["table"], key={"row": str(number)}),
                ),
                completeness=whole,
            )
            for number, row in enumerate(rows, start=1)
            if row.get(arguments["column"]) == arguments["value"]
        ]
        return self._result("db.rows", arguments, {"table": arguments["table"]}, whole, drafts)


class SmallToolFactory:
    """Opens `SmallTools`; counts the looks of all of them."""

    def __init__(self, *, partial: frozenset[str] = frozenset(), truncated: bool = False) -> None:
        self._partial = partial
        self._truncated = truncated
        self.runs: list[str] = []

    def open(self, store: Store, head: Head) -> SmallTools:
        factory = self

        class Counted(SmallTools):
            def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
                factory.runs.append(tool)
                return super().run(tool, arguments)

        return Counted(store, head, partial=self._partial, truncated=self._truncated)


def content_hash(text: str) -> str:
    """Return the hash of a text."""
    return sha256_hex(text.encode())
