"""`change-request-v1`: what has to become true, and nothing about how (docs/contracts.md, section 10)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.evidence.model import Completeness, Location
from viano_assets.phases.rendering import RenderedBinding
from viano_assets.phases.wire import Confidence

SCHEMA = "change-request-v1"


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)


class BoundArtifact(_Stored):
    """An artifact named by path and content hash."""

    path: str
    sha256: str


class Claim(_Stored):
    """One sentence with the stored evidence and the accepted statements it stands on."""

    text: str
    evidence_ids: tuple[str, ...] = ()
    statement_ids: tuple[str, ...] = ()


class Defect(_Stored):
    """The confirmed cause, in the words of the diagnosis."""

    summary: str
    description: str
    hypothesis_id: str
    confidence: Confidence
    evidence_ids: tuple[str, ...]


class AffectedPlace(_Stored):
    """A place that the confirmed cause names; a file, a symbol or a table row."""

    kind: Literal["file", "symbol", "table"]
    location: Location
    evidence_ids: tuple[str, ...]


class CitedEvidence(_Stored):
    """A record a claim stands on: where it stands and the hash of its stored content."""

    evidence_id: str
    location: Location
    completeness: Completeness
    content_sha256: str


class ChangeRequest(_Stored):
    """The whole document. No patch, no SQL, no code: whoever changes the system decides how.

    `renderings` says what wrote `change_request.md`; it is set when the document is published.
    """

    schema_: Literal["change-request-v1"] = Field(default="change-request-v1", alias="schema")
    case_id: str
    package_id: str
    analysis_revision: int
    policy: str
    title: str
    diagnosis: BoundArtifact
    defect: Defect
    affected: tuple[AffectedPlace, ...]
    required_behaviour: tuple[Claim, ...]
    acceptance_checks: tuple[Claim, ...]
    regressions_to_guard: tuple[Claim, ...]
    must_not_change: tuple[Claim, ...]
    remaining_uncertainty: tuple[str, ...]
    evidence: tuple[CitedEvidence, ...]
    renderings: dict[str, RenderedBinding] = Field(default_factory=dict)

    def claims(self) -> tuple[Claim, ...]:
        """Return every claim outside the defect, in document order."""
        return (
            *self.required_behaviour,
            *self.acceptance_checks,
            *self.regressions_to_guard,
            *self.must_not_change,
        )
