"""What the investigation publishes: one immutable artifact per step, each bound to the one before it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.budget.model import Binding, BudgetSnapshot
from viano_assets.evidence.model import Completeness
from viano_assets.phases.common import artifact_path
from viano_assets.phases.investigation.contract import Effect
from viano_assets.phases.protocols import Message, Phase, RequestLimits
from viano_assets.phases.rendering import RenderedBinding
from viano_assets.phases.wire import Confidence

PHASE = Phase.INVESTIGATION

Schedule = Literal["bootstrap", "confidence"]
HypothesisStatus = Literal["new", "investigating", "rejected", "closed"]
TerminalReason = Literal[
    "budget_exhausted", "low_information", "rejected", "abandoned", "finished", "loop_finished"
]
LoopEnd = Literal["confident", "all_terminal", "dispatch_limit", "cost_limit", "context_limit"]
ActionStatus = Literal["done", "reused", "failed"]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)


class CallRef(_Stored):
    """The accepted model call an artifact stands on."""

    path: str
    sha256: str
    request_sha256: str
    attempt_id: str


class StartContext(_Stored):
    """`context.json`: what the whole loop stands on, and the messages that never change."""

    schema_: Literal["investigation-context-v1"] = Field(default="investigation-context-v1", alias="schema")
    case_id: str
    package_id: str
    analysis_revision: int
    policy: Binding
    bindings: dict[str, Binding]
    raw_inputs: dict[str, str]
    messages: tuple[Message, ...]
    json_schema: dict[str, Any]


class DispatchContext(_Stored):
    """`context-DDDD.json`: who is asked about what; `request_sha256` freezes the exact request.

    `turn` is the data of the last message, `limits` the call's ceilings.
    """

    schema_: Literal["investigation-dispatch-context-v1"] = Field(
        default="investigation-dispatch-context-v1", alias="schema"
    )
    dispatch: int
    selected: str
    schedule: Schedule
    start: Binding
    previous: Binding | None
    turn: dict[str, Any]
    limits: RequestLimits
    request_sha256: str


class ReviewRecord(_Stored):
    """An accepted update: both confidence levels and the declared causal relation.

    `effect` is None under a contract without a causal review.
    """

    requested_confidence: Confidence
    effective_confidence: Confidence
    effect: Effect | None
    support: tuple[str, ...]
    against: tuple[str, ...]
    evidence_refs: tuple[str, ...]
    reason: str
    rejected: bool

    @property
    def capped(self) -> bool:
        """True when the table changed the requested level."""
        return self.requested_confidence is not self.effective_confidence


class AssessmentRecord(_Stored):
    """`effective_score` is 0 when the assessed actions brought no new record."""

    semantic_score: int
    effective_score: int
    novelty_reason: str


class Settlement(_Stored):
    """How one earlier action ended in the ledger; units."""

    action_id: str
    cost: int
    reward: int
    outcome: Literal["settled", "released"]


class PlannedAction(_Stored):
    """A reserved action; `duplicate_of` names the earlier action with the same tool and arguments."""

    action_id: str
    hypothesis_id: str
    tool: str
    arguments: dict[str, Any]
    purpose: str
    countercheck_of: str | None
    cost: int
    duplicate_of: str | None


class Decision(_Stored):
    """`decision-DDDD.json`: the accepted answer and everything the controller derived from it."""

    schema_: Literal["investigation-decision-v1"] = Field(default="investigation-decision-v1", alias="schema")
    dispatch: int
    selected: str
    context: Binding
    call: CallRef
    review: ReviewRecord
    assessment: AssessmentRecord
    settled: tuple[Settlement, ...]
    actions: tuple[PlannedAction, ...]
    dropped: int
    finish: bool
    next_reason: str
    question: str | None
    created: dict[str, Any] | None
    ended: dict[str, TerminalReason]
    loop_end: LoopEnd | None
    notes: tuple[str, ...]


class ActionResult(_Stored):
    """What one action brought. `evidence_ids` in the tool's order, `new_ids` those it minted."""

    action_id: str
    status: ActionStatus
    completeness: Completeness
    empty: bool
    scope: dict[str, Any]
    cause: str | None
    notes: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    new_ids: tuple[str, ...]


class DispatchRecord(_Stored):
    """`dispatch-DDDD.json`: the results, and the history message every later request carries."""

    schema_: Literal["investigation-dispatch-v1"] = Field(default="investigation-dispatch-v1", alias="schema")
    dispatch: int
    decision: Binding
    evidence: Binding | None
    results: tuple[ActionResult, ...]
    history: dict[str, Any]


class HypothesisEnd(_Stored):
    """How one hypothesis stands at the end. `entry` is its registry entry as the model saw it."""

    hypothesis_id: str
    entry: dict[str, Any]
    status: HypothesisStatus
    terminal_reason: TerminalReason
    requested_confidence: Confidence
    effective_confidence: Confidence
    last_review: ReviewRecord | None
    turns: int
    questions: tuple[str, ...]
    notes: tuple[str, ...]
    balance: int


class ActionEnd(_Stored):
    """One action over its whole life; `reward` in units, `assessed` False when no answer ever judged it."""

    action: PlannedAction
    dispatch: int
    result: ActionResult
    reward: int
    assessed: bool


class NotExamined(_Stored):
    """Something the investigation did not look at, or not fully; `subject` is an id, path or tool."""

    kind: Literal[
        "look_limited",
        "look_unassessed",
        "hypothesis_unassessed",
        "input_unread",
        "files_unread",
        "statements_skipped",
        "tool_unused",
    ]
    subject: str
    text: str


class Pieces(_Stored):
    """Every artifact the result stands on, in order."""

    contexts: tuple[Binding, ...]
    decisions: tuple[Binding, ...]
    dispatches: tuple[Binding, ...]
    evidence: tuple[Binding, ...]
    ledger: tuple[Binding, ...]


class InvestigationDocument(_Stored):
    """`investigation.json`: the completed investigation; `renderings` says what wrote `investigation.md`."""

    schema_: Literal["investigation-v1"] = Field(default="investigation-v1", alias="schema")
    case_id: str
    package_id: str
    analysis_revision: int
    contract: str
    status: Literal["completed"] = "completed"
    reason: LoopEnd
    dispatches: int
    context: Binding
    policy: Binding
    hypotheses: tuple[HypothesisEnd, ...]
    actions: tuple[ActionEnd, ...]
    evidence_count: int
    budget: BudgetSnapshot
    not_examined: tuple[NotExamined, ...]
    pieces: Pieces
    renderings: dict[str, RenderedBinding] = Field(default_factory=dict)


class EvidenceIndexEntry(_Stored):
    """Where one record lies."""

    evidence_id: str
    path: str
    content_sha256: str


class EvidenceIndex(_Stored):
    """`evidence.json`: every record of the revision and the piece that holds it."""

    schema_: Literal["evidence-index-v1"] = Field(default="evidence-index-v1", alias="schema")
    records: tuple[EvidenceIndexEntry, ...]


def numbered(revision: int, name: str, dispatch: int) -> str:
    """Return the path of a per-dispatch artifact, for example `…/context-0001.json`."""
    return artifact_path(PHASE, revision, f"{name}-{dispatch:04d}.json")
