"""Evidence as it is stored and cited (docs/contracts.md, section 7)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.canonical import canonical_json, sha256_hex


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Completeness(StrEnum):
    """How much of the stated scope was looked at; only an empty result is voided by less than complete."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    TRUNCATED = "truncated"
    UNAVAILABLE = "unavailable"


class Location(_Frozen):
    """A place in the source or the data; lines are 1-based and inclusive.

    `symbol` is the qualified name without parameters in the language's form; `key` maps key columns
    to their values as text.
    """

    path: str | None = None
    symbol: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    table: str | None = None
    key: dict[str, str] | None = None
    column: str | None = None


EvidenceKind = Literal[
    "source", "config", "row", "query", "schema", "log", "case", "history", "ranking", "search", "absence"
]
"""What the content is. `source`/`config`: exact lines of a file; `row`: one table row; `query`: a result
set; `schema`: table structure; `log`: log lines; `case`: a case source; `history`: revision history;
`ranking`: ordered retrieval hits; `search`: textual hits; `absence`: the look came back empty."""


class Provenance(_Frozen):
    """Where the content stands in the raw inputs; line numbers are hints, the quote is the anchor."""

    kind: EvidenceKind
    input_path: str | None = None
    input_sha256: str | None = None
    location: Location = Location()
    byte_start: int | None = None
    timestamp: str | None = None
    preprocessor: tuple[str, ...] = ()
    """Enclosing `#if` stack of a C/C++ excerpt, outermost first."""


class Draft(_Frozen):
    """One piece of evidence as a tool returns it, before the store gives it an id.

    `places` are the ranked locations a `ranking` or `search` names, best first.
    """

    content: str
    provenance: Provenance
    completeness: Completeness
    places: tuple[Location, ...] = ()


class ToolResult(_Frozen):
    """What one tool call looked at and found; never an exception.

    `scope` says what was searched (files, globs, tables, time range, caps) as small JSON; `empty` marks
    a look that found nothing; `cause` names a cap, time-out or failure.
    """

    tool: str
    arguments: dict[str, Any]
    scope: dict[str, Any]
    completeness: Completeness
    drafts: tuple[Draft, ...] = ()
    empty: bool = False
    cause: str | None = None
    notes: tuple[str, ...] = ()


class EvidenceRecord(_Frozen):
    """A stored, citable piece of evidence. Same content and provenance is the same record."""

    schema_: Literal["evidence-v1"] = Field(default="evidence-v1", alias="schema")
    evidence_id: str
    tool: str
    arguments: dict[str, Any]
    scope: dict[str, Any]
    completeness: Completeness
    content: str
    content_sha256: str
    provenance: Provenance
    places: tuple[Location, ...] = ()
    bytes: int
    cause: str | None = None

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)

    @property
    def empty(self) -> bool:
        """True when the record states that nothing was found."""
        return self.provenance.kind == "absence"


def evidence_identity(draft: Draft) -> str:
    """Return the hash of content and provenance that decides whether two drafts are one record."""
    return sha256_hex(
        canonical_json([draft.content, draft.provenance.model_dump(mode="json", exclude_none=True)])
    )
