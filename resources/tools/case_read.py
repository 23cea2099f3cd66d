"""`case.read`: the full text of one source of the canonical case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resources.tools.contract import Arguments, nothing, spec
from viano_assets.case.model import CaseDocument
from viano_assets.evidence.model import Completeness, Draft, Location, Provenance, ToolResult


class CaseReadArguments(Arguments):
    """Arguments of `case.read`."""

    source_id: str


SPEC = spec("case.read", "full text of one source of the case", CaseReadArguments, 1)


def read(case: CaseDocument, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the text of a case source, or a complete absence for an id that the case does not have."""
    wanted = CaseReadArguments.model_validate(arguments).source_id
    looked = {"sources": len(case.sources)}
    source = next((item for item in case.sources if item.id == wanted), None)
    if source is None:
        sentence = f"the case has no source {wanted}"
        return nothing("case.read", arguments, looked, Completeness.COMPLETE, sentence)
    draft = Draft(
        content=source.text,
        provenance=Provenance(
            kind="case",
            input_path=source.origin.input_path,
            input_sha256=source.origin.input_sha256,
            location=Location(
                path=source.origin.input_path,
                line_start=source.origin.line_start,
                line_end=source.origin.line_end,
            ),
            byte_start=source.origin.byte_start,
        ),
        completeness=Completeness.COMPLETE,
    )
    return ToolResult(
        tool="case.read",
        arguments=dict(arguments),
        scope={**looked, "source_id": wanted, "type": source.type.value},
        completeness=Completeness.COMPLETE,
        drafts=(draft,),
    )
