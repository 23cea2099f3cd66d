"""`investigation_project_v11`: v12 without the causal review; effective confidence = requested.

Only packages that were started under it are resumed and replayed; a new revision never uses it.
"""

from __future__ import annotations

from typing import Literal

from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.investigation.contract import Assessment, Next
from viano_assets.phases.wire import Confidence, Text, Wire


class UpdateV11(Wire):
    """What the evidence means for the selected hypothesis, without a declared causal direction."""

    hypothesis_id: str
    evidence_refs: tuple[str, ...]
    requested_confidence: Confidence
    status: Literal["rejected"] | None = None


class InvestigationAnswerV11(Wire):
    """The whole answer of one v11 dispatch."""

    update: UpdateV11
    assessment: Assessment
    next: Next
    question: Text | None = None
    create: Candidate | None = None
