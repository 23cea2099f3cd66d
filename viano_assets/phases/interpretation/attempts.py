"""Which request an attempt sends and what its answer is worth, for both planning modes.

Both are functions of the frozen context and the rejections recorded before the attempt, so that a
replay reaches the same request and the same judgement years later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viano_assets.case.model import CaseDocument
from viano_assets.package.model import Head
from viano_assets.phases.calls import SavedCall
from viano_assets.phases.common import FrozenContext, decode, feedback, request_in
from viano_assets.phases.interpretation.context import correction
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.interpretation.rules import validate
from viano_assets.phases.planning.chain import Attempt, Chain, Reader
from viano_assets.phases.protocols import Phase, Store
from viano_assets.phases.wire import ValidationIssue


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answer is worth.

    `answer` is the accepted interpretation or None; `issues` say why not; `extra` goes into the
    rejection record; `calls` name the calls the interpretation is made of, base first; `plan` is the
    joint plan behind it, None in separate mode.
    """

    answer: InterpretationAnswer | None
    issues: tuple[ValidationIssue, ...]
    calls: tuple[SavedCall, ...]
    plan: Chain | None = None
    extra: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts of one frozen interpretation context."""

    store: Store
    head: Head
    context: FrozenContext
    case: CaseDocument

    @property
    def _joint(self) -> Reader | None:
        if self.context.data["joint_generation"] is None:
            return None
        return Reader(self.store, self.head, self.context, self.case)

    def at(self, before: int | None = None) -> Attempt:
        """Return the next attempt, or the one whose call was recorded in generation `before`."""
        joint = self._joint
        if joint is not None:
            return joint.attempt(before)
        issues = feedback(self.store, self.head, Phase.INTERPRETATION, before)
        return Attempt(correction(request_in(self.context.data), issues))

    def judge(self, attempt: Attempt, call: SavedCall) -> Judgement:
        """Check the answer of `call` against contract and rules."""
        joint = self._joint
        if joint is not None:
            judged = joint.judge(attempt, call)
            calls = (call,) if judged.chain is None else judged.chain.calls
            return Judgement(judged.answer, judged.issues, calls, judged.chain, judged.extra)
        decoded = decode(InterpretationAnswer, call.answer)
        if not isinstance(decoded, InterpretationAnswer):
            return Judgement(None, decoded, (call,))
        issues = validate(decoded, self.case)
        return Judgement(None if issues else decoded, issues, (call,))

    def unreadable(self, attempt: Attempt) -> dict[str, Any] | None:
        """Return what the rejection of an unreadable reply has to keep for the next attempt."""
        joint = self._joint
        return None if joint is None else joint.again(attempt)
